"""Leaving a turn, whenever and however: it is ended once, in order, and the next one works."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import anyio
import pytest
from going import Told
from scenarios import EDIT, READ, Hooked, SendFrom, tools

from hookloop import Agent, ToolContext, tool
from hookloop.engine.history import check
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import ModelRequest, NoOpenTurn, ProviderError, TextDelta

SCRIPT = [[EDIT, READ], call("alone", {"n": 1}, id="c3"), say("a longer answer")]


def make(script: list[Any] = SCRIPT, *more: Any, **parameters: Any) -> tuple[Agent, Told, ScriptedProvider]:
    """An agent with a script, and its witness."""
    ends = Told()
    provider = ScriptedProvider([*script])
    return (
        Agent(provider, tools=[*tools([]), *parameters.pop("tools", [])], plugins=[ends, *more], **parameters),
        ends,
        provider,
    )


def assert_next_turn_works(agent: Agent, provider: ScriptedProvider, conversation: str = "c") -> None:
    """The conversation goes on, with a valid history."""
    provider.steps = [say("next")] * (len(provider.requests) + 1)
    outcome = agent.run("and now?", conversation=conversation)
    check(outcome.messages)
    check(provider.requests[-1].messages)
    assert outcome.text == "next"


def test_leaving_a_stream_at_every_event_ends_the_turn_once() -> None:
    at, left = 0, True
    while left:
        agent, ends, provider = make()
        with agent:
            with agent.stream("go", conversation="c") as events:
                left = _take(events, at)
            assert len(ends.outcomes) == 1
            assert events.outcome is ends.outcomes[0]
            assert events.outcome.status == "cancelled" or events.outcome.text == "a longer answer"
            check(events.outcome.messages)
            assert_next_turn_works(agent, provider)
        at += 1
    assert at > 15


def _take(events: Any, count: int) -> bool:
    """Read so many events; False when the stream ended before."""
    return any(taken == count for taken, _ in enumerate(events))


def test_leaving_an_async_stream_at_every_event_ends_the_turn_once() -> None:
    async def leave(at: int) -> bool:
        agent, ends, provider = make()
        async with agent:
            taken, left = 0, False
            async with agent.astream("go", conversation="c") as events:
                async for _ in events:
                    if taken == at:
                        left = True
                        break
                    taken += 1
            assert len(ends.outcomes) == 1
            assert events.outcome is ends.outcomes[0]
            assert events.outcome.status == "cancelled" or events.outcome.text == "a longer answer"
            await asyncio.to_thread(assert_next_turn_works, agent, provider)
        return left

    async def all_points() -> int:
        at = 0
        while await leave(at):
            at += 1
        return at

    assert asyncio.run(all_points()) > 15


def test_an_error_inside_the_with_block_comes_out_and_the_turn_is_ended() -> None:
    agent, ends, provider = make()
    with agent:
        with pytest.raises(ZeroDivisionError), agent.stream("go", conversation="c") as events:
            _ = 1 / (next(iter(events)).kind == "stored")
        assert [outcome.status for outcome in ends.outcomes] == ["cancelled"]
        assert_next_turn_works(agent, provider)


def test_a_stream_wants_a_with_block() -> None:
    agent, _, _ = make()
    with agent:
        with pytest.raises(RuntimeError, match=r"with agent\.stream"):
            iter(agent.stream("go"))
        with pytest.raises(RuntimeError, match="async with"):
            agent.astream("go").__aiter__()


def slow_tool(started: threading.Event | None = None) -> Any:
    """An async tool that takes for ever, and a sync one that obeys `cancel`."""

    @tool
    async def wait_async() -> str:
        """Wait."""
        await anyio.sleep(60)
        return "never"

    @tool
    def wait_thread(context: ToolContext) -> str:
        """Wait until told."""
        if started is not None:
            started.set()
        context.cancel.wait(60)
        return "told to stop"

    return [wait_async, wait_thread]


@pytest.mark.parametrize("name", ["wait_async", "wait_thread"])
def test_cancelling_a_task_in_a_tool_reraises_the_cancel_bare_with_the_outcome_on_the_stream(name: str) -> None:
    async def main() -> None:
        agent, ends, provider = make([[call(name, id="c1"), EDIT]], tools=slow_tool())
        async with agent:
            streams: list[Any] = []
            started = asyncio.Event()

            async def run() -> None:
                async with agent.astream("go", conversation="c") as events:
                    streams.append(events)
                    async for event in events:
                        if event.kind == "tool_started":
                            started.set()

            task = asyncio.ensure_future(run())
            await started.wait()
            task.cancel("reason")
            with pytest.raises(asyncio.CancelledError) as caught:
                await task
            assert type(caught.value) is asyncio.CancelledError
            outcome = streams[0].outcome
            assert outcome.status == "cancelled"
            check(outcome.messages)
            assert [o.status for o in ends.outcomes] == ["cancelled"]
            await asyncio.to_thread(assert_next_turn_works, agent, provider)

    asyncio.run(main())


def test_a_timeout_around_a_run_is_a_timeout() -> None:
    async def main() -> None:
        agent, _ends, provider = make([[call("wait_async", id="c1")]], tools=slow_tool())
        async with agent:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await agent.arun("go", conversation="c")
            await asyncio.to_thread(assert_next_turn_works, agent, provider)

    asyncio.run(main())


def test_cancelling_a_task_group_reaches_the_run() -> None:
    async def main() -> None:
        agent, ends, _ = make([[call("wait_async", id="c1")]], tools=slow_tool())
        async with agent:
            with anyio.move_on_after(0.05) as scope:
                await agent.arun("go", conversation="c")
            assert scope.cancelled_caught
            assert [o.status for o in ends.outcomes] == ["cancelled"]

    asyncio.run(main())


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("name", ["wait_async", "wait_thread"])
def test_agent_cancel_from_elsewhere_ends_the_turn_with_an_outcome(name: str, asynchronous: bool) -> None:
    def cancel(agent: Agent, conversation: str) -> None:
        threading.Timer(0.02, agent.cancel, [conversation]).start()

    sender = SendFrom("tool_started", "x", cancel)
    agent, ends, provider = make([[call(name, id="c1"), EDIT]], sender, tools=slow_tool())
    sender.agent = agent
    with agent:
        outcome = asyncio.run(agent.arun("go", conversation="c")) if asynchronous else agent.run("go", conversation="c")
        assert (outcome.status, outcome.stop_reason) == ("cancelled", "cancelled")
        check(outcome.messages)
        assert len(ends.outcomes) == 1
        assert_next_turn_works(agent, provider)


def test_cancel_after_the_round_lets_the_round_come_to_its_end() -> None:
    sender = SendFrom("tool_started", "x", lambda agent, c: agent.cancel(c, after_round=True))
    agent, _, provider = make(SCRIPT, sender)
    sender.agent = agent
    with agent:
        outcome = agent.run("go", conversation="c")
        assert outcome.status == "cancelled"
        assert [m.text for m in outcome.new if m.role == "tool"] == ["edited a", "content of a"]
        assert len(provider.requests) == 1
        assert_next_turn_works(agent, provider)


def test_send_and_cancel_where_no_turn_runs_say_so() -> None:
    agent, _, _ = make()
    with agent:
        for act in (lambda: agent.send("c", "x"), lambda: agent.cancel("c"), lambda: agent.resume("c")):
            with pytest.raises(NoOpenTurn):
                act()
        with agent.stream("go", conversation="c") as events:
            for _ in events:
                pass
        with pytest.raises(NoOpenTurn):
            events.send("too late")


def test_ctrl_c_ends_the_turn_and_comes_out_with_the_outcome() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    agent, ends, provider = make(SCRIPT, Hooked("ctrl", next_instructions=interrupt))
    with agent:
        with pytest.raises(KeyboardInterrupt) as caught:
            agent.run("go", conversation="c")
        assert caught.value.outcome.status == "cancelled"  # type: ignore[attr-defined]  # set by the driver
        assert len(ends.outcomes) == 1
        provider.steps = [say("next")] * 9
        assert agent.run("again", conversation="c").text == "next"


class Slow(ScriptedProvider):
    """A provider whose stream waits after its first piece until it is aborted."""

    def __init__(self) -> None:
        super().__init__([say("x")])
        self.aborted = threading.Event()
        self.begun = threading.Event()

    def stream(self, request: ModelRequest) -> Any:
        self.requests.append(request)
        yield TextDelta("so far")
        self.begun.set()
        self.aborted.wait(30)
        raise ProviderError("the connection was closed", provider="slow", kind="connection", retryable=True)

    def abort(self, request: ModelRequest) -> None:
        self.aborted.set()


def test_a_cancel_reaches_a_model_that_is_silent_and_keeps_what_it_had_said() -> None:
    provider = Slow()
    with Agent(provider) as agent:

        def cancel_it() -> None:
            provider.begun.wait(10)
            agent.cancel("c")

        threading.Thread(target=cancel_it, daemon=True).start()
        outcome = agent.run("go", conversation="c")
    assert outcome.status == "cancelled"
    assert outcome.partial == "so far"
    assert [m.text for m in outcome.new] == ["go"]


def ours() -> list[threading.Thread]:
    """Threads that are not the test's own."""
    return [t for t in threading.enumerate() if t is not threading.main_thread() and t.name != "pytest-timeout"]


