"""Property names that the API accepts, in a tool's schema and in its arguments, both ways."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from hookloop_hookspecs import json_text

from .names import safe

Renames: TypeAlias = Mapping[str, str]

_GOOD: Final = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_NAMED: Final = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
_PLAIN: Final = ("enum", "const", "default", "examples")


@lru_cache(maxsize=512)
def renames(schema: str) -> Renames:
    """The names in a schema (JSON text) that the API refuses, each with the one that is sent in its place."""
    names = dict.fromkeys(_names(json.loads(schema)))
    taken = {name for name in names if _GOOD.fullmatch(name)}
    return MappingProxyType({name: safe(name, taken, 64) for name in names if not _GOOD.fullmatch(name)})


def _names(schema: Any) -> Iterator[str]:
    if isinstance(schema, list):
        for item in schema:
            yield from _names(item)
    for key, value in schema.items() if isinstance(schema, dict) else ():
        if key == "properties" and isinstance(value, dict):
            yield from value
        if key not in _PLAIN:
            yield from _names(list(value.values()) if key in _NAMED and isinstance(value, dict) else value)


def renamed_schema(schema: Any, names: Renames) -> Any:
    """The schema with its properties renamed; the old name stays as the property's title."""
    if isinstance(schema, list):
        return [renamed_schema(item, names) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {key: _renamed_value(key, value, names) for key, value in schema.items()}


def _renamed_value(key: str, value: Any, names: Renames) -> Any:
    if key in _PLAIN:
        return value
    if key == "required" and isinstance(value, list):
        return [names.get(name, name) if isinstance(name, str) else name for name in value]
    if key == "properties" and isinstance(value, dict):
        return {
            names.get(name, name): _titled(renamed_schema(inner, names), name, names) for name, inner in value.items()
        }
    if key in _NAMED and isinstance(value, dict):
        return {name: renamed_schema(inner, names) for name, inner in value.items()}
    return renamed_schema(value, names)


def _titled(schema: Any, name: str, names: Renames) -> Any:
    return {"title": name, **schema} if name in names and isinstance(schema, dict) and "$ref" not in schema else schema


def renamed(raw: str, names: Renames) -> str:
    """Arguments (JSON text) with their keys renamed; as they are where they are no JSON."""
    try:
        return json_text(_renamed_keys(json.loads(raw), names))
    except (ValueError, RecursionError):
        return raw


def _renamed_keys(value: Any, names: Renames) -> Any:
    if isinstance(value, dict):
        return {names.get(key, key): _renamed_keys(inner, names) for key, inner in value.items()}
    return [_renamed_keys(inner, names) for inner in value] if isinstance(value, list) else value
