"""Conversations as text: whatever the engine stores may be restored, and what it would never store is refused whole."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scenarios import EDIT, PARALLEL, READ, SCENARIOS, Hooked, tools
from ways import Scenario, play

from hookloop import Agent, tool
from hookloop.engine.history import check
from hookloop.keeper import Keeper
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop.transfer import exported, imported
from hookloop_hookspecs import Batch, CorruptData, Loaded, LoadQuery, Stop, hookimpl


class Watching(InProcessMemory):
    """A memory that looks at itself after each write."""

    writes = 0

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        super().persist_memory(batch)
        entries = tuple(self.load_memory(batch.conversation, LoadQuery()).entries)
        assert imported(exported(batch.conversation, entries)) == (batch.conversation, list(entries))
        self.writes += 1


@pytest.mark.parametrize("scenario", [*SCENARIOS, *PARALLEL], ids=lambda one: one.name)
def test_whatever_is_stored_at_any_time_may_be_restored(scenario: Scenario) -> None:
    memory = Watching()
    given = scenario.agent
    play(replace(scenario, agent=lambda notes: {**given(notes), "memory": memory}), "run")
    assert memory.writes >= 2


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def test_a_turn_that_was_superseded_may_be_restored() -> None:
    memory = Watching()
    waiting = ScriptedProvider([call("pay", {"amount": 1}, id="p")])
    with Agent(waiting, tools=[pay], memory=memory) as agent:
        agent.run("Pay.", conversation="c")
    with Agent(ScriptedProvider([say("no")]), tools=[pay], memory=memory) as agent:
        agent.run("Never mind.", conversation="c")
    assert memory.writes >= 4


def export() -> list[str]:
    """An export of two turns, as lines: the first has two calls, the second waits for a decision."""
    memory = InProcessMemory()
    script = [[EDIT, READ], say("done"), call("pay", {"amount": 1}, id="p")]
    with Agent(ScriptedProvider(script), tools=tools([]), memory=memory) as agent:
        agent.run("one", conversation="c")
        agent.run("two", conversation="c")
        return agent.keeper.export("c").splitlines()


LINES = export()
KINDS = [json.loads(line)["body"]["kind"] for line in LINES[1:]]


def line_of(kind: str, nth: int = 0) -> int:
    """The index of the nth line of a kind."""
    return [at for at, found in enumerate(KINDS, 1) if found == kind][nth]


def changed(at: int, **values: Any) -> list[str]:
    """The lines with other values in the body (or at the top) of one entry."""
    data = json.loads(LINES[at])
    for name, value in values.items():
        (data if name in data else data["body"])[name] = value
    return [*LINES[:at], json.dumps(data), *LINES[at + 1 :]]


def without(at: int) -> list[str]:
    """The lines without one."""
    return [*LINES[:at], *LINES[at + 1 :]]


def result_of_another() -> list[str]:
    """The results of the two calls stand at each other's places."""
    one, other = json.loads(LINES[4]), json.loads(LINES[5])
    one["body"], other["body"] = other["body"], one["body"]
    return [*LINES[:4], json.dumps(one), json.dumps(other), *LINES[6:]]


FAULTS: Mapping[str, tuple[Callable[[], list[str]], str]] = {
    "repeated whole": (lambda: [*LINES, *LINES[1:]], rf"line {len(LINES) + 1}: number 1 comes behind number \d+"),
    "a repeated line": (lambda: [*LINES[:3], LINES[2], *LINES[3:]], "line 4: number 2 comes behind number 2"),
    "lines in another order": (lambda: [*LINES[:2], LINES[3], LINES[2], *LINES[4:]], "line 4: number 2 comes behind"),
    "a number below 0": (lambda: changed(1, number=-1), "line 2: number -1"),
    "a lone surrogate": (lambda: changed(2, turn="\ud800"), "line 3: "),
    "no entries": (lambda: LINES[:1], "no entries"),
    "no name": (lambda: [LINES[0].replace('"c"', '""'), *LINES[1:]], "line 1: "),
    "a name that is no text": (lambda: [LINES[0].replace('"c"', "null"), *LINES[1:]], "line 1: "),
    "a missing result": (lambda: without(4), r"entry \d+: a reply before all calls were answered"),
    "results missing at a turn's end": (
        lambda: [*LINES[:4], *LINES[line_of("turn_ended") :]],
        r"turn '\w+', which begins at entry 1: .*not answered",
    ),
    "a missing reply": (lambda: without(3), "entry 4: a result at the place of no call"),
    "results that changed places": (result_of_another, "entry 4: not the result of the call 'c1'"),
    "a missing beginning": (lambda: without(1), r"entry \d+: a started in a turn that never began"),
    "two beginnings": (lambda: changed(2, body=json.loads(LINES[1])["body"]), "entry 2: its turn had begun already"),
    "a missing end": (lambda: without(line_of("turn_ended")), r"entry \d+ begins a turn, but turn '\w+' has not"),
    "a turn that goes on behind its end": (
        lambda: changed(line_of("turn_started", 1), turn=json.loads(LINES[1])["turn"]),
        r"entry \d+: a turn_started behind the end",
    ),
    "a mark of no call": (lambda: changed(line_of("started"), places=[4, 40]), r"entry \d+: no call .* number 40"),
    "a start without arguments": (lambda: changed(line_of("started"), arguments=[]), r"2 calls started with 0 arg"),
    "a decision on no call": (lambda: changed(line_of("suspended"), place=99), r"entry \d+: no call .* number 99"),
}


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
@pytest.mark.parametrize("fault", FAULTS)
def test_an_import_that_is_no_history_is_refused_and_stores_nothing(fault: str, store: str, tmp_path: Path) -> None:
    url = store if store == "memory:" else f"sqlite:///{tmp_path}/chat.db"
    make, words = FAULTS[fault]
    with Agent(ScriptedProvider([say("ok")]), memory=[url]) as agent:
        with pytest.raises(CorruptData, match=f"the file.*{words}"):
            agent.keeper.restore("\n".join(make()), source="the file")
        assert [*agent.keeper.list()] == []
        assert agent.keeper.restore("\n".join(LINES)) == "c"
        assert agent.run("go on", conversation="c").text == "ok"


