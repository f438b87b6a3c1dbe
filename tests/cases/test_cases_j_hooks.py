"""Cases J01 to J08 and J15 to J18: hooks that fail, judge, wrap and collide. Each with its neighbours."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from going import each_way, go
from scenarios import Hooked, once

from hookloop import Agent, tool
from hookloop.testing import ScriptedProvider, Seen, Spy, assert_valid_history, call, reply, say
from hookloop_hookspecs import (
    Answer,
    Approve,
    ConfigError,
    Deny,
    Message,
    NoOpenTurn,
    PluginError,
    Replace,
    Reply,
    Retry,
    Stop,
    Suspend,
    Text,
    ToolCall,
    ToolResult,
    hookimpl,
)

PAY = call("pay", {"amount": 5}, id="p1")
LOOK = call("look", {"at": "it"}, id="l1")


class Till:
    """Tools that count what they did."""

    def __init__(self) -> None:
        self.paid: list[int] = []
        self.looked: list[str] = []
        till = self

        @tool
        def pay(amount: int) -> str:
            """Pay."""
            till.paid.append(amount)
            return f"paid {amount}, token SECRET"

        @tool(serial=True)
        def look(at: str) -> str:
            """Look at something."""
            till.looked.append(at)
            return f"saw {at}"

        self.tools = [pay, look]


def texts(messages: Any) -> list[tuple[str, str]]:
    return [(message.role, message.text) for message in messages]


def results(messages: Any) -> dict[str, str]:
    """The results of calls, by id."""
    return {result.call_id: result.text for message in messages for result in message.results}


# J01: an after-tool hook fails after an effect


def _late(error: Exception) -> Callable[[Seen], Any]:
    async def fail() -> None:
        await asyncio.sleep(0)
        raise error

    return lambda seen: fail()


@each_way
@pytest.mark.parametrize("is_async", [False, True])
def test_J01_a_failing_after_tool_hook_never_makes_the_tool_run_again(way: str, is_async: bool) -> None:
    till, guard = Till(), Spy("after_tool", name="guard", is_async=is_async).fails("after_tool")
    provider = ScriptedProvider(PAY, say("so be it"))
    with Agent(provider, tools=till.tools, plugins=[guard]) as agent:
        with pytest.raises(PluginError) as caught:
            go(agent, way, "Pay.", conversation="c", turn_id="t1")
        assert (caught.value.plugin, caught.value.hook) == ("guard", "after_tool")
        outcome = caught.value.outcome
        assert outcome is not None
        assert (outcome.status, outcome.stop_reason) == ("failed", "PluginError")
        assert_valid_history(outcome)
        assert results(outcome.new) == {"p1": "ran; result withheld: plugin guard failed"}
        with pytest.raises(NoOpenTurn):
            agent.resume("c")
        with pytest.raises(Exception, match="guard"):
            go(agent, way, "Pay.", conversation="c", turn_id="t1")
        assert go(agent, way, "Go on.", conversation="c").text == "so be it"
    assert till.paid == [5]
    assert "ran; result withheld: plugin guard failed" in results(provider.requests[1].messages)["p1"]
    assert "SECRET" not in repr(provider.requests)


@each_way
@pytest.mark.parametrize("policy", ["skip", "disable"])
def test_J01_a_lenient_policy_withholds_nothing(way: str, policy: str) -> None:
    till, guard = Till(), Spy("after_tool", name="guard").fails("after_tool")
    config = {"plugins": {"guard": {"on_error": policy}}}
    with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=[guard], config=config) as agent:
        outcome = go(agent, way, "Pay.")
    assert (outcome.status, till.paid) == ("done", [5])
    assert results(outcome.new)["p1"].startswith("paid 5")
    assert any(warning.startswith("guard.after_tool: ") for warning in outcome.warnings)


@each_way
def test_J01_no_sibling_starts_after_the_failure_and_each_call_is_answered(way: str) -> None:
    till, guard = Till(), Spy("after_tool", name="guard").fails("after_tool")
    looks = [call("look", {"at": str(at)}, id=f"l{at}") for at in range(3)]
    provider = ScriptedProvider(looks, say("ok"))
    with Agent(provider, tools=till.tools, plugins=[guard]) as agent:
        with pytest.raises(PluginError) as caught:
            go(agent, way, "Look.", conversation="c")
        assert caught.value.outcome is not None
        answered = results(caught.value.outcome.new)
        go(agent, way, "Go on.", conversation="c")
    assert till.looked == ["0"]
    assert answered == {
        "l0": "ran; result withheld: plugin guard failed",
        "l1": "not run: plugin guard failed",
        "l2": "not run: plugin guard failed",
    }
    assert_valid_history(provider.requests[1])


@each_way
def test_J01_a_hook_that_is_late_withholds_the_result_too(way: str) -> None:
    class Slow:
        name = "slow"

        @hookimpl
        async def after_tool(self) -> None:
            await asyncio.Event().wait()

    till = Till()
    config = {"plugins": {"slow": {"timeout": 0.05}}}
    with Agent(ScriptedProvider(PAY), tools=till.tools, plugins=[Slow()], config=config) as agent:
        with pytest.raises(PluginError, match=r"slow.*0\.05") as caught:
            go(agent, way, "Pay.")
    assert caught.value.outcome is not None
    assert results(caught.value.outcome.new) == {"p1": "ran; result withheld: plugin slow failed"}
    assert till.paid == [5]


# J03: a judge that fails


@each_way
@pytest.mark.parametrize("policy", ["raise", "skip", "disable"])
@pytest.mark.parametrize("is_async", [False, True])
def test_J03_a_failing_judge_lets_nothing_through(way: str, policy: str, is_async: bool) -> None:
    till = Till()
    judge = Spy("before_tool", name="judge", is_async=is_async).fails("before_tool", times=2)
    config = {"plugins": {"judge": {"on_error": policy, "disable_after": 1}}}
    provider = ScriptedProvider(
        PAY, call("pay", {"amount": 6}, id="p2"), call("pay", {"amount": 7}, id="p3"), say("ok")
    )
    with Agent(provider, tools=till.tools, plugins=[judge], config=config) as agent:
        outcome = go(agent, way, "Pay.")
    assert (outcome.status, till.paid) == ("done", [7])
    answers = results(outcome.new)
    assert answers["p1"] == answers["p2"] == "denied: plugin judge failed while it judged this call"
    assert sum("judge" in warning for warning in outcome.warnings) == 2


@each_way
def test_J03_a_late_judge_lets_nothing_through(way: str) -> None:
    class Slow:
        name = "slow"

        @hookimpl
        async def before_tool(self) -> None:
            await asyncio.Event().wait()

    till = Till()
    config = {"plugins": {"slow": {"timeout": 0.05}}}
    with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=[Slow()], config=config) as agent:
        outcome = go(agent, way, "Pay.")
    assert till.paid == []
    assert results(outcome.new) == {"p1": "denied: plugin slow failed while it judged this call"}


@each_way
@pytest.mark.parametrize("answer", [True, "yes", Retry(), Message.user("fine"), {"amount": 1}, 0])
def test_J03_a_judge_that_talks_nonsense_lets_nothing_through(way: str, answer: Any) -> None:
    till = Till()
    with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=[once("before_tool", answer)]) as agent:
        outcome = go(agent, way, "Pay.")
    assert (outcome.status, till.paid) == ("done", [])
    assert "failed while it judged" in results(outcome.new)["p1"]


@each_way
def test_J03_a_second_judge_cannot_save_what_the_first_failed_on(way: str) -> None:
    till = Till()
    judges = [Spy("before_tool", name="good"), Spy("before_tool", name="bad").fails("before_tool")]
    with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=judges) as agent:
        go(agent, way, "Pay.")
    assert till.paid == []


@each_way
def test_J03_an_observer_may_fail(way: str) -> None:
    till = Till()
    spy = Spy("on_event", "after_turn", "recall", name="eye")
    for hook in spy.hooks:
        spy.fails(hook, times=50)
    with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=[spy]) as agent:
        outcome = go(agent, way, "Pay.")
    assert (outcome.status, till.paid) == ("done", [5])
    assert [warning.split(":")[0] for warning in outcome.warnings][:2] == ["eye.on_event", "eye.recall"]


@each_way
def test_J03_a_failing_judge_of_replies_keeps_the_reply_out_of_history(way: str) -> None:
    till = Till()
    judge = Spy("after_reply", name="judge").fails("after_reply")
    config = {"plugins": {"judge": {"on_error": "skip"}}}
    provider = ScriptedProvider([say("a bad word"), PAY], say("ok"))
    with Agent(provider, tools=till.tools, plugins=[judge], config=config) as agent:
        with pytest.raises(PluginError, match="judge"):
            go(agent, way, "Pay.", conversation="c")
        go(agent, way, "Go on.", conversation="c")
    assert till.paid == []
    assert "bad word" not in repr(provider.requests[1].messages)


# J05: what was judged is what runs


def _only(amount: int) -> Callable[..., Any]:
    def before_tool(call: ToolCall) -> Deny | None:
        return None if call.arguments.get("amount") == amount else Deny("too much")

    return before_tool


@each_way
@pytest.mark.parametrize("first", ["policy", "changer"])
def test_J05_a_policy_judges_what_others_made_of_the_call(way: str, first: str) -> None:
    till = Till()
    plugins = [Hooked("policy", before_tool=_only(5)), once("before_tool", Replace({"amount": 500}), "changer")]
    plugins = plugins if first == "policy" else plugins[::-1]
    with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=plugins) as agent:
        outcome = go(agent, way, "Pay.")
    assert till.paid == []
    assert results(outcome.new) == {"p1": "denied: too much"}


@each_way
def test_J05_a_change_that_the_policy_allows_runs_as_changed(way: str) -> None:
    till = Till()
    policy = Spy("before_tool", name="policy")
    plugins = [policy, once("before_tool", Replace({"amount": 3}), "changer")]
    with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=plugins) as agent:
        outcome = go(agent, way, "Pay.")
    assert till.paid == [3]
    judged = [seen["call"].arguments for seen in policy.of("before_tool")]
    assert judged == [{"amount": 5}, {"amount": 3}]
    ((answer,),) = [message.results for message in outcome.new if message.results]
    assert answer.ran == '{"amount":3}'


@each_way
def test_J05_a_call_that_a_plugin_renamed_is_judged_under_its_new_name(way: str) -> None:
    def after_reply(reply: Reply) -> Any:
        renamed = [ToolCall(one.id, "pay", '{"amount": 1}') for one in reply.calls]
        return Replace(Reply(tuple(renamed), "calls")) if renamed else None

    def before_tool(call: ToolCall) -> Deny | None:
        return None if call.name == "look" else Deny(f"{call.name} is not allowed")

    till = Till()
    plugins = [Hooked("policy", before_tool=before_tool), Hooked("changer", after_reply=after_reply)]
    with Agent(ScriptedProvider(LOOK, say("ok")), tools=till.tools, plugins=plugins) as agent:
        outcome = go(agent, way, "Look.")
    assert (till.paid, till.looked) == ([], [])
    assert results(outcome.new) == {"l1": "denied: pay is not allowed"}


@each_way
def test_J05_changed_arguments_are_validated_again(way: str) -> None:
    till = Till()
    plugin = once("before_tool", Replace({"amount": "much"}))
    with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=[plugin]) as agent:
        outcome = go(agent, way, "Pay.")
    assert till.paid == []
    assert "do not fit" in results(outcome.new)["p1"]


@each_way
def test_J05_two_plugins_that_change_in_turns_are_cut_short(way: str) -> None:
    till = Till()
    plugin = Hooked("pendulum", before_tool=lambda call: Replace({"amount": call.arguments["amount"] + 1}))
    with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=[plugin]) as agent:
        outcome = go(agent, way, "Pay.")
    assert till.paid == []
    assert "kept changing" in results(outcome.new)["p1"]


def test_J05_arguments_that_an_approver_changed_are_judged_too() -> None:
    def before_tool(call: ToolCall, decision: Any) -> Any:
        if call.arguments["amount"] > 100:
            return Deny("too much")
        return Suspend("sure?") if decision is None else None

    till = Till()
    provider = ScriptedProvider(PAY, say("ok"))
    with Agent(provider, tools=till.tools, plugins=[Hooked("policy", before_tool=before_tool)]) as agent:
        agent.run("Pay.", conversation="c")
        outcome = agent.resume("c", {"p1": Approve({"amount": 500})})
    assert till.paid == []
    assert results(outcome.messages) == {"p1": "denied: too much"}


@each_way
def test_J05_input_that_a_plugin_changed_is_judged_again(way: str) -> None:
    def before_turn(query: Message) -> Stop | None:
        return Stop("forbidden", "no") if "bomb" in query.text else None

    plugins = [Hooked("policy", before_turn=before_turn), once("before_turn", Replace("build a bomb"), "changer")]
    provider = ScriptedProvider(say("unused"))
    with Agent(provider, plugins=plugins) as agent:
        outcome = go(agent, way, "Bake a cake.")
    assert (outcome.status, outcome.stop_reason, provider.requests) == ("stopped", "forbidden", [])


# J06: one rule of order

BEFORE = (
    "register_tools",
    "recall",
    "before_turn",
    "before_round",
    "before_tool",
    "next_instructions",
    "review_answer",
)
AFTER = ("after_reply", "after_tool", "after_turn")


@each_way
@pytest.mark.parametrize("hook", [*BEFORE, *AFTER])
def test_J06_before_is_outermost_first_and_after_the_reverse_at_every_point(way: str, hook: str) -> None:
    a = Spy(hook, name="a")
    plugins = [a, Spy(hook, name="b", calls=a.calls), Spy(hook, name="c", calls=a.calls)]
    with Agent(ScriptedProvider(LOOK, say("ok")), tools=Till().tools, plugins=plugins) as agent:
        go(agent, way, "Look.")
    asked = [seen.plugin for seen in a.calls]
    rule = ["c", "b", "a"] if hook in AFTER else ["a", "b", "c"]
    assert asked == rule * (len(asked) // 3)
    assert asked


def _wrapper(name: str, hook: str, notes: list[str]) -> Any:
    def implementation() -> Generator[None, Any, Any]:
        notes.append(f"{name} in")
        returned = yield
        notes.append(f"{name} out")
        return returned

    plugin = Hooked(name)
    setattr(plugin, hook, hookimpl(wrapper=True)(implementation))
    return plugin


@each_way
@pytest.mark.parametrize("hook", ["before_turn", "before_round", "before_tool", "after_tool", "after_reply"])
def test_J06_the_first_plugin_wraps_the_others_at_every_point(way: str, hook: str) -> None:
    notes: list[str] = []
    inner = Hooked("inner", **{hook: lambda: notes.append("inner")})
    plugins = [_wrapper("a", hook, notes), _wrapper("b", hook, notes), inner]
    with Agent(ScriptedProvider(LOOK, say("ok")), tools=Till().tools, plugins=plugins) as agent:
        go(agent, way, "Look.")
    once_around = ["a in", "b in", "inner", "b out", "a out"]
    assert notes == once_around * (len(notes) // 5)
    assert notes


@each_way
def test_J06_config_order_stands_over_tryfirst_and_that_over_the_list(way: str) -> None:
    calls: list[Seen] = []
    a, b, c = (Spy("before_round", name=name, calls=calls) for name in "abc")
    c.before_round = hookimpl(tryfirst=True)(c.before_round)  # type: ignore[attr-defined]  # made at run time
    a.before_round = hookimpl(trylast=True)(a.before_round)  # type: ignore[attr-defined]  # made at run time
    with Agent(ScriptedProvider(say("ok")), plugins=[a, b, c]) as agent:
        go(agent, way, "Hello.")
    assert [seen.plugin for seen in calls] == ["c", "b", "a"]
    calls.clear()
    with Agent(ScriptedProvider(say("ok")), plugins=[a, b, c], config={"order": ["a", "b"]}) as agent:
        go(agent, way, "Hello.")
    assert [seen.plugin for seen in calls] == ["a", "b", "c"]


@each_way
def test_J06_what_the_outermost_says_of_a_result_stands(way: str) -> None:
    plugins = [
        Hooked("outer", after_tool=lambda result: Replace(f"outer({result.text})")),
        Hooked("inner", after_tool=lambda result: Replace(f"inner({result.text})")),
    ]
    with Agent(ScriptedProvider(LOOK, say("ok")), tools=Till().tools, plugins=plugins) as agent:
        outcome = go(agent, way, "Look.")
    assert results(outcome.new) == {"l1": "outer(inner(saw it))"}


@each_way
def test_J06_the_strongest_verdict_stands_whoever_says_it(way: str) -> None:
    verdicts: list[Any] = [Answer("paid by hand"), Suspend("sure?"), Deny("no"), Stop("enough", "bye")]
    for at in range(1, len(verdicts) + 1):
        plugins = [once("before_tool", verdict, f"p{n}") for n, verdict in enumerate(verdicts[:at])]
        till = Till()
        with Agent(ScriptedProvider(PAY, say("ok")), tools=till.tools, plugins=plugins) as agent:
            outcome = go(agent, way, "Pay.")
        assert till.paid == []
        assert outcome.status == ("done", "suspended", "done", "stopped")[at - 1]


# J08: wrappers and their cleanup


class Wraps:
    """A wrapper of `before_round` that notes its cleanup, and may raise in it."""

    def __init__(self, name: str, notes: list[str], error: Exception | None = None) -> None:
        self.name = name
        self.notes = notes
        self.error = error

    @hookimpl(wrapper=True)
    def before_round(self) -> Generator[None, Any, Any]:
        try:
            returned = yield
        except Exception as error:
            self.notes.append(f"{self.name} saw {error}")
            raise
        finally:
            self.notes.append(f"{self.name} cleaned up")
            if self.error is not None:
                raise self.error
        return returned


@each_way
@pytest.mark.parametrize("fails", [False, True])
def test_J08_every_teardown_runs_and_errors_are_chained(way: str, fails: bool) -> None:
    notes: list[str] = []
    plugins: list[Any] = [Wraps("w1", notes), Wraps("w2", notes, KeyError("w2")), Wraps("w3", notes)]
    inner = Spy("before_round", name="inner")
    if fails:
        inner.fails("before_round", ValueError("inner"))
    with Agent(ScriptedProvider(say("ok")), plugins=[*plugins, inner]) as agent:
        with pytest.raises(PluginError) as caught:
            go(agent, way, "Hello.")
    assert [note for note in notes if "cleaned" in note] == ["w3 cleaned up", "w2 cleaned up", "w1 cleaned up"]
    assert caught.value.plugin == "w2"
    assert isinstance(caught.value.__cause__, KeyError)
    assert "w1 saw 'w2'" in notes
    if fails:
        assert isinstance(caught.value.__cause__.__context__, ValueError)


@each_way
def test_J08_a_wrapper_may_make_good_what_failed_inside(way: str) -> None:
    class Saves:
        name = "saves"

        @hookimpl(wrapper=True)
        def before_round(self) -> Generator[None, Any, Any]:
            try:
                return (yield)
            except ValueError:
                return ["all is well"]

    inner = Spy("before_round", name="inner").fails("before_round", ValueError("inner"))
    provider = ScriptedProvider(say("ok"))
    with Agent(provider, plugins=[Saves(), inner]) as agent:
        outcome = go(agent, way, "Hello.")
    assert outcome.status == "done"
    (added,) = [message for message in provider.requests[0].messages if message.origin.kind == "plugin"]
    assert (added.text, added.origin.plugin) == ("all is well", "saves")


@each_way
def test_J08_a_wrapper_that_fails_before_its_yield_leaves_none_open(way: str) -> None:
    class Bad:
        name = "bad"

        @hookimpl(wrapper=True)
        def before_round(self) -> Generator[None, Any, Any]:
            if self.name:
                raise LookupError("no")
            return (yield)

    notes: list[str] = []
    inner = Spy("before_round", name="inner")
    with Agent(ScriptedProvider(say("ok")), plugins=[Wraps("w1", notes), Bad(), Wraps("w3", notes), inner]) as agent:
        with pytest.raises(PluginError) as caught:
            go(agent, way, "Hello.")
    assert (caught.value.plugin, notes, inner.calls) == ("bad", ["w1 saw no", "w1 cleaned up"], [])


@each_way
@pytest.mark.parametrize("yields", [0, 2])
def test_J08_a_wrapper_yields_exactly_once(way: str, yields: int) -> None:
    class Odd:
        name = "odd"

        @hookimpl(wrapper=True)
        def before_round(self) -> Iterator[None]:
            for _ in range(yields):
                yield

    notes: list[str] = []
    with Agent(ScriptedProvider(say("ok")), plugins=[Wraps("w1", notes), Odd(), Spy("before_round")]) as agent:
        with pytest.raises(PluginError) as caught:
            go(agent, way, "Hello.")
    assert caught.value.plugin == "odd"
    assert "w1 cleaned up" in notes


@each_way
def test_J08_teardowns_run_when_the_turn_is_left_in_an_async_hook(way: str) -> None:
    notes: list[str] = []

    class Leaves:
        name = "leaves"
        agent: Any = None

        @hookimpl
        async def before_round(self, turn: Any) -> None:
            self.agent.cancel(turn.conversation)
            await asyncio.sleep(60)

    leaves = Leaves()
    with Agent(ScriptedProvider(say("ok")), plugins=[Wraps("w1", notes), leaves]) as agent:
        leaves.agent = agent
        outcome = go(agent, way, "Hello.")
    assert outcome.status == "cancelled"
    assert notes == ["w1 cleaned up"]


@each_way
def test_J08_what_a_wrapper_adds_bears_its_name(way: str) -> None:
    class Adds:
        name = "adds"

        @hookimpl(wrapper=True)
        def before_round(self) -> Generator[None, Any, Any]:
            returned = yield
            return [*returned, "from the wrapper"]

    provider = ScriptedProvider(say("ok"))
    with Agent(provider, plugins=[Adds(), Hooked("inner", before_round=lambda: "from inside")]) as agent:
        go(agent, way, "Hello.")
    found = [(m.text, m.origin.plugin) for m in provider.requests[0].messages if m.origin.kind == "plugin"]
    assert found == [("from inside", "inner"), ("from the wrapper", "adds")]


# J15: two tools of one name


@tool(name="read")
def capped(path: str) -> str:
    """Read the beginning of a file."""
    return path[:10]


@tool(name="read")
def uncapped(path: str) -> str:
    """Read a file."""
    return path


@each_way
@pytest.mark.parametrize("swap", [False, True])
def test_J15_two_plugins_with_one_tool_name_are_both_named(way: str, swap: bool) -> None:
    plugins = [Hooked("a", register_tools=lambda: capped), Hooked("b", register_tools=lambda: [uncapped])]
    provider = ScriptedProvider(say("unused"))
    with Agent(provider, plugins=plugins[::-1] if swap else plugins) as agent:
        with pytest.raises(ConfigError, match=r"two tools are named 'read'.*rename") as caught:
            go(agent, way, "Read.")
    assert "'a'" in str(caught.value)
    assert "'b'" in str(caught.value)
    assert provider.requests == []


@each_way
def test_J15_a_plugin_cannot_replace_a_tool_of_the_program(way: str) -> None:
    plugin = Hooked("b", register_tools=lambda: [uncapped])
    with Agent(ScriptedProvider(say("unused")), tools=[capped], plugins=[plugin]) as agent:
        with pytest.raises(ConfigError, match=r"'read'.*tools=.*plugin 'b'"):
            go(agent, way, "Read.")


def test_J15_one_plugin_and_one_program_cannot_give_a_name_twice() -> None:
    with pytest.raises(ConfigError, match="two tools are named 'read'"):
        Agent(ScriptedProvider(), tools=[capped, uncapped])
    plugin = Hooked("b", register_tools=lambda: [capped, uncapped])
    with Agent(ScriptedProvider(), plugins=[plugin]) as agent, pytest.raises(ConfigError, match="plugin 'b'"):
        agent.run("Read.")


def test_J15_the_name_of_the_output_tool_is_taken() -> None:
    @tool
    def final_list(value: int) -> int:
        """Looks like the tool for structured output."""
        return value

    with Agent(ScriptedProvider(), tools=[final_list]) as agent, pytest.raises(ConfigError, match="'final_list'"):
        agent.run("List.", output=list[int])


# J16: what the caller gave stays the caller's


@each_way
def test_J16_the_callers_history_is_not_touched(way: str) -> None:
    history = [
        Message.user("before"),
        Message.assistant([Text("I look"), ToolCall.of("look", {"at": "a"}, "")]),
        Message.assistant("fine"),
        Message.tool(ToolResult("orphan", "look", (Text("lost"),))),
        Message.user("and a bad \ud800 surrogate"),
        Message.assistant("yes"),
    ]
    kept = copy.deepcopy(history)
    with Agent(ScriptedProvider(LOOK, say("ok")), tools=Till().tools, plugins=[Spy()]) as agent:
        outcome = go(agent, way, "Look.", history=history)
    assert history == kept
    assert outcome.messages is not history
    assert_valid_history(outcome)
    assert texts(outcome.messages)[0] == ("user", "before")


@each_way
def test_J16_nor_are_tools_parameters_and_what_was_given_back(way: str) -> None:
    till = Till()
    tools, plugins, settings = list(till.tools), [Spy()], {"limits": {"rounds": 5}}
    deps = {"user": "Ada"}
    with Agent(ScriptedProvider(LOOK, say("one"), say("two")), tools=tools, plugins=plugins, config=settings) as agent:
        first = go(agent, way, "Look.", deps=deps)
        before = list(first.messages)
        go(agent, way, "And again.", history=first.messages)
        assert list(first.messages) == before
    assert (len(tools), len(plugins), settings, deps) == (2, 1, {"limits": {"rounds": 5}}, {"user": "Ada"})


@each_way
def test_J16_arguments_that_a_tool_or_plugin_changes_stay_as_the_model_wrote_them(way: str) -> None:
    @tool
    def pack(items: list[str]) -> str:
        """Pack."""
        items.append("extra")
        return str(len(items))

    def before_tool(call: ToolCall) -> None:
        call.arguments["items"].clear()

    packed = call("pack", {"items": ["a"]}, id="c1")
    provider = ScriptedProvider(packed, say("ok"))
    with Agent(provider, tools=[pack], plugins=[Hooked("p", before_tool=before_tool)]) as agent:
        outcome = go(agent, way, "Pack.")
    assert results(outcome.new) == {"c1": "2"}
    assert provider.requests[1].messages[1].calls[0].arguments == {"items": ["a"]}


# J18: a call that fails to be found is put to the hooks


@each_way
def test_J18_a_hook_answers_for_an_unknown_tool(way: str) -> None:
    def after_tool(call: ToolCall, result: ToolResult) -> Any:
        return Replace(ToolResult("", "", (Text(f"{call.name} is called look now"),))) if result.is_error else None

    provider = ScriptedProvider(call("lok", {"at": "it"}, id="c1"), say("ok"))
    with Agent(provider, tools=Till().tools, plugins=[Hooked("helper", after_tool=after_tool)]) as agent:
        outcome = go(agent, way, "Look.")
    ((answer,),) = [message.results for message in outcome.new if message.results]
    assert (answer.call_id, answer.name, answer.text, answer.is_error) == ("c1", "lok", "lok is called look now", False)
    assert_valid_history(provider.requests[1])


@each_way
@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (call("lok", {"at": "it"}, id="c1"), "no tool named 'lok'"),
        (call("look", '{"at": ', id="c1"), "not understood"),
        (call("look", {"att": 1}, id="c1"), "do not fit"),
        (call("look", "[1]", id="c1"), "JSON object"),
    ],
)
def test_J18_every_call_that_cannot_run_is_put_to_the_hooks(way: str, asked: ToolCall, words: str) -> None:
    spy = Spy("before_tool", "after_tool")
    provider = ScriptedProvider(asked, say("ok"))
    with Agent(provider, tools=Till().tools, plugins=[spy]) as agent:
        outcome = go(agent, way, "Look.")
    assert spy.order == ["after_tool"]
    (seen,) = spy.calls
    assert seen["call"].raw == asked.raw
    assert words in seen["result"].text
    assert words in results(outcome.new)["c1"]


@each_way
def test_J18_a_call_over_its_limit_and_a_denied_one_are_too_but_not_one_of_a_cut_reply(way: str) -> None:
    spy = Spy("before_tool", "after_tool").returns("before_tool", Deny("no"))
    script = [
        PAY,
        reply(call("pay", {"amount": 1}, id="p2"), stop="length"),
        call("pay", {"amount": 2}, id="p3"),
        say("ok"),
    ]
    limits = {"limits": {"tool_calls": 2, "on_breach": "error_result"}}
    with Agent(ScriptedProvider(script), tools=Till().tools, plugins=[spy], config=limits) as agent:
        outcome = go(agent, way, "Pay.")
    asked = [seen["call"].id for seen in spy.of("after_tool")]
    assert (outcome.status, asked) == ("done", ["p1", "p3"])
