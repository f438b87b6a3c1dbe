"""Several processes that play turns in the same conversations at once, in threads or in tasks; losers try again."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hookloop import Agent, tool
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Conflict, LoadQuery, ModelRequest

Way: TypeAlias = Literal["threads", "tasks"]
PATIENCE = 200
"""How often one turn is tried."""


@dataclass
class Report:
    """What one process came to: turns that ended and turns that were refused, as (conversation, turn id); turns in which a
    model was asked, and in which a tool ran.
    """

    won: list[tuple[str, str]] = field(default_factory=list)
    lost: list[tuple[str, str]] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    ran: list[str] = field(default_factory=list)


@dataclass
class Rival:
    """One process's part: so many turns, each with one call, over some conversations."""

    who: str
    conversations: Sequence[str]
    report: Report = field(default_factory=Report)

    def agent(self, url: str, turns: int) -> Agent:
        """One agent for all of them."""

        @tool
        def work(turn: str) -> str:
            """Have an effect."""
            self.report.ran.append(turn)
            return f"worked {turn}"

        return Agent(ScriptedProvider([self.answer] * 3 * turns * PATIENCE), tools=[work], memory=[url])

    def answer(self, request: ModelRequest) -> Any:
        """A call, then the answer."""
        self.report.asked.add(request.turn)
        last = request.messages[-1]
        return say(f"end {request.turn}") if last.role == "tool" else call("work", {"turn": request.turn}, id="w")

    def names(self, at: int) -> tuple[str, str]:
        """The conversation of a turn, and what its ids begin with."""
        return self.conversations[at % len(self.conversations)], f"{self.who}-{at}"

    def thread(self, agent: Agent, at: int) -> None:
        """Try until the turn is done."""
        conversation, name = self.names(at)
        for attempt in range(PATIENCE):
            turn = f"{name}.{attempt}"
            try:
                outcome = agent.run(f"go {turn}", conversation=conversation, turn_id=turn)
            except Conflict:
                self.report.lost.append((conversation, turn))
                time.sleep(random.uniform(0.0, 0.05))
            else:
                assert outcome.text == f"end {turn}"
                self.report.won.append((conversation, turn))
                return

    async def task(self, agent: Agent, at: int) -> None:
        """As `thread`, in an event loop."""
        conversation, name = self.names(at)
        for attempt in range(PATIENCE):
            turn = f"{name}.{attempt}"
            try:
                outcome = await agent.arun(f"go {turn}", conversation=conversation, turn_id=turn)
            except Conflict:
                self.report.lost.append((conversation, turn))
                await asyncio.sleep(random.uniform(0.0, 0.05))
            else:
                assert outcome.text == f"end {turn}"
                self.report.won.append((conversation, turn))
                return

    def play(self, url: str, turns: int, way: Way, start: Any) -> None:
        """All turns at once, when everybody is there."""
        if way == "threads":
            with self.agent(url, turns) as agent, ThreadPoolExecutor(turns) as pool:
                start.wait(60)
                for future in [pool.submit(self.thread, agent, at) for at in range(turns)]:
                    future.result(120)
            return

        async def gather() -> None:
            async with self.agent(url, turns) as agent:
                start.wait(60)
                await asyncio.wait_for(asyncio.gather(*(self.task(agent, at) for at in range(turns))), 120)

        asyncio.run(gather())


def contend(url: str, who: str, conversations: Sequence[str], turns: int, way: Way, start: Any, out: Any) -> None:
    """A process."""
    rival = Rival(who, conversations)
    rival.play(url, turns, way, start)
    out.send(rival.report)
    out.close()


def compete(context: Any, store: Any, mark: str, way: Way, turns: Sequence[int], conversations: int) -> int:
    """Let processes with so many turns each compete, and look at what is stored; gives back how often a turn was refused."""
    names = [f"{mark}-{at}" for at in range(conversations)]
    start = context.Barrier(len(turns))
    pipes, processes = [], []
    for at, count in enumerate(turns):
        ours, theirs = context.Pipe(duplex=False)
        arguments = (store.url, f"p{at}", names, count, way, start, theirs)
        processes.append(context.Process(target=contend, args=arguments))
        processes[-1].start()
        theirs.close()
        pipes.append(ours)
    reports = [_received(pipe) for pipe in pipes]
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
        process.close()
    assert_apart(store, names, reports, sum(turns))
    return sum(len(report.lost) for report in reports)


def _received(pipe: Any) -> Report:
    assert pipe.poll(180), "a process does not come to its end"
    report: Report = pipe.recv()
    pipe.close()
    return report


def assert_apart(store: Any, names: Sequence[str], reports: Sequence[Report], turns: int) -> None:
    """Every turn that won is stored whole and alone, none that lost is stored or was put to a model."""
    won = [one for report in reports for one in report.won]
    lost = {turn for report in reports for _, turn in report.lost}
    assert len(won) == len(set(won)) == turns
    assert not lost & {turn for report in reports for turn in report.asked}
    assert Counter(turn for report in reports for turn in report.ran) == Counter(turn for _, turn in won)
    memory = store.make()
    stored = [(name, turn) for name in names for turn in _turns(memory, name)]
    memory.close()
    assert sorted(stored) == sorted(won)


def _turns(memory: Any, name: str) -> list[str]:
    """The turns of a conversation, each with its four messages, none within another."""
    entries = memory.load_memory(name, LoadQuery()).entries
    check(list(flatten(entries)))
    order = list(dict.fromkeys(entry.turn for entry in entries))
    said = []
    for turn in order:
        mine = [entry for entry in entries if entry.turn == turn]
        start = entries.index(mine[0])
        assert list(entries[start : start + len(mine)]) == mine, "turns are mixed"
        said += [message.text for message in flatten(mine)]
        assert said[-4:] == [f"go {turn}", "", f"worked {turn}", f"end {turn}"]
    return order
