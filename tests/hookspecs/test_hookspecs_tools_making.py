"""Making tools: the decorator, its options, and what `as_tool` takes."""

import functools
import inspect
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hookloop_hookspecs import ConfigError, Tool, ToolCall, ToolContext, Toolset, tool
from hookloop_hookspecs.tools import as_tool, is_async

CONTEXT = ToolContext("c", "t", 1, ToolCall.of("f"), "key")


def edit(path: str, times: int = 1) -> str:
    """Edit a file.

    Args:
        path: where it is
    """
    return path * times


async def look(path: str) -> str:
    """Look."""
    return path


class Counter:
    """Counts."""

    def __call__(self, n: int) -> int:
        """Count up."""
        return n + 1


class Waiter:
    async def __call__(self, n: int) -> int:
        return n


def test_bare_and_with_options() -> None:
    bare = tool(edit)
    assert (bare.name, bare.description, bare.timeout, bare.is_async) == ("edit", "Edit a file.", None, False)
    made = tool(
        name="edit_file",
        description="Edits.",
        timeout=2.5,
        retries=3,
        retry_on=OSError,
        retry_wait=0.1,
        idempotent=True,
        return_direct=True,
        needs_approval=True,
        serial=True,
        strict=True,
    )(edit)
    assert made.spec.name == "edit_file"
    assert made.spec.description == "Edits."
    assert made.spec.strict is True
    assert (made.timeout, made.retries, made.retry_on, made.retry_wait) == (2.5, 3, (OSError,), 0.1)
    assert all((made.idempotent, made.return_direct, made.needs_approval, made.serial))


def test_a_tool_stays_the_plain_function() -> None:
    made = tool(edit)
    assert made("a", times=2) == "aa"
    assert inspect.signature(made) == inspect.signature(edit)
    assert made.__doc__ == edit.__doc__
    assert as_tool(made) is made


def test_calling_injects_the_context() -> None:
    @tool
    def f(x: int, ctx: ToolContext) -> Any:
        return x, ctx

    assert f.call(f.validate({"x": "1"}), CONTEXT) == (1, CONTEXT)
    assert json.loads(f.spec.schema)["required"] == ["x"]


def test_options_may_be_added_to_a_tool() -> None:
    made = tool(name="second", timeout=1)(tool(serial=True)(edit))
    assert (made.name, made.timeout, made.serial, made.function) == ("second", 1, True, edit)


@pytest.mark.parametrize("name", ["", "a b", "1a", "-a", "a.b", "ä", "a" * 65, "a\n", "<lambda>", 3])
def test_names_that_cannot_be(name: Any) -> None:
    with pytest.raises(ConfigError, match=r"tool name .* cannot be.*@tool"):
        tool(name=name)(edit)


@pytest.mark.parametrize("name", ["a", "_a", "A-b_9", "a" * 64])
def test_names_that_can_be(name: str) -> None:
    assert tool(name=name)(edit).name == name


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ConfigError, match=r"<lambda>.*name=…"):
        tool(lambda: 1)
    assert tool(name="one")(lambda: 1).name == "one"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"timeout": -1}, "timeout is -1"),
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": float("nan")}, "timeout is nan"),
        ({"timeout": float("inf")}, "timeout is inf"),
        ({"timeout": "3"}, "timeout is '3'"),
        ({"timeout": True}, "timeout is True"),
        ({"retries": -1}, "retries is -1"),
        ({"retries": 1.5}, "retries is 1.5"),
        ({"retries": True}, "retries is True"),
        ({"retry_wait": -0.1}, "retry_wait is -0.1"),
        ({"retry_on": "OSError"}, "retry_on is 'OSError'"),
        ({"retry_on": (OSError, KeyboardInterrupt)}, "retry_on is"),
        ({"retry_on": int}, "retry_on is"),
        ({"serial": 1}, "serial is 1"),
        ({"strict": "yes"}, "strict is 'yes'"),
        ({"description": 3}, "description is 3"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=f"tool 'edit': {words}"):
        tool(**options)(edit)


