"""Two writers on one conversation: one wins, the other is refused with nothing stored, no model asked, no tool run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from endings import lines
from rivals import Way, compete
from turners import processes

from hookloop import Agent, tool
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Approve, Batch, Conflict, LoadQuery, Outcome, hookimpl

SHARED = ("sqlite", "postgresql", "redis")


@pytest.mark.parametrize("way", ["threads", "tasks"])
@pytest.mark.parametrize("shared", SHARED, indirect=True)
def test_turns_of_two_processes_never_mix(shared: Any, way: Way, conversation: str) -> None:
    assert compete(processes(), shared, conversation, way, (6, 6), 2) > 0


class Together:
    """A memory whose loads wait for one another once, so that two turns know the same version before either writes."""

    def __init__(self, memory: Any, barrier: threading.Barrier) -> None:
        self.memory, self.barrier = memory, barrier
        self.name, self.capabilities = memory.name, memory.capabilities

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Any:
        loaded = self.memory.load_memory(conversation, query)
        self.barrier.wait(30)
        return loaded

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        self.memory.persist_memory(batch)

    @hookimpl
    def close(self) -> None:
        self.memory.close()


@dataclass
class Desk:
    """A conversation on a store with a tool that needs an approval, and what happened there."""

    store: Any
    conversation: str
    paid: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def agent(self, memory: Any) -> Agent:
        @tool(needs_approval=True)
        def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            return f"paid {amount}"

        def answer(request: Any) -> Any:
            self.asked.append(request.turn)
            return say("done") if request.messages[-1].role == "tool" else call("pay", {"amount": 5}, id="p")

        return Agent(ScriptedProvider([answer] * 9), tools=[pay], memory=memory)

    def suspend(self) -> None:
        """A turn waits for the approval."""
        with self.agent(self.store.make()) as agent:
            assert agent.run("go", conversation=self.conversation, turn_id="t").status == "suspended"
        self.asked.clear()

    def race(self, *acts: Callable[[Agent], Outcome]) -> list[Outcome | Conflict]:
        """Let two agents act at once, each with a memory of its own on the store."""
        barrier = threading.Barrier(len(acts))

        def one(act: Callable[[Agent], Outcome]) -> Outcome | Conflict:
            with self.agent(Together(self.store.make(), barrier)) as agent:
                try:
                    return act(agent)
                except Conflict as error:
                    return error

        with ThreadPoolExecutor(len(acts)) as pool:
            return list(pool.map(one, acts))

    def stored(self) -> list[str]:
        memory = self.store.make()
        entries = memory.load_memory(self.conversation, LoadQuery()).entries
        memory.close()
        check(list(flatten(entries)), tail=True)
        return lines(flatten(entries))


@pytest.fixture
def desk(shared: Any, conversation: str) -> Desk:
    """A desk on each store that processes share."""
    return Desk(shared, conversation)


def kinds(results: list[Outcome | Conflict]) -> list[str]:
    """What each came to, in the order of names."""
    return sorted("conflict" if isinstance(one, Conflict) else one.status for one in results)


PAID = ["user: go", "assistant: [pay]", "tool: paid 5", "assistant: done"]


def resume(desk: Desk) -> Callable[[Agent], Outcome]:
    return lambda agent: agent.resume(desk.conversation, {"p": Approve()})


def test_of_two_resumes_at_once_one_wins_and_the_tool_runs_once(desk: Desk) -> None:
    desk.suspend()
    results = desk.race(resume(desk), resume(desk))
    assert kinds(results) == ["conflict", "done"]
    assert desk.paid == [5]
    assert desk.asked == ["t"]
    assert desk.stored() == PAID
    (refused,) = (one for one in results if isinstance(one, Conflict))
    assert refused.outcome is not None
    assert refused.outcome.status == "failed"


def test_a_resume_and_a_new_message_at_once(desk: Desk) -> None:
    desk.suspend()
    results = desk.race(resume(desk), lambda agent: agent.run("else", conversation=desk.conversation))
    assert kinds(results) in (["conflict", "done"], ["conflict", "suspended"])
    if desk.paid:
        assert desk.stored() == PAID
    else:
        superseded = "tool: denied: superseded by a new message"
        assert desk.stored() == ["user: go", "assistant: [pay]", superseded, "user: else", "assistant: [pay]"]


def test_of_two_new_messages_at_once_one_is_stored(desk: Desk) -> None:
    results = desk.race(*(lambda agent: agent.run("go", conversation=desk.conversation) for _ in range(2)))
    assert kinds(results) == ["conflict", "suspended"]
    assert len(desk.asked) == 1
    assert desk.stored() == ["user: go", "assistant: [pay]"]


def test_one_message_given_twice_at_once_under_one_turn_id_is_run_once(desk: Desk) -> None:
    run = {"conversation": desk.conversation, "turn_id": "same"}
    results = desk.race(*(lambda agent: agent.run("go", **run) for _ in range(2)))
    assert kinds(results) == ["conflict", "suspended"]
    assert desk.asked == ["same"]
    assert desk.stored() == ["user: go", "assistant: [pay]"]


@contextmanager
def held(store: Any) -> Iterator[tuple[Agent, threading.Event, threading.Event, list[str]]]:
    """An agent whose tool holds its turn until it is let go, with the turns in which its model was asked."""
    entered, leave, asked = threading.Event(), threading.Event(), list[str]()

    @tool
    def hold() -> str:
        """Hold the turn."""
        entered.set()
        leave.wait(30)
        return "held"

    def answer(request: Any) -> Any:
        asked.append(request.turn)
        return say("done") if request.messages[-1].role == "tool" else call("hold", id="h")

    with Agent(ScriptedProvider([answer] * 20), tools=[hold], memory=store.make()) as agent:
        yield agent, entered, leave, asked


HELD = ["user: first", "assistant: [hold]", "tool: held", "assistant: done"]


def test_threads_on_one_agent_are_refused_while_a_turn_runs(shared: Any, conversation: str) -> None:
    with held(shared) as (agent, entered, leave, asked), ThreadPoolExecutor(9) as pool:
        first = pool.submit(agent.run, "first", conversation=conversation, turn_id="first")
        entered.wait(30)
        others = [pool.submit(agent.run, f"other {at}", conversation=conversation) for at in range(8)]
        assert all(isinstance(other.exception(30), Conflict) for other in others)
        leave.set()
        assert first.result(30).text == "done"
        assert set(asked) == {"first"}
        assert lines(agent.run("last", conversation=conversation).messages)[:5] == [*HELD, "user: last"]


def test_tasks_on_one_agent_are_refused_while_a_turn_runs(shared: Any, conversation: str) -> None:
    async def play() -> None:
        with held(shared) as (agent, entered, leave, asked):
            first = asyncio.create_task(agent.arun("first", conversation=conversation, turn_id="first"))
            await asyncio.to_thread(entered.wait, 30)
            others = [agent.arun(f"other {at}", conversation=conversation) for at in range(8)]
            refused = await asyncio.gather(*others, return_exceptions=True)
            assert all(isinstance(one, Conflict) for one in refused)
            leave.set()
            assert (await first).text == "done"
            assert set(asked) == {"first"}
            last = await agent.arun("last", conversation=conversation)
            assert lines(last.messages)[:5] == [*HELD, "user: last"]

    asyncio.run(play())
