"""Kind K: context variables, event loops, timeouts of threads, cancels, and plugins that fail beside others."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from scenarios import Hooked
from wires import CHAT, MESSAGES

from cases import EVERYWHERE, FEW, Place, few
from hookloop import Agent, ToolContext, tool
from hookloop.engine.history import check
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Batch, Conflict, MemoryCapabilities, Message, hookimpl

WHO: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
CALLS = [[call("sync_tool", id="c1"), call("async_tool", id="c2")], say("done")]


def by_request(request: Any) -> Any:
    """The step that a conversation is at, whatever others ask meanwhile."""
    return CALLS[1] if request.messages[-1].role == "tool" else CALLS[0]


class Readers:
    """Tools and hooks, sync and async, that note the variable and then set it."""

    def __init__(self) -> None:
        self.seen: dict[str, list[str]] = {}
        self.lock = threading.Lock()

    def note(self, where: str, of: str = "") -> None:
        with self.lock:
            self.seen.setdefault(of, []).append(f"{where} {WHO.get()}")
        WHO.set(f"set in {where}")

    def tools(self) -> list[Any]:
        @tool
        def sync_tool(context: ToolContext) -> str:
            """Sync."""
            self.note("tool", context.conversation)
            return "ok"

        @tool
        async def async_tool(context: ToolContext) -> str:
            """Async."""
            self.note("async tool", context.conversation)
            await asyncio.sleep(0)
            return "ok"

        return [sync_tool, async_tool]


def in_context(value: str, work: Callable[[], Any]) -> Any:
    """Call `work` where the variable has a value, and see that it still has it afterwards."""

    def inner() -> Any:
        WHO.set(value)
        done = work()
        assert WHO.get() == value
        return done

    return contextvars.copy_context().run(inner)


@pytest.mark.parametrize("place", EVERYWHERE, ids=str)
def test_K01_tools_see_the_variables_of_their_caller_and_keep_theirs(place: Place) -> None:
    readers = Readers()
    with place.stage(*CALLS, tools=readers.tools()) as stage:
        in_context("alice", stage.run)
        assert sorted(readers.seen["c"]) == ["async tool alice", "tool alice"]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_K01_so_do_hooks(place: Place) -> None:
    """Sync hooks run where the caller is; async ones too, as far as they read."""
    seen: list[str] = []

    async def later() -> None:
        seen.append(f"later {WHO.get()}")

    plugins = [Hooked("a", before_round=lambda: seen.append(f"at once {WHO.get()}")), Hooked("b", before_turn=later)]
    with place.stage(say("ok"), plugins=plugins) as stage:
        in_context("alice", stage.run)
        assert seen == ["later alice", "at once alice"]


def test_K01_two_concurrent_runs_do_not_mix_in_tasks() -> None:
    readers = Readers()

    async def main() -> None:
        async with Agent(ScriptedProvider([by_request] * 4), tools=readers.tools()) as agent:

            async def one(who: str) -> None:
                WHO.set(who)
                await agent.arun("go", conversation=who)
                assert WHO.get() == who

            await asyncio.gather(one("alice"), one("bob"))

    asyncio.run(main())
    for who in ("alice", "bob"):
        assert sorted(readers.seen[who]) == [f"async tool {who}", f"tool {who}"]


def test_K01_two_concurrent_runs_do_not_mix_in_threads() -> None:
    readers = Readers()
    with Agent(ScriptedProvider([by_request] * 4), tools=readers.tools()) as agent:
        barrier = threading.Barrier(2)

        def one(who: str) -> None:
            barrier.wait(20)
            in_context(who, lambda: agent.run("go", conversation=who))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, ("alice", "bob")))
    for who in ("alice", "bob"):
        assert sorted(readers.seen[who]) == [f"async tool {who}", f"tool {who}"]


PROVIDERS: dict[str, Any] = {"scripted": None, "chat": CHAT, "messages": MESSAGES}


@pytest.mark.parametrize("name", PROVIDERS)
def test_K02_one_agent_in_all_kinds_of_loops_one_after_the_other(name: str) -> None:
    """Twice sync, in a loop, after that loop was closed, in a second loop, and sync again: one agent, one provider."""
    place = Place(PROVIDERS[name], "run", "stream")
    with place.stage(*[say(str(n)) for n in range(6)]) as stage:
        with stage.agent() as agent:
            agent.run("0", conversation="c")
            agent.run("1", conversation="c")
            asyncio.run(_leaves(agent, "2"))
            agent.run("3", conversation="c")
            asyncio.run(_leaves(agent, "4"))
            outcome = agent.run("5", conversation="c")
        assert [m.text for m in outcome.messages if m.role == "assistant"] == list("012345")
        stage.outcomes.append(outcome)
        stage.errors.append(None)


async def _leaves(agent: Agent, prompt: str) -> None:
    """One async run, in a loop that ends with connections of its own closed."""
    await agent.arun(prompt, conversation="c")
    for provider in agent._providers.values():
        await provider.aclose()


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync tool", "async tool"])
def test_K02_run_inside_a_running_loop_works(asynchronous: bool) -> None:
    """It blocks that loop, as any sync call does, and tools and async hooks still run."""
    heard: list[str] = []

    async def later() -> None:
        await asyncio.sleep(0)
        heard.append("heard")

    def plain() -> str:
        """Plain."""
        return "plain"

    async def aplain() -> str:
        """Plain."""
        await asyncio.sleep(0)
        return "plain"

    tools = [tool(name="plain")(aplain if asynchronous else plain)]

    async def main() -> None:
        plugins = [Hooked(before_turn=later)]
        with Agent(ScriptedProvider(call("plain", id="c1"), say("done")), tools=tools, plugins=plugins) as agent:
            assert agent.run("go").text == "done"

    asyncio.run(main())
    assert heard == ["heard"]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_K04_two_turns_of_one_conversation_lose_nothing(place: Place) -> None:
    """The second one is refused while the first is under way; nothing of it is stored or sent."""
    began, go = threading.Event(), threading.Event()

    @tool
    def hold() -> str:
        """Hold."""
        began.set()
        assert go.wait(20)
        return "held"

    with place.stage(call("hold", id="c1"), say("first"), tools=[hold]) as stage:
        rest: list[BaseException] = []

        def second() -> None:
            assert began.wait(20)
            try:
                with Agent(ScriptedProvider(say("second")), memory=[stage.memory], tools=[hold]) as other:
                    other.run("U2", conversation="c")
            except BaseException as error:
                rest.append(error)
            finally:
                go.set()

        thread = threading.Thread(target=second)
        thread.start()
        outcome = stage.run("U1")
        thread.join()
        assert [type(error) for error in rest] == [Conflict]
        assert outcome.text == "first"
        check(stage.stored())
        assert [m.text for m in stage.stored() if m.role == "user"] == ["U1"]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_K04_many_at_once_in_one_agent(place: Place) -> None:
    """Turns of other conversations are not held up; of one conversation one turn wins at a time."""
    memory = InProcessMemory()
    replies = [say("a")] * 40
    with Agent(ScriptedProvider(replies), memory=memory) as agent:
        failed: list[str] = []

        def one(n: int) -> None:
            try:
                agent.run(f"u{n}", conversation=f"c{n % 3}")
            except Conflict:
                failed.append(f"u{n}")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(one, range(24)))
        stored = []
        for n in range(3):
            outcome = agent.run("end", conversation=f"c{n}")
            check(outcome.messages)
            roles = [m.role for m in outcome.messages]
            assert roles == ["user", "assistant"] * (len(roles) // 2)
            stored += [m.text for m in outcome.messages if m.role == "user" and m.text != "end"]
        assert sorted(stored + failed) == sorted(f"u{n}" for n in range(24))


def late_tools(go: threading.Event, ran: list[float]) -> list[Any]:
    """A tool that sleeps longer than its timeout, as long as nobody wakes it, and a fast one."""

    @tool(timeout=0.1)
    def slow(n: int) -> str:
        """Sleep."""
        go.wait(2.0)
        return "late"

    @tool
    def fast() -> str:
        """Fast."""
        ran.append(time.monotonic())
        return "fast"

    return [slow, fast]


@pytest.mark.parametrize(("way", "parallel"), [("run", True), ("arun", True), ("run", False)])
def test_K06_timeouts_of_threads_starve_nobody_and_block_no_end(way: str, parallel: bool) -> None:
    go, ran = threading.Event(), list[float]()
    slow = [call("slow", {"n": n}, id=f"s{n}") for n in range(20)]
    script = [slow if parallel else one for one in (slow[:1] if parallel else slow)]
    config = {"tools": {"workers": 4, "cancel_grace": 0.0}}
    began = time.monotonic()
    provider = ScriptedProvider([*script, call("fast", id="f"), say("done")])
    agent = Agent(provider, tools=late_tools(go, ran), config=config)
    outcome = asyncio.run(agent.arun("go")) if way == "arun" else agent.run("go")
    running = agent._world.workers.running_on
    closing = time.monotonic()
    with pytest.warns(ResourceWarning, match="slow still runs"):
        agent.close()
    assert time.monotonic() - closing < 3.0
    assert outcome.text == "done"
    assert ran[0] - began < 10.0
    late = [r for m in outcome.messages for r in m.results if r.name == "slow"]
    assert len(late) == 20
    assert all(r.is_error and "0.1 s" in r.text for r in late)
    assert any("still runs" in warning for warning in outcome.warnings)
    assert running.count("slow") <= 64
    go.set()


@pytest.mark.parametrize("way", ["run", "arun"])
def test_K06_the_leak_is_bounded_and_ends_when_the_tools_do(way: str) -> None:
    go, ran = threading.Event(), list[float]()
    calls = [call("slow", {"n": n}, id=f"s{n}") for n in range(6)]
    config = {"tools": {"workers": 4, "cancel_grace": 0.0}}
    with Agent(ScriptedProvider(calls, say("done")), tools=late_tools(go, ran), config=config) as agent:
        if way == "arun":
            asyncio.run(agent.arun("go"))
        else:
            agent.run("go")
        go.set()
        deadline = time.monotonic() + 20
        while agent._world.workers.running_on and time.monotonic() < deadline:
            threading.Event().wait(0.005)
        assert agent._world.workers.running_on == []


def _world(hold: str) -> tuple[Agent, threading.Event]:
    began = threading.Event()

    def sync_hold(context: ToolContext) -> str:
        """Hold."""
        began.set()
        context.cancel.wait(20)
        return "x"

    async def async_hold() -> str:
        """Hold."""
        began.set()
        await asyncio.sleep(20)
        return "x"

    async def hook_hold() -> None:
        began.set()
        await asyncio.sleep(20)

    function: Any = async_hold if hold == "async" else sync_hold
    tools = [tool(name="hold")(function)]
    plugins = [Hooked(before_round=hook_hold)] if hold == "hook" else []
    return Agent(ScriptedProvider(call("hold", id="c1"), say("done")), tools=tools, plugins=plugins), began


@pytest.mark.parametrize("hold", ["sync", "async", "hook"])
def test_K08_a_timeout_around_a_run_is_a_timeout_outside(hold: str) -> None:
    agent, _ = _world(hold)

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await agent.arun("go", conversation="c")
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(agent.arun("go", conversation="d"), 0.05)

    with agent:
        agent._providers[next(iter(agent._providers))].steps = [call("hold", id="c1")] * 2
        asyncio.run(main())
        provider = next(iter(agent._providers.values()))
        provider.steps += [say("again")] * 2
        if hold != "hook":
            check(agent.run("again", conversation="c").messages)


@pytest.mark.parametrize("hold", ["sync", "async", "hook"])
def test_K08_a_cancel_is_reraised_as_it_is(hold: str) -> None:
    agent, began = _world(hold)
    caught: list[BaseException] = []

    async def child() -> None:
        stream = agent.astream("go", conversation="c")
        try:
            async with stream as events:
                async for _ in events:
                    pass
        except BaseException as error:
            caught.append(error)
            caught.append(stream.outcome)  # type: ignore[arg-type]  # looked at below
            raise

    async def fails() -> None:
        await asyncio.to_thread(began.wait, 20)
        raise ValueError("a sibling")

    async def main() -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(child())
            tasks.create_task(fails())

    with agent, pytest.raises(ExceptionGroup) as group:
        asyncio.run(main())
    assert [str(error) for error in group.value.exceptions] == ["a sibling"]
    error, outcome = caught
    assert type(error) is asyncio.CancelledError
    assert outcome.status == "cancelled"  # type: ignore[attr-defined]  # the stream's outcome


class Kept:
    """A memory outside; it fails in one of its hooks, sync or async."""

    capabilities = MemoryCapabilities()

    def __init__(self, name: str, fails: str = "") -> None:
        self.name = name
        self.fails = fails
        self.texts: list[str] = []

    @hookimpl
    async def recall(self, query: Message) -> str | None:
        await asyncio.sleep(0)
        if self.fails == "recall":
            raise RuntimeError(f"{self.name} cannot recall")
        return f"{self.name} knows"

    @hookimpl
    async def persist_memory(self, batch: Batch) -> None:
        await asyncio.sleep(0)
        if self.fails == "persist_memory":
            raise RuntimeError(f"{self.name} cannot persist")
        self.texts += [entry.body.message.text for entry in batch.entries]  # type: ignore[union-attr]  # outside: messages


@pytest.mark.parametrize("fails", ["recall", "persist_memory"])
@pytest.mark.parametrize("place", few(None)[1:3], ids=str)
def test_K10_one_failing_memory_costs_the_others_nothing(place: Place, fails: str) -> None:
    a, b, c = Kept("a"), Kept("b", fails), Kept("c")
    provider = ScriptedProvider([say("ok")], transport=place.transport)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent = Agent(provider, memory=[InProcessMemory(), a, b, c])
        with agent:
            outcome = _go(agent, place.way)
        gc.collect()  # an exception that nobody retrieved would be told here
    assert outcome.text == "ok"
    assert (a.texts, c.texts) == (["go", "ok"], ["go", "ok"])
    told = [m.text for m in provider.requests[0].messages if m.text.endswith("knows")]
    assert told == ["a knows", "c knows"] if fails == "recall" else ["a knows", "b knows", "c knows"]
    assert [w for w in outcome.warnings if f"b cannot {fails.removesuffix('_memory')}" in w]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_K10_the_owner_of_the_history_is_not_optional(place: Place) -> None:
    class Broken(InProcessMemory):
        name = "broken"

        @hookimpl
        def load_memory(self, conversation: str, query: Any) -> Any:
            raise OSError("the disk is gone")

    agent = Agent(ScriptedProvider([say("ok")]), memory=[Broken(), Kept("a")])
    with agent, pytest.raises(Exception, match="the disk is gone"):
        _go(agent, place.way)


def _go(agent: Agent, way: str) -> Any:
    return asyncio.run(agent.arun("go", conversation="c")) if way.startswith("a") else agent.run("go", conversation="c")
