"""What the checks of a hook plugin work with: turns that meet all kinds of things, played in all ways."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from unittest import SkipTest

from hookloop.agent import Agent
from hookloop.hooks import Hooks, Registered
from hookloop.limits import Limits
from hookloop.memory import InProcessMemory
from hookloop_hookspecs import (
    Approve,
    Batch,
    ConfigError,
    Message,
    ModelRequest,
    Outcome,
    ProviderError,
    hookimpl,
    tool,
)

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


@dataclass(frozen=True)
class Situation:
    """What a turn meets. `script` is what the model says, reply by reply; once it is used up the model says "done"."""

    name: str
    script: Sequence[Any] = ()
    leave: bool = False
    approve: bool = False
    memory: Callable[[], Any] | None = None
    limits: Limits = field(default_factory=Limits)
    prompts: Sequence[str] = ("Change the file.", "And the other one.")


@dataclass
class Played:
    """What one play showed: the plugin's calls, the requests, the outcome of each turn (None: it raised before one)."""

    watched: Watched
    requests: list[ModelRequest] = field(default_factory=list)
    outcomes: list[Outcome | None] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def contributions(self) -> list[Message]:
        """All that plugins contributed, turn by turn."""
        found = [message for outcome in self.outcomes if outcome is not None for message in outcome.new]
        return [message for message in found if message.origin.kind == "plugin"]


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
            Hooks([Registered("checked", self._make())])
        except ConfigError as error:
            return str(error)
        except Exception as error:  # whatever its making raises is what the report is about
            return f"it cannot be made: {type(error).__name__}: {error}"
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
        return _Play(self, situation, way, transport).play()

    def agent(self, played: Played, situation: Situation, provider: ScriptedProvider) -> Agent:
        """An agent with the plugin, for one play."""
        memory = None if situation.memory is None else [situation.memory()]
        limits = situation.limits
        if limits == Limits():
            limits = Limits(rounds=len(situation.script) + ROOM)
        return Agent(provider, tools=self._tools, plugins=[played.watched], memory=memory, limits=limits)

    @property
    def deps(self) -> Any:
        """What the program gives."""
        return self._deps

    def watch(self) -> Watched:
        """A plugin of its own, watched."""
        return Watched(self._make())


class _Play:
    """One play under way."""

    def __init__(self, subject: PluginSubject, situation: Situation, way: str, transport: str) -> None:
        self._subject = subject
        self._situation = situation
        self._way = way
        self._played = Played(subject.watch())
        self._provider = ScriptedProvider([self._says] * 1000, transport=transport)

    def _says(self, request: ModelRequest) -> Any:
        """The model's next reply: the script begins anew with each message of the user."""
        said = 0
        for message in request.messages:
            said = 0 if message.origin.kind == "user" else said + (message.role == "assistant")
        script = self._situation.script
        first = not any(message.text == self._situation.prompts[-1] for message in request.messages)
        again = first or len(self._situation.prompts) == 1
        return script[said] if again and said < len(script) else say("done")

    def play(self) -> Played:
        if self._way.startswith("a"):
            asyncio.run(self._async())
        else:
            self._sync()
        self._played.requests = self._provider.requests
        return self._played

    def _agent(self) -> Agent:
        return self._subject.agent(self._played, self._situation, self._provider)

    def _asks(self, at: int) -> dict[str, Any]:
        return {"conversation": "c", "turn_id": f"t{at}", "deps": self._subject.deps}

    def _sync(self) -> None:
        with self._agent() as agent:
            for at, prompt in enumerate(self._situation.prompts):
                stream = agent.stream(prompt, **self._asks(at))
                try:
                    self._read(stream)
                    self._over(stream.outcome)
                    if self._situation.approve and self._waits():
                        self._over(agent.resume("c", self._approval()))
                except Exception as error:
                    self._failed(error)

    def _read(self, stream: Any) -> None:
        if self._way == "run" and not self._situation.leave:
            stream.result()
            return
        with stream as events:
            for event in events:
                if self._situation.leave and event.kind == "tool_started":
                    break

    async def _async(self) -> None:
        async with self._agent() as agent:
            for at, prompt in enumerate(self._situation.prompts):
                stream = agent.astream(prompt, **self._asks(at))
                try:
                    await self._aread(stream)
                    self._over(stream.outcome)
                    if self._situation.approve and self._waits():
                        self._over(await agent.aresume("c", self._approval()))
                except Exception as error:
                    self._failed(error)

    async def _aread(self, stream: Any) -> None:
        if self._way == "arun" and not self._situation.leave:
            await stream.result()
            return
        async with stream as events:
            async for event in events:
                if self._situation.leave and event.kind == "tool_started":
                    break

    def _over(self, outcome: Outcome | None) -> None:
        self._played.outcomes.append(outcome)

    def _failed(self, error: Exception) -> None:
        self._played.errors.append(f"{type(error).__name__}: {error}")
        self._over(getattr(error, "outcome", None))

    def _waits(self) -> bool:
        last = self._played.outcomes[-1]
        return last is not None and last.status == "suspended"

    def _approval(self) -> dict[str, Any]:
        last = self._played.outcomes[-1]
        return {one.id: Approve() for one in last.pending} if last is not None else {}


__all__ = ["ROUNDS", "Played", "PluginSubject", "Situation"]
