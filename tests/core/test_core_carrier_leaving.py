"""A turn that a worker carries is left as any other: by a cancel, Ctrl-C, an alarm, a timeout, a close; with nobody waiting."""

from __future__ import annotations

import contextvars
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from carrying import MAIN, Asked, Deaf, leaving, note, results, two_calls
from going import Told, go

from hookloop import Agent, Outcome, tool
from hookloop.engine.history import check
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Delta, ModelRequest, ProviderError, Reply, TextDelta


def assert_goes_on(agent: Agent, provider: ScriptedProvider) -> None:
    provider.steps = [say("next")] * (len(provider.requests) + 1)
    outcome = agent.run("and now?", conversation="c")
    check(outcome.messages)
    assert outcome.text == "next"


LEAVES: dict[str, Callable[[Agent], object]] = {
    "cancel": lambda agent: agent.cancel("c"),
    "ctrl-c": lambda agent: signal.pthread_kill(MAIN, signal.SIGINT),
    "alarm": lambda agent: signal.setitimer(signal.ITIMER_REAL, 0.01),
}


def alarmed(*_: object) -> None:
    raise TimeoutError("alarm")


@pytest.fixture
def alarms() -> Iterator[None]:
    """SIGALRM raises in the main thread."""
    old = signal.signal(signal.SIGALRM, alarmed)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, old)


def left(agent: Agent, deaf: Deaf, told: Told, how: str) -> tuple[str, Outcome]:
    """Leave the turn while `deaf` runs; gives back the name of what came out, and the one outcome."""
    came = "nothing"
    try:
        leaving(agent, deaf, lambda: LEAVES[how](agent))
    except BaseException as error:
        came = type(error).__name__
    (outcome,) = told.outcomes
    return came, outcome


LEFT = {
    "cancel": ("nothing", "cancelled"),
    "ctrl-c": ("KeyboardInterrupt", "cancelled"),
    "alarm": ("TimeoutError", "failed"),
}
"""What comes out of `run`, and the status of the turn."""


@pytest.mark.usefixtures("alarms")
@pytest.mark.parametrize("how", list(LEAVES))
def test_a_deaf_call_of_a_carried_turn_is_left_after_the_grace(how: str) -> None:
    deaf, told = Deaf(), Told()

    @tool
    def sleep() -> str:
        """Sleep."""
        return deaf()

    provider = ScriptedProvider([call("note", {"text": "one"}, id="c1"), call("sleep", {}, id="c2")])
    with Agent(provider, tools=[note, sleep], plugins=[told], config={"tools": {"cancel_grace": 0.2}}) as agent:
        came, outcome = left(agent, deaf, told, how)
        assert (came, outcome.status) == LEFT[how], outcome.stop_reason
        assert results(outcome)[0] == "one on hookloop-worker"
        assert results(outcome)[1].startswith("interrupted")
        assert any("sleep still runs" in warning for warning in outcome.warnings)
        assert_goes_on(agent, provider)
        deaf.end.set()


@pytest.mark.usefixtures("alarms")
@pytest.mark.parametrize("how", list(LEAVES))
def test_a_deaf_provider_of_a_carried_turn_is_left_after_the_grace(how: str) -> None:
    deaf, told = Deaf(), Told()

    provider = Asked([*two_calls(), say("late")], at=2, act=deaf)
    with Agent(provider, tools=[note], plugins=[told], config={"tools": {"cancel_grace": 0.2}}) as agent:
        came, outcome = left(agent, deaf, told, how)
        assert (came, outcome.status) == LEFT[how], outcome.stop_reason
        assert results(outcome) == ["one on hookloop-worker"]
        assert any("scripted:scripted still runs" in warning for warning in outcome.warnings)
        deaf.end.set()
        provider.act = None
        while agent._world.workers.running_on:  # the worker that was left still asks this provider
            time.sleep(0.01)
        assert_goes_on(agent, provider)


@pytest.mark.usefixtures("alarms")
@pytest.mark.parametrize("how", list(LEAVES))
def test_a_provider_that_can_be_ended_is_not_waited_for(how: str) -> None:
    deaf, told = Deaf(), Told()

    class Ends(Asked):
        def abort(self, request: ModelRequest) -> None:
            deaf.end.set()

    def blocked() -> None:
        deaf()
        raise ProviderError("it was ended", provider="scripted", kind="connection", retryable=True)

    provider = Ends(two_calls(), at=2, act=blocked)
    with Agent(provider, tools=[note], plugins=[told], config={"tools": {"cancel_grace": 60}}) as agent:
        came, outcome = left(agent, deaf, told, how)
        assert (came, outcome.status) == LEFT[how], outcome.stop_reason
        assert outcome.warnings == ()
        provider.act = None
        assert_goes_on(agent, provider)


