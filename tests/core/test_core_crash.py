"""Stopping before and after every effect, forgetting all but the store, and going on: nothing is lost, doubled or unpaired."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from hookloop import Agent, tool
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop.testing.crash import When, crash, crash_points, mortal
from hookloop_hookspecs import Approve, Entry, LoadQuery, Message, ModelRequest, NoOpenTurn, Said, hookimpl
from hookloop_hookspecs.codec import dump_entry

REPLIES: dict[str, list[Any]] = {
    "text": [say("done")],
    "one tool": [call("spend", {"n": 1}, id="c1"), say("done")],
    "three rounds": [
        call("spend", {"n": 1}, id="c1"),
        [say("now two"), call("spend", {"n": 2}, id="c2"), call("look", {"n": 3}, id="c3")],
        call("look", {"n": 4}, id="c4"),
        say("done"),
    ],
    "bad calls": [
        [call("nope", id="c1"), call("spend", {"n": "x"}, id="c2"), call("spend", {"n": 5}, id="c3")],
        say("done"),
    ],
    "direct": [call("final", {"n": 6}, id="c1")],
    "approval": [[call("spend", {"n": 7}, id="c1"), call("approved", {"n": 8}, id="c2")], say("done")],
}


class Notes:
    """A plugin that contributes at every place it may."""

    name = "notes"

    @hookimpl
    def before_turn(self) -> str:
        return "at the start"

    @hookimpl
    def after_tool(self, call: Any) -> str:
        return f"about {call.id}"

    @hookimpl
    def next_instructions(self) -> str:
        return "go on"

    @hookimpl
    def before_round(self, turn: Any) -> None:
        turn.state["rounds"] = turn.round


class World:
    """What outlives a crash: the store, and the effects of tools."""

    def __init__(self, replies: list[Any]) -> None:
        self.memory = InProcessMemory()
        self.replies = replies
        self.spent: Counter[int] = Counter()
        self.looked: Counter[int] = Counter()

    def agent(self) -> Agent:
        """A new process."""

        @tool
        def spend(n: int) -> str:
            """Have an effect."""
            self.spent[n] += 1
            return f"spent {n}"

        @tool(idempotent=True)
        def look(n: int) -> str:
            """Have none."""
            self.looked[n] += 1
            return f"saw {n}"

        @tool(return_direct=True)
        def final(n: int) -> str:
            """Answer."""
            self.spent[n] += 1
            return f"final {n}"

        @tool(needs_approval=True)
        def approved(n: int) -> str:
            """Ask first."""
            self.spent[n] += 1
            return f"approved {n}"

        return Agent(
            ScriptedProvider([self.answer] * 40),
            tools=[spend, look, final, approved],
            plugins=[Notes()],
            memory=[self.memory],
        )

    def answer(self, request: ModelRequest) -> Any:
        """The model: what it says depends on what it is sent, as a real one's does."""
        said = sum(message.role == "assistant" for message in request.messages)
        return self.replies[said] if said < len(self.replies) else say("done")

    def stored(self) -> list[Entry]:
        """The store's whole log."""
        return list(self.memory.load_memory("c", LoadQuery()).entries)


def finish(world: World) -> str:
    """A new process takes the turn up, or begins it where nothing was stored, and approves what waits."""
    with world.agent() as agent:
        try:
            outcome = agent.resume("c")
        except NoOpenTurn:
            outcome = agent.run("go", conversation="c", turn_id="t1")
        if outcome.status == "suspended":
            outcome = agent.resume("c", {pending.id: Approve() for pending in outcome.pending})
        assert outcome.status == "done", outcome
        return outcome.text


def texts(messages: list[Message]) -> Counter[str]:
    """How often each message stands in a history; results by their call."""
    return Counter(f"{m.role}:{m.text}:{[c.id for c in m.calls]}{[r.call_id for r in m.results]}" for m in messages)


def assert_whole(world: World) -> None:
    """The store holds a valid history in which the user's message stands once and no number twice."""
    stored = world.stored()
    assert [entry.number for entry in stored] == sorted({entry.number for entry in stored})
    messages = list(flatten(stored))
    check(messages)
    doubled = {text: n for text, n in texts(messages).items() if n > 1 and not text.startswith("user:go on")}
    assert not doubled
    assert sum(m.text == "go" for m in messages) == 1
    results = [
        entry.body.message.results[0] for entry in stored if isinstance(entry.body, Said) and entry.body.message.results
    ]
    assert all(result.text for result in results)
    assert all(n == 1 for n in world.spent.values()), world.spent
    for entry in stored:
        dump_entry(entry)


@pytest.mark.parametrize("name", REPLIES)
def test_every_crash_point_is_survived_by_a_resume(name: str) -> None:
    worlds: dict[tuple[int, When], World] = {}

    def play(at: int, when: When) -> bool:
        world = worlds[at, when] = World(REPLIES[name])
        agent = mortal(world.agent())
        return crash(agent, lambda: agent.stream("go", conversation="c", turn_id="t1"), at, when)

    points = 0
    for point in crash_points(play):
        points += 1
        world = worlds[point]
        text = finish(world)
        assert text
        assert_whole(world)
    assert points > 20


@pytest.mark.parametrize("name", REPLIES)
def test_every_crash_point_is_survived_by_a_new_message(name: str) -> None:
    worlds: dict[tuple[int, When], World] = {}

    def play(at: int, when: When) -> bool:
        world = worlds[at, when] = World(REPLIES[name])
        agent = mortal(world.agent())
        return crash(agent, lambda: agent.stream("go", conversation="c"), at, when)

    for point in crash_points(play):
        world = worlds[point]
        world.replies = [say("done")] * 9
        with world.agent() as agent:
            outcome = agent.run("something else", conversation="c")
        assert outcome.status == "done"
        messages = list(flatten(world.stored()))
        check(messages)
        assert sum(m.text == "something else" for m in messages) == 1
        assert all(n == 1 for n in world.spent.values()), world.spent


def test_a_crash_while_a_suspended_turn_is_resumed_runs_the_approved_call_at_most_once() -> None:
    worlds: dict[tuple[int, When], World] = {}

    def play(at: int, when: When) -> bool:
        world = worlds[at, when] = World(REPLIES["approval"])
        with world.agent() as agent:
            assert agent.run("go", conversation="c", turn_id="t1").status == "suspended"
        agent = mortal(world.agent())
        return crash(agent, lambda: agent.resume_stream("c", {"c2": Approve()}), at, when)

    for point in crash_points(play):
        finish(worlds[point])
        assert_whole(worlds[point])
