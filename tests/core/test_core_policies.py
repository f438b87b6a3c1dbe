"""What happens when a plugin fails: policies, the breaker, timeouts, wrappers; in all four ways."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import pytest
from going import each_way, go
from scenarios import Hooked

from hookloop import Agent, tool
from hookloop.testing import ScriptedProvider, Spy, assert_valid_history, call, say
from hookloop_hookspecs import ConfigError, Narrow, PluginError, Replace, Window, hookimpl

LENIENT = (
    "register_tools",
    "before_turn",
    "select_context",
    "before_round",
    "after_tool",
    "next_instructions",
    "review_answer",
)
"""Hooks whose failure ends the turn, unless the plugin's policy says otherwise."""
EDIT = call("edit", {"path": "a"}, id="c1")


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


def agent(*plugins: Any, script: Any = None, **settings: Any) -> Agent:
    """An agent whose plugin "p" has these settings."""
    config = {"plugins": {"p": settings}} if settings else None
    return Agent(ScriptedProvider(script or [EDIT, say("ok")] * 5), tools=[edit], plugins=plugins, config=config)


@each_way
@pytest.mark.parametrize("hook", LENIENT)
def test_raise_is_the_default_and_names_plugin_and_hook(way: str, hook: str) -> None:
    with agent(Spy(hook, name="p").fails(hook, KeyError("lost"))) as made:
        with pytest.raises(PluginError, match=rf"plugin 'p', hook {hook}: KeyError: 'lost'") as caught:
            go(made, way, "Edit.", conversation="c")
        assert (caught.value.plugin, caught.value.hook) == ("p", hook)
        assert isinstance(caught.value.__cause__, KeyError)
        outcome = caught.value.outcome
        assert outcome is not None
        assert (outcome.status, outcome.stop_reason) == ("failed", "PluginError")
        assert_valid_history(outcome)
        assert go(made, way, "Again.", conversation="c").status == "done"


@each_way
@pytest.mark.parametrize("hook", LENIENT)
@pytest.mark.parametrize("policy", ["skip", "disable"])
def test_a_lenient_plugin_is_left_out_with_a_warning(way: str, hook: str, policy: str) -> None:
    spy, other = Spy(hook, name="p").fails(hook), Spy(hook, name="other")
    with agent(spy, other, on_error=policy) as made:
        outcome = go(made, way, "Edit.")
    assert outcome.status == "done"
    assert f"p.{hook}: RuntimeError: p was told to fail" in outcome.warnings
    assert other.calls, "the other plugin is asked all the same"


@each_way
def test_a_warning_is_an_event_too(way: str) -> None:
    eye = Spy("on_event", name="eye")
    with agent(eye, Spy("before_round", name="p").fails("before_round"), on_error="skip") as made:
        go(made, way, "Edit.")
    (warned,) = eye.events("warned")
    assert (getattr(warned, "plugin", ""), getattr(warned, "hook", "")) == ("p", "before_round")


@each_way
def test_the_breaker_opens_after_so_many_failures(way: str) -> None:
    spy = Spy("before_round", name="p").fails("before_round", times=100)
    with agent(spy, on_error="disable", disable_after=3) as made:
        for _ in range(3):
            assert go(made, way, "Edit.").status == "done"
    assert len(spy.calls) == 3, "it was asked until it had failed three times"


@each_way
def test_the_breaker_counts_all_hooks_of_a_plugin(way: str) -> None:
    spy = Spy("before_round", "next_instructions", "review_answer", name="p")
    spy.fails("before_round").fails("next_instructions")
    with agent(spy, on_error="disable", disable_after=2) as made:
        go(made, way, "Edit.")
    assert spy.order == ["before_round", "next_instructions"]


@each_way
def test_a_disabled_plugin_still_guards(way: str) -> None:
    spy = (
        Spy("before_round", "before_tool", name="p").fails("before_round", times=9).always("before_tool", ValueError())
    )
    with agent(spy, on_error="disable", disable_after=1) as made:
        outcome = go(made, way, "Edit.")
    assert "before_tool" in spy.order
    (answer,) = [result.text for message in outcome.new for result in message.results]
    assert answer.startswith("denied: plugin p failed")


