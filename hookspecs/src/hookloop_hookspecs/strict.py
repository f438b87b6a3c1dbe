"""The strict variant of a JSON Schema, in which a model fills in every property."""

from __future__ import annotations

from typing import Any, Final

from .refs import DEFINITIONS, Schema, mapped, reference, references, target

_DROPPED: Final = {"default", "uniqueItems", "discriminator", "$schema", "$id", "$comment"}
_REFUSED: Final = {
    "not", "if", "then", "else", "patternProperties", "propertyNames", "dependentRequired", "dependentSchemas",
    "dependencies", "unevaluatedProperties", "unevaluatedItems", "contains", "minProperties", "maxProperties",
    "prefixItems", "additionalItems",
}  # fmt: skip
_KINDS: Final = {
    str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", dict: "object", list: "array",
}  # fmt: skip


class _NotStrict(Exception):
    pass


def strict_schema(schema: Schema) -> Schema | None:
    """The variant for a provider's strict mode, or None where the shape has none.

    Every object gets `additionalProperties: false` and lists all its properties as required; those that were optional
    may be null instead; `default` and other keys that strict modes refuse are left out. There is no strict variant of
    objects with free keys (`dict[str, X]`), tuples, values of any type, and conditional schemas. Making a strict
    schema strict changes nothing. The input is not changed.
    """
    try:
        return _root(schema)
    except (_NotStrict, RecursionError):
        return None


def _root(schema: Schema) -> Schema:
    if (ref := reference(schema)) is not None:
        found = _followed(schema, ref)
        if not isinstance(found, dict) or found is schema:
            raise _NotStrict
        return _root({**found, **{key: value for key, value in schema.items() if key in DEFINITIONS}})
    if schema.get("type", "object") != "object" or schema.keys() & {"anyOf", "oneOf", "allOf", "enum", "const"}:
        raise _NotStrict
    for ref in references(schema):
        _followed(schema, ref)
    return _strict({"type": "object", "properties": {}, **schema})


def _followed(schema: Schema, ref: str) -> Any:
    try:
        return target(schema, ref)
    except KeyError as error:
        raise _NotStrict from error


def _strict(schema: Any) -> Schema:
    if not isinstance(schema, dict) or schema.keys() & _REFUSED:
        raise _NotStrict
    schema = _typed(_alternatives({key: value for key, value in schema.items() if key not in _DROPPED}))
    if _is(schema, "object"):
        schema = _closed(schema)
    if _is(schema, "array") and not isinstance(schema.get("items"), dict):
        raise _NotStrict
    return _referring(_required({**schema, **_inner(schema)}))


def _inner(schema: Schema) -> Schema:
    """The parts that hold schemas, made strict (`additionalProperties` is settled already)."""
    inner: Schema = mapped({key: value for key, value in schema.items() if key != "additionalProperties"}, _strict)
    return inner


def _alternatives(schema: Schema) -> Schema:
    """`oneOf` as `anyOf`, and an `allOf` of one merged in: the forms that strict modes know."""
    if "oneOf" in schema:
        if "anyOf" in schema:
            raise _NotStrict
        schema = {("anyOf" if key == "oneOf" else key): value for key, value in schema.items()}
    if "allOf" in schema:
        members = schema["allOf"]
        if len(members) != 1 or not isinstance(members[0], dict):
            raise _NotStrict
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        return _alternatives({**{k: v for k, v in members[0].items() if k not in _DROPPED}, **rest})
    return schema


def _typed(schema: Schema) -> Schema:
    if schema.keys() & {"type", "anyOf", "$ref"}:
        return schema
    if schema.keys() & {"properties", "required", "additionalProperties"}:
        return {"type": "object", **schema}
    if "items" in schema:
        return {"type": "array", **schema}
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if not values:
        raise _NotStrict
    kinds = sorted({_KINDS[type(value)] for value in values})
    return {"type": kinds[0] if len(kinds) == 1 else kinds, **schema}


def _is(schema: Schema, kind: str) -> bool:
    kinds = schema.get("type", ())
    return kind in ([kinds] if isinstance(kinds, str) else kinds)


def _closed(schema: Schema) -> Schema:
    """An object without further keys; one that is made of free keys cannot be."""
    further = schema.get("additionalProperties")
    if further not in (None, False) or ("properties" not in schema and further is None):
        raise _NotStrict
    return {**schema, "properties": schema.get("properties", {}), "additionalProperties": False}


def _required(schema: Schema) -> Schema:
    if not _is(schema, "object"):
        return schema
    already = set(schema.get("required", ()))
    if not already <= schema["properties"].keys():
        raise _NotStrict
    properties = {name: inner if name in already else _nullable(inner) for name, inner in schema["properties"].items()}
    return {**schema, "properties": properties, "required": list(properties)}


def _nullable(schema: Schema) -> Schema:
    if "anyOf" in schema:
        members = schema["anyOf"]
        return schema if any(map(_admits_null, members)) else {**schema, "anyOf": [*members, {"type": "null"}]}
    if "$ref" in schema or "const" in schema:
        described = {key: value for key, value in schema.items() if key in {"description", "title"}}
        bare = {key: value for key, value in schema.items() if key not in described}
        return {**described, "anyOf": [bare, {"type": "null"}]}
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    widened = schema if "null" in kinds else {**schema, "type": [*kinds, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        widened = {**widened, "enum": [*schema["enum"], None]}
    return widened


def _admits_null(schema: Schema) -> bool:
    return _is(schema, "null") or ("anyOf" in schema and any(map(_admits_null, schema["anyOf"])))


def _referring(schema: Schema) -> Schema:
    """A reference alone: strict modes refuse anything beside it, so what describes it goes around it."""
    if "$ref" not in schema:
        return schema
    if reference(schema) is None:
        raise _NotStrict
    if len(schema) == 1:
        return schema
    beside = {key: value for key, value in schema.items() if key in {"description", "title", *DEFINITIONS}}
    return {**beside, "anyOf": [{"$ref": schema["$ref"]}]} if beside else {"$ref": schema["$ref"]}
