"""What tools return, as parts for a model."""

import asyncio
import collections
import dataclasses
import datetime
import decimal
import enum
import itertools
import json
import pathlib
import uuid
from collections.abc import AsyncIterator, Iterator
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr, computed_field
from pydantic.dataclasses import dataclass as checked_dataclass

from hookloop_hookspecs import File, Image, Text, ToolResult
from hookloop_hookspecs.results import Encoded, Unencodable, encode_json, encode_result


class Color(enum.Enum):
    RED = "red"


class Word(enum.StrEnum):
    YES = "yes"


class Pair(NamedTuple):
    a: int
    b: str


class Book(BaseModel):
    title: str
    tags: set[int] = set()
    secret: SecretStr = SecretStr("s3cret")


class Loose(BaseModel):
    it: Any


@dataclasses.dataclass
class Point:
    x: int
    seen: set[str] = dataclasses.field(default_factory=set)


@checked_dataclass
class Checked:
    day: datetime.date


class Array:
    def __init__(self, values: list[int]) -> None:
        self.values = values

    def tolist(self) -> list[int]:
        return self.values


def text_of(value: Any) -> str:
    (part,) = encode_result(value).content
    assert isinstance(part, Text)
    return part.text


@pytest.mark.parametrize(
    ("value", "text"), [([], "[]"), (None, "null"), ("", ""), ({}, "{}"), (0, "0"), (False, "false"), ((), "[]")]
)
def test_c11_empty_values_have_each_their_text(value: Any, text: str) -> None:
    assert encode_result(value) == Encoded((Text(text),))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain ü", "plain ü"),
        (Word.YES, "yes"),
        (b"text \xc3\xbc", "text ü"),
        (bytearray(b"ab"), "ab"),
        ({"s": {2, 1}}, '{"s":[1,2]}'),
        ({"s": frozenset({"b", "a", "c"})}, '{"s":["a","b","c"]}'),
        ([{1, "a", None}], '[[null,1,"a"]]'),
        (Color.RED, '"red"'),
        ({Color.RED: 1}, '{"red":1}'),
        (Pair(1, "x"), '[1,"x"]'),
        (Point(1, {"b", "a"}), '{"x":1,"seen":["a","b"]}'),
        (Checked(datetime.date(2026, 1, 2)), '{"day":"2026-01-02"}'),
        (Book(title="t"), '{"title":"t","tags":[],"secret":"**********"}'),
        ([Book(title="t")], '[{"title":"t","tags":[],"secret":"**********"}]'),
        (datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC), '"2026-01-02T00:00:00Z"'),
        (decimal.Decimal("1.50"), '"1.50"'),
        (uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
        (pathlib.PurePosixPath("/a"), '"/a"'),
        (collections.deque([1, 2]), "[1,2]"),
        (collections.Counter("aab"), '{"a":2,"b":1}'),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        ({"a": 1}.keys(), '["a"]'),
        ({"v": range(3)}, '{"v":[0,1,2]}'),
        (Array([1, 2]), "[1,2]"),
        ({1: "a", None: 2}, '{"1":"a","None":2}'),
        (10**30, "1" + "0" * 30),
        ({"b": b"ok"}, '{"b":"ok"}'),
    ],
)
def test_each_kind_of_value_has_its_text(value: Any, text: str) -> None:
    assert text_of(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (float("nan"), '"NaN"'),
        ({"x": float("inf"), "y": [float("-inf")]}, '{"x":"Infinity","y":["-Infinity"]}'),
        (Point(float("nan")), '{"x":"NaN","seen":[]}'),  # type: ignore[arg-type]  # what is tested
    ],
)
def test_c09_nan_and_infinities_are_documented_texts(value: Any, text: str) -> None:
    assert text_of(value) == text


def _looping() -> list[Any]:
    loop: list[Any] = []
    loop.append(loop)
    return loop


def _deep() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