@each_way
def test_that_a_plugin_is_disabled_is_told(way: str) -> None:
    eye = Spy("on_event", name="eye")
    spy = Spy("before_round", name="p").fails("before_round", times=9)
    with agent(eye, spy, on_error="disable", disable_after=2) as made:
        outcome = go(made, way, "Edit.")
    assert ["switched off" in warning for warning in outcome.warnings] == [False, True]
    assert ["switched off" in getattr(event, "text", "") for event in eye.events("warned")] == [False, True]


@each_way
@pytest.mark.parametrize("hook", ["before_round", "next_instructions", "after_turn", "recall"])
def test_an_async_hook_has_its_plugins_timeout(way: str, hook: str) -> None:
    async def implementation() -> None:
        await asyncio.Event().wait()

    observes = hook in ("after_turn", "recall")
    with agent(Hooked("p", **{hook: implementation}), timeout=0.05) as made:
        if observes:
            outcome = go(made, way, "Edit.")
            assert outcome.status == "done"
            return
        with pytest.raises(PluginError, match=r"TimeoutError: .*0\.05 s"):
            go(made, way, "Edit.")


@each_way
def test_a_timeout_of_the_hooks_own_is_not_taken_for_the_plugins(way: str) -> None:
    async def implementation() -> None:
        raise TimeoutError("the service was slow")

    with agent(Hooked("p", before_round=implementation), timeout=60) as made:
        with pytest.raises(PluginError, match="the service was slow"):
            go(made, way, "Edit.")


@each_way
def test_two_plugins_have_timeouts_of_their_own(way: str) -> None:
    async def implementation() -> str:
        await asyncio.sleep(0.15)
        return "slow, but in time"

    plugins = [Hooked("p", before_round=implementation), Hooked("q", before_round=implementation)]
    config = {"plugins": {"p": {"timeout": 0.01, "on_error": "skip"}, "q": {"timeout": 60}}}
    provider = ScriptedProvider(say("ok"))
    with Agent(provider, plugins=plugins, config=config) as made:
        outcome = go(made, way, "Hello.")
    added = [m.origin.plugin for m in provider.requests[0].messages if m.origin.kind == "plugin"]
    assert (outcome.status, added) == ("done", ["q"])


class Around:
    """A wrapper that only looks."""

    name = "around"

    def __init__(self, hook: str) -> None:
        def implementation() -> Generator[None, Any, Any]:
            return (yield)

        setattr(self, hook, hookimpl(wrapper=True)(implementation))


@each_way
def test_a_skipped_failure_is_told_inside_a_wrapper_too(way: str) -> None:
    with agent(Around("before_round"), Spy("before_round", name="p").fails("before_round"), on_error="skip") as made:
        outcome = go(made, way, "Edit.")
    assert outcome.status == "done"
    assert any(warning.startswith("p.before_round") for warning in outcome.warnings)


class Breaks:
    """A wrapper that fails behind its yield."""

    name = "p"

    def __init__(self, hook: str) -> None:
        def implementation() -> Generator[None, Any, Any]:
            yield
            raise RuntimeError("the wrapper broke")

        setattr(self, hook, hookimpl(wrapper=True)(implementation))


@each_way
@pytest.mark.parametrize("hook", ["recall", "after_turn"])
def test_a_wrapper_of_an_observer_never_ends_a_turn(way: str, hook: str) -> None:
    with agent(Breaks(hook), Spy(hook, name="inner")) as made:
        outcome = go(made, way, "Edit.")
    assert outcome.status == "done"


@each_way
def test_a_wrapper_has_its_plugins_policy(way: str) -> None:
    with agent(Breaks("before_round"), Spy("before_round", name="inner"), on_error="skip") as made:
        outcome = go(made, way, "Edit.")
    assert outcome.status == "done"
    assert any("the wrapper broke" in warning for warning in outcome.warnings)


def test_a_hook_may_have_another_name_than_its_function() -> None:
    class Named:
        name = "named"

        @hookimpl(specname="before_round")
        def look(self) -> str:
            return "looked"

    provider = ScriptedProvider(say("ok"))
    with Agent(provider, plugins=[Named()]) as made:
        made.run("Hello.")
    assert provider.requests[0].messages[-1].text == "looked"


def test_an_async_wrapper_is_refused_at_start_up() -> None:
    class Odd:
        name = "odd"

        @hookimpl(wrapper=True)
        async def before_round(self) -> Any:
            yield

    with pytest.raises(ConfigError, match=r"(?s)odd.*generator"), Agent(ScriptedProvider(), plugins=[Odd()]):
        pass


