"""The strict variant of a schema."""

import copy
import json
from collections.abc import Iterator
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from hookloop_hookspecs.schema import describe, strict_schema


def objects(schema: Any) -> Iterator[dict[str, Any]]:
    """Every object schema within, wherever it stands."""
    if isinstance(schema, list):
        for inner in schema:
            yield from objects(inner)
    elif isinstance(schema, dict):
        kinds = schema.get("type", ())
        if "properties" in schema and (kinds == "object" or "object" in kinds):
            yield schema
        for inner in schema.values():
            yield from objects(inner)


def assert_strict(schema: dict[str, Any] | None) -> dict[str, Any]:
    assert schema is not None
    found = list(objects(schema))
    assert found
    for each in found:
        assert each["additionalProperties"] is False
        assert each["required"] == list(each["properties"])
    assert strict_schema(schema) == schema
    return schema


def test_i04_defaults_go_all_is_required_and_optional_is_nullable() -> None:
    def f(name: str, n: int = 5, tag: str | None = None) -> None: ...

    plain = json.loads(describe(f).schema)
    strict = assert_strict(strict_schema(plain))
    assert strict["properties"] == {
        "name": {"type": "string"},
        "n": {"type": ["integer", "null"]},
        "tag": {"anyOf": [{"type": "string"}, {"type": "null"}]},
    }
    assert "default" not in json.dumps(strict)
    assert plain["required"] == ["name"]


UNTYPED = {"properties": {"a": {"type": "string"}}}
LISTED = {"type": ["object", "null"], "properties": {"a": {"type": "string"}}}


@pytest.mark.parametrize("inner", [UNTYPED, LISTED], ids=["no type", "type list"])
@pytest.mark.parametrize(
    "around",
    [
        lambda inner: inner,
        lambda inner: {"type": "array", "items": inner},
        lambda inner: {"items": inner},
        lambda inner: {"anyOf": [inner, {"type": "string"}]},
        lambda inner: {"oneOf": [{"type": "string"}, inner]},
        lambda inner: {"allOf": [inner]},
        lambda inner: {"type": "object", "properties": {"deep": inner}},
        lambda inner: {"type": "object", "properties": {"deep": {"anyOf": [{"items": inner}]}}, "required": ["deep"]},
    ],
    ids=["plain", "items", "items only", "anyOf", "oneOf", "allOf", "nested", "deep"],
)
def test_i06_objects_without_type_or_with_a_list_of_types(inner: dict[str, Any], around: Any) -> None:
    schema = {"type": "object", "properties": {"x": around(inner)}, "required": ["x"]}
    before = copy.deepcopy(schema)
    assert_strict(strict_schema(schema))
    assert schema == before


@pytest.mark.parametrize("inner", [UNTYPED, LISTED], ids=["no type", "type list"])
@pytest.mark.parametrize("where", ["$defs", "definitions"])
def test_i06_objects_in_definitions(inner: dict[str, Any], where: str) -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": f"#/{where}/I"}}, where: {"I": inner}}
    strict = assert_strict(strict_schema(schema))
    assert strict[where]["I"]["additionalProperties"] is False
    assert strict["properties"]["x"] == {"anyOf": [{"$ref": f"#/{where}/I"}, {"type": "null"}]}


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "object", "additionalProperties": UNTYPED},
        {"type": "object", "additionalProperties": {"type": "integer"}},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": {}},
        {"type": "object"},
        {"type": ["object", "null"]},
        {},
        {"description": "anything"},
        True,
        {"type": "array"},
        {"type": "array", "items": {}},
        {"type": "array", "items": [{"type": "integer"}]},
        {"type": "array", "prefixItems": [{"type": "integer"}], "minItems": 1, "maxItems": 1},
        {"allOf": [UNTYPED, LISTED]},
        {"type": "object", "properties": {}, "patternProperties": {"^a": {"type": "integer"}}},
        {"not": {"type": "string"}},
        {"if": {"type": "string"}, "then": {"type": "string"}},
        {"type": "object", "properties": {}, "required": ["ghost"]},
    ],
)
def test_i06_shapes_without_a_strict_variant(inner: Any) -> None:
    assert strict_schema({"type": "object", "properties": {"x": inner}, "required": ["x"]}) is None
    assert strict_schema({"type": "object", "properties": {"y": {"anyOf": [inner, {"type": "null"}]}}}) is None
    assert strict_schema({"type": "object", "properties": {"z": {"type": "array", "items": inner}}}) is None


@pytest.mark.parametrize(
    "root", [{"type": "array", "items": {"type": "string"}}, {"anyOf": [UNTYPED]}, {"type": "string"}]
)
def test_a_root_that_is_no_object_has_none(root: dict[str, Any]) -> None:
    assert strict_schema(root) is None