def fork_at(cut: str, **agent: Any) -> dict[str, str]:
    """What the copy says of each call, where the copy ends with the first entry of which `cut` is true."""
    memory = InProcessMemory()
    script = [[call("edit", {"path": str(at)}, id=f"c{at}") for at in (1, 2)], say("done")]
    with Agent(ScriptedProvider(script), tools=tools([]), memory=memory, **agent) as made:
        made.run("go", conversation="c")
        entries = made.keeper.entries("c")
        (at,) = [entry.number for entry in entries if f"{entry.body.kind} {entry.number}" == cut]
        made.keeper.fork("c", "d", at)
        check(made.keeper.messages("d"))
        return {result.call_id: result.text for m in made.keeper.messages("d") for result in m.results}


RAN = "interrupted: the call had started, its effect is unknown"
NEVER = "not run: the turn was interrupted before this call started"


@pytest.mark.parametrize(
    ("cut", "told"),
    [
        ("said 3", {"c1": RAN, "c2": RAN}),
        ("said 4", {"c1": "edited 1", "c2": RAN}),
        ("said 5", {"c1": "edited 1", "c2": "edited 2"}),
    ],
)
def test_a_fork_inside_a_call_group_says_of_calls_that_ran_that_they_did(cut: str, told: dict[str, str]) -> None:
    assert fork_at(cut) == told


def test_a_fork_says_of_calls_that_never_ran_that_they_did_not() -> None:
    stopped = Hooked("p", before_tool=lambda: Stop("enough", "bye"))
    assert fork_at("said 3", plugins=[stopped]) == {"c1": NEVER, "c2": NEVER}


class AsyncMemory:
    """A memory with async hooks, which gives back entries alone."""

    name = "slow"

    def __init__(self) -> None:
        self.memory = InProcessMemory()
        self.capabilities = self.memory.capabilities
        self.conversations, self.delete = self.memory.conversations, self.memory.delete

    @hookimpl
    async def load_memory(self, conversation: str, query: LoadQuery) -> Any:
        await asyncio.sleep(0)
        return list(self.memory.load_memory(conversation, query).entries)

    @hookimpl
    async def persist_memory(self, batch: Batch) -> None:
        await asyncio.sleep(0)
        self.memory.persist_memory(batch)


def use(keeper: Keeper) -> list[str]:
    """Everything that a keeper does."""
    assert keeper.restore("\n".join(LINES)) == "c"
    keeper.fork("c", "d", 5)
    assert keeper.export("c").splitlines() == LINES
    assert keeper.delete("c")
    return [info.conversation for info in keeper.list()]


def test_an_async_memory_is_kept_in_and_outside_of_an_event_loop() -> None:
    async def inside() -> list[str]:
        return use(Keeper(AsyncMemory()))

    assert use(Keeper(AsyncMemory())) == ["d"]
    assert asyncio.run(inside()) == ["d"]


def test_the_agents_keeper_works_in_an_event_loop() -> None:
    async def talk() -> tuple[int, str]:
        async with Agent(ScriptedProvider([say("hi"), say("again")]), memory=AsyncMemory()) as agent:
            await agent.arun("Hello.", conversation="c")
            copied = len(agent.keeper.messages("c"))
            agent.keeper.fork("c", "d")
            return copied, (await agent.arun("And now?", conversation="d")).text

    assert asyncio.run(talk()) == (2, "again")


def test_loaded_nothing_is_no_conversation() -> None:
    class Empty(AsyncMemory):
        @hookimpl
        async def load_memory(self, conversation: str, query: LoadQuery) -> Loaded | None:
            return None

    assert not Keeper(Empty()).exists("c")
