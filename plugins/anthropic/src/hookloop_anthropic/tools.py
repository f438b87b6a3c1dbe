"""Tools and schemas as the API takes them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

import anthropic
from hookloop_hookspecs import ToolSpec, json_text

from .models import Generation
from .names import Names
from .properties import renamed_schema, renames

_UNIONS: Final = ("anyOf", "oneOf", "allOf")


def tool_texts(tools: Iterable[ToolSpec], names: Names, model: Generation) -> list[str]:
    """Each tool as JSON text, in order."""
    return [_tool_text(tool, names.wire(tool.name), tool.strict and model.structured) for tool in tools]


@lru_cache(maxsize=512)
def _tool_text(tool: ToolSpec, name: str, strict: bool) -> str:
    names = renames(tool.schema)
    given = object_schema(json.loads(tool.schema))
    schema = renamed_schema(given, names) if names else given
    described = {"description": tool.description} if tool.description.strip() else {}
    if strict:
        return json_text({"name": name, **described, "input_schema": closed(schema), "strict": True})
    return json_text({"name": name, **described, "input_schema": schema})


@lru_cache(maxsize=128)
def output_format(schema: str) -> dict[str, Any]:
    """What asks for replies of this schema (JSON text)."""
    return {"type": "json_schema", "schema": closed(json.loads(schema))}


def closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in the subset that strict modes take; as it is where it cannot be brought there."""
    try:
        return anthropic.transform_schema(schema)
    except (ValueError, TypeError, AttributeError):
        return schema


def object_schema(schema: Any) -> dict[str, Any]:
    """A schema whose top is a plain object: references are followed and unions flattened, for the API takes neither."""
    top = _followed(schema) if isinstance(schema, dict) else {}
    branches = [_followed({**_defs(top), **b}) for key in _UNIONS for b in top.get(key) or () if isinstance(b, dict)]
    rest = {key: value for key, value in top.items() if key not in (*_UNIONS, "$ref")}
    if not branches:
        return {**rest, "type": "object"}
    properties: dict[str, Any] = {}
    for branch in (*branches, rest):
        properties |= branch.get("properties") or {}
    required = _required(rest, branches, every="allOf" in top)
    return {**rest, "type": "object", "properties": properties, **({"required": required} if required else {})}


def _required(rest: Mapping[str, Any], branches: list[dict[str, Any]], *, every: bool) -> list[str]:
    lists = [branch.get("required") or [] for branch in branches]
    chosen = [name for names in lists for name in names if every or all(name in other for other in lists)]
    return list(dict.fromkeys([*(rest.get("required") or []), *chosen]))


def _defs(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in ("$defs", "definitions") if key in schema}


def _followed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema that a reference at the top leads to, with the definitions kept."""
    seen: set[str] = set()
    while isinstance(ref := schema.get("$ref"), str) and ref not in seen:
        seen.add(ref)
        target = _found(schema, ref)
        if target is None:
            break
        schema = {**_defs(schema), **target, **{k: v for k, v in schema.items() if k not in ("$ref", *target)}}
    return schema


def _found(schema: Mapping[str, Any], ref: str) -> dict[str, Any] | None:
    place: Any = schema
    for step in ref.removeprefix("#/").split("/"):
        place = place.get(step) if isinstance(place, Mapping) else None
    return place if isinstance(place, dict) else None
