"""`run` lets the worker that ran a call carry the turn on. Nobody may notice it: not hooks, not stores, not who leaves."""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Iterator
from typing import Annotated

import pytest
from carrying import HERE, Asked, note, results, two_calls, where
from going import go
from pydantic import AfterValidator

from hookloop import Agent, Outcome, tool
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Batch, Delta, ModelRequest, ProviderError, Reply, hookimpl


def test_one_worker_runs_all_calls_and_asks_the_model_from_the_first_call_on() -> None:
    provider = Asked(two_calls())
    with Agent(provider, tools=[note]) as agent:
        outcome = agent.run("go")
    assert results(outcome) == ["one on hookloop-worker", "two on hookloop-worker"]
    assert provider.threads == [HERE, "hookloop-worker", "hookloop-worker"]


def test_hooks_and_blocking_stores_stay_on_the_callers_thread() -> None:
    threads: dict[str, set[str]] = {}

    class Notes:
        name = "notes"

        @hookimpl
        def before_round(self) -> None:
            threads.setdefault("before_round", set()).add(where())

        @hookimpl
        def after_tool(self) -> None:
            threads.setdefault("after_tool", set()).add(where())

        @hookimpl
        def after_turn(self) -> None:
            threads.setdefault("after_turn", set()).add(where())

    class Blocks(InProcessMemory):
        blocking = True

        @hookimpl
        def persist_memory(self, batch: Batch) -> None:
            threads.setdefault("persist_memory", set()).add(where())
            super().persist_memory(batch)

    for plugins, memory in (([Notes()], None), ([], Blocks())):
        with Agent(Asked(two_calls()), tools=[note], plugins=plugins, memory=memory) as agent:
            agent.run("go")
    assert threads == {name: {HERE} for name in ("before_round", "after_tool", "after_turn", "persist_memory")}


def test_where_events_are_read_the_caller_drives() -> None:
    provider = Asked(two_calls())
    with Agent(provider, tools=[note]) as agent:
        go(agent, "stream", "go")
    assert provider.threads == [HERE] * 3


def test_each_call_has_a_context_of_its_own_and_the_callers_is_untouched() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    @tool
    def sets(value: str) -> str:
        """Set the variable."""
        seen = variable.get()
        variable.set(value)
        return seen

    script = [call("sets", {"value": str(n)}, id=f"c{n}") for n in range(3)]
    seen: list[str] = []
    provider = Asked([*script, say("done")], at=3, act=lambda: seen.append(variable.get()))
    variable.set("the caller's")
    with Agent(provider, tools=[sets]) as agent:
        outcome = agent.run("go")
    assert results(outcome) == ["the caller's"] * 3
    assert seen == ["the caller's"]
    assert variable.get() == "the caller's"


@pytest.mark.parametrize(
    "error", [ValueError("odd"), SystemExit(3), KeyboardInterrupt(), ProviderError("no", provider="scripted")], ids=repr
)
def test_what_a_provider_raises_comes_out_the_same_whoever_drives(error: BaseException) -> None:
    came: list[tuple[str, str, str, list[str]]] = []
    for way in ("run", "stream"):

        def fail() -> None:
            raise error

        with Agent(Asked(two_calls(), at=2, act=fail), tools=[note]) as agent:
            with pytest.raises((type(error), ProviderError)) as raised:
                go(agent, way, "go")
            outcome: Outcome = raised.value.outcome  # type: ignore[attr-defined]  # set on whatever leaves a turn
            came.append((type(raised.value).__name__, outcome.status, outcome.stop_reason, results(outcome)))
    assert came[0] == came[1]


def test_a_turn_that_waits_for_its_model_keeps_no_other_turn_from_its_calls() -> None:
    asked, ran = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        assert ran.wait(20), "the other turn's call never ran"

    @tool
    def mark() -> str:
        """Say that it ran."""
        ran.set()
        return "marked"

    slow = Asked([call("note", {"text": "one"}, id="c1"), say("slow")], at=2, act=wait)
    quick = ScriptedProvider([call("mark", {}, id="c2"), say("quick")])
    providers = {"slow": slow, "quick": quick}

    class Choice(ScriptedProvider):
        def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
            return providers[request.conversation].stream(request)

    with Agent(Choice(), tools=[note, mark], config={"tools": {"workers": 1}}) as agent:
        texts: list[str] = []
        first = threading.Thread(target=lambda: texts.append(agent.run("go", conversation="slow").text))
        first.start()
        assert asked.wait(20)
        assert agent.run("go", conversation="quick").text == "quick"
        first.join()
    assert texts == ["slow"]


def test_no_more_calls_run_at_once_than_there_may_be_threads() -> None:
    lock, now, most = threading.Lock(), [0], [0]

    @tool
    def work() -> str:
        """Work."""
        with lock:
            now[0] += 1
            most[0] = max(most[0], now[0])
        time.sleep(0.002)
        with lock:
            now[0] -= 1
        return "worked"

    class Slow(ScriptedProvider):
        """Calls five times in each conversation, and takes its time."""

        def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
            time.sleep(0.002)
            done = sum(message.role == "tool" for message in request.messages)
            return iter([Reply((call("work", {}, id=f"c{done}"),), "calls") if done < 5 else Reply((say("done"),))])

    with Agent(Slow(), tools=[work], config={"tools": {"workers": 2}}) as agent:
        turns = [threading.Thread(target=agent.run, args=("go",), kwargs={"conversation": f"c{n}"}) for n in range(8)]
        for turn in turns:
            turn.start()
        for turn in turns:
            turn.join()
        workers = [one for one in threading.enumerate() if one.name == "hookloop-worker"]
    assert most[0] == 2
    assert len(workers) <= 2


def test_validators_run_on_the_callers_thread() -> None:
    seen: list[str] = []

    def look(value: str) -> str:
        seen.append(where())
        return value

    @tool
    def looks(text: Annotated[str, AfterValidator(look)]) -> str:
        """Look at the text."""
        return text

    script = [call("looks", {"text": "a"}, id="c1"), call("looks", {"text": "b"}, id="c2"), say("done")]
    with Agent(ScriptedProvider(script), tools=[looks]) as agent:
        agent.run("go")
    assert seen == [HERE, HERE]