def test_a_call_out_of_time_in_a_carried_turn_is_left_at_its_time() -> None:
    deaf = Deaf()

    @tool(timeout=0.2)
    def sleep() -> str:
        """Sleep."""
        return deaf()

    @tool(timeout=0.2)
    def quick() -> str:
        """Be quick."""
        return "quick"

    script = [call("note", {"text": "one"}, id="c1"), call("quick", {}, id="c2"), call("sleep", {}, id="c3")]
    with Agent(ScriptedProvider([*script, say("done")]), tools=[note, quick, sleep]) as agent:
        began = time.monotonic()
        outcome = agent.run("go")
        took = time.monotonic() - began
        deaf.end.set()
    assert results(outcome)[1] == "quick"
    assert results(outcome)[2] == "sleep ran longer than 0.2 s and was left; its effect is unknown"
    assert outcome.text == "done"
    assert any("sleep still runs" in warning for warning in outcome.warnings)
    assert took < 5


class Spans(Asked):
    """Holds something of its context open while it streams, as tracing does; may be unable to close."""

    def __init__(self, *script: Any, fails: bool = False) -> None:
        super().__init__(*script)
        self.fails = fails
        self.open = 0
        self.piece = threading.Event()
        self.variable: contextvars.ContextVar[str] = contextvars.ContextVar("span", default="none")

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        if not any(message.role == "tool" for message in request.messages):
            yield Reply((call("note", {"text": "one"}, id="c1"),), "calls")
            return
        self.open += 1
        token = self.variable.set("open")
        try:
            while True:
                yield TextDelta("a")
                self.piece.set()
        finally:
            self.variable.reset(token)
            self.open -= 1
            if self.fails:
                raise ValueError("it cannot be closed")


@pytest.mark.parametrize("way", ["run", "stream"])
@pytest.mark.parametrize(("how", "fails"), [("cancel", False), ("cancel", True), ("ctrl-c", False)])
def test_a_stream_that_is_left_is_closed_where_it_was_begun(way: str, fails: bool, how: str) -> None:
    provider = Spans(fails=fails)
    came, told = "nothing", Told()
    with Agent(provider, tools=[note], plugins=[told]) as agent:

        def leave() -> None:
            assert provider.piece.wait(20)
            LEAVES[how](agent)

        thread = threading.Thread(target=leave)
        thread.start()
        try:
            go(agent, way, "go", conversation="c")
        except KeyboardInterrupt:
            came = "KeyboardInterrupt"
        thread.join()
    assert (came, told.outcomes[0].status) == LEFT[how]
    assert provider.open == 0
    assert any("did not close: ValueError: it cannot be closed" in text for text in told.outcomes[0].warnings) is fails


@pytest.mark.parametrize("way", ["run", "stream"])
def test_an_abort_that_fails_is_told_to_who_cancels_and_does_not_change_the_end(way: str) -> None:
    asked, told = Deaf(), list[str]()

    class Fails(Asked):
        def abort(self, request: ModelRequest) -> None:
            asked.end.set()
            raise RuntimeError("no abort")

    provider = Fails(two_calls(), at=2, act=asked)
    with Agent(provider, tools=[note]) as agent:

        def cancel() -> None:
            assert asked.begun.wait(20)
            try:
                agent.cancel("c")
            except RuntimeError as error:
                told.append(str(error))

        thread = threading.Thread(target=cancel)
        thread.start()
        outcome = go(agent, way, "go", conversation="c")
        thread.join()
    assert outcome.status == "cancelled"
    assert told == ["no abort"]


@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_provider_may_close_its_agent(way: str) -> None:
    provider = Asked(two_calls(), at=2, act=lambda: agent.close())
    agent = Agent(provider, tools=[note], config={"tools": {"cancel_grace": 30}})
    began = time.monotonic()
    outcome = go(agent, way, "go")
    assert (outcome.status, results(outcome)) == ("cancelled", ["one on hookloop-worker"])
    assert time.monotonic() - began < 20


@pytest.mark.parametrize("way", ["run", "stream"])
def test_a_signal_handler_may_close_the_agent_whose_turn_it_interrupts(way: str) -> None:
    asked, took = Deaf(), list[float]()

    class Ends(Asked):
        def abort(self, request: ModelRequest) -> None:
            asked.end.set()

    def close(*_: object) -> None:
        began = time.monotonic()
        agent.close()
        took.append(time.monotonic() - began)

    def knock() -> None:
        assert asked.begun.wait(20)
        time.sleep(0.1)  # so that it does not come just before the wait
        signal.pthread_kill(MAIN, signal.SIGUSR1)

    agent = Agent(Ends(two_calls(), at=2, act=asked), tools=[note], config={"tools": {"cancel_grace": 10}})
    old = signal.signal(signal.SIGUSR1, close)
    try:
        thread = threading.Thread(target=knock)
        thread.start()
        outcome = go(agent, way, "go")
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, old)
    assert outcome.status == "cancelled"
    assert took[0] < 15  # it does not wait for the turn that its own thread must end; workers have the grace
