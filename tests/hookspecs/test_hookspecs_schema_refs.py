"""References replaced by what they lead to."""

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from hookloop_hookspecs.schema import describe, inline_refs


class Inner(BaseModel):
    n: int


class Outer(BaseModel):
    inner: Inner
    more: list[Inner] = []


class N(BaseModel):
    children: list["N"] = []
    inner: Inner | None = None


class A(BaseModel):
    b: "B | None" = None


class B(BaseModel):
    a: A


def schema_of(function: Any) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(describe(function).schema)
    return schema


PLAIN = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


def test_i09_references_in_all_four_places() -> None:
    def f(period: Inner, many: list[Inner], lookup: dict[str, Inner], pair: tuple[Inner, Inner]) -> None: ...

    properties = inline_refs(schema_of(f))["properties"]
    assert properties["period"] == PLAIN
    assert properties["many"]["items"] == PLAIN
    assert properties["lookup"]["additionalProperties"] == PLAIN
    assert properties["pair"]["prefixItems"] == [PLAIN, PLAIN]
    assert "$ref" not in json.dumps(inline_refs(schema_of(f)))
    assert "$defs" not in inline_refs(schema_of(f))


def test_references_within_references_are_followed() -> None:
    def f(outer: Outer) -> None: ...

    outer = inline_refs(schema_of(f))["properties"]["outer"]
    assert outer["properties"]["inner"] == PLAIN
    assert outer["properties"]["more"]["items"] == PLAIN


def test_i07_a_recursive_model_keeps_its_reference_and_definition() -> None:
    def f(node: N, inner: Inner) -> None: ...

    found = inline_refs(schema_of(f))
    assert found["properties"]["node"] == {"$ref": "#/$defs/N"}
    assert found["properties"]["inner"] == PLAIN
    assert list(found["$defs"]) == ["N"]
    assert found["$defs"]["N"]["properties"]["children"]["items"] == {"$ref": "#/$defs/N"}
    assert found["$defs"]["N"]["properties"]["inner"]["anyOf"][0] == PLAIN


def test_i07_models_that_refer_to_each_other() -> None:
    def f(a: A) -> None: ...

    found = inline_refs(schema_of(f))
    assert set(found["$defs"]) == {"A", "B"}
    assert inline_refs(found) == found


def test_i07_definitions_of_draft_7() -> None:
    schema = {
        "type": "object",
        "properties": {"i": {"$ref": "#/definitions/I"}, "n": {"$ref": "#/definitions/N", "description": "the node"}},
        "definitions": {
            "I": PLAIN,
            "N": {
                "type": "object",
                "properties": {"next": {"$ref": "#/definitions/N"}, "i": {"$ref": "#/definitions/I"}},
            },
        },
    }
    found = inline_refs(schema)
    assert found["properties"]["i"] == PLAIN
    assert found["properties"]["n"] == {"$ref": "#/definitions/N", "description": "the node"}
    assert list(found["definitions"]) == ["N"]
    assert found["definitions"]["N"]["properties"]["i"] == PLAIN


def test_what_stands_beside_a_reference_stands_over_the_definition() -> None:
    schema = {
        "properties": {"x": {"$ref": "#/$defs/I", "description": "mine", "default": None}},
        "$defs": {"I": {**PLAIN, "description": "its own"}},
    }
    assert inline_refs(schema)["properties"]["x"] == {**PLAIN, "description": "mine", "default": None}


@pytest.mark.parametrize(
    "ref", ["#/$defs/Gone", "https://example.org/s.json", "other.json#/a", "#anchor", "#/properties/x/0", "#/$defs/"]
)
def test_references_that_lead_nowhere_or_out_stay(ref: str) -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": ref}}, "$defs": {"I": PLAIN}}
    assert inline_refs(schema)["properties"]["x"] == {"$ref": ref}


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}},
        {"properties": {"x": {"$ref": "#/properties/x"}}},
        {"properties": {"x": {"$ref": "#/properties/y"}, "y": {"items": {"$ref": "#/properties/x"}}}},
        {"properties": {"x": {"$ref": "#"}}},
    ],
)
def test_circles_stay_as_they_are(schema: dict[str, Any]) -> None:
    assert inline_refs(schema) == schema


def test_names_with_special_characters() -> None:
    schema = {"properties": {"x": {"$ref": "#/$defs/a~1b~0c%20d"}}, "$defs": {"a/b~c d": PLAIN}}
    assert inline_refs(schema) == {"properties": {"x": PLAIN}}


def test_a_pointer_to_another_place_than_the_definitions() -> None:
    schema = {"properties": {"x": PLAIN, "y": {"$ref": "#/properties/x"}}}
    assert inline_refs(schema)["properties"]["y"] == PLAIN


def test_values_that_look_like_references_are_values() -> None:
    schema = {
        "properties": {
            "$ref": {"type": "string"},
            "x": {"enum": [{"$ref": "#/$defs/I"}], "default": {"$ref": "#/$defs/I"}},
        },
        "$defs": {"I": PLAIN},
    }
    found = inline_refs(schema)
    assert found["properties"] == schema["properties"]


def test_definitions_that_double_at_each_step_end_in_bounded_size() -> None:
    definitions: dict[str, Any] = {
        f"D{i}": {"properties": {side: {"$ref": f"#/$defs/D{i + 1}"} for side in ("l", "r")}} for i in range(60)
    }
    definitions["D60"] = PLAIN
    found = inline_refs({"properties": {"x": {"$ref": "#/$defs/D0"}}, "$defs": definitions})
    text = json.dumps(found)
    assert len(text) < 5_000_000
    kept = set(found["$defs"])
    assert all(name in kept for name in definitions if f'"#/$defs/{name}"' in text)


REFS = st.sampled_from(["#/$defs/A", "#/$defs/B", "#/$defs/C", "#/$defs/Gone", "#"])
PARTS = st.recursive(
    st.builds(lambda ref: {"$ref": ref}, REFS) | st.just({"type": "string"}),
    lambda inner: (
        st.builds(lambda p: {"properties": p}, st.dictionaries(st.sampled_from("xy"), inner, max_size=2))
        | st.builds(lambda i: {"items": i}, inner)
        | st.builds(lambda i: {"anyOf": i}, st.lists(inner, max_size=2))
    ),
    max_leaves=5,
)


@given(PARTS, PARTS, PARTS, PARTS)
def test_inlining_ends_changes_no_input_and_leaves_no_dangling_reference(root: Any, a: Any, b: Any, c: Any) -> None:
    schema = {"properties": {"root": root}, "$defs": {"A": a, "B": b, "C": c}}
    before = copy.deepcopy(schema)
    found = inline_refs(schema)
    assert schema == before
    for name in "ABC":
        if f'"#/$defs/{name}"' in json.dumps(found):
            assert name in found["$defs"]
    assert json.dumps(inline_refs(found), sort_keys=True) == json.dumps(found, sort_keys=True)
