"""Wrappers around hooks: one that fails takes nothing else with it, one that is switched off is silent, all are torn down."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest
from going import each_way, go
from scenarios import Hooked

from hookloop import Agent, tool
from hookloop.dispatch import Awaiting
from hookloop.hooks import Hooks, Registered
from hookloop.testing import ScriptedProvider, Spy, assert_valid_history, call, say
from hookloop_hookspecs import PluginError, Stop, hookimpl
from hookloop_hookspecs.errors import Cancelled

EDIT = call("edit", {"path": "a"}, id="c1")


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


class Wrapper:
    """A plugin "p" that wraps one hook and notes how it went; `before` and `after` its yield may raise."""

    def __init__(
        self,
        hook: str,
        notes: list[str] | None = None,
        name: str = "p",
        before: BaseException | None = None,
        after: BaseException | None = None,
    ) -> None:
        self.name = name
        self.notes: list[str] = [] if notes is None else notes

        def implementation() -> Generator[None, Any, Any]:
            self.notes.append(f"{name} in")
            if before is not None:
                raise before
            try:
                returned = yield
            except BaseException as error:
                self.notes.append(f"{name} {type(error).__name__}")
                raise
            self.notes.append(f"{name} out {returned}")
            if after is not None:
                raise after
            return returned

        setattr(self, hook, hookimpl(wrapper=True)(implementation))


def agent(*plugins: Any, script: Any = None, **settings: Any) -> Agent:
    """An agent whose plugin "p" has these settings."""
    config = {"plugins": {"p": settings}} if settings else None
    return Agent(ScriptedProvider(script or [EDIT, say("ok")] * 5), tools=[edit], plugins=plugins, config=config)


@each_way
@pytest.mark.parametrize("policy", ["skip", "disable"])
def test_a_guard_inside_a_wrapper_that_fails_still_guards(way: str, policy: str) -> None:
    guard = Hooked("guard", before_turn=lambda: Stop("blocked", "not here"))
    provider = ScriptedProvider([say("unguarded")])
    broken = Wrapper("before_turn", before=RuntimeError("the wrapper broke"))
    with Agent(provider, plugins=[broken, guard], config={"plugins": {"p": {"on_error": policy}}}) as made:
        outcome = go(made, way, "Hello.")
    assert (outcome.status, outcome.text, len(provider.requests)) == ("stopped", "not here", 0)
    assert any(warning.startswith("p.before_turn: RuntimeError: the wrapper broke") for warning in outcome.warnings)


@each_way
@pytest.mark.parametrize("hook", ["recall", "on_event", "after_turn"])
def test_observers_inside_a_wrapper_that_fails_still_observe(way: str, hook: str) -> None:
    inner = Spy(hook, name="inner")
    with agent(Wrapper(hook, before=RuntimeError("the wrapper broke")), inner) as made:
        outcome = go(made, way, "Edit.")
    assert outcome.status == "done"
    assert inner.calls
    told = [warning for warning in outcome.warnings if warning.startswith(f"p.{hook}: RuntimeError")]
    assert len(told) == 1


def test_plugins_inside_a_wrapper_that_fails_are_still_closed() -> None:
    inner = Spy("close", name="inner")
    made = Agent(ScriptedProvider(), plugins=[Wrapper("close", before=RuntimeError("the wrapper broke")), inner])
    with pytest.warns(ResourceWarning, match=r"p\.close: the wrapper broke"):
        made.close()
    assert len(inner.calls) == 1


@each_way
def test_wrappers_around_one_that_is_left_out_are_entered_and_torn_down(way: str) -> None:
    notes: list[str] = []
    plugins = [
        Wrapper("before_round", notes, "a"),
        Wrapper("before_round", notes, "p", before=ValueError("no")),
        Wrapper("before_round", notes, "b"),
        Hooked("inner", before_round=lambda: f"said after {len(notes)}"),
    ]
    with agent(*plugins, script=[say("ok")], on_error="skip") as made:
        outcome = go(made, way, "Hello.")
    assert notes == ["a in", "p in", "b in", "b out ['said after 3']", "a out ['said after 3']"]
    assert [m.text for m in outcome.new] == ["Hello.", "said after 3", "ok"]


@each_way
def test_what_was_returned_inside_a_wrapper_that_fails_afterwards_stands(way: str) -> None:
    broken = Wrapper("before_turn", after=RuntimeError("the wrapper broke"))
    plugins = [
        broken,
        Hooked("inner", before_turn=lambda: "said"),
        Hooked("guard", before_turn=lambda: Stop("no", "x")),
    ]
    with agent(*plugins[:2], script=[say("ok")], on_error="skip") as made:
        outcome = go(made, way, "Hello.")
    assert [(m.text, m.origin.plugin) for m in outcome.new if m.origin.kind == "plugin"] == [("said", "inner")]
    assert any("the wrapper broke" in warning for warning in outcome.warnings)
    with agent(*plugins, script=[say("unguarded")], on_error="skip") as made:
        assert go(made, way, "Hello.").text == "x"


@each_way
def test_a_failure_inside_stands_where_that_of_its_wrapper_is_skipped(way: str) -> None:
    inner = Spy("before_round", name="inner").fails("before_round", KeyError("lost"))
    with agent(Clumsy(), inner, on_error="skip") as made, pytest.raises(PluginError, match="'inner'") as caught:
        go(made, way, "Edit.")
    assert isinstance(caught.value.__cause__, KeyError)


class Clumsy:
    """A wrapper that fails while it handles a failure."""

    name = "p"

    @hookimpl(wrapper=True)
    def before_round(self) -> Generator[None, Any, Any]:
        try:
            return (yield)
        except KeyError as error:
            raise RuntimeError("clumsy") from error


@each_way
@pytest.mark.parametrize("at", ["before", "after"])
def test_a_wrapper_that_fails_ends_the_turn_by_default(way: str, at: str) -> None:
    inner = Spy("before_round", name="inner")
    broken = Wrapper("before_round", **{at: RuntimeError("the wrapper broke")})  # type: ignore[arg-type]  # by name
    with agent(broken, inner) as made:
        with pytest.raises(
            PluginError, match=r"plugin 'p', hook before_round: RuntimeError: the wrapper broke"
        ) as caught:
            go(made, way, "Edit.")
        assert caught.value.outcome is not None
        assert_valid_history(caught.value.outcome)
    assert len(inner.calls) == (0 if at == "before" else 1)


@each_way
@pytest.mark.parametrize("policy", ["raise", "skip", "disable"])
@pytest.mark.parametrize("at", ["before", "after"])
def test_a_wrapper_that_fails_around_a_guarding_hook_fails_closed(way: str, policy: str, at: str) -> None:
    broken = Wrapper("before_tool", **{at: RuntimeError("the wrapper broke")})  # type: ignore[arg-type]  # by name
    with agent(broken, Spy("before_tool", name="inner"), on_error=policy) as made:
        outcome = go(made, way, "Edit.")
    (answer,) = [result.text for message in outcome.new for result in message.results]
    assert answer.startswith("denied: plugin p failed")


@each_way
@pytest.mark.parametrize("at", ["before", "after"])
def test_the_breaker_holds_wrappers_too(way: str, at: str) -> None:
    broken = Wrapper("before_round", **{at: RuntimeError("the wrapper broke")})  # type: ignore[arg-type]  # by name
    with agent(broken, script=[say("ok")] * 5, on_error="disable", disable_after=2) as made:
        warned = [len(go(made, way, "Hello.").warnings) for _ in range(5)]
    assert broken.notes.count("p in") == 2
    assert warned == [1, 1, 0, 0, 0]


@each_way
def test_wrappers_of_a_disabled_plugin_still_guard(way: str) -> None:
    class Both(Wrapper):
        @hookimpl
        def before_round(self) -> None:
            raise RuntimeError("broken")

    plugin = Both("before_tool", before=ValueError("no"))
    with agent(plugin, on_error="disable", disable_after=1) as made:
        outcome = go(made, way, "Edit.")
    (answer,) = [result.text for message in outcome.new for result in message.results]
    assert plugin.notes == ["p in"]
    assert answer.startswith("denied: plugin p failed")


def test_failures_are_counted_in_all_not_in_a_row() -> None:
    asked: list[int] = []

    def sometimes() -> None:
        asked.append(len(asked))
        if len(asked) % 2:
            raise RuntimeError("broken")

    with agent(
        Hooked("p", before_round=sometimes), script=[say("ok")] * 9, on_error="disable", disable_after=3
    ) as made:
        for _ in range(9):
            made.run("Hello.")
    assert asked == [0, 1, 2, 3, 4]


def dispatch(notes: list[str], inner: Callable[[], Any], *wrappers: Wrapper) -> Any:
    """A dispatcher over two wrappers and what is inside them."""
    plugins = [*(wrappers or (Wrapper("before_round", notes, name) for name in "ab")), Hooked("c", before_round=inner)]
    hooks = Hooks([Registered(plugin.name, plugin, on_error="skip") for plugin in plugins])
    return hooks.ask("before_round", dict.fromkeys(("conversation", "view", "request"), None), lambda _: None)


async def waits() -> None:
    """What an inner hook waits for."""


@pytest.mark.parametrize("error", [Cancelled(), KeyboardInterrupt(), asyncio.CancelledError(), GeneratorExit()])
def test_whatever_ends_a_dispatch_every_wrapper_is_torn_down_at_once_in_order(error: BaseException) -> None:
    notes: list[str] = []
    dispatcher = dispatch(notes, waits)
    step = next(dispatcher)
    assert isinstance(step, Awaiting)
    step.awaitable.close()  # type: ignore[attr-defined]  # a coroutine that nobody waits for
    with pytest.raises(type(error)):
        dispatcher.throw(error)
    kind = type(error).__name__
    assert notes == ["a in", "b in", f"b {kind}", f"a {kind}"]


def test_a_dispatcher_that_is_closed_tears_every_wrapper_down() -> None:
    notes: list[str] = []
    dispatcher = dispatch(notes, waits)
    next(dispatcher).awaitable.close()
    dispatcher.close()
    assert notes == ["a in", "b in", "b GeneratorExit", "a GeneratorExit"]


def test_ctrl_c_in_an_inner_hook_tears_every_wrapper_down() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    notes: list[str] = []
    with pytest.raises(KeyboardInterrupt):
        next(dispatch(notes, interrupted))
    assert notes == ["a in", "b in", "b KeyboardInterrupt", "a KeyboardInterrupt"]


def test_ctrl_c_in_a_wrapper_tears_the_others_down() -> None:
    notes: list[str] = []
    wrappers = [Wrapper("before_round", notes, "a"), Wrapper("before_round", notes, "b", after=KeyboardInterrupt())]
    with pytest.raises(KeyboardInterrupt):
        next(dispatch(notes, lambda: None, *wrappers))
    assert notes == ["a in", "b in", "b out []", "a KeyboardInterrupt"]


def test_a_teardown_that_fails_while_the_dispatch_ends_is_warned_of_and_keeps_no_other_from_its_own() -> None:
    class Bad:
        name = "bad"

        @hookimpl(wrapper=True)
        def before_round(self) -> Generator[None, Any, Any]:
            try:
                return (yield)
            finally:
                raise ValueError("no way out: password=hunter2")

    notes: list[str] = []
    plugins: list[Any] = [Wrapper("before_round", notes, "a"), Bad(), Hooked("c", before_round=waits)]
    hooks = Hooks([Registered(plugin.name, plugin) for plugin in plugins])
    dispatcher: Any = hooks.ask("before_round", dict.fromkeys(("conversation", "view", "request")), lambda _: None)
    next(dispatcher).awaitable.close()
    with pytest.warns(RuntimeWarning, match=r"bad\.before_round: ValueError: no way out: password=\[redacted\]"):
        dispatcher.close()
    assert notes == ["a in", "a GeneratorExit"]


@each_way
def test_a_cancelled_turn_has_torn_its_wrappers_down_when_it_returns(way: str) -> None:
    notes: list[str] = []
    begun = threading.Event()

    async def inner() -> None:
        begun.set()
        await asyncio.Event().wait()

    plugins = [*(Wrapper("before_round", notes, name) for name in "ab"), Hooked("c", before_round=inner)]
    with agent(*plugins) as made:

        def cancel() -> None:
            begun.wait(20)
            made.cancel("c")

        other = threading.Thread(target=cancel)
        other.start()
        outcome = go(made, way, "Edit.", conversation="c")
        other.join()
        assert outcome.status == "cancelled"
        assert [note.split()[0] for note in notes] == ["a", "b", "b", "a"]