@pytest.mark.parametrize("root", [{}, {"type": "object"}, {"type": "object", "properties": {}}])
def test_a_tool_without_arguments_is_strict(root: dict[str, Any]) -> None:
    assert strict_schema(root) == {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


@pytest.mark.parametrize(
    ("given", "strict"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": ["a", "b"]}, {"type": ["string", "null"], "enum": ["a", "b", None]}),
        ({"enum": ["a", 1]}, {"type": ["integer", "string", "null"], "enum": ["a", 1, None]}),
        (
            {"const": "a", "description": "d"},
            {"description": "d", "anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]},
        ),
        ({"anyOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        (
            {"anyOf": [{"type": "string"}, {"type": ["null", "integer"]}]},
            {"anyOf": [{"type": "string"}, {"type": ["null", "integer"]}]},
        ),
        ({"type": "null"}, {"type": "null"}),
        ({"type": "integer", "default": 3, "minimum": 1}, {"type": ["integer", "null"], "minimum": 1}),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            {"type": ["array", "null"], "items": {"type": "string"}},
        ),
    ],
)
def test_how_what_was_optional_admits_null(given: dict[str, Any], strict: dict[str, Any]) -> None:
    found = assert_strict(strict_schema({"type": "object", "properties": {"x": given}}))
    assert found["properties"]["x"] == strict


def test_a_property_named_default_and_values_that_look_like_schemas_stay() -> None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {
            "default": {"type": "string"},
            "not": {"type": "string"},
            "kind": {"type": "string", "examples": [{"properties": {"default": 1}}]},
        },
        "required": ["default", "not", "kind"],
    }
    strict = strict_schema(schema)
    assert strict is not None
    assert list(strict["properties"]) == ["default", "not", "kind"]
    assert strict["properties"]["kind"] == schema["properties"]["kind"]


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    friends: list["Dog"] = []


def test_models_recursive_and_discriminated() -> None:
    def f(
        pet: Annotated[Cat | Dog, Field(discriminator="kind", description="which")], dog: Dog | None = None
    ) -> None: ...

    strict = assert_strict(strict_schema(json.loads(describe(f).schema)))
    assert strict["properties"]["pet"]["description"] == "which"
    assert strict["properties"]["pet"]["anyOf"] == [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]
    assert strict["$defs"]["Cat"]["properties"]["lives"] == {"type": ["integer", "null"]}
    made = describe(f).validate({"pet": {"kind": "cat", "lives": None}, "dog": None})
    assert made["pet"] == Cat(kind="cat", lives=9)


def test_a_described_reference_stands_alone_inside() -> None:
    def f(pet: Annotated[Cat, Field(description="which")]) -> None: ...

    strict = assert_strict(strict_schema(json.loads(describe(f).schema)))
    assert strict["properties"]["pet"] == {"description": "which", "anyOf": [{"$ref": "#/$defs/Cat"}]}


def test_the_root_of_a_recursive_model_is_unfolded() -> None:
    strict = assert_strict(strict_schema(Dog.model_json_schema()))
    assert strict["type"] == "object"
    assert strict["properties"]["friends"]["items"] == {"$ref": "#/$defs/Dog"}


def test_references_that_lead_nowhere_or_in_circles_have_none() -> None:
    assert strict_schema({"$ref": "#/$defs/Gone"}) is None
    assert strict_schema({"$ref": "#"}) is None
    assert strict_schema({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}) is None
    assert strict_schema({"type": "object", "properties": {"x": {"$ref": "#/$defs/Gone"}}}) is None
    assert strict_schema({"type": "object", "properties": {"x": {"$ref": "https://example.org/x"}}}) is None


SCALARS = st.sampled_from([{"type": "string"}, {"type": ["integer", "null"]}, {"enum": ["a"]}, {"const": 1}, {}])
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda p, r: {"properties": p, "required": [k for k in r if k in p]},
                  st.dictionaries(st.sampled_from("abc"), inner, max_size=3), st.sets(st.sampled_from("abc"))),
        st.builds(lambda p: {"type": ["object", "null"], "properties": p, "default": None},
                  st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
        st.builds(lambda i: {"type": "array", "items": i}, inner),
        st.builds(lambda m: {"anyOf": m}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda m: {"oneOf": m, "description": "d"}, st.lists(inner, min_size=1, max_size=2)),
        st.just({"$ref": "#/$defs/D", "description": "d"}),
        st.builds(lambda i: {"type": "object", "additionalProperties": i}, inner),
    ),
    max_leaves=8,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from("xyz"), SCHEMAS), SCHEMAS)
def test_strict_never_changes_its_input_and_is_stable(properties: dict[str, Any], definition: Any) -> None:
    schema = {"type": "object", "properties": properties, "$defs": {"D": definition}}
    before = copy.deepcopy(schema)
    strict = strict_schema(schema)
    assert schema == before
    if strict is not None:
        assert_strict(strict)
