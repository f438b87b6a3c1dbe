"""Arguments checked against a JSON Schema that somebody gave.

As deep as a tool call needs: type, required, properties, additionalProperties, patternProperties, items, prefixItems,
enum, const, anyOf, oneOf (as anyOf), allOf and local references. Bounds, patterns, formats and conditions are left to
the function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from .arguments import ArgumentsError, Path, quoted
from .errors import ConfigError
from .mending import Fault, Faulty, mended
from .parameters import EMPTY, Reading
from .refs import MAPS, Schema, reference, subschemas, target

_IS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: _number(value) and value == value // 1,
    "number": lambda value: _number(value),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, Mapping),
    "array": lambda value: isinstance(value, list | tuple),
}
_CONTAINERS: Final = {"object", "array"}


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class RawCheck:
    """Checks arguments against `schema`; they come out as they are, small slips mended."""

    def __init__(self, given: Schema, reading: Reading) -> None:
        _fitting(given, reading)
        self.schema = given if reading.extra is not EMPTY else {"additionalProperties": False, **given}
        self._reserved = reading.reserved
        self._known = tuple(self.schema["properties"])

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments. Raises `ArgumentsError`."""
        try:
            return mended(self._checked, arguments, self._known)
        except RecursionError as error:
            raise ArgumentsError("arguments are nested too deeply") from error

    def _checked(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        faults = list(self._faults(self.schema, arguments, ()))
        faults += [
            Fault((name,), "unknown", arguments[name], unknown=True) for name in self._reserved & arguments.keys()
        ]
        if faults:
            raise Faulty(faults)
        return dict(arguments)

    def _faults(self, schema: Any, value: Any, path: Path) -> Iterator[Fault]:
        if schema is False:
            yield Fault(path, "is not allowed", value)
        if not isinstance(schema, dict):
            return
        if (ref := reference(schema)) is not None:
            yield from self._faults(_followed(self.schema, ref), value, path)
        for part in schema.get("allOf", ()):
            yield from self._faults(part, value, path)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                yield from self._alternatives(schema[key], value, path)
        yield from _own_faults(schema, value, path)
        if isinstance(value, Mapping):
            yield from self._members(schema, value, path)
        elif isinstance(value, list | tuple):
            yield from self._items(schema, value, path)

    def _alternatives(self, members: list[Any], value: Any, path: Path) -> Iterator[Fault]:
        """Nothing when one of them fits; else the faults of those that came closest."""
        tried = [list(self._faults(member, value, path)) for member in members]
        if all(tried):
            near = [faults for faults in tried if all(len(fault.where) > len(path) for fault in faults)]
            yield from (fault for faults in near or tried for fault in faults)

    def _members(self, schema: Schema, value: Mapping[str, Any], path: Path) -> Iterator[Fault]:
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                yield Fault((*path, name), "required", missing=True)
        for name, inner in value.items():
            for part in _schemas_of(name, schema, properties):
                if part is False:
                    yield Fault((*path, name), "unknown", inner, unknown=True)
                else:
                    yield from self._faults(part, inner, (*path, name))

    def _items(self, schema: Schema, value: list[Any] | tuple[Any, ...], path: Path) -> Iterator[Fault]:
        places = schema.get("prefixItems", [])
        for place, inner in enumerate(value):
            part = places[place] if place < len(places) else schema.get("items")
            yield from self._faults(part, inner, (*path, place))


def _own_faults(schema: Schema, value: Any, path: Path) -> Iterator[Fault]:
    kinds = schema.get("type", ())
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_IS[kind](value) for kind in kinds if kind in _IS):
        container = bool(_CONTAINERS.intersection(kinds))
        yield Fault(path, f"should be {' or '.join(kinds)}", value, container=container)
    elif "enum" in schema and value not in schema["enum"]:
        yield Fault(path, f"should be one of {quoted(schema['enum'])}", value)
    elif "const" in schema and value != schema["const"]:
        yield Fault(path, f"should be {quoted(schema['const'])}", value)


def _schemas_of(name: str, schema: Schema, properties: Mapping[str, Any]) -> list[Any]:
    """The schemas that a member of an object must obey; False where it may not be there."""
    found = [properties[name]] if name in properties else []
    found += [part for pattern, part in schema.get("patternProperties", {}).items() if _matches(pattern, name)]
    return found or [schema.get("additionalProperties", True)]


def _matches(pattern: str, name: str) -> bool:
    try:
        return re.search(pattern, name) is not None
    except re.error:  # a pattern of another dialect than Python's: the function has to judge
        return True


def _followed(root: Schema, ref: str) -> Any:
    """What a reference leads to, through references that are nothing but references."""
    seen = set()
    found: Any = root
    while ref not in seen:
        seen.add(ref)
        try:
            found = target(root, ref)
        except KeyError:
            return True
        following = reference(found)
        if following is None:
            return found
        ref = following
    return True


def read_schema(given: Mapping[str, Any] | str, label: str) -> Schema:
    """A private copy of an object schema, with `type` and `properties`. Raises `ConfigError` where it is none."""
    try:
        schema = json.loads(given if isinstance(given, str) else json.dumps(given))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{label}: the schema is not JSON: {error}") from error
    if not isinstance(schema, dict):
        raise ConfigError(f"{label}: the schema is not a JSON object: {quoted(schema)}")
    schema = {"type": "object", "properties": {}, **schema}
    if schema["type"] != "object" or not isinstance(schema["properties"], dict):
        raise ConfigError(f"{label}: the schema is not that of an object with properties: {quoted(schema)}")
    _well_formed(schema, label)
    return schema


def _kinds(value: Any) -> bool:
    return all(isinstance(kind, str) and kind in _IS for kind in (value if isinstance(value, list) else [value]))


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _object(value: Any) -> bool:
    return isinstance(value, dict)


_SHAPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "type": _kinds,
    "required": _names,
    **dict.fromkeys(("enum", "prefixItems", "anyOf", "oneOf", "allOf"), _list),
    **dict.fromkeys(MAPS, _object),
}


def _well_formed(schema: Any, label: str) -> None:
    """Look at the schema and all within, so that checking arguments meets no surprise."""
    if not isinstance(schema, dict | bool):
        raise ConfigError(f"{label}: {quoted(schema)} stands where the schema has to have a schema")
    for key, value in schema.items() if isinstance(schema, dict) else ():
        if key in _SHAPES and not _SHAPES[key](value):
            raise ConfigError(f"{label}: {key!r} of the schema cannot be {quoted(value)}")
    for inner in subschemas(schema):
        _well_formed(inner, label)


def _fitting(schema: Schema, reading: Reading) -> None:
    names = {p.name for p in reading.parameters}
    properties = schema["properties"].keys()
    if taken := sorted(properties & reading.reserved):
        raise ConfigError(f"{reading.label}: {taken[0]!r} is not the model's to fill, but the schema lists it")
    if reading.extra is EMPTY and (extra := sorted(properties - names)):
        raise ConfigError(f"{reading.label}: the schema lists {extra[0]!r}, which the function does not take")
    required = {p.name for p in reading.parameters if p.default is EMPTY} - set(schema.get("required", ()))
    if required:
        raise ConfigError(
            f"{reading.label}: the function needs {sorted(required)[0]!r}, the schema does not require it"
        )
