"""Schemas from the signatures that people really write."""

import dataclasses
import datetime
import enum
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union, Unpack

import pytest
from pydantic import BaseModel, ConfigDict, Field

from hookloop_hookspecs import ConfigError, ToolContext
from hookloop_hookspecs.schema import ArgumentsError, describe


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Address(TypedDict):
    street: Annotated[str, "with number"]
    zip: NotRequired[str]


class Tree(TypedDict):
    kids: list["Tree"]


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Book(BaseModel):
    title: str
    pages: int = 1


class Node(BaseModel):
    value: int
    children: list["Node"] = []


class Day(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    span: tuple[int, int]


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads(describe(function).schema)
    return schema


def resolved(function: Callable[..., Any], name: str) -> dict[str, Any]:
    schema = schema_of(function)
    part: dict[str, Any] = schema["properties"][name]
    if "$ref" in part:
        part = schema["$defs"][part["$ref"].rsplit("/", 1)[1]]
    return part


def test_plain_types_and_defaults() -> None:
    def f(a: int, b: str = "x", *, c: float = 1.5, d: bool = True) -> None: ...

    assert schema_of(f) == {
        "type": "object",
        "properties": {
            "a": {"type": "integer"},
            "b": {"type": "string", "default": "x"},
            "c": {"type": "number", "default": 1.5},
            "d": {"type": "boolean", "default": True},
        },
        "required": ["a"],
        "additionalProperties": False,
    }


def test_the_schema_is_compact_json_and_the_same_each_time() -> None:
    def f(a: Literal["x", "y"], b: set[Color]) -> None: ...

    text = describe(f).schema
    assert text == describe(f).schema
    assert ", " not in text
    assert '": ' not in text


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def f() -> None: ...

    assert schema_of(f) == {"type": "object", "properties": {}, "additionalProperties": False}
    assert describe(f).validate({}) == {}
    with pytest.raises(ArgumentsError, match=r"^x: unknown argument$"):
        describe(f).validate({"x": 1})


def test_optional_union_literal_and_enum() -> None:
    def f(
        a: Optional[int],  # noqa: UP045  # the old spelling is what is tested
        b: Union[int, str],  # noqa: UP007
        c: Literal["x", 1],
        d: Color,
        e: int | None = None,
    ) -> None: ...

    properties = schema_of(f)["properties"]
    assert properties["a"]["anyOf"] == [{"type": "integer"}, {"type": "null"}]
    assert properties["b"]["anyOf"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["c"]["enum"] == ["x", 1]
    assert resolved(f, "d")["enum"] == ["red", "blue"]
    assert schema_of(f)["required"] == ["a", "b", "c", "d"]
    values = describe(f).validate({"a": None, "b": "5", "c": 1, "d": "blue"})
    assert values == {"a": None, "b": "5", "c": 1, "d": Color.BLUE}


@pytest.mark.parametrize(
    ("kind", "given", "built"),
    [
        (Point, {"x": 1}, Point(1, 0)),
        (Address, {"street": "a 1"}, {"street": "a 1"}),
        (Pair, [1], Pair(1, "r")),
        (Pair, {"left": 1, "right": "q"}, Pair(1, "q")),
        (Book, {"title": "t"}, Book(title="t")),
        (list[Book], [{"title": "t"}], [Book(title="t")]),
        (dict[str, Point], {"k": {"x": 1, "y": 2}}, {"k": Point(1, 2)}),
        (tuple[Point, int], [{"x": 1}, 2], (Point(1), 2)),
        (list[Address] | None, [{"street": "a"}], [{"street": "a"}]),
        (set[str], ["a", "a"], {"a"}),
        (datetime.date, "2026-01-31", datetime.date(2026, 1, 31)),
        (Day, {"day": "2026-01-31", "span": [1, 2]}, Day(day=datetime.date(2026, 1, 31), span=(1, 2))),
        (bytes, "abc", b"abc"),
        (Any, [1, "x"], [1, "x"]),
        (Sequence[int], [1], [1]),
        (Iterable[int], ["1"], [1]),
        (Annotated[Iterable[int] | None, "numbers"], ["1"], [1]),
        (Mapping[str, int], {"a": 1}, {"a": 1}),
    ],
)
def test_values_are_built_and_stand_a_second_validation(kind: Any, given: Any, built: Any) -> None:
    def f(it: Any) -> None: ...

    f.__annotations__["it"] = kind
    signature = describe(f)
    values = signature.validate({"it": given})
    assert values == {"it": built}
    assert type(values["it"]) is type(built)
    assert signature.validate(values) == values


def test_a_typing_typed_dict_is_described_key_by_key() -> None:
    def f(address: Address) -> None: ...

    assert resolved(f, "address") == {
        "type": "object",
        "properties": {"street": {"type": "string", "description": "with number"}, "zip": {"type": "string"}},
        "required": ["street"],
        "additionalProperties": False,
    }
    with pytest.raises(ArgumentsError, match=r"address\.street: required, but missing; address\.no: unknown"):
        describe(f).validate({"address": {"no": 1}})


def test_a_recursive_model_keeps_its_reference() -> None:
    def f(node: Node) -> None: ...

    schema = schema_of(f)
    assert schema["properties"]["node"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    made = describe(f).validate({"node": {"value": 1, "children": [{"value": 2}]}})
    assert made["node"].children[0].value == 2


def test_constraints_and_descriptions_of_fields_are_in_the_schema_and_hold() -> None:
    def f(n: Annotated[int, Field(ge=1, le=9, description="how many")], m: Annotated[str, "what"] = "x") -> None: ...

    properties = schema_of(f)["properties"]
    assert properties["n"] == {"type": "integer", "minimum": 1, "maximum": 9, "description": "how many"}
    assert properties["m"]["description"] == "what"
    with pytest.raises(ArgumentsError, match="n: input should be greater than or equal to 1"):
        describe(f).validate({"n": 0})


def test_a_field_as_default_gives_the_function_its_default() -> None:
    def f(
        n: int = Field(default=3, ge=1),  # what is tested
        tags: list[str] = Field(default_factory=list),  # noqa: B008
        *,
        k: Annotated[int, Field(default=7)],
    ) -> Any:
        return n, tags, k

    signature = describe(f)
    assert "required" not in json.loads(signature.schema)
    assert signature.invoke(f, signature.validate({})) == (3, [], 7)
    assert signature.invoke(f, signature.validate({"n": 4, "tags": ["a"]})) == (4, ["a"], 7)


def test_an_alias_is_the_name_for_the_model_alone() -> None:
    def f(from_: Annotated[str, Field(alias="from")]) -> str:
        return from_

    signature = describe(f)
    assert list(json.loads(signature.schema)["properties"]) == ["from"]
    values = signature.validate({"from": "a"})
    assert signature.invoke(f, values) == "a"
    assert signature.validate(values) == values


def test_parameter_names_that_pydantic_has_for_itself() -> None:
    def f(schema: str, json: int, copy: bool, model_config: str, validate: int = 1, p0: int = 2) -> None: ...

    given = {"schema": "s", "json": 1, "copy": True, "model_config": "m", "p0": 5}
    assert describe(f).validate(given) == given


def test_a_default_is_the_type_where_nothing_is_annotated() -> None:
    def f(a=1, b="x", c=None, d=()) -> None: ...  # type: ignore[no-untyped-def]  # what is tested

    properties = schema_of(f)["properties"]
    assert properties["a"] == {"type": "integer", "default": 1}
    assert properties["b"] == {"type": "string", "default": "x"}
    assert "type" not in properties["c"]
    assert "type" not in properties["d"]


def test_defaults_that_are_no_json_stay_out_of_the_schema_and_the_function_keeps_them() -> None:
    marker = object()

    def f(a: Any = marker, b: dict[str, Any] = {"k": marker}) -> Any:  # noqa: B006  # what is tested
        return a, b["k"]

    signature = describe(f)
    assert '"default"' not in signature.schema
    assert signature.invoke(f, signature.validate({})) == (marker, marker)


def test_what_was_not_given_is_left_to_the_function() -> None:
    seen: list[int] = []

    def f(a: int, b: list[int] = seen) -> list[int]:
        return b

    signature = describe(f)
    assert signature.validate({"a": 1}) == {"a": 1}
    assert signature.invoke(f, {"a": 1}) is seen


def test_positional_only_and_variable_arguments_go_where_they_belong() -> None:
    def f(a: int, b: int = 2, /, c: int = 3, *more: int, d: int = 4, **named: float) -> Any:
        return a, b, c, more, d, named

    signature = describe(f)
    schema = json.loads(signature.schema)
    assert schema["properties"]["more"] == {"type": "array", "items": {"type": "integer"}, "default": []}
    assert schema["additionalProperties"] == {"type": "number"}

    def run(**given: Any) -> Any:
        return signature.invoke(f, signature.validate(given))

    assert run(a=1) == (1, 2, 3, (), 4, {})
    assert run(a=1, c=9) == (1, 2, 9, (), 4, {})
    assert run(a=1, more=[7, 8]) == (1, 2, 3, (7, 8), 4, {})
    assert run(a="1", d=5, z="2.5") == (1, 2, 3, (), 5, {"z": 2.5})
    with pytest.raises(ArgumentsError, match="z: input should be a valid number"):
        run(a=1, z="no")


def test_unpacked_typed_dict_keywords() -> None:
    def f(q: str, **options: Unpack[Address]) -> Any:
        return q, options

    signature = describe(f)
    schema = json.loads(signature.schema)
    assert list(schema["properties"]) == ["q", "street", "zip"]
    assert schema["required"] == ["q", "street"]
    assert schema["additionalProperties"] is False
    assert signature.invoke(f, signature.validate({"q": "a", "street": "b"})) == ("a", {"street": "b"})


def test_extra_keywords_cannot_reach_what_is_not_the_models() -> None:
    def f(key: str, ctx: ToolContext, **more: Any) -> Any:
        return key, more

    bound = functools.partial(f, key="secret")
    with pytest.raises(ArgumentsError, match=r"^ctx: unknown argument; key: unknown argument$"):
        describe(bound).validate({"ctx": 1, "key": "stolen", "fine": 2})
    assert describe(bound).validate({"fine": 2}) == {"fine": 2}
    assert "secret" not in describe(bound).schema


def test_a_partial_shows_only_what_it_left_open() -> None:
    def f(a: int, b: Callable[[], int], c: str = "x") -> Any:
        return a, b(), c

    bound = functools.partial(f, b=lambda: 5)
    signature = describe(bound)
    assert list(json.loads(signature.schema)["properties"]) == ["a", "c"]
    assert signature.invoke(bound, signature.validate({"a": 1, "c": "y"})) == (1, 5, "y")
    first = functools.partial(f, 1)
    assert "a" not in json.loads(describe(functools.partial(first, b=lambda: 1)).schema)["properties"]


def test_a_wrapped_function_shows_the_signature_below() -> None:
    def f(a: int) -> int:
        """Adds."""
        return a

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return f(*args, **kwargs) + 1

    signature = describe(wrapper)
    assert list(json.loads(signature.schema)["properties"]) == ["a"]
    assert signature.invoke(wrapper, signature.validate({"a": 1})) == 2


class Opaque:
    pass


def _unannotated(a) -> None: ...  # type: ignore[no-untyped-def]  # what is tested
def _stars(*paths) -> None: ...  # type: ignore[no-untyped-def]  # what is tested
def _context(ctx, x: int) -> None: ...  # type: ignore[no-untyped-def]  # what is tested
def _unknown_type(x: int, it: Opaque) -> None: ...
def _callback(done: Callable[[int], int]) -> None: ...
def _unresolved(x: "Missing") -> None: ...  # type: ignore[name-defined]  # noqa: F821  # what is tested


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (_unannotated, "_unannotated: parameter 'a' has no annotation.*write for example 'a: str'"),
        (_stars, r"_stars: parameter '\*paths' has no annotation.*'\*paths: str'"),
        (_context, "_context: parameter 'ctx' has no annotation.*'ctx: ToolContext'"),
        (_unknown_type, "_unknown_type: parameter 'it' cannot be described.*ToolContext"),
        (_callback, "_callback: parameter 'done' cannot be described"),
        (_unresolved, "_unresolved: the annotation 'Missing' of parameter 'x' cannot be resolved.*import the name"),
    ],
)
def test_what_cannot_be_described_says_which_parameter_and_what_to_write(
    function: Callable[..., Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        describe(function)


def test_a_typing_typed_dict_that_refers_to_itself_says_what_to_use() -> None:
    def f(tree: Tree) -> None: ...

    with pytest.raises(ConfigError, match="Tree refers to itself: make it a TypedDict of typing_extensions"):
        describe(f)
