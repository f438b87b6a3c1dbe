"""A call's arguments: parsing the model's text, mending slips, listing faults."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationInfo, field_validator

from hookloop_hookspecs.schema import ArgumentsError, Signature, describe, parse_arguments

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


class Inner(BaseModel):
    n: int
    tag: str = "t"
    deep: "Inner | None" = None


@dataclass
class Part:
    n: int
    size: int = 3


def outcome(function: Callable[[Any], dict[str, Any]], given: Any) -> dict[str, Any] | tuple[str, ...]:
    """What a function gives, or the problems of its `ArgumentsError`; any other exception comes through."""
    try:
        return function(given)
    except ArgumentsError as error:
        return error.problems


@pytest.mark.parametrize("raw", ["", "  ", "\n\t", "{}", " {} ", '"{}"'])
def test_c08_nothing_is_no_arguments(raw: str) -> None:
    assert parse_arguments(raw) == {}


@pytest.mark.parametrize(
    "raw", ['["x"]', '"ls"', "3", "true", "null", "1.5", "[]", '""', '"  "', '"3"', '"[{}]"', '"null"', "NaN"]
)
def test_c04_json_that_is_no_object(raw: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        parse_arguments(raw)
    assert caught.value.problems == ("arguments must be a JSON object",)


@pytest.mark.parametrize(
    ("raw", "quoted"),
    [
        ('{"code": "print("hi")"}', "Expecting ',' delimiter"),
        ('{"p":"C:\\Users"}', "Invalid \\\\escape"),
        ('{"a": 1', "Expecting ',' delimiter"),
        ('{"a": 1} {"b": 2}', "Extra data"),
        ("{'a': 1}", "Expecting property name"),
        ('{"a": tru}', "Expecting value"),
        ('{"a": "' + "x" * 5000, "Unterminated string"),
        ("[" * 100_000, "recursion"),
        ('{"a": ' + "9" * 5000 + "}", "digits"),
        ("\x00", "Expecting value"),
    ],
)
def test_c06_malformed_json_quotes_the_error_bounded(raw: str, quoted: str) -> None:
    with pytest.raises(ArgumentsError) as caught:
        parse_arguments(raw)
    text = str(caught.value)
    assert quoted.replace("\\\\", "\\") in text
    assert len(text) < 400


def test_g11_json_in_a_json_string_is_unwrapped_once() -> None:
    assert parse_arguments('"{\\"n\\":2}"') == {"n": 2}
    twice = json.dumps(json.dumps(json.dumps({"n": 2})))
    with pytest.raises(ArgumentsError, match="must be a JSON object"):
        parse_arguments(twice)
    assert parse_arguments('{"a": "{\\"n\\":2}"}') == {"a": '{"n":2}'}


def test_repeated_keys_and_odd_numbers_are_read() -> None:
    assert parse_arguments('{"a": 1, "a": 2}') == {"a": 2}
    odd = parse_arguments('{"a": NaN, "b": -Infinity, "c": "\\ud800"}')
    assert odd["a"] != odd["a"]
    assert odd["b"] == float("-inf")


@given(st.text() | JSON.map(json.dumps) | JSON.map(lambda value: json.dumps(json.dumps(value))))
def test_parsing_gives_an_object_or_an_arguments_error(raw: str) -> None:
    assert isinstance(outcome(parse_arguments, raw), dict | tuple)


def _signature() -> Signature:
    def f(x: int, y: str, limit: int = 5, inner: Inner | None = None, parts: list[Part] = []) -> None: ...  # noqa: B006

    return describe(f)


def test_c07_every_fault_is_listed() -> None:
    with pytest.raises(ArgumentsError) as caught:
        _signature().validate({"x": "a"})
    first, second = caught.value.problems
    assert first.startswith("x: input should be a valid integer")
    assert '(got "a")' in first
    assert second == "y: required, but missing"


def test_faults_say_where_and_what_was_meant() -> None:
    with pytest.raises(ArgumentsError) as caught:
        _signature().validate({"x": 1, "y": "", "limt": 2, "inner": {"n": "q"}, "parts": [{"n": 1}, {"m": 1}]})
    assert "limt: unknown argument; did you mean 'limit'?" in caught.value.problems
    assert any(text.startswith("inner.n: input should be a valid integer") for text in caught.value.problems)
    assert "parts[1].n: required, but missing" in caught.value.problems
    assert "parts[1].m: unknown argument" in caught.value.problems


def test_many_faults_stay_readable() -> None:
    def f(numbers: list[int]) -> None: ...

    with pytest.raises(ArgumentsError) as caught:
        describe(f).validate({"numbers": ["x" * 10_000] * 500})
    assert len(caught.value.problems) == 500
    assert str(caught.value).endswith("and 480 more")
    assert len(str(caught.value)) < 5000


def test_the_members_of_a_union_complain_in_one_line() -> None:
    def f(it: int | list[int]) -> None: ...

    with pytest.raises(ArgumentsError) as caught:
        describe(f).validate({"it": "no"})
    (only,) = caught.value.problems
    assert only.startswith("it: input should be a valid integer")
    assert ", or input should be a valid list" in only


def test_i04_null_for_an_optional_argument_is_its_default() -> None:
    def f(name: str, n: int = 5, tag: str | None = None) -> Any:
        return name, n, tag

    signature = describe(f)
    values = signature.validate({"name": "a", "n": None, "tag": None})
    assert signature.invoke(f, values) == ("a", 5, None)
    assert values == {"name": "a", "tag": None}


def test_null_deep_inside_is_the_default_there() -> None:
    values = _signature().validate(
        {
            "x": 1,
            "y": "",
            "inner": {"n": 1, "tag": None, "deep": {"n": 2, "tag": None}},
            "parts": [{"n": 1, "size": None}],
        }
    )
    assert values["inner"] == Inner(n=1, deep=Inner(n=2))
    assert values["parts"] == [Part(1)]


def test_null_for_a_required_argument_is_a_fault() -> None:
    with pytest.raises(ArgumentsError) as caught:
        _signature().validate({"x": None, "y": "", "inner": {"n": None}, "limit": None, "parts": [None]})
    assert "x: required, must not be null" in caught.value.problems
    assert "inner.n: required, must not be null" in caught.value.problems
    assert not any(text.startswith("limit") for text in caught.value.problems)
    assert any(text.startswith("parts[0]: ") for text in caught.value.problems)


def test_i09_json_text_is_decoded_where_an_object_or_array_is_wanted() -> None:
    values = _signature().validate(
        {"x": 1, "y": '{"a": 1}', "inner": '{"n": 1}', "parts": '[{"n": 1}, "{\\"n\\": 2}"]'}
    )
    assert values["inner"] == Inner(n=1)
    assert values["parts"] == [Part(1), Part(2)]
    assert values["y"] == '{"a": 1}'


def test_json_text_stays_text_where_text_is_allowed() -> None:
    def f(it: str | dict[str, int]) -> None: ...

    assert describe(f).validate({"it": '{"a": 1}'}) == {"it": '{"a": 1}'}


@pytest.mark.parametrize("text", ["{broken", "n=1", '"{\\"n\\": 1}"', "[1]", ""])
def test_text_that_is_no_such_json_is_a_fault(text: str) -> None:
    with pytest.raises(ArgumentsError, match=r"^inner"):
        _signature().validate({"x": 1, "y": "", "inner": text})


def test_the_given_arguments_are_never_changed() -> None:
    given = {"x": 1, "y": "", "limit": None, "inner": '{"n": 1}', "parts": [{"n": 1, "size": None}]}
    before = json.dumps(given)
    _signature().validate(given)
    assert json.dumps(given) == before


def test_any_mapping_will_do() -> None:
    from types import MappingProxyType

    assert _signature().validate(MappingProxyType({"x": 1, "y": ""})) == {"x": 1, "y": ""}


def test_a_validator_of_the_user_that_raises_anything_is_a_fault_without_secrets() -> None:
    class Checked(BaseModel):
        n: int

        @field_validator("n")
        @classmethod
        def check(cls, value: int, info: ValidationInfo) -> int:
            raise KeyError("password=hunter2 is not known")

    def f(it: Checked) -> None: ...

    with pytest.raises(ArgumentsError, match="could not be checked: KeyError") as caught:
        describe(f).validate({"it": {"n": 1}})
    assert "hunter2" not in str(caught.value)


def test_a_wrong_literal_names_the_right_ones() -> None:
    def f(mode: Literal["read", "write"]) -> None: ...

    with pytest.raises(ArgumentsError, match="mode: input should be 'read' or 'write'"):
        describe(f).validate({"mode": "erase"})


@given(st.dictionaries(st.sampled_from(["x", "y", "limit", "inner", "parts", "other"]), JSON))
def test_validation_gives_values_that_validate_again_or_an_arguments_error(arguments: dict[str, Any]) -> None:
    values = outcome(SIGNATURE.validate, arguments)
    if isinstance(values, dict):
        assert SIGNATURE.validate(values) == values
    else:
        assert values


SIGNATURE = _signature()
MODELS = st.builds(Inner, n=st.integers(), tag=st.text(), deep=st.none() | st.builds(Inner, n=st.integers()))


@given(x=st.integers(), y=st.text(), inner=st.none() | MODELS)
def test_what_a_value_dumps_to_validates_to_the_value(x: int, y: str, inner: Inner | None) -> None:
    dumped = {"x": x, "y": y, "inner": inner and inner.model_dump(mode="json")}
    assert SIGNATURE.validate(dumped) == {"x": x, "y": y, "inner": inner}


def test_half_a_surrogate_pair_is_a_fault_whose_text_can_be_sent() -> None:
    with pytest.raises(ArgumentsError) as caught:
        SIGNATURE.validate(parse_arguments('{"x": 1, "y": "\\ud83d", "\\ude00": 1}'))
    str(caught.value).encode("utf-8")


def test_a_fault_with_a_huge_name_is_bounded() -> None:
    with pytest.raises(ArgumentsError) as caught:
        SIGNATURE.validate({"x": 1, "y": "", "z" * 100_000: 1})
    assert len(str(caught.value)) < 600
