"""What the checks of a hook plugin work with: turns that meet all kinds of things, played in all ways."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, Final
from unittest import SkipTest

from hookloop.agent import Agent
from hookloop.hooks import Hooks, Registered
from hookloop.limits import Limits
from hookloop.memory import InProcessMemory
from hookloop_hookspecs import (
    Batch,
    ConfigError,
    ProviderError,
    hookimpl,
    tool,
)

from .plugin_play import Play, Played, Situation
from .script import call, reply, say
from .scripted import ScriptedProvider
from .watched import Call, Watched

ROUNDS: Final = 16
"""Rounds of the long turn, in which a plugin must stay as it is."""
ROOM: Final = 8
"""Rounds that a plugin may add to a turn ("not yet, go on") before that is called endless."""


WORDS: Final = "The first file is changed, and nothing else was touched."
"""Text long enough to come in several pieces."""


class FullDisk(InProcessMemory):
    """A memory that stores the turn's start and nothing more."""

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        if batch.version > 0:
            raise OSError("the disk is full")
        super().persist_memory(batch)


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


@tool
def boom() -> str:
    """Fail."""
    raise ValueError("broken")


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


TOOLS: Final = (edit, boom, pay)


def edits(count: int) -> list[Any]:
    """Calls of `edit`, one in each reply."""
    return [call("edit", {"path": f"{at}.txt"}, id=f"e{at}") for at in range(count)]


class PluginSubject:
    """A plugin under check.

    Arguments: `make` gives a plugin of its own for each play; `tools` and `calls` are what the model has and calls beside
    `edit(path)`, so that a plugin about other tools has something to do; `deps` is what the program gives to its turns.
    """

    def __init__(
        self, make: Callable[[], Any], tools: Sequence[Any] = (), calls: Sequence[Any] = (), deps: Any = None
    ) -> None:
        self._make = make
        self._tools = (*TOOLS, *tools)
        self._calls = list(calls)
        self._deps = deps
        self._plays: dict[str, Played] = {}

    @cached_property
    def fault(self) -> str:
        """Why it is no plugin at all; empty where it is one."""
        try:
            plugin = self._make()
        except Exception as error:  # whatever its making raises is what the report is about
            return f"it cannot be made: {type(error).__name__}: {error}"
        try:
            Hooks([Registered("checked", plugin)])
        except ConfigError as error:
            return str(error)
        _close(plugin)
        return ""

    def require(self) -> None:
        """Skip the check where there is no plugin to look at."""
        if self.fault:
            raise SkipTest("it cannot be registered")

    @property
    def situations(self) -> list[Situation]:
        """The ordinary turn, and those in which something goes wrong around the plugin."""
        broken = ProviderError("no luck", provider="scripted", kind="overloaded", retryable=True)
        first, second = edits(2)
        return [
            Situation("an ordinary turn", [[say(WORDS), first], *self._calls, second, say(WORDS)]),
            Situation("a tool that raises", [call("boom", id="b1"), say("sorry")]),
            Situation("an unknown tool", [call("edlt", {"path": "a"}, id="u1"), say("done")]),
            Situation("arguments that are no JSON", [call("edit", '{"path": ', id="j1"), say("done")]),
            Situation("parallel calls, one of which fails", [[first, call("boom", id="b1"), second], say("done")]),
            Situation("a provider that fails at once", [broken]),
            Situation("a provider that fails in mid-turn", [first, broken]),
            Situation("a cut reply", [reply(first, stop="length"), say("done")]),
            Situation("a blank reply", [say("  ")]),
            Situation("a refusal", [reply(say("no"), stop="refusal")]),
            Situation("a limit", edits(6), limits=Limits(tool_calls=3)),
            Situation("a caller who leaves", [first, say("done")], leave=True),
            Situation("an approval", [call("pay", {"amount": 3}, id="p1"), say("paid")], approve=True),
            Situation("a memory that fails", [first, say("done")], memory=FullDisk),
        ]

    @property
    def ordinary(self) -> Played:
        """The ordinary turn, played once."""
        return self.played(self.situations[0])

    def played(self, situation: Situation) -> Played:
        """A situation, played once for all checks."""
        if situation.name not in self._plays:
            self._plays[situation.name] = self.play(situation)
        return self._plays[situation.name]

    def all(self) -> list[tuple[Situation, Call]]:
        """Every call of every hook, in every situation."""
        return [(one, call) for one in self.situations for call in self.played(one).watched.calls]

    def long(self) -> Played:
        """One turn of many rounds."""
        return self.played(Situation("a long turn", edits(ROUNDS), prompts=("Change them all.",)))

    def play(self, situation: Situation, way: str = "run", transport: str = "stream") -> Played:
        """Play a situation anew. `way` is one of run, stream, arun, astream."""
        self.require()
        watched = Watched(self._make())
        return Play(
            watched, lambda provider: self._agent(watched, situation, provider), self._deps, situation, way, transport
        ).play()

    def _agent(self, watched: Watched, situation: Situation, provider: ScriptedProvider) -> Agent:
        memory = None if situation.memory is None else [situation.memory()]
        limits = situation.limits
        if limits == Limits():
            limits = Limits(rounds=len(situation.script) + ROOM)
        return Agent(provider, tools=self._tools, plugins=[watched], memory=memory, limits=limits)


def _close(plugin: Any) -> None:
    """Let a plugin that took part in no turn go. Where it fails in that, the check of an ordinary turn says so."""
    close: Any = getattr(plugin, "close", None)
    with suppress(Exception):
        value = close() if hasattr(close, "hookloop_impl") else None
        if inspect.isawaitable(value):
            asyncio.run(_awaited(value))


async def _awaited(value: Awaitable[Any]) -> Any:
    return await value


__all__ = ["ROUNDS", "PluginSubject"]
