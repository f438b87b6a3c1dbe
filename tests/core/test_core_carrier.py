"""`run` lets the worker that ran a call carry the turn on. Nobody may notice it: not hooks, not stores, not who leaves."""

from __future__ import annotations

import contextvars
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from going import go
from pydantic import AfterValidator

from hookloop import Agent, Outcome, tool
from hookloop.engine.history import check
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Batch, Delta, ModelRequest, ProviderError, Reply, TextDelta, hookimpl

HERE = "the caller"
MAIN = threading.main_thread().ident or 0


def where() -> str:
    """Which thread this is."""
    main = threading.current_thread() is threading.main_thread()
    return HERE if main else threading.current_thread().name


class Asked(ScriptedProvider):
    """Notes on which threads it is asked; `at` its nth request something is done first."""

    def __init__(self, *script: Any, at: int = 0, act: Callable[[], object] | None = None) -> None:
        super().__init__(*script)
        self.at = at
        self.act = act
        self.threads: list[str] = []

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        self.threads.append(where())
        if self.act is not None and len(self.threads) == self.at:
            self.act()
        return super().stream(request)


@tool
def note(text: str) -> str:
    """Say on which thread it runs."""
    return f"{text} on {where()}"


def two_calls() -> list[Any]:
    return [call("note", {"text": "one"}, id="c1"), call("note", {"text": "two"}, id="c2"), say("done")]


def results(outcome: Outcome) -> list[str]:
    return [result.text for message in outcome.new for result in message.results]


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


class Deaf:
    """Blocks the thread that calls it, until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.end = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        self.end.wait(30)
        return "woke up"


def leaving(agent: Agent, deaf: Deaf, leave: Callable[[], object]) -> None:
    """Run a turn, and let `leave` be called once the deaf thing runs; again where Python lost it (in a weakref's callback)."""
    over = threading.Event()

    def wait() -> None:
        assert deaf.begun.wait(20)
        leave()
        if not over.wait(5):
            leave()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        agent.run("go", conversation="c")
    finally:
        over.set()
        thread.join()


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


class Told:
    """Notes the outcomes that plugins are told."""

    name = "told"

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    @hookimpl
    def after_turn(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


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


def test_a_turn_that_waits_for_its_model_keeps_no_other_turn_from_its_calls(tmp_path: Path) -> None:
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
