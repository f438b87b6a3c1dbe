"""The spy, the assertions on history, and the crash points, as plugin authors use them."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from going import each_way, go

from hookloop import Agent, testing, tool
from hookloop.testing import (
    ScriptedProvider,
    Spy,
    as_hook,
    assert_extends,
    assert_growing,
    assert_valid_history,
    call,
    crash,
    crash_points,
    mortal,
    say,
)
from hookloop.testing.spy import OF_MEMORIES, WATCHED
from hookloop_hookspecs import Deny, Message, PluginError, ToolCall, ToolResult
from hookloop_hookspecs import hooks as specs
from hookloop_sql import SqlMemory


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


EDIT = call("edit", {"path": "a"}, id="c1")


def test_what_the_kit_exports_is_sorted_and_there() -> None:
    assert list(testing.__all__) == sorted(testing.__all__)
    for name in testing.__all__:
        assert hasattr(testing, name)


def test_a_spy_knows_every_hook_of_the_contract() -> None:
    every = {name for name, value in vars(specs).items() if hasattr(value, "hookloop_spec")}
    assert every == set(WATCHED) | OF_MEMORIES


@each_way
@pytest.mark.parametrize("is_async", [False, True])
def test_a_spy_sees_the_whole_turn_in_order(way: str, is_async: bool) -> None:
    spy = Spy(is_async=is_async)
    with Agent(ScriptedProvider(EDIT, say("done")), tools=[edit], plugins=[spy]) as agent:
        outcome = go(agent, way, "Edit.", conversation="c", turn_id="t")
    assert spy.order == [
        *("register_tools", "select_context", "recall", "before_turn"),
        *("before_round", "after_reply", "before_tool", "after_tool", "next_instructions"),
        *("before_round", "after_reply", "review_answer", "after_turn", "close"),
    ]
    (asked,) = spy.of("before_tool")
    assert (asked["call"].name, asked.conversation, asked.turn, asked.round, asked.plugin) == (
        "edit",
        "c",
        "t",
        1,
        "spy",
    )
    assert asked["decision"] is None
    assert spy.of("after_turn")[0]["outcome"].text == outcome.text
    assert [event.kind for event in spy.events("request_sent", "turn_finished")] == [
        *("request_sent", "request_sent", "turn_finished"),
    ]


@each_way
def test_a_spy_returns_and_raises_what_it_is_told_to(way: str) -> None:
    spy = Spy("before_tool", "next_instructions", "before_round")
    spy.returns("before_tool", Deny("first"), lambda seen: Deny(f"second {seen['call'].id}"))
    spy.always("next_instructions", lambda seen: f"after round {seen.round}")
    script = [call("edit", {"path": "a"}, id=f"c{at}") for at in range(3)]
    provider = ScriptedProvider([*script, say("done")])
    with Agent(provider, tools=[edit], plugins=[spy]) as agent:
        outcome = go(agent, way, "Edit.", conversation="c")
        assert [m.text for m in outcome.new if m.role == "tool"] == ["denied: first", "denied: second c1", "edited a"]
        added = [m.text for m in outcome.new if m.origin.kind == "plugin" and m.role == "user"]
        assert added == ["after round 1", "after round 2", "after round 3"]
        spy.fails("before_round", KeyError("told"))
        with pytest.raises(PluginError, match="told"):
            go(agent, way, "Again.", conversation="c")


def test_spies_share_a_list_to_see_their_order() -> None:
    a = Spy("before_round", name="a")
    b = Spy("before_round", name="b", calls=a.calls)
    with Agent(ScriptedProvider(say("ok")), plugins=[b, a]) as agent:
        agent.run("Hello.")
    assert [seen.plugin for seen in a.calls] == ["b", "a"]
    assert len(a.of("before_round")) == len(b.of("before_round")) == 1


def test_a_spy_says_what_it_cannot_do() -> None:
    with pytest.raises(ValueError, match="'after_tol' is no hook"):
        Spy("after_tol")
    with pytest.raises(ValueError, match="does not implement close; it has before_round"):
        Spy("before_round").returns("close", 1)


def test_a_function_becomes_a_hook_with_all_arguments() -> None:
    seen: list[dict[str, Any]] = []

    class Mine:
        name = "mine"
        after_tool = staticmethod(as_hook("after_tool", seen.append, tryfirst=True))

    with Agent(ScriptedProvider(EDIT, say("ok")), tools=[edit], plugins=[Mine()]) as agent:
        agent.run("Edit.")
    assert list(seen[0]) == list(inspect.signature(specs.after_tool).parameters)


# assertions on history


def group(*ids: str, answered: tuple[str, ...] | None = None) -> list[Message]:
    calls = [ToolCall.of("edit", {}, id) for id in ids]
    results = [Message.tool(ToolResult(id)) for id in (ids if answered is None else answered)]
    return [Message.user("go"), Message.assistant(calls), *results]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        (group("a", answered=()), "not answered"),
        ([*group("a", answered=()), Message.user("more")], "not answered before the next user message"),
        (group("a", answered=("a", "a")), "without its call"),
        (group("a", answered=("b",)), "without its call"),
        (group("a", "a"), "missing or repeated"),
        ([*group("a"), *group("a")], "missing or repeated"),
        ([Message.tool(ToolResult("x"))], "without its call"),
        ([Message("user", [ToolCall.of("edit", {}, "a")])], "holds a call"),
    ],
)
def test_an_invalid_history_is_said_to_be(messages: list[Message], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        assert_valid_history(messages)


def test_a_valid_history_may_be_open_at_its_tail_where_that_is_allowed() -> None:
    assert_valid_history([])
    assert_valid_history(group("a", "b"))
    assert_valid_history(group("a", "b", answered=("b",)), tail=True)


def test_a_history_extends_another_when_it_begins_with_it() -> None:
    before = group("a")
    assert_extends(before, [*before, Message.user("more")])
    assert_extends([], before)
    with pytest.raises(AssertionError, match="block 2 is gone"):
        assert_extends(before, before[:2])
    with pytest.raises(AssertionError, match=r"block 0 was .*'go'.*and is now"):
        assert_extends(before, [Message.user("stop"), *before[1:]])
    with pytest.raises(AssertionError, match="block 0"):
        assert_extends(before, [Message.system("go"), *before[1:]])


@each_way
def test_the_requests_of_a_turn_grow(way: str) -> None:
    provider = ScriptedProvider(EDIT, call("edit", {"path": "b"}, id="c2"), say("done"))
    with Agent(provider, tools=[edit], plugins=[Spy().always("next_instructions", "go on")]) as agent:
        outcome = go(agent, way, "Edit.")
    assert_growing(provider.requests)
    assert_extends(provider.requests[0], provider.requests[2])
    assert_valid_history(outcome)
    with pytest.raises(AssertionError, match="is gone"):
        assert_growing(provider.requests[::-1])


def test_crash_points_are_those_of_a_turn(tmp_path: Any) -> None:
    """Wherever the process dies, the next one goes on with a valid history, and no call that ran runs twice."""
    ran: list[str] = []

    @tool
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(f"paid {amount}")
        return "paid"

    points = 0
    where: list[str] = []

    def play(at: int, when: Any) -> bool:
        ran.clear()
        where[:] = [f"sqlite:///{tmp_path}/{at}-{when}.db"]
        agent = mortal(
            Agent(ScriptedProvider(call("pay", {"amount": 1}, id="p"), say("ok")), tools=[pay], memory=where)
        )
        return crash(agent, lambda: agent.stream("Pay.", conversation="c"), at, when)

    for _ in crash_points(play):
        points += 1
        paid = len(ran)
        provider = ScriptedProvider([say("ok")] * 3)
        memory = SqlMemory(where[0])
        with Agent(provider, tools=[pay], memory=[memory]) as agent:
            outcome = agent.run("And now?", conversation="c")
        assert_valid_history(outcome)
        assert_growing(provider.requests)
        assert len(ran) == paid <= 1
    assert points > 20
