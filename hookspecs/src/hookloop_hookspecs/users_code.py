"""Does validation run users' code? A validator of theirs may take long, hang, or belong to one thread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_PLAIN: Final = frozenset(
    {"model-fields", "model-field", "typed-dict", "typed-dict-field", "definitions", "definition-ref"}
) | {
    *(
        "str",
        "int",
        "float",
        "bool",
        "none",
        "any",
        "bytes",
        "decimal",
        "uuid",
        "date",
        "time",
        "datetime",
        "timedelta",
    ),
    *("list", "tuple", "set", "frozenset", "dict", "nullable", "union", "literal", "enum", "default"),
}
"""Kinds of pydantic's core schemas that run pydantic's own code alone."""
_VALUES: Final = frozenset(
    {"metadata", "serialization", "default", "expected", "members", "config", "cls", "ref", "schema_ref"}
)
"""Keys behind which no schema stands."""


def plain(schema: Mapping[str, Any]) -> bool:
    """Does a model of this core schema check its fields with pydantic's own code alone? Models inside it count as users' code."""
    inner = schema
    while inner["type"] == "definitions":
        if not all(map(_plain, inner["definitions"])):
            return False
        inner = inner["schema"]
    return inner["type"] == "model" and _plain(inner["schema"])


def _plain(schema: Any) -> bool:
    if isinstance(schema, list | tuple):
        return all(map(_plain, schema))
    if not isinstance(schema, Mapping):
        return True
    kind = schema.get("type")
    if isinstance(kind, str) and (kind not in _PLAIN or "default_factory" in schema or schema.get("missing")):
        return False
    return all(_plain(value) for key, value in schema.items() if key not in _VALUES)