def test_an_old_style_wrapper_is_refused_at_start_up() -> None:
    class Old:
        name = "old"

        @hookimpl(hookwrapper=True)
        def before_round(self) -> Any:
            yield

    with pytest.raises(ConfigError, match=r"old.*wrapper=True"):
        Agent(ScriptedProvider(), plugins=[Old()])


@each_way
def test_the_first_view_policy_wins(way: str) -> None:
    class First:
        name = "first"

        @hookimpl
        def select_context(self, view: Any) -> Window | None:
            return Window(messages=3) if len(view) > 2 else None

    second = Spy("select_context", name="second").always("select_context", Window(messages=5))
    provider = ScriptedProvider([say("ok")] * 9)
    with Agent(provider, plugins=[First(), second]) as made:
        for at in range(5):
            go(made, way, f"Hello {at}.", conversation="c")
    assert [len(request.messages) for request in provider.requests] == [1, 3, 3, 3, 3]


@each_way
def test_a_reviewer_says_not_yet_within_the_limits(way: str) -> None:
    class Never:
        name = "never"

        @hookimpl
        def review_answer(self, reply: Any) -> str:
            return "not yet"

    provider = ScriptedProvider([say("done")] * 20)
    with Agent(provider, plugins=[Never()], config={"limits": {"rounds": 4}}) as made:
        outcome = go(made, way, "Hello.")
    assert (outcome.status, outcome.stop_reason, len(provider.requests)) == ("limit", "rounds", 4)
    assert_valid_history(outcome)


def test_every_plugin_is_closed_whatever_another_does() -> None:
    spies = [Spy("close", name=name) for name in "abc"]
    spies[1].fails("close")
    made = Agent(ScriptedProvider(), plugins=spies)
    with pytest.warns(ResourceWarning, match=r"b\.close: b was told to fail"):
        made.close()
    assert [len(spy.calls) for spy in spies] == [1, 1, 1]


@each_way
def test_an_observer_that_fails_at_each_event_is_warned_of_once(way: str) -> None:
    eye = Spy("on_event", name="eye").fails("on_event", times=100)
    with agent(eye) as made:
        outcome = go(made, way, "Edit.")
    assert outcome.status == "done"
    assert [warning for warning in outcome.warnings if "eye" in warning] == [
        "eye.on_event: RuntimeError: eye was told to fail"
    ]


CONFLICTS = {
    "after_tool": (Replace("one"), Replace("two")),
    "after_reply": (Replace("one"), Replace("two")),
    "before_tool": (Replace({"path": "b"}), Replace({"path": "c"})),
    "before_turn": (Replace("one"), Replace("two")),
    "before_round": (Narrow(tool_choice="none"), Narrow(tool_choice="required")),
}


@each_way
@pytest.mark.parametrize("hook", CONFLICTS)
def test_two_plugins_that_change_the_same_thing_in_a_round_are_told_of(way: str, hook: str) -> None:
    eye = Spy("on_event", name="eye")
    plugins = [Spy(hook, name=name).returns(hook, value) for name, value in zip("ab", CONFLICTS[hook], strict=True)]
    with agent(eye, *plugins) as made:
        go(made, way, "Edit.")
    told = [getattr(event, "text", "") for event in eye.events("warned")]
    assert any("'a'" in text and "'b'" in text for text in told)


@each_way
def test_the_same_wish_of_two_plugins_is_no_conflict(way: str) -> None:
    plugins = [Spy("before_round", name=name).returns("before_round", Narrow(tool_choice="none")) for name in "ab"]
    with agent(*plugins, script=[say("ok")]) as made:
        outcome = go(made, way, "Edit.")
    assert outcome.warnings == ()


@each_way
@pytest.mark.parametrize("hook", ["after_reply", "after_tool"])
def test_the_history_of_a_turn_that_waits_is_valid_whatever_was_said_about_its_reply(way: str, hook: str) -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    spy = Spy(hook, name="p").always(hook, "noted")
    provider = ScriptedProvider([EDIT, call("pay", id="c2")], say("ok"))
    with Agent(provider, tools=[edit, pay], plugins=[spy]) as made:
        outcome = go(made, way, "Edit and pay.", conversation="c")
        assert outcome.status == "suspended"
        assert_valid_history(outcome, tail=True)