class Broken(BaseModel):
    @computed_field  # type: ignore[prop-decorator]  # pydantic's own way
    @property
    def it(self) -> int:
        raise ValueError("Authorization: Bearer abc123def456")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "object is not serializable.*return text, numbers"),
        ({"deep": [object()]}, "no JSON form"),
        (ValueError("x"), "ValueError is not serializable"),
        (int, "type is not serializable"),
        (len, "not serializable"),
        (b"\xff\xfe", "2 bytes that are not UTF-8 text; return File.of"),
        ({"b": b"\xff"}, "bytes that are not UTF-8 text"),
        (itertools.count(), "count, which can be read only once; return a list"),
        (map(str, [1]), "map, which can be read only once"),
        (_looping(), "holds itself"),
        (_deep(), "nested too deeply"),
        ([Text("a"), 3], "a list of parts holds a int"),
        (Broken(), "no JSON form"),
    ],
)
def test_c09_what_has_no_form_says_what_to_return(value: Any, words: str) -> None:
    with pytest.raises(Unencodable, match=words) as caught:
        encode_result(value)
    assert "abc123def456" not in str(caught.value)


@pytest.mark.parametrize(
    "around",
    [
        lambda it: it,
        lambda it: {"a": [it]},
        Point,
        lambda it: Pair(1, it),
        lambda it: Loose(it={"deep": it}),
    ],
)
def test_c09_a_generator_is_not_consumed(around: Any) -> None:
    read: list[int] = []

    def generate() -> Iterator[int]:
        for number in range(3):
            read.append(number)
            yield number

    generator = generate()
    with pytest.raises(Unencodable, match="generator, which can be read only once"):
        encode_result(around(generator))
    assert read == []
    assert list(generator) == [0, 1, 2]


def test_an_async_generator_and_a_coroutine() -> None:
    async def generate() -> AsyncIterator[int]:
        yield 1

    async def later() -> int:
        await asyncio.sleep(0)
        return 1

    with pytest.raises(Unencodable, match="read only once"):
        encode_result(generate())
    with pytest.raises(Unencodable, match="coroutine that was not awaited; make the tool `async def`"):
        encode_result(later())


def test_parts_pass() -> None:
    image, file = Image.of(b"\x89PNG"), File.of(b"x", "application/pdf", "a.pdf")
    assert encode_result(image).content == (image,)
    assert encode_result(Text("a", extra="{}")).content == (Text("a", extra="{}"),)
    assert encode_result([image, "see", file]).content == (image, Text("see"), file)
    assert encode_result((image,)).content == (image,)


def test_a_tool_result_passes_content_private_data_and_error() -> None:
    given = ToolResult("", content=(Text("no"), Image.of(b"x")), is_error=True, private='{"a":1}')
    assert encode_result(given) == Encoded(given.content, '{"a":1}', True)


HALF: Any = "\ud800x"
HALF_BOOK = Book.model_construct(title=HALF)


@pytest.mark.parametrize(
    "value", [HALF, [HALF], {HALF: 1}, Text(HALF), [Text(HALF)], Point(HALF), Book.model_construct(title=HALF)]
)
def test_half_a_surrogate_pair_becomes_a_replacement_character(value: Any) -> None:
    text = text_of(value)
    assert "\N{REPLACEMENT CHARACTER}x" in text
    text.encode("utf-8")


def test_two_halves_are_joined() -> None:
    assert text_of("\ud83d\ude00") == "\N{GRINNING FACE}"
    assert text_of({"a": "\ud83d\ude00"}) == '{"a":"\N{GRINNING FACE}"}'


ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))
ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ANY_TEXT | st.binary(),
    lambda inner: st.lists(inner)
    | st.dictionaries(st.text() | st.integers(), inner)
    | st.tuples(inner)
    | st.sets(st.integers() | st.text())
    | st.builds(Point, inner),
    max_leaves=10,
)  # fmt: skip


@given(ANY)
def test_a_value_has_texts_that_can_be_sent_or_is_unencodable(value: Any) -> None:
    try:
        encoded = encode_result(value)
    except Unencodable as error:
        str(error).encode("utf-8")
    else:
        assert encoded.content
        text = text_of(value)
        text.encode("utf-8")
        if not isinstance(value, str | bytes):
            json.loads(text)


@given(st.sets(st.text()))
def test_the_order_of_a_set_is_always_the_same(values: set[str]) -> None:
    assert json.loads(encode_json(values)) == sorted(values)
