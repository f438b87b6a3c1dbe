"""Views: whole turns, newest first; the cut stays until budget and slack are passed; recuts keep the question."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scenarios import Hooked, tools

from hookloop import Agent, Limits
from hookloop.engine.history import check
from hookloop.engine.past import ShownTurn, Size, first_in_view
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say, think
from hookloop_hookspecs import (
    Batch,
    Condense,
    Entry,
    Loaded,
    LoadQuery,
    Message,
    ProviderError,
    ProviderTraits,
    Said,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Window,
    hookimpl,
)


def user(text: str) -> Message:
    return Message.user(text)


def answer(text: str, *calls: str) -> Message:
    return Message.assistant([Text(text)] if not calls else [ToolCall(id, "f") for id in calls])


def result(id: str) -> Message:
    return Message.tool(ToolResult(id, "f", (Text("r"),)))


def sent(history: list[Message], window: int, prompt: str) -> list[tuple[str, str]]:
    """The request for `prompt` after a history, in a window of messages."""
    provider = ScriptedProvider([say("ok")])
    with Agent(provider, config={"window": {"messages": window}}) as agent:
        agent.run(prompt, history=history)
    check(provider.requests[0].messages)
    return [(message.role, message.text) for message in provider.requests[0].messages]


def test_A01_the_last_n_messages_never_begin_with_a_result() -> None:
    history = [
        user("U1"),
        answer("", "c1"),
        result("c1"),
        answer("one"),
        user("U2"),
        answer("a"),
        user("U3"),
        answer("b"),
    ]
    assert sent(history, 5, "U4") == [
        ("user", "U2"),
        ("assistant", "a"),
        ("user", "U3"),
        ("assistant", "b"),
        ("user", "U4"),
    ]
    assert sent(history, 4, "U4") == [("user", "U3"), ("assistant", "b"), ("user", "U4")]


def test_A03_a_view_opens_with_a_user_message() -> None:
    history = [user("U1"), answer("A1"), user("U2"), answer("A2")]
    assert sent(history, 4, "U3") == [("user", "U2"), ("assistant", "A2"), ("user", "U3")]


def test_A04_both_results_leave_with_their_calls() -> None:
    history = [user("U1"), answer("", "c1", "c2"), result("c1"), result("c2"), user("U2"), answer("A2")]
    provider = ScriptedProvider([say("ok")])
    with Agent(provider, instructions="S", config={"window": {"messages": 5}}) as agent:
        agent.run("U3", history=history)
    assert [(m.role, m.text) for m in provider.requests[0].messages] == [
        ("user", "U2"),
        ("assistant", "A2"),
        ("user", "U3"),
    ]
    assert provider.requests[0].system == "S"


def test_A06_a_cut_never_falls_inside_a_group_of_parallel_results() -> None:
    history = [user("U1"), answer("", "c1", "c2", "c3"), result("c1"), result("c2"), result("c3"), answer("x")]
    assert sent(history, 4, "U2") == [("user", "U2")]


def test_max_4_on_a_turn_of_four_messages_and_a_question() -> None:
    history = [user("one"), answer("", "c"), result("c"), answer("two")]
    assert sent(history, 4, "three") == [("user", "three")]
    assert len(sent(history, 5, "three")) == 5


def test_a_turn_of_40_rounds_in_a_window_of_20_keeps_its_question_in_every_request() -> None:
    script = [call("edit", {"path": str(at)}, id=f"c{at}") for at in range(40)] + [say("done")]
    provider = ScriptedProvider(script)
    with Agent(provider, tools=tools([]), config={"window": {"messages": 20}}) as agent:
        outcome = agent.run("the question", conversation="c")
    assert [m.text for m in outcome.new if m.role == "tool"] == [f"edited {at}" for at in range(40)]
    for request in provider.requests:
        check(request.messages)
        assert request.messages[0].text == "the question"
        assert len(request.messages) <= 20
    epochs = [request.epoch for request in provider.requests]
    assert len(set(epochs)) < 10


def test_with_slack_the_cut_stays_and_then_moves_to_the_budget() -> None:
    provider = ScriptedProvider([say("a")] * 12)
    with Agent(provider, config={"window": {"messages": 6, "slack": 4}}) as agent:
        for at in range(12):
            agent.run(f"q{at}", conversation="c")
    firsts = [request.messages[0].text for request in provider.requests]
    sizes = [len(request.messages) for request in provider.requests]
    assert firsts == ["q0", "q0", "q0", "q0", "q0", "q3", "q3", "q3", "q6", "q6", "q6", "q9"]
    assert max(sizes) == 9


def test_a_context_that_is_too_long_is_cut_once_and_asked_again() -> None:
    too_long = ProviderError("too long", provider="scripted", kind="context", retryable=False)
    script = [say("a"), say("b"), call("edit", {"path": "x"}, id="c1"), too_long, say("fine"), too_long, too_long]
    provider = ScriptedProvider(script)
    with Agent(provider, tools=tools([])) as agent:
        agent.run("q0", conversation="c")
        agent.run("q1", conversation="c")
        outcome = agent.run("q2", conversation="c")
        assert outcome.text == "fine"
        assert [m.text for m in provider.requests[4].messages] == ["q2", "", "edited x"]
        assert provider.requests[4].epoch != provider.requests[3].epoch
        with pytest.raises(ProviderError, match="too long"):
            agent.run("q3", conversation="c")
    assert len(provider.requests) == 7


def test_bound_thinking_of_closed_turns_is_left_out_and_that_of_the_open_turn_is_kept() -> None:
    script = [[think("t1"), say("a")], [think("t2"), call("edit", {"path": "x"}, id="c1")], say("b")]
    for bound in (True, False):
        provider = ScriptedProvider(script, traits=ProviderTraits(bound_thinking=bound))
        with Agent(provider, tools=tools([])) as agent:
            agent.run("q0", conversation="c")
            agent.run("q1", conversation="c")
        last = [part.text for m in provider.requests[-1].messages for part in m.content if isinstance(part, Thinking)]
        assert last == (["t2"] if bound else ["t1", "t2"])


def test_a_plugin_condenses_old_turns_for_good() -> None:
    memory = InProcessMemory()
    give = iter([None, None, None, Condense("they spoke of q0 and q1", 2), None])
    plugin = Hooked("condenser", select_context=lambda view: next(give))
    provider = ScriptedProvider([say("a")] * 5)
    with Agent(provider, plugins=[plugin], memory=memory) as agent:
        for at in range(5):
            agent.run(f"q{at}", conversation="c")
    summary = "they spoke of q0 and q1"
    assert [m.text for m in provider.requests[3].messages] == [summary, "q2", "a", "q3"]
    assert [m.text for m in provider.requests[4].messages] == [summary, "q2", "a", "q3", "a", "q4"]
    assert provider.requests[4].messages[0].origin.plugin == "condenser"
    assert len(memory.load_memory("c", LoadQuery()).entries) == 5 * 4 + 1


def test_sticky_and_ephemeral_messages_leave_when_their_turn_ends() -> None:
    def notes(turn: Any) -> list[Message]:
        return [Message.user(f"lint {turn.round}", key="lint"), Message.user("psst", ephemeral=True)]

    script = [call("edit", {"path": "a"}, id="1"), call("edit", {"path": "b"}, id="2"), say("ok"), say("x"), say("y")]
    provider = ScriptedProvider(script)
    with Agent(provider, tools=tools([]), plugins=[Hooked("p", next_instructions=notes)]) as agent:
        agent.run("go", conversation="c")
        agent.run("more", conversation="c")
    assert [m.text for m in provider.requests[2].messages if m.origin.plugin] == ["lint 1", "psst", "lint 2", "psst"]
    assert [m.text for m in provider.requests[3].messages] == [
        "go",
        "",
        "edited a",
        "",
        "edited b",
        "lint 2",
        "ok",
        "more",
    ]


TURNS = st.lists(st.integers(0, 4), min_size=0, max_size=9)


@settings(max_examples=200, deadline=None)
@given(
    turns=TURNS, budget=st.integers(1, 14), slack=st.integers(0, 6), tokens=st.booleans(), previous=st.integers(0, 40)
)
def test_a_view_is_whole_turns_within_its_budget(
    turns: list[int], budget: int, slack: int, tokens: bool, previous: int
) -> None:
    shown, number = [], 1
    for groups in turns:
        messages = [user(f"q{number}")]
        for at in range(groups):
            messages += [answer("", f"{number}-{at}"), result(f"{number}-{at}")]
        shown.append(ShownTurn(number, (*messages, answer("a"))))
        number += len(messages) + 3
    window = Window(tokens=budget * 5, slack=slack) if tokens else Window(messages=budget, slack=slack)
    question = [user("now")]
    at = first_in_view(shown, window, previous, question)
    view = [message for turn in shown[at:] for message in turn.messages]
    check(view)
    if any(turn.start < previous for turn in shown[at:]):  # it grew again, so all of it is within the budget itself
        assert Size.of([*view, *question], window).fits(window, 0)
    if view:
        assert view[0].role == "user"
        assert Size.of([*view, *question], window).fits(window, window.slack)
    if at:
        kept = [turn for turn in shown if turn.start >= previous]
        more = [message for turn in shown[at - 1 :] for message in turn.messages]
        moved = len(shown) - at < len(kept)
        assert not moved or not Size.of([*more, *question], window).fits(window, 0)


def turns(memory: InProcessMemory, count: int, **parameters: Any) -> list[str]:
    """So many turns of two messages in conversation "c"; gives back the texts of the last request."""
    provider = ScriptedProvider([say("a")] * count)
    with Agent(provider, memory=memory, **parameters) as agent:
        for at in range(count):
            agent.run(f"q{at}", conversation="c")
    check(provider.requests[-1].messages)
    return [message.text for message in provider.requests[-1].messages]


def test_a_view_that_was_cut_grows_again_when_the_window_does() -> None:
    memory = InProcessMemory()
    assert turns(memory, 4, config={"window": {"messages": 1}}) == ["q3"]
    assert turns(memory, 1, config={"window": {"messages": 5}}) == ["q2", "a", "q3", "a", "q0"]
    assert len(turns(memory, 1)) == 11


@pytest.mark.parametrize("window", [{"messages": 4}, {"tokens": 14}])
def test_what_views_leave_out_does_not_count_against_the_window(window: dict[str, int]) -> None:
    memory = InProcessMemory()
    turns(memory, 2)
    broken = ProviderError("down", provider="p")
    with Agent(ScriptedProvider([broken] * 30), memory=memory) as agent:
        for _ in range(30):
            with pytest.raises(ProviderError):
                agent.run("lost", conversation="c")
    assert turns(memory, 1, config={"window": window}) == ["q1", "a", "q0"]


def test_recalled_messages_do_not_count_against_the_window() -> None:
    memory = InProcessMemory()
    facts = Hooked(recall=lambda: ["a fact"] * 4)
    assert len(turns(memory, 6, plugins=[facts], config={"window": {"messages": 9}})) == 8 + 1 + 4


def test_a_window_of_tokens_reads_no_more_than_it_shows() -> None:
    memory = InProcessMemory()
    turns(memory, 200)
    asked: list[int | None] = []
    load = memory.load_memory

    class Noted(InProcessMemory):
        @hookimpl
        def persist_memory(self, batch: Batch) -> None:
            memory.persist_memory(batch)

        @hookimpl
        def load_memory(self, conversation: str, query: LoadQuery) -> Any:
            asked.append(query.messages)
            return load(conversation, query)

    turns(Noted(), 1, config={"window": {"tokens": 50}})
    assert asked == [64]
    turns(Noted(), 1, config={"window": {"tokens": 700}})
    assert asked == [64, 64, 256]


def test_a_turn_that_is_longer_than_the_first_load_hides_no_turn_before_it() -> None:
    memory = InProcessMemory()
    turns(memory, 2)
    script = [call("edit", {"path": "a"}, id=f"c{at}") for at in range(140)]
    free = Limits(rounds=None, tool_calls=None, per_tool=None)
    with Agent(ScriptedProvider([*script, say("long")]), tools=tools([]), memory=memory, limits=free) as agent:
        agent.run("work", conversation="c")
    assert turns(memory, 1, config={"window": {"tokens": 100_000}})[:4] == ["q0", "a", "q1", "a"]


def test_a_memory_that_counts_otherwise_is_not_asked_for_ever() -> None:
    entries = [Entry(1, "t", Said(Message("user", "q", ephemeral=True))), Entry(2, "t", Said(Message.assistant("a")))]
    asked: list[int | None] = []

    class Odd(InProcessMemory):
        @hookimpl
        def load_memory(self, conversation: str, query: LoadQuery) -> Any:
            asked.append(query.messages)
            return Loaded(entries, 1000)

        @hookimpl
        def persist_memory(self, batch: Batch) -> None:
            return

    provider = ScriptedProvider([say("b")])
    with Agent(provider, memory=Odd(), config={"window": {"messages": 10}}) as agent:
        agent.run("go", conversation="c")
    assert asked == [10]  # two messages for ten that were asked for: there are no more
    assert [message.text for message in provider.requests[0].messages] == ["a", "go"]


def test_system_messages_of_a_callers_history_stay_in_every_view() -> None:
    history = [Message.system("S"), user("U1"), answer("A1"), user("U2"), answer("A2")]
    assert sent(history, 3, "U3") == [("system", "S"), ("user", "U2"), ("assistant", "A2"), ("user", "U3")]
    provider = ScriptedProvider([call("edit", {"path": str(at)}, id=f"c{at}") for at in range(6)] + [say("done")])
    with Agent(provider, tools=tools([]), config={"window": {"messages": 5}}) as agent:
        agent.run("go", history=history)
    for request in provider.requests:
        check(request.messages)
        assert [message.text for message in request.messages if message.role == "system"] == ["S"]
    assert len({request.epoch for request in provider.requests}) > 1


def test_plugins_that_use_one_key_do_not_take_each_others_messages_away() -> None:
    plugins = [Hooked(name, before_turn=lambda name=name: Message.user(f"{name} says", key="note")) for name in "ab"]
    both = ["a says", "b says"]
    assert turns(InProcessMemory(), 3, plugins=plugins) == ["q0", "a", "q1", *both, "a", "q2", *both]


def test_a_plugin_that_condenses_again_sees_what_it_condensed_before() -> None:
    seen: list[list[str]] = []

    def condense(view: Any) -> Any:
        seen.append([message.text for message in view])
        return Condense("+".join(seen[-1]), 1) if len(view) > 2 else None

    last = turns(InProcessMemory(), 5, plugins=[Hooked(select_context=condense)])
    assert seen[2] == ["q0", "a", "q1", "a"]
    assert seen[3] == ["q0+a+q1+a", "q1", "a", "q2", "a"]
    assert last[0].startswith("q0+a+q1+a")


def test_limits_count_over_a_recut() -> None:
    script = [call("edit", {"path": str(at)}, id=f"c{at}") for at in range(30)] + [say("done")]
    with Agent(
        ScriptedProvider(script), tools=tools([]), config={"window": {"messages": 6}}, limits=Limits(tool_calls=25)
    ) as agent:
        outcome = agent.run("go")
    assert (outcome.status, outcome.stop_reason) == ("limit", "tool_calls")
    assert sum(m.text.startswith("edited") for m in outcome.new) == 25