@pytest.mark.parametrize(
    ("wrong", "right"), [("timout", "timeout"), ("need_approval", "needs_approval"), ("nam", "name")]
)
def test_a_misspelt_option_names_the_nearest(wrong: str, right: str) -> None:
    with pytest.raises(ConfigError, match=f"no option '{wrong}'; did you mean '{right}'"):
        tool(edit, **{wrong: 1})
    with pytest.raises(ConfigError, match=r"no option 'zzz'; known: .*idempotent"):
        tool(zzz=1)  # type: ignore[call-overload]  # what is tested


def test_what_the_engine_sets_is_no_option() -> None:
    for name in ("signature", "function", "is_async"):
        with pytest.raises(ConfigError, match="no option"):
            tool(edit, **{name: 1})


@pytest.mark.parametrize(
    ("thing", "name", "waits"),
    [
        (edit, "edit", False),
        (look, "look", True),
        (functools.partial(edit, "p"), "edit", False),
        (functools.partial(look, "p"), "look", True),
        (functools.partial(functools.partial(look), "p"), "look", True),
        (Counter(), "Counter", False),
        (Waiter(), "Waiter", True),
        (functools.partial(Waiter(), 1), "Waiter", True),
        (Counter().__call__, "__call__", False),
    ],
)
def test_callables_of_all_kinds(thing: Callable[..., Any], name: str, waits: bool) -> None:
    made = as_tool(thing)
    assert (made.name, made.is_async) == (name, waits)


def test_a_callable_object_is_called() -> None:
    made = as_tool(Counter())
    assert made.description == "Count up."
    assert made.call(made.validate({"n": "4"}), CONTEXT) == 5


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        ("edit", "str 'edit'"),
        (None, "NoneType"),
        ({"type": "function"}, "dict"),
        (Counter, "the class Counter; give an object"),
        ([edit], "list"),
        (3, "int 3"),
    ],
)
def test_anything_else_is_refused_with_what_it_was(thing: object, words: str) -> None:
    with pytest.raises(ConfigError, match=f"not of {words}"):
        as_tool(thing)


def test_async_is_seen_through_everything_around_it() -> None:
    assert is_async(tool(look))
    assert is_async(functools.partial(tool(look), path="x"))
    assert is_async(staticmethod(look))
    assert not is_async(staticmethod(edit))
    assert not is_async(len)


class Desk:
    def __init__(self) -> None:
        self.opened = 0

    def open(self) -> None:
        self.opened += 1
        self.tools: list[Tool | Callable[..., Any]] = [tool(edit), look]

    async def close(self) -> None:
        self.opened -= 1


def test_a_toolset_whose_tools_come_with_open() -> None:
    desk = Desk()
    assert isinstance(desk, Toolset)
    desk.open()
    assert isinstance(desk, Toolset)
    assert [as_tool(each).name for each in desk.tools] == ["edit", "look"]
    with pytest.raises(ConfigError, match="not of the toolset Desk; return it from register_tools"):
        as_tool(desk)


def test_whether_it_is_a_toolset_is_asked_before_it_is_open() -> None:
    class Lazy:
        @property
        def tools(self) -> list[Tool]:
            return self.found

        def open(self) -> None:
            self.found = [tool(edit)]

        def close(self) -> None:
            del self.found

    assert isinstance(Lazy(), Toolset)
    assert isinstance(SimpleNamespace(open=Desk.open, close=Desk.close, tools=[]), Toolset)


@pytest.mark.parametrize("thing", [edit, tool(edit), Desk, None, "x", [edit]])
def test_what_is_no_toolset(thing: object) -> None:
    assert not isinstance(thing, Toolset)


def test_tools_are_frozen() -> None:
    made: Tool = tool(edit)
    with pytest.raises(AttributeError):
        made.timeout = 3  # type: ignore[misc]  # what is tested
