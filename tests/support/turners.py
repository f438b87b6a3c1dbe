"""Processes that play turns on a store, to be killed at any time. What they do in the world they write into a journal.

Each line of the journal is a thing that really happened: `begin 3`, `spend 31`, `look 33`, `done 3`, `left 3`, `error …`.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import psycopg  # noqa: F401  # loaded once, before processes are forked
import redis  # noqa: F401  # as above

from hookloop import Agent, tool
from hookloop.drivers.heart import Heart
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Approve, Conflict, ModelRequest, NoOpenTurn, Outcome

Mode: TypeAlias = Literal["resume", "repeat", "new"]
JITTER = 0.004
"""Seconds that the model and each tool take at most, so that a kill may hit any of them."""


def processes() -> Any:
    """A way to start processes that is quick: they are forked from one that has loaded everything and runs nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["turners", "rivals"])
    return context


class Journal:
    """Lines that outlive the process that writes them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, *words: object) -> None:
        """Append one line, at once and whole."""
        file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        try:
            os.write(file, (" ".join(map(str, words)) + "\n").encode())
        finally:
            os.close(file)

    def lines(self) -> list[tuple[str, str]]:
        """All lines, as (word, rest)."""
        if not self.path.exists():
            return []
        parts = (line.partition(" ") for line in self.path.read_text("utf-8").splitlines())
        return [(word, rest) for word, _, rest in parts]

    def numbers(self, word: str) -> list[int]:
        """The numbers behind a word, in order."""
        return [int(rest) for first, rest in self.lines() if first == word]


def script(index: int) -> list[Any]:
    """What the model says in turn number `index`; every third turn asks for an approval."""
    n = index * 10
    second: list[Any] = [say("two"), call("spend", {"n": n + 2}, id=f"b{n}"), call("look", {"n": n + 3}, id=f"c{n}")]
    if index % 3 == 0:
        second.append(call("approved", {"n": n + 4}, id=f"d{n}"))
    return [
        call("spend", {"n": n + 1}, id=f"a{n}"),
        second,
        call("look", {"n": n + 5}, id=f"e{n}"),
        say(f"done {index}"),
    ]


@dataclass
class Turner:
    """One process's agent on a store."""

    url: str
    conversation: str
    journal: Journal
    chance: random.Random

    def agent(self) -> Agent:
        """An agent whose model and tools take a little time, and note what they did."""

        @tool
        def spend(n: int) -> str:
            """Have an effect."""
            return self.act("spend", n, f"spent {n}")

        @tool(idempotent=True)
        def look(n: int) -> str:
            """Have none."""
            return self.act("look", n, f"saw {n}")

        @tool(needs_approval=True)
        def approved(n: int) -> str:
            """Ask first."""
            return self.act("spend", n, f"spent {n}")

        model = ScriptedProvider([self.answer] * 10_000)
        return Agent(model, tools=[spend, look, approved], memory=[self.url])

    def act(self, word: str, n: int, text: str) -> str:
        """A tool's effect, with time before and after it."""
        self.linger()
        self.journal.write(word, n)
        self.linger()
        return text

    def linger(self) -> None:
        """Take a little time."""
        time.sleep(self.chance.random() * JITTER)

    def answer(self, request: ModelRequest) -> Any:
        """The next reply of the turn that the newest question names."""
        self.linger()
        messages = list(request.messages)
        at = max(at for at, message in enumerate(messages) if message.origin.kind == "user" and message.role == "user")
        said = sum(message.role == "assistant" for message in messages[at:])
        return script(int(messages[at].text.split()[1]))[said]

    def recover(self, agent: Agent, mode: Mode) -> int:
        """Bring the last turn to its end, as `mode` says; gives back the number of the next one."""
        begun = self.journal.numbers("begin")
        if not begun:
            return 0
        last = begun[-1]
        if last in self.journal.numbers("done") + self.journal.numbers("left"):
            return last + 1
        if mode == "new":
            self.journal.write("left", last)
        elif mode == "repeat":
            self.end(agent, last, self.begin(agent, last))
        else:
            self.end(agent, last, self.resume(agent, last))
        return last + 1

    def resume(self, agent: Agent, last: int) -> Outcome:
        """Take up what is open or waits, which is an older turn where nothing of the last one was stored."""
        try:
            outcome = agent.resume(self.conversation)
        except NoOpenTurn:
            return self.begin(agent, last)
        if outcome.turn_id == f"t{last}":
            return outcome
        self.end(agent, int(outcome.turn_id[1:]), outcome)
        return self.begin(agent, last)

    def begin(self, agent: Agent, index: int) -> Outcome:
        """Run the turn of that number, or take it up where it was begun."""
        return agent.run(f"go {index}", conversation=self.conversation, turn_id=f"t{index}")

    def end(self, agent: Agent, index: int, outcome: Outcome) -> None:
        """Approve what waits, and note that the turn is over."""
        while outcome.status == "suspended":
            outcome = agent.resume(self.conversation, {pending.id: Approve() for pending in outcome.pending})
        if (outcome.status, outcome.text, outcome.turn_id) != ("done", f"done {index}", f"t{index}"):
            raise AssertionError(f"turn {index} ended as {outcome}")
        self.journal.write("done", index)


def live(url: str, conversation: str, path: Path, seed: int, mode: Mode, turns: int, ready: Any) -> None:
    """A process: recover the last turn, then play so many more. Says through `ready` when it begins."""
    turner = Turner(url, conversation, Journal(path), random.Random(seed))
    try:
        with turner.agent() as agent:
            ready.send(os.getpid())
            index = turner.recover(agent, mode)
            for at in range(index, index + turns):
                turner.journal.write("begin", at)
                turner.end(agent, at, turner.begin(agent, at))
    except BaseException as error:
        turner.journal.write("error", repr(error).replace("\n", " "))
        raise


def kill(process: Any) -> None:
    """End a process as hard as it can be, and wait until it is gone."""
    os.kill(process.pid, signal.SIGKILL)
    process.join(60)
    assert process.exitcode is not None


def modes(chance: random.Random, kills: int) -> Sequence[Mode]:
    """How each of the processes goes on where the one before it was killed."""
    every: tuple[Mode, ...] = ("resume", "repeat", "new")
    return [chance.choice(every) for _ in range(kills)]


def slow(url: str, conversation: str, path: Path, leases: tuple[float, float], way: str, events: Any, out: Any) -> None:
    """A process with one turn of two calls, the first of which takes until it is told to end; `out` gets how it ended.

    `leases` are the seconds of its claim, and between renewals.
    """
    entered, leave = events
    journal = Journal(path)

    @tool
    def hold(n: int) -> str:
        """Take long."""
        journal.write("spend", n)
        entered.set()
        leave.wait(120)
        return f"spent {n}"

    def answer(request: ModelRequest) -> Any:
        results = sum(message.role == "tool" for message in request.messages)
        return [call("hold", {"n": 1}, id="a"), call("hold", {"n": 2}, id="b"), say("done")][results]

    async def arun(agent: Agent) -> Outcome:
        async with agent:
            return await agent.arun("go", conversation=conversation)

    agent = Agent(ScriptedProvider([answer] * 9), tools=[hold], memory=[url])
    agent._setup = replace(agent._setup, lease=leases[0])
    agent._world.heart = Heart(leases[1])
    try:
        with agent:
            done = asyncio.run(arun(agent)) if way == "tasks" else agent.run("go", conversation=conversation)
        out.send(done.status)
    except Conflict:
        out.send("conflict")
