"""What is wrong with a configuration, in words: place, key, reason, nearest right name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from .config_file import Keys
from .hiding import hidden, told
from .names import suggest

Schema: TypeAlias = Mapping[str, Any]
Where: TypeAlias = Callable[[Keys], str]

WANTED = {
    "model_type": "a table",
    "dict_type": "a table",
    "list_type": "a list",
    "string_type": "text",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
}
SECRETS = ("api_key", "apikey", "auth_token", "secret_key", "password")


def faults(error: ValidationError, schema: Schema, where: Where, noun: str = "key") -> str:
    """One line for each fault.

    Arguments: `schema` is the JSON Schema of what was validated; `where` tells a key's place; `noun` is what keys are
    called.
    """
    lines = [_line(detail, schema, where, noun) for detail in error.errors(include_url=False)]
    return "\n".join(sorted(lines, key=_natural))


def _natural(line: str) -> list[tuple[int, str]]:
    """Sorts by line number, not by its digits."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", line)]


def _line(detail: ErrorDetails, schema: Schema, where: Where, noun: str) -> str:
    keys = tuple(key for key in detail["loc"] if key != "[key]")
    *above, last = keys or ("",)
    place = where(keys)
    if detail["type"] == "extra_forbidden":
        inside = f" in {dotted(above)}" if above else ""
        return f"{place}: unknown {noun} {last!r}{inside}{suggest(str(last), known(schema, above))}"
    return f"{place}: {dotted(keys)}: {_reason(detail, schema, keys)}"


def _reason(detail: ErrorDetails, schema: Schema, keys: Keys) -> str:
    message, value = detail["msg"], detail["input"]
    if detail["type"] == "missing":
        return "is missing"
    if detail["type"] == "literal_error":
        return f"{_brief(value, keys)} is not one of {detail['ctx']['expected']}{_near(value, schema, keys)}"
    if detail["type"] in ("unknown_name", "value_error"):
        return told(message.removeprefix("Value error, "))
    wanted = WANTED.get(detail["type"]) or told(message.removeprefix("Input ").removeprefix("should be "))
    return f"should be {wanted}, not {_brief(value, keys)}"


def _near(value: object, schema: Schema, keys: Keys) -> str:
    choices = [str(choice) for choice in _choices(_at(schema, keys) or {})]
    hint = suggest(str(value), choices)
    return hint if "did you mean" in hint else ""


def _choices(node: Schema) -> Iterator[Any]:
    yield from node.get("enum", ())
    for part in node.get("anyOf", ()):
        yield from _choices(part)


def _brief(value: object, keys: Keys) -> str:
    text = repr(hidden(value, keys[-1] if keys else ""))
    return text if len(text) < 60 else f"{text[:57]}..."


def dotted(keys: list[str | int] | Keys) -> str:
    """A key path as TOML writes it, with positions in brackets."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in keys).removeprefix(".")


def known(schema: Schema, keys: list[str | int] | Keys) -> list[str]:
    """The keys that may stand in the table at `keys`."""
    return list((_at(schema, tuple(keys)) or {}).get("properties", ()))


def _at(schema: Schema, keys: Keys) -> Schema | None:
    """The part of a JSON Schema that describes what stands at `keys`."""
    node: Schema | None = _resolved(schema, schema)
    for key in keys:
        node = _below(schema, node, key) if node is not None else None
    return node


def _below(schema: Schema, node: Schema, key: str | int) -> Schema | None:
    for option in (node, *(_resolved(schema, part) for part in node.get("anyOf", ()))):
        found = option.get("items") if isinstance(key, int) else option.get("properties", {}).get(key)
        if found is None and isinstance(option.get("additionalProperties"), dict):
            found = option["additionalProperties"]
        if found is not None:
            return _objects(schema, _resolved(schema, found))
    return None


def _objects(schema: Schema, node: Schema) -> Schema:
    """Of alternatives the one with keys, where there is one."""
    options = [_resolved(schema, part) for part in node.get("anyOf", ())]
    return next((option for option in options if "properties" in option), node)


def _resolved(schema: Schema, node: Schema) -> Schema:
    reference = node.get("$ref")
    return schema["$defs"][reference.rpartition("/")[2]] if reference else node


def secrets(data: object, keys: Keys = ()) -> Iterator[Keys]:
    """The paths of keys whose name says that their value is a secret."""
    pairs = data.items() if isinstance(data, Mapping) else enumerate(data) if isinstance(data, list) else ()
    for key, value in pairs:
        if isinstance(value, str) and str(key).lower().replace("-", "_") in SECRETS:
            yield (*keys, key)
        yield from secrets(value, (*keys, key))
