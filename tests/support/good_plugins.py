"""Hook plugins that keep the contract, of all kinds, and what makes plugins of functions."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterator
from typing import Any

from hookloop.testing import Spy
from hookloop_hookspecs import (
    Deny,
    Message,
    Narrow,
    Replace,
    Retry,
    Stop,
    Suspend,
    ToolCall,
    ToolResult,
    Window,
    hookimpl,
    tool,
)


def plugin(**hooks: Callable[..., Any]) -> Callable[[], Any]:
    """Makes plugins with these functions as hooks."""

    class Made:
        def __init__(self) -> None:
            for name, function in hooks.items():
                setattr(self, name, hookimpl(function))

    return Made


def one_tool_named(name: str) -> Any:
    @tool(name=name)
    def helper(x: int) -> int:
        """Help."""
        return x

    return helper


class Feedback:
    @hookimpl
    def next_instructions(self, results: Any) -> str | None:
        return "FEEDBACK" if any(r.name == "edit" and not r.is_error for r in results) else None


class Everything:
    """Uses most of what a plugin may do, in async hooks too."""

    def __init__(self) -> None:
        self.rounds = 0

    @hookimpl
    def register_tools(self) -> Any:
        @tool
        def helper(x: int) -> int:
            """Help."""
            return x

        return [helper]

    @hookimpl
    async def before_turn(self) -> Iterator[Message]:
        await asyncio.sleep(0)
        return iter([Message.system("Be kind."), Message.user("today", ephemeral=True)])

    @hookimpl
    def before_round(self, turn: Any) -> Message:
        return Message.user(f"round {turn.round}", key="round")

    @hookimpl
    def before_tool(self, call: ToolCall, decision: Any) -> Any:
        if call.name == "pay" and decision is None:
            return Suspend("sure?")
        return Deny("not this one") if call.arguments.get("path") == "1.txt" else None

    @hookimpl
    async def after_tool(self, result: ToolResult) -> Any:
        return [Replace(result.with_text(result.text.upper())), "noted"]

    @hookimpl(trylast=True)
    def on_model_error(self, error: Any) -> None:
        self.last = str(error)

    @hookimpl
    def after_turn(self, outcome: Any) -> None:
        self.status = outcome.status


EVERYTHING = (
    "after_tool",
    "after_turn",
    "before_round",
    "before_tool",
    "before_turn",
    "on_model_error",
    "register_tools",
)


class Wrapping:
    @hookimpl(wrapper=True)
    def next_instructions(self) -> Generator[None, list[Any], list[Any]]:
        returned = yield
        return [*returned, "wrapped"]


class Timed:
    """Says the time, so that its texts differ from run to run."""

    @hookimpl
    def next_instructions(self) -> str:
        return f"it is {time.perf_counter_ns()}"


class Approver:
    """Lets nothing run that nobody approved."""

    @hookimpl
    def before_tool(self, decision: Any) -> Suspend | None:
        return Suspend("may it?") if decision is None else None


class Budget:
    """Stops a turn after some calls."""

    @hookimpl
    def next_instructions(self, turn: Any) -> Stop | None:
        return Stop("budget", "that was enough") if turn.calls >= 1 else None


class Summary:
    """Asks the model on the side, remembers in its state, and shows the newest only."""

    @hookimpl
    def next_instructions(self, turn: Any, results: Any) -> Message:
        turn.state["seen"] = turn.state.get("seen", 0) + len(results)
        return Message.user(f"{turn.state['seen']}: {turn.complete('Sum it up.')}", key="summary")


class Retries:
    """Asks again, once for each round."""

    def __init__(self) -> None:
        self.tried: set[tuple[str, int]] = set()

    @hookimpl
    async def on_model_error(self, turn: Any) -> Retry | None:
        key = (turn.id, turn.round)
        fresh = key not in self.tried
        self.tried.add(key)
        return Retry() if fresh else None


class Tools:
    """Gives tools from a toolset that opens and closes."""

    tools = (one_tool_named("weather"),)

    async def open(self) -> None:
        await asyncio.sleep(0)

    def close(self) -> None: ...

    @hookimpl
    def register_tools(self) -> Any:
        return self

    @hookimpl
    def before_round(self, turn: Any) -> Any:
        return Narrow(tools=("edit", "boom", "pay", "weather")) if turn.round == 1 else None


class Facts:
    """Recalls something, and stops what it may not hear."""

    @hookimpl
    def recall(self, query: Message) -> list[str]:
        return [f"a fact about {query.text}"]

    @hookimpl
    def before_turn(self, query: Message) -> Stop | Replace[str] | None:
        if "other" in query.text:
            return Stop("forbidden", "no")
        return None if query.text.startswith("Please") else Replace(f"Please: {query.text}")

    @hookimpl
    def select_context(self) -> Window:
        return Window(messages=20)


GOOD: list[Callable[[], Any]] = [
    Approver,
    Budget,
    Summary,
    Retries,
    Tools,
    Facts,
    Feedback,
    Everything,
    Wrapping,
    Timed,
    Spy,
    lambda: Spy(is_async=True),
]


__all__ = ["EVERYTHING", "GOOD", "Everything", "Feedback", "Retries", "Timed", "Wrapping", "one_tool_named", "plugin"]