def test_after_close_no_thread_or_task_of_ours_is_alive() -> None:
    before = set(ours())

    async def main() -> None:
        async with Agent(ScriptedProvider([*SCRIPT]), tools=tools([])) as agent:
            await agent.arun("go")
            assert agent
        assert [t for t in asyncio.all_tasks() if t is not asyncio.current_task()] == []

    asyncio.run(main())
    with Agent(ScriptedProvider([*SCRIPT]), tools=tools([])) as agent:
        agent.run("go")
        assert set(ours()) - before
    deadline = time.monotonic() + 5
    while set(ours()) - before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert set(ours()) - before == set()


def test_a_thousand_concurrent_runs_add_no_thread() -> None:
    @tool
    async def look(n: int) -> str:
        """Look."""
        await asyncio.sleep(0)
        return str(n)

    def model(request: ModelRequest) -> Any:
        return say("done") if request.messages[-1].role == "tool" else call("look", {"n": 1}, id="c1")

    async def main() -> None:
        async with Agent(ScriptedProvider([model] * 2000), tools=[look]) as agent:
            before = set(threading.enumerate())
            outcomes = await asyncio.gather(*(agent.arun("go") for _ in range(1000)))
            assert {outcome.text for outcome in outcomes} == {"done"}
            assert len({outcome.conversation for outcome in outcomes}) == 1000
            assert set(threading.enumerate()) == before

    asyncio.run(main())


def test_a_closed_agent_says_so() -> None:
    agent, _, _ = make()
    agent.close()
    agent.close()
    with pytest.raises(Exception, match="closed"):
        agent.run("go")


def test_a_provider_that_never_replies_is_a_provider_error() -> None:
    class Mute(ScriptedProvider):
        def stream(self, request: ModelRequest) -> Any:
            yield TextDelta("hm")

    with Agent(Mute([])) as agent, pytest.raises(ProviderError, match="without a reply") as caught:
        agent.run("go", conversation="c")
    assert caught.value.outcome is not None
    assert caught.value.outcome.status == "failed"
