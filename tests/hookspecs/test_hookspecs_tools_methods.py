"""Tools that are methods."""

import asyncio
import json
from types import MethodType
from typing import Any

import pytest

from hookloop_hookspecs import ConfigError, Tool, ToolCall, ToolContext, tool
from hookloop_hookspecs.tools import as_tool

CONTEXT = ToolContext("c", "t", 1, ToolCall.of("f"), "key")


class Shelf:
    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    def find(self, title: str) -> str:
        """Find it."""
        return f"{self.name}: {title}"

    @tool(timeout=3, serial=True)
    async def fetch(self, title: str, ctx: ToolContext) -> str:
        return f"{self.name}: {title} {ctx.key}"

    @tool
    @classmethod
    def kinds(cls, n: int) -> Any:
        return cls, n

    @classmethod
    @tool
    def sorts(cls, n: int) -> Any:
        return cls, n

    @tool
    @staticmethod
    def count(n: int) -> int:
        return n

    @staticmethod
    @tool
    def number(n: int) -> int:
        return n

    def plain(self, title: str) -> str:
        return f"{self.name}, plain: {title}"


class Cupboard(Shelf):
    @tool
    def find(self, title: str) -> str:
        """Find it here."""
        return f"cupboard {super().find(title)}"


def run(made: object, **arguments: Any) -> Any:
    it = as_tool(made)
    return it.call(it.validate(arguments), CONTEXT)


def test_a_method_is_the_tool_of_its_object() -> None:
    first, second = Shelf("first"), Shelf("second")
    assert isinstance(first.find, Tool)
    assert list(json.loads(first.find.spec.schema)["properties"]) == ["title"]
    assert run(first.find, title="a") == "first: a"
    assert run(second.find, title="a") == "second: a"
    assert first.find("b") == "first: b"


def test_an_async_method_keeps_its_options_and_gets_the_context() -> None:
    made = Shelf("s").fetch
    assert (made.is_async, made.timeout, made.serial) == (True, 3, True)
    assert asyncio.run(run(made, title="a")) == "s: a key"


@pytest.mark.parametrize("name", ["kinds", "sorts"])
def test_class_methods_bind_to_the_class(name: str) -> None:
    assert run(getattr(Cupboard, name), n=1) == (Cupboard, 1)
    assert run(getattr(Shelf("s"), name), n="2") == (Shelf, 2)


@pytest.mark.parametrize("name", ["count", "number"])
def test_static_methods(name: str) -> None:
    assert run(getattr(Shelf("s"), name), n=1) == 1
    assert run(getattr(Shelf, name), n=1) == 1


def test_plain_bound_methods() -> None:
    assert run(Shelf("s").plain, title="x") == "s, plain: x"


def test_an_overriding_method_may_call_the_one_above() -> None:
    made = as_tool(Cupboard("c").find)
    assert made.description == "Find it here."
    assert run(made, title="x") == "cupboard c: x"


@pytest.mark.parametrize("thing", [Shelf.find, Shelf.plain, Cupboard.fetch])
def test_a_method_of_a_class_is_refused_and_says_what_to_give(thing: object) -> None:
    with pytest.raises(ConfigError, match=r"is a method of a class; give that of an object: obj\.(find|plain|fetch)"):
        as_tool(thing)


def test_a_tool_that_merely_lies_in_a_class_is_not_bound() -> None:
    @tool
    def loose(n: int) -> int:
        return n

    class Holder:
        it = loose

    assert Holder().it is loose
    assert run(Holder().it, n=3) == 3


def test_a_method_made_of_a_tool_by_hand() -> None:
    made = MethodType(Shelf.__dict__["find"], Shelf("hand"))
    assert run(made, title="a") == "hand: a"
