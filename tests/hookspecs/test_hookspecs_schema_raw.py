"""Tools whose JSON Schema somebody gave."""

import contextlib
import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop_hookspecs import ConfigError, ToolContext, tool
from hookloop_hookspecs.schema import ArgumentsError, describe, inline_refs, strict_schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "lines": {"type": ["integer", "null"]},
        "mode": {"enum": ["r", "w"]},
        "size": {"type": "number"},
        "where": {"$ref": "#/$defs/Place"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "pair": {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "object", "properties": {"n": {"type": "integer"}}}]},
        "fixed": {"const": 1},
    },
    "required": ["path"],
    "$defs": {
        "Place": {
            "type": "object",
            "properties": {"x": {"type": "integer"}, "next": {"$ref": "#/$defs/Place"}},
            "required": ["x"],
            "additionalProperties": False,
        }
    },
}


def anything(**arguments: Any) -> dict[str, Any]:
    return arguments


SIGNATURE = describe(anything, schema=SCHEMA)


def faults(**arguments: Any) -> tuple[str, ...]:
    with pytest.raises(ArgumentsError) as caught:
        SIGNATURE.validate(arguments)
    return caught.value.problems


def test_what_fits_comes_out_as_it_is() -> None:
    given = {
        "path": "a",
        "lines": None,
        "mode": "r",
        "size": 1,
        "where": {"x": 1, "next": {"x": 2}},
        "tags": ["a"],
        "pair": [1, "b", True],
        "either": {"n": 1},
        "fixed": 1,
        "further": [1],
    }
    assert SIGNATURE.validate(given) == given
    assert SIGNATURE.validate(SIGNATURE.validate(given)) == given


def test_every_fault_is_listed_with_its_place() -> None:
    found = faults(
        lines="x", mode="z", size=True, where={"y": 1, "next": {"x": "q"}}, tags=["a", 3], pair=["p", 1], fixed=2
    )
    assert set(found) == {
        "path: required, but missing",
        'lines: should be integer or null (got "x")',
        'mode: should be one of ["r", "w"] (got "z")',
        "size: should be number (got true)",
        "where.x: required, but missing",
        "where.y: unknown argument",
        'where.next.x: should be integer (got "q")',
        "tags[1]: should be string (got 3)",
        'pair[0]: should be integer (got "p")',
        "pair[1]: should be string (got 1)",
        "fixed: should be 1 (got 2)",
    }


@pytest.mark.parametrize(("value", "fits"), [(3, True), (3.0, True), (3.5, False), (True, False), ("3", False)])
def test_integers(value: Any, fits: bool) -> None:
    if fits:
        assert SIGNATURE.validate({"path": "", "lines": value}) == {"path": "", "lines": value}
    else:
        assert faults(path="", lines=value)


def test_slips_are_mended_here_too() -> None:
    values = SIGNATURE.validate({"path": "p", "where": '{"x": 1, "next": null}', "tags": '["a"]', "mode": None})
    assert values == {"path": "p", "where": {"x": 1}, "tags": ["a"]}
    assert SIGNATURE.validate({"path": '{"x": 1}'}) == {"path": '{"x": 1}'}
    assert faults(path=None) == ("path: required, must not be null",)


def test_of_alternatives_the_closest_complains() -> None:
    assert faults(path="", either={"n": "x"}) == ('either.n: should be integer (got "x")',)
    assert faults(path="", either="x") == ('either: should be integer (got "x"), or should be object (got "x")',)


def test_the_schema_is_kept_as_given_and_closed_where_the_function_takes_no_more() -> None:
    before = copy.deepcopy(SCHEMA)
    assert json.loads(SIGNATURE.schema) == SCHEMA == before

    def f(path: str) -> None: ...

    closed = describe(f, schema={"properties": {"path": {"type": "string"}}, "required": ["path"]})
    assert json.loads(closed.schema) == {
        "additionalProperties": False,
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    }
    with pytest.raises(ArgumentsError, match="pth: unknown argument; did you mean 'path'"):
        closed.validate({"path": "", "pth": ""})


def test_a_later_change_of_the_given_schema_changes_nothing() -> None:
    mine = copy.deepcopy(SCHEMA)
    signature = describe(anything, schema=mine)
    mine["properties"].clear()
    mine["required"].append("x")
    assert signature.validate({"path": "a"}) == {"path": "a"}


def test_json_text_is_a_schema_too() -> None:
    made = tool(schema=json.dumps(SCHEMA), name="any")(anything)
    assert json.loads(made.spec.schema) == SCHEMA
    assert made.validate({"path": "x"}) == {"path": "x"}


def test_the_context_is_injected_annotated_or_not() -> None:
    def f(ctx, **arguments: Any) -> Any:  # type: ignore[no-untyped-def]  # what is tested
        return ctx, arguments

    def g(tools: ToolContext, path) -> None: ...  # type: ignore[no-untyped-def]  # what is tested

    assert describe(f, schema=SCHEMA).injected == ("ctx",)
    assert describe(g, schema={"properties": {"path": {}}, "required": ["path"]}).injected == ("tools",)
    with pytest.raises(ArgumentsError, match="ctx: unknown argument"):
        describe(f, schema=SCHEMA).validate({"path": "", "ctx": 1})


