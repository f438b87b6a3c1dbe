"""Structured output: from the type a caller names to its schema and its parser."""

from __future__ import annotations

import inspect
import re
from typing import Any

from pydantic import PydanticUserError, TypeAdapter, ValidationError

from hookloop_hookspecs import ConfigError, json_text

from .engine.run import OutputSpec


def output_spec(kind: Any) -> OutputSpec:
    """The output that `run(..., output=kind)` asks for. A type whose schema is no object is wrapped into one ("value").

    Raises `ConfigError` for a type that pydantic cannot describe.
    """
    if inspect.isroutine(kind):
        raise ConfigError(f"output={kind!r} is a function; give a type, for example a pydantic model")
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = adapter.json_schema()
    except PydanticUserError as error:
        raise ConfigError(f"output={kind!r} is no type that pydantic can describe: {error}") from error
    name = re.sub(r"[^A-Za-z0-9_]", "_", getattr(kind, "__name__", "output"))
    wrapped = schema.get("type") != "object"
    if wrapped:
        definitions = schema.pop("$defs", None)
        schema = {
            "type": "object",
            "properties": {"value": schema},
            "required": ["value"],
            "additionalProperties": False,
        }
        if definitions:
            schema["$defs"] = definitions

    def parse(text: str) -> Any:
        try:
            if wrapped:
                return TypeAdapter(dict[str, kind]).validate_json(_bare(text))["value"]
            return adapter.validate_json(_bare(text))
        except ValidationError as error:
            raise ValueError(_problems(error)) from error
        except KeyError:
            raise ValueError("value: Field required") from None

    return OutputSpec(f"final_{name}"[:64], json_text(schema), parse)


def _bare(text: str) -> str:
    """The JSON in a text that may be fenced, as models like to do."""
    match = re.fullmatch(r"\s*```(?:json)?\s*(.*?)\s*```\s*", text, re.DOTALL)
    return match[1] if match else text


def _problems(error: ValidationError) -> str:
    lines = [
        f"{'.'.join(map(str, fault['loc'])) or 'text'}: {fault['msg']}" for fault in error.errors(include_url=False)
    ]
    return "; ".join(lines[:20])
