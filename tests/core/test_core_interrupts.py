"""Ctrl-C, stores and threads that fail at the worst moment: the turn ends in order, and what is over is not lost."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from going import WAYS, go
from scenarios import EDIT, Hooked, approve_all, tools

from hookloop import Agent, Outcome, tool
from hookloop.engine.history import check
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Batch, Conflict, LoadQuery, PluginError, Reply, Stop, TurnEnded, hookimpl


class Interrupted(InProcessMemory):
    """Ctrl-C comes while it stores its nth batch, before or after it did."""

    def __init__(self, at: int, *, after: bool) -> None:
        super().__init__()
        self.left = at
        self.after = after

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        self.left -= 1
        if self.left == 0 and not self.after:
            raise KeyboardInterrupt
        super().persist_memory(batch)
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_ctrl_c_while_a_batch_is_stored_comes_out_with_the_outcome_of_a_turn_that_is_stored(
    way: str, at: int, after: bool
) -> None:
    memory, told = Interrupted(at, after=after), list[str]()
    ends = Hooked(after_turn=lambda outcome: told.append(outcome.status))
    with Agent(
        ScriptedProvider([EDIT, say("done"), say("next")]), tools=tools([]), plugins=[ends], memory=memory
    ) as agent:
        with pytest.raises(KeyboardInterrupt) as raised:
            go(agent, way, "go", conversation="c")
        outcome: Outcome = raised.value.outcome  # type: ignore[attr-defined]  # set on whatever leaves a turn
        assert outcome.status == ("done" if at == 4 else "cancelled")
        assert told == [outcome.status]
        bodies = [entry.body for entry in memory.load_memory("c", LoadQuery()).entries]
        assert [body.status for body in bodies if isinstance(body, TurnEnded)] == [outcome.status]
        agent.run("again", conversation="c")
        check(agent.keeper.messages("c"))


@pytest.mark.parametrize("way", ["run", "stream"])
def test_ctrl_c_before_a_call_starts_says_that_it_did_not_run(way: str) -> None:
    ran: list[Any] = []
    memory = Interrupted(2, after=True)  # the batch with the reply and what is to start
    with Agent(ScriptedProvider([EDIT]), tools=tools(ran), memory=memory) as agent:
        with pytest.raises(KeyboardInterrupt) as raised:
            go(agent, way, "go", conversation="c")
        outcome: Outcome = raised.value.outcome  # type: ignore[attr-defined]  # set on whatever leaves a turn
    texts = [result.text for message in outcome.new for result in message.results]
    assert texts == ["not run: the turn ended before this call began"]
    assert not ran


class Unspeakable(Exception):
    """Has no words, and ends the process where it is asked for them."""

    def __str__(self) -> str:
        raise SystemExit(3)


@pytest.mark.parametrize("way", WAYS)
def test_what_a_tool_raises_is_an_answer_whatever_it_does_when_it_is_read(way: str) -> None:
    def odd() -> str:
        """Raise."""
        raise Unspeakable

    with Agent(ScriptedProvider([call("odd", {}, id="c1"), say("done")]), tools=[tool(odd)]) as agent:
        outcome = go(agent, way, "go")
    assert outcome.text == "done"
    (text,) = [result.text for message in outcome.new for result in message.results]
    assert text.startswith("odd failed: ")


@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_pressed_twice_ends_the_turn_as_once_and_waits_no_longer(way: str, presses: int) -> None:
    begun, end, told = threading.Event(), threading.Event(), list[str]()

    def slow() -> str:
        """Hear nothing."""
        begun.set()
        end.wait(20)
        return "slow"

    def press() -> None:
        assert begun.wait(20)
        for _ in range(presses):
            time.sleep(0.2)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        time.sleep(0.3)
        end.set()

    ends = Hooked(after_turn=lambda outcome: told.append(outcome.status))
    provider = ScriptedProvider([call("slow", {}, id="c1"), say("next")])
    with Agent(provider, tools=[tool(slow)], plugins=[ends], config={"tools": {"cancel_grace": 10}}) as agent:
        thread = threading.Thread(target=press)
        thread.start()
        with pytest.raises(KeyboardInterrupt) as raised:
            go(agent, way, "go", conversation="c")
        thread.join()
        outcome: Outcome = raised.value.outcome  # type: ignore[attr-defined]  # set on whatever leaves a turn
        texts = [result.text for message in outcome.new for result in message.results]
        assert (outcome.status, told) == ("cancelled", ["cancelled"])
        assert texts[0].startswith("slow" if presses == 1 else "interrupted")
        agent.run("and now?", conversation="c")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("way", WAYS)
def test_a_cancel_in_the_pause_before_another_attempt_makes_none(way: str) -> None:
    attempts: list[float] = []

    def pay() -> str:
        """Fail once."""
        attempts.append(time.monotonic())
        raise ValueError("first")

    tried = tool(pay, retries=1, retry_wait=5)
    with Agent(ScriptedProvider([call("pay", {}, id="c1")]), tools=[tried]) as agent:

        def cancel() -> None:
            while not attempts:
                time.sleep(0.01)
            time.sleep(0.1)
            agent.cancel("c")

        thread = threading.Thread(target=cancel)
        thread.start()
        outcome = go(agent, way, "go", conversation="c")
        thread.join()
    assert outcome.status == "cancelled"
    assert len(attempts) == 1


@pytest.mark.parametrize("way", WAYS)
def test_the_pause_before_another_attempt_is_none_of_its_time(way: str) -> None:
    attempts: list[int] = []

    def flaky() -> str:
        """Fail once."""
        attempts.append(1)
        if len(attempts) == 1:
            raise ValueError("first")
        return "second"

    tried = tool(flaky, retries=1, retry_wait=0.6, timeout=0.3)
    with Agent(ScriptedProvider([call("flaky", {}, id="c1"), say("done")]), tools=[tried]) as agent:
        outcome = go(agent, way, "go")
    texts = [result.text for message in outcome.new for result in message.results]
    assert (texts, outcome.warnings, len(attempts)) == (["second"], (), 2)


@pytest.mark.parametrize("workers", [1, 2])
def test_tools_that_run_agents_over_a_full_pool_are_served_beside_other_turns(workers: int) -> None:
    inside, queued = threading.Barrier(workers + 1), threading.Event()

    def outer(n: int) -> str:
        """Run a turn of the same agent."""
        inside.wait(20)
        assert queued.wait(20)
        return agent.run("inner", conversation=f"inner {n}").text

    def work() -> str:
        """Work."""
        return "worked"

    class Calls(ScriptedProvider):
        def stream(self, request: Any) -> Any:
            kind, _, n = request.conversation.partition(" ")
            if any(message.role == "tool" for message in request.messages):
                return iter([Reply((say("done"),))])
            made = call("outer", {"n": int(n)}, id="c1") if kind == "outer" else call("work", {}, id="c1")
            return iter([Reply((made,), "calls")])

    texts: list[str] = []
    with Agent(Calls(), tools=[tool(outer), tool(work)], config={"tools": {"workers": workers}}) as agent:

        def turn(conversation: str) -> None:
            texts.append(agent.run("go", conversation=conversation).text)

        outers = [threading.Thread(target=turn, args=(f"outer {n}",), daemon=True) for n in range(workers)]
        others = [threading.Thread(target=turn, args=(f"other {n}",), daemon=True) for n in range(2 * workers)]
        for thread in outers:
            thread.start()
        inside.wait(20)
        for thread in others:
            thread.start()
        time.sleep(0.1)  # so that their calls wait in the queue before the inner ones
        queued.set()
        for thread in (*outers, *others):
            thread.join(20)
    assert texts == ["done"] * (3 * workers)


@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize("hook", ["after_turn", "on_event"])
def test_a_plugin_that_exits_at_the_end_of_a_turn_leaves_it_stored_and_told(way: str, hook: str) -> None:
    class Leaves:
        name = "leaves"

        @hookimpl
        def after_turn(self) -> None:
            if hook == "after_turn":
                raise SystemExit(3)

        @hookimpl
        def on_event(self, event: Any) -> None:
            if hook == "on_event" and event.kind == "turn_finished":
                raise SystemExit(3)

    with Agent(ScriptedProvider([say("done")]), plugins=[Leaves()]) as agent:
        with pytest.raises(SystemExit) as raised:
            go(agent, way, "go", conversation="c")
        assert raised.value.outcome.status == "done"  # type: ignore[attr-defined]  # set on whatever leaves a turn
        assert [message.text for message in agent.keeper.messages("c")] == ["go", "done"]


class Once(InProcessMemory):
    """Fails to store the result of the second call, once."""

    def __init__(self) -> None:
        super().__init__()
        self.batches = 0

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        self.batches += 1
        if self.batches == 4:
            raise OSError("once")
        super().persist_memory(batch)


@pytest.mark.parametrize("way", WAYS)
def test_results_that_were_in_hand_when_a_store_failed_are_stored_with_the_end(way: str) -> None:
    ran: list[int] = []

    def work(n: int) -> str:
        """Work."""
        ran.append(n)
        return f"ran {n}"

    parallel, alone = tool(work, name="work"), tool(work, name="alone", serial=True)
    calls = [*(call("work", {"n": n}, id=f"c{n}") for n in (1, 2, 3)), call("alone", {"n": 4}, id="c4")]
    stops = Hooked(after_tool=lambda: Stop("enough"))
    with Agent(ScriptedProvider([calls]), tools=[parallel, alone], plugins=[stops], memory=Once()) as agent:
        with pytest.raises(PluginError, match="once"):
            go(agent, way, "go", conversation="c")
        texts = [result.text for message in agent.keeper.messages("c") for result in message.results]
    assert sorted(ran) == [1, 2, 3]
    assert texts[:3] == ["ran 1", "ran 2", "ran 3"]
    assert texts[3].startswith("not run")


@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_thread_that_cannot_start_is_a_call_that_did_not_run(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start
    refused: list[bool] = []

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "hookloop-worker" and not refused:
            refused.append(True)
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    notes: list[Any] = []
    with Agent(ScriptedProvider([EDIT, EDIT, say("done")]), tools=tools(notes)) as agent:
        outcome = go(agent, way, "go")
    results = [result.text for message in outcome.new for result in message.results]
    assert results == ["not run: it could not be started", "edited a"]
    assert notes == [("edit", "a")]
    assert "can't start new thread" in outcome.warnings[0]


@pytest.mark.parametrize("text", [True, False])
def test_the_lease_of_a_turn_that_was_taken_up_is_renewed_while_its_tool_runs(text: bool) -> None:
    began, memory = threading.Event(), InProcessMemory()

    def slow() -> str:
        """Take longer than the lease."""
        began.set()
        time.sleep(0.8)
        return "slow"

    held = tool(slow, needs_approval=True)
    with Agent(ScriptedProvider([call("slow", {}, id="s")]), tools=[held], memory=None if text else memory) as first:
        waiting = first.run("go", conversation="c")
    with Agent(ScriptedProvider([say("done")]), tools=[held], memory=memory) as agent:
        agent._setup = replace(agent._setup, lease=0.3)
        agent._world.heart._seconds = 0.1
        took: list[Outcome] = []
        of = str(waiting.suspension) if text else "c"
        thread = threading.Thread(target=lambda: took.append(agent.resume(of, approve_all(waiting))))
        thread.start()
        began.wait(10)
        time.sleep(0.5)
        with Agent(ScriptedProvider([say("other")]), memory=memory) as other, pytest.raises(Conflict):
            other.run("second", conversation="c")
        thread.join()
    assert [outcome.text for outcome in took] == ["done"]


@pytest.mark.parametrize("way", WAYS)
def test_an_async_tool_that_is_deaf_to_its_cancel_is_left_after_the_grace(way: str) -> None:
    free = threading.Event()

    async def deaf() -> str:
        """Hear nothing."""
        while not free.is_set():
            with suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)
        return "late"

    made = tool(deaf, timeout=0.05)
    config = {"tools": {"cancel_grace": 0.1}}
    agent = Agent(ScriptedProvider([call("deaf", {}, id="d"), say("done")]), tools=[made], config=config)
    try:
        outcome = go(agent, way, "go") if way in ("run", "stream") else asyncio.run(_freed(agent, way, free))
    finally:
        free.set()
        agent.close()
    (result,) = [result for message in outcome.new for result in message.results]
    assert result.text == "deaf ran longer than 0.05 s and was left; its effect is unknown"
    assert outcome.warnings == ("deaf still runs, though nobody waits for it any more",)


async def _freed(agent: Agent, way: str, free: threading.Event) -> Outcome:
    """A turn in this event loop, whose end waits for nothing that runs on."""
    try:
        if way == "arun":
            return await agent.arun("go")
        async with agent.astream("go") as events:
            async for _ in events:
                pass
        assert events.outcome is not None
        return events.outcome
    finally:
        free.set()