def test_a_schema_that_lists_ctx_means_an_argument() -> None:
    def f(ctx) -> None: ...  # type: ignore[no-untyped-def]  # what is tested

    signature = describe(f, schema={"properties": {"ctx": {"type": "string"}}, "required": ["ctx"]})
    assert signature.injected == ()
    assert signature.validate({"ctx": "a"}) == {"ctx": "a"}


def _one(path: str) -> None: ...


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array"}, "not that of an object"),
        ({"properties": []}, "not that of an object"),
        ({"properties": {"path": {"type": "float"}}}, "'type' of the schema cannot be \"float\""),
        ({"properties": {"path": {}}, "required": [["path"]]}, "'required' of the schema cannot be"),
        ({"properties": {"path": {"type": 3}}}, "'type' of the schema cannot be 3"),
        ({"properties": {"path": {"anyOf": {}}}}, "'anyOf' of the schema cannot be {}"),
        ({"properties": {"path": {"items": {"properties": {"x": "string"}}}}}, 'string" stands where'),
        ({"properties": {"path": {}}, "required": "path"}, "'required' of the schema cannot be"),
        ("[1]", "not a JSON object"),
        ("{broken", "not JSON"),
        ({"properties": {"path": object()}}, "not JSON"),
        (
            {"properties": {"path": {}, "other": {}}, "required": ["path"]},
            "lists 'other', which the function does not take",
        ),
        ({"properties": {"path": {}}}, "needs 'path', the schema does not require it"),
    ],
)
def test_a_schema_that_is_none_or_does_not_fit_is_refused(schema: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        describe(_one, schema=schema)


def test_circles_and_depth_end_in_a_fault() -> None:
    circle = describe(anything, schema={"properties": {"x": {"anyOf": [{"$ref": "#/properties/x"}]}}})
    with pytest.raises(ArgumentsError, match="nested too deeply"):
        circle.validate({"x": 1})
    loop = describe(
        anything, schema={"properties": {"x": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}
    )
    assert loop.validate({"x": 1}) == {"x": 1}


def test_a_pattern_that_python_does_not_read_forbids_nothing() -> None:
    schema = {"patternProperties": {r"^\p{L}+$": {"type": "string"}}, "additionalProperties": False}
    assert describe(anything, schema=schema).validate({"a": "x"}) == {"a": "x"}


def test_pattern_properties_and_false_schemas() -> None:
    signature = describe(
        anything,
        schema={
            "properties": {"never": False},
            "patternProperties": {"^n_": {"type": "integer"}},
            "additionalProperties": {"type": "string"},
            "allOf": [{"required": ["n_a"]}],
        },
    )
    assert signature.validate({"n_a": 1, "b": "x"}) == {"n_a": 1, "b": "x"}
    with pytest.raises(ArgumentsError) as caught:
        signature.validate({"n_b": "x", "b": 1, "never": 1})
    assert len(caught.value.problems) == 4


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("axy"), inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
POINTERS = st.sampled_from(["#", "#/$defs/a", "#/$defs/x", "#/properties/a", "#/items", "#/anyOf/0", "#/gone", "x"])


def _schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    named = st.dictionaries(st.sampled_from("axy"), inner, max_size=3)
    several = st.lists(inner, max_size=2)
    parts: dict[str, st.SearchStrategy[Any]] = {
        "type": KINDS | st.lists(KINDS, max_size=2),
        "properties": named,
        "required": st.lists(st.sampled_from("axy"), max_size=2),
        "additionalProperties": inner | st.booleans(),
        "patternProperties": st.dictionaries(st.sampled_from(["a", "^x", "("]), inner, max_size=1),
        "items": inner | several,
        "prefixItems": several,
        "anyOf": several,
        "oneOf": several,
        "allOf": several,
        "enum": st.lists(VALUES, max_size=2),
        "const": VALUES,
        "default": VALUES,
        "$defs": named,
        "$ref": POINTERS,
        "not": inner,
    }
    return st.fixed_dictionaries({}, optional=parts)


SCHEMAS = _schemas(st.recursive(st.booleans() | KINDS.map(lambda kind: {"type": kind}), _schemas, max_leaves=5))


@given(SCHEMAS, st.dictionaries(st.sampled_from("axy"), VALUES))
def test_any_schema_gives_arguments_or_faults_and_nothing_else(
    given_: dict[str, Any], arguments: dict[str, Any]
) -> None:
    schema = {**given_, "type": "object"}
    before = json.dumps(schema)
    signature = describe(anything, schema=schema)
    strict, inlined = strict_schema(schema), inline_refs(schema)
    assert json.dumps(schema) == before
    assert json.dumps(inline_refs(inlined)) == json.dumps(inlined)
    assert strict is None or json.dumps(strict_schema(strict)) == json.dumps(strict)
    with contextlib.suppress(ArgumentsError):
        assert isinstance(signature.validate(arguments), dict)
