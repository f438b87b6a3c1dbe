"""Quick constructors are those of the dataclass in all but their price, and the quick look at a value is never too kind."""

from __future__ import annotations

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop_hookspecs import Message, Origin, Reply, Text, ToolCall, ToolResult, Usage
from hookloop_hookspecs.providers import CallDelta, TextDelta
from hookloop_hookspecs.quick import quick
from hookloop_hookspecs.wellformed import _checks, _sound, fault


def made() -> Any:
    """A class with every kind of field."""

    @dataclass(frozen=True, slots=True)
    class Kind:
        name: str
        parts: list[str] = field(default_factory=list)
        count: int = 3
        made: list[str] = field(default_factory=list)

        def __post_init__(self) -> None:
            self.made.append(f"{self.name} {self.count}")

    return Kind


Slow, Fast = made(), quick(made())


def test_a_quick_class_has_the_same_parameters_and_makes_the_same() -> None:
    assert [*inspect.signature(Fast).parameters] == [*inspect.signature(Slow).parameters]
    one, other = Fast("a"), Fast("b", ["c"], count=4)
    assert (one.name, one.parts, one.count, one.made) == ("a", [], 3, ["a 3"])
    assert (other.name, other.parts, other.count, other.made) == ("b", ["c"], 4, ["b 4"])
    assert one.parts is not Fast("a").parts
    with pytest.raises(TypeError, match=r"Kind.__init__\(\) missing 1 required positional argument: 'name'"):
        Fast()
    with pytest.raises(TypeError, match="unexpected keyword argument 'nam'"):
        Fast(nam="a")
    with pytest.raises(FrozenInstanceError):
        one.name = "c"


@pytest.mark.parametrize(
    "kind", [Text, ToolCall, ToolResult, Usage, Origin, Reply, CallDelta, TextDelta], ids=lambda kind: kind.__name__
)
def test_values_of_the_contract_are_copied_pickled_and_replaced(kind: Any) -> None:
    needed = [
        name for name, one in inspect.signature(kind).parameters.items() if one.default is inspect.Parameter.empty
    ]
    value = kind(*needed)
    pickled = pickle.loads(pickle.dumps(value))  # noqa: S301  # our own
    assert copy.deepcopy(value) == pickled == replace(value) == value
    assert hash(value) == hash(replace(value))


WRONG: Any = 1
ODD = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.binary(max_size=2)),
    st.sampled_from(
        [(), [], Text("a"), (Text("a"),), (Text(WRONG),), [Text("a")], Usage(1), Usage(WRONG * 0.5), "calls"]
    ),
)
"""Whatever somebody may give for a field."""


@given(st.sampled_from([Text, ToolCall, ToolResult, Usage, Reply, CallDelta, Message]), st.data())
def test_the_quick_look_says_sound_of_nothing_that_has_a_fault(kind: Any, data: st.DataObject) -> None:
    value = object.__new__(kind)
    for spec in fields(kind):
        object.__setattr__(value, spec.name, data.draw(ODD))
    closely = [f"{name}{trouble}" for name, check in _checks(kind) if (trouble := check(getattr(value, name)))]
    assert not (_sound(kind)(value) and closely)
    assert fault(value) == (closely[0] if closely else "")


def test_the_quick_look_suffices_for_what_models_say() -> None:
    reply = Reply((Text("a"), ToolCall("c1", "edit", "{}")), "calls", Usage(1, 2, total=3), "model")
    assert _sound(Reply)(reply)
    assert _sound(CallDelta)(CallDelta(0, "c1", "edit", "{}"))
