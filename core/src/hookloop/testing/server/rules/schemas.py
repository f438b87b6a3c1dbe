"""What the vendors ask of a JSON Schema of a tool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_UNIONS = ("oneOf", "anyOf", "allOf")
_NESTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED = ("properties", "$defs", "definitions")


def objects(schema: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, Any]]]:
    """Every schema inside a schema, with its path, the schema itself first."""
    if not isinstance(schema, Mapping):
        return
    yield path, schema
    for key in _NAMED:
        for name, inner in _items(schema.get(key)):
            yield from objects(inner, (*path, key, name))
    for key in _NESTED:
        for index, inner in enumerate(schema[key] if isinstance(schema.get(key), list) else ()):
            yield from objects(inner, (*path, key, str(index)))
    for key in ("items", "additionalProperties"):
        yield from objects(schema.get(key), (*path, key))


def properties(schema: Any) -> Iterator[str]:
    """Every property name in a schema, at any depth."""
    for _, inner in objects(schema):
        yield from (name for name, _ in _items(inner.get("properties")))


def top_unions(schema: Mapping[str, Any]) -> list[str]:
    """The union keywords at the top of a schema."""
    return [key for key in _UNIONS if key in schema]


def strict_faults(schema: Any) -> Iterator[str]:
    """Why a schema does not do for strict mode: open objects, optional properties, defaults, unions at the root."""
    for path, inner in objects(schema):
        where = f"In context={path!r}, "
        if _is_object(inner):
            yield from (where + fault for fault in _closed_faults(inner))
        if "default" in inner:
            yield f"{where}'default' is not permitted."
        yield from (f"{where}'{key}' is not permitted." for key in ("oneOf", "allOf") if key in inner)


def root_fault(schema: Any) -> str | None:
    """Why the root of a schema is not the object that parameters are."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind == "object":
        return None
    return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."


def _closed_faults(schema: Mapping[str, Any]) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        yield "'additionalProperties' is required to be supplied and to be false."
    required = schema.get("required") or []
    missing = [name for name, _ in _items(schema.get("properties")) if name not in required]
    if missing:
        keys = ", ".join(f"'{name}'" for name in missing)
        yield f"'required' is required to be supplied and to be an array including every key in properties. Missing {keys}."


def _is_object(schema: Mapping[str, Any]) -> bool:
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind) or "properties" in schema


def _items(value: Any) -> Iterator[tuple[str, Any]]:
    return iter(value.items()) if isinstance(value, Mapping) else iter(())
