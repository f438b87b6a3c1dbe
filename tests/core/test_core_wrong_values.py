"""Values that are not what their types say are told where they come in: nothing of them is stored, sent or lost."""

from __future__ import annotations

import weakref
from asyncio import CancelledError
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from going import go
from scenarios import EDIT, Hooked, approve_all, tools
from ways import WAYS, Scenario, play

from hookloop import Agent, Limits, ToolContext, tool
from hookloop.testing import ScriptedProvider, call, reply, say
from hookloop_hookspecs import (
    Answer,
    Approve,
    Condense,
    ConfigError,
    ContractError,
    Deny,
    Entry,
    File,
    Image,
    LimitError,
    Message,
    Narrow,
    Opaque,
    PluginError,
    ProviderError,
    Replace,
    Reply,
    Retry,
    Said,
    Stop,
    Suspend,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    Window,
)
from hookloop_hookspecs.codec import dump_entry
from hookloop_hookspecs.events import LimitReached
from hookloop_hookspecs.wellformed import fault

any_way = pytest.mark.parametrize("way", WAYS)


THING = type("Thing", (), {"__repr__": lambda self: "a thing"})()
"""Something that has no JSON."""


class Gone:
    """Something to lose."""


class Unreadable(list[Any]):
    """A list that cannot be read."""

    def __iter__(self) -> Any:
        raise RuntimeError("not today")


WRONG: list[tuple[Any, str]] = [
    (Text(None), "text is None, not str"),  # type: ignore[arg-type]
    (Text("a", {"x": 1}), "extra is {'x': 1}, not str"),  # type: ignore[arg-type]
    (Message.user([5]), "content[0] is 5"),  # type: ignore[list-item]
    (Message.user([Text(b"x")]), "content[0].text is b'x', not str"),  # type: ignore[arg-type]
    (Message("weird", "x"), "role is 'weird'"),  # type: ignore[arg-type]
    (Message.user("x", key=5), "key is 5, not str"),  # type: ignore[arg-type]
    (ToolCall(5, "edit"), "id is 5, not str"),  # type: ignore[arg-type]
    (Opaque({}), "data is {}, not str"),  # type: ignore[arg-type]
    (Thinking(None), "text is None"),  # type: ignore[arg-type]
    (ToolResult("a", content="text"), "content is 'text', not a tuple"),  # type: ignore[arg-type]
    (ToolResult("a", is_error=None), "is_error is None, not bool"),  # type: ignore[arg-type]
    (Image("aGk=", None), "media_type is None"),  # type: ignore[arg-type]
    (Image("!!!"), "data is not base64"),
    (File(), "data is empty, and there is no url"),
    (Reply(stop="tool_use"), "stop is 'tool_use', not one of 'end'"),  # type: ignore[arg-type]
    (Reply(usage=Usage(1.5)), "usage.input is 1.5"),  # type: ignore[arg-type]
    (Stop(None), "reason is None"),  # type: ignore[arg-type]
    (Stop("x", 5), "text is 5"),  # type: ignore[arg-type]
    (Suspend(5), "question is 5"),  # type: ignore[arg-type]
    (Suspend("q", "soon"), "expires is 'soon'"),  # type: ignore[arg-type]
    (Deny(None), "reason is None"),  # type: ignore[arg-type]
    (Retry(True), "after is True, not float"),
    (Approve("all"), "arguments is 'all'"),  # type: ignore[arg-type]
    (Narrow(tools="edit"), "tools is 'edit'"),  # type: ignore[arg-type]
    (Window("4"), "messages is '4'"),  # type: ignore[arg-type]
    (Condense("x", "1"), "turns is '1', not int"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize(("value", "words"), WRONG, ids=lambda value: repr(value)[:40])
def test_a_fault_names_the_field_and_the_value(value: Any, words: str) -> None:
    assert words in fault(value)


@pytest.mark.parametrize(
    "value",
    [
        Reply((Text("a"), ToolCall("c", "edit")), "calls", Usage(1, 2, total=3, cost=1)),
        Message.user([Text("a"), Image.of(b"x"), File(url="https://example.org/a.pdf")]),
        Message.user([Image("aGVs\nbG8="), Image("data:image/png;base64,aGVsbG8=")]),
        Suspend("q", 5),
        Narrow(tools=("a",)),
        Approve({"a": 1}),
        Message.tool(ToolResult("c", "edit", (Text("a"), Image.of(b"x")), ran="{}")),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_as_it_should_be_has_no_fault(value: Any) -> None:
    assert fault(value) == ""


def test_an_entry_that_could_not_be_read_again_is_not_written() -> None:
    with pytest.raises(ContractError, match="entry 3 of turn 't'"):
        dump_entry(Entry(3, "t", Said(Message.user([Text(b"x")]))))  # type: ignore[arg-type]


RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "a proxy of nothing": (lambda: weakref.proxy(Gone()), "cannot be read: odd failed: ReferenceError"),
    "no content": (lambda: ToolResult("x", content=None), "content is None"),  # type: ignore[arg-type]
    "text of bytes": (lambda: Text(b"abc"), "of its Text, text is b'abc', not str"),  # type: ignore[arg-type]
    "unreadable": (lambda: Unreadable([1]), "RuntimeError: not today"),
    "private that is no JSON": (lambda: ToolResult("x", private=THING), "has no JSON form"),
    "a picture that is none": (lambda: Image("!!!"), "of its Image, data is not base64"),
    "a picture of bytes": (lambda: Image(b"raw"), "data is b'raw', not str"),  # type: ignore[arg-type]
}


@any_way
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_cannot_be_used_is_an_error_that_the_model_reads(way: str, name: str) -> None:
    make, words = RESULTS[name]

    def agent(notes: list[Any]) -> dict[str, Any]:
        return {"tools": [tool(make, name="odd", description="Odd.")]}

    seen = play(Scenario(name, lambda: [call("odd", {}, id="c1"), say("done")], agent), way)
    (result,) = [result for message in seen.outcome.new for result in message.results]
    assert result.is_error
    assert words in result.text
    assert seen.outcome.text == "done"


def test_a_pool_of_one_thread_serves_on_after_a_result_that_cannot_be_read() -> None:
    odd = tool(lambda: ToolResult("x", content=None), name="odd", description="Odd.")  # type: ignore[arg-type]
    fine = tool(lambda: "fine", name="fine", description="Fine.")
    provider = ScriptedProvider([call("odd", {}, id="a"), say("one"), call("fine", {}, id="b"), say("two")])
    with Agent(provider, tools=[odd, fine], config={"tools": {"workers": 1}}) as agent:
        assert [agent.run("go").text, agent.run("go").text] == ["one", "two"]


def test_a_result_may_be_a_list_or_a_text_where_parts_are_meant() -> None:
    given: Any = ToolResult
    made = given(None, content=["a", Text("b")], is_error=1, private={"a": 1})
    odd = tool(lambda: made, name="odd", description="Odd.")
    provider = ScriptedProvider([call("odd", {}, id="a"), say("done")])
    with Agent(provider, tools=[odd]) as agent:
        (result,) = agent.run("go").new[2].results
    assert (result.call_id, result.name, result.content) == ("a", "odd", (Text("a"), Text("b")))
    assert (result.is_error, result.metadata) == (True, {"a": 1})


@any_way
def test_lists_are_taken_where_tuples_are_meant(way: str) -> None:
    listed: Any = Reply
    narrow: Any = Narrow

    def agent(notes: list[Any]) -> dict[str, Any]:
        return {"tools": tools(notes), "plugins": [Hooked(before_round=lambda: narrow(tools=["edit"]))]}

    script = lambda: [listed([ToolCall("c", "edit", '{"path":"a"}')], "calls"), say("done")]  # noqa: E731
    seen = play(Scenario("lists", script, agent), way)
    assert (seen.outcome.text, seen.notes) == ("done", [("edit", "a")])


@any_way
def test_a_tool_that_suspends_with_no_question_reads_so(way: str) -> None:
    def ask(ctx: ToolContext) -> str:
        """Ask."""
        return str(ctx.suspend("q", expires="1h"))  # type: ignore[arg-type]

    seen = play(Scenario("ask", lambda: [call("ask", {}, id="a"), say("done")], lambda _: {"tools": [ask]}), way)
    (result,) = [result for message in seen.outcome.new for result in message.results]
    assert (result.is_error, "ctx.suspend: expires is '1h'" in result.text) == (True, True)


HOOKED: list[tuple[str, Any]] = [
    ("before_turn", Message.user([Text(None)])),  # type: ignore[arg-type]
    ("before_turn", Stop(None)),  # type: ignore[arg-type]
    ("before_turn", Replace(Message.user([5]))),  # type: ignore[list-item]
    ("before_round", Message.user([5])),  # type: ignore[list-item]
    ("before_round", Narrow(tools="edit")),  # type: ignore[arg-type]
    ("before_round", Answer(Reply(stop="tool_use"))),  # type: ignore[arg-type]
    ("after_reply", Replace(Reply((ToolCall(5, "edit"),)))),  # type: ignore[arg-type]
    ("after_tool", Stop("x", None)),  # type: ignore[arg-type]
    ("after_tool", Replace(ToolResult("x", content=5))),  # type: ignore[arg-type]
    ("next_instructions", Message.user("x", key=5)),  # type: ignore[arg-type]
    ("review_answer", Message.user([Image("!!!")])),
    ("select_context", Window("4")),  # type: ignore[arg-type]
    ("select_context", Condense(None, 1)),  # type: ignore[arg-type]
]


@any_way
@pytest.mark.parametrize(("hook", "value"), HOOKED, ids=str)
def test_what_a_plugin_returns_is_looked_at_before_anything_is_stored(way: str, hook: str, value: Any) -> None:
    def agent(notes: list[Any]) -> dict[str, Any]:
        gave: list[Any] = [value]
        return {"tools": tools([]), "plugins": [Hooked("hooked", **{hook: lambda: gave.pop() if gave else None})]}

    seen = play(Scenario(hook, lambda: [EDIT, say("done")], agent), way)
    (error,) = seen.errors
    assert isinstance(error, PluginError)
    assert (error.plugin, error.hook, seen.outcome.status) == ("hooked", hook, "failed")
    for entry in seen.raw:
        dump_entry(entry)


@any_way
@pytest.mark.parametrize("verdict", [Suspend(5), Suspend("q", "5"), Deny(None), Replace({"path": THING})], ids=str)  # type: ignore[arg-type]
def test_a_verdict_on_a_call_that_cannot_be_used_denies_it(way: str, verdict: Any) -> None:
    def agent(notes: list[Any]) -> dict[str, Any]:
        return {"tools": tools(notes), "plugins": [Hooked(before_tool=lambda: verdict)]}

    seen = play(Scenario("denied", lambda: [EDIT, say("done")], agent), way)
    assert [r.text.partition(":")[0] for m in seen.outcome.new for r in m.results] == ["denied"]
    assert seen.notes == []
    assert seen.outcome.text == "done"


@any_way
@pytest.mark.parametrize(
    "given",
    [
        Reply((Text("x"),), "tool_use"),  # type: ignore[arg-type]
        Reply((Text("x"),), usage=Usage(1.5, 2)),  # type: ignore[arg-type]
        Reply((ToolCall(7, "edit"),)),  # type: ignore[arg-type]
        Reply((Text("x", {"a": 1}),)),  # type: ignore[arg-type]
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_reply_that_cannot_be_used_is_the_providers_error(way: str, given: Reply, tmp_path: Path) -> None:
    seen = play(Scenario("reply", lambda: [given], lambda _: {"memory": f"sqlite:///{tmp_path}/chat.db"}), way)
    (error,) = seen.errors
    assert isinstance(error, ProviderError)
    assert "cannot be used" in str(error)


@pytest.mark.parametrize(
    "prompt",
    [["a", "b"], [5], [Opaque("{}"), 5], Message.user([Image("!")]), Message.assistant("x"), 5, {"role": "user"}],
)
def test_a_prompt_that_is_none_is_refused_before_anything_is_sent(prompt: Any) -> None:
    provider = ScriptedProvider([])
    with Agent(provider) as agent, pytest.raises(ConfigError):
        agent.run(prompt)


@pytest.mark.parametrize("message", ["text", {"role": "user", "content": "x"}, Message("weird", "x"), None])  # type: ignore[arg-type]
def test_a_history_of_something_else_is_refused_with_its_place(message: Any) -> None:
    with Agent(ScriptedProvider([])) as agent, pytest.raises(ConfigError, match=r"history\[1\]"):
        agent.run("go", history=[Message.user("a"), message])


CALL, RESULT = ToolCall("a", "edit"), ToolResult("a", "edit", (Text("r"),))


@pytest.mark.parametrize(
    ("history", "sent", "warned"),
    [
        ([Message.user("u"), Message.assistant(CALL), Message("user", (RESULT, Text("and"))), Message.assistant("x")],
         ["user", "assistant", "tool", "user", "assistant", "user"], 0),
        ([Message.user("u"), Message.assistant([CALL, RESULT])], ["user", "assistant", "tool", "user"], 0),
        ([Message("user", (CALL,))], ["user"], 1),
        ([Message("user", (Text("u"), CALL)), Message.assistant("x")], ["user", "assistant", "user"], 1),
        ([Message.user("u"), Message("user", (RESULT,))], ["user", "user"], 1),
    ],
)  # fmt: skip
def test_a_callers_history_is_put_into_messages_of_the_right_roles(
    history: list[Message], sent: list[str], warned: int
) -> None:
    provider = ScriptedProvider([say("fine")])
    with Agent(provider) as agent:
        outcome = agent.run("go", history=history)
    assert [message.role for message in provider.requests[0].messages] == sent
    assert len(outcome.warnings) == warned
    results = [result.text for message in provider.requests[0].messages for result in message.results]
    assert results == ["r"] * sent.count("tool")


@pytest.mark.parametrize(
    "decision", [Approve("all"), Approve([1]), Approve({"amount": THING}), Deny(None), Answer(THING), True]  # type: ignore[arg-type]
)  # fmt: skip
def test_a_decision_that_cannot_be_used_leaves_the_turn_waiting(decision: Any) -> None:
    provider = ScriptedProvider([call("pay", {"amount": 4}, id="p"), say("paid")])
    notes: list[Any] = []
    with Agent(provider, tools=tools(notes)) as agent:
        waiting = agent.run("go", conversation="c")
        with pytest.raises(ConfigError):
            agent.resume("c", {"p": decision})
        assert notes == []
        assert agent.resume("c", approve_all(waiting)).text == "paid"


@any_way
@pytest.mark.parametrize(
    "hook", ["before_turn", "before_round", "after_reply", "after_tool", "next_instructions", "review_answer"]
)
def test_state_that_is_no_json_fails_the_turn_and_nothing_else(way: str, hook: str) -> None:
    def agent(notes: list[Any]) -> dict[str, Any]:
        def once(turn: Any) -> None:
            if not notes:
                notes.append(hook)
                turn.state["odd"] = {1, 2}

        told: list[str] = []
        ends = Hooked("ends", after_turn=lambda outcome: told.append(outcome.status))
        ends.told = told  # type: ignore[attr-defined]
        return {"tools": tools([]), "plugins": [Hooked("hooked", **{hook: once}), ends]}

    seen = play(Scenario(hook, lambda: [EDIT, say("done")], agent), way)
    (error,) = seen.errors
    assert isinstance(error, PluginError)
    assert error.outcome is not None
    assert error.outcome.status == "failed"
    assert [type(entry.body).__name__ for entry in seen.raw].count("TurnEnded") == 2  # this one's, and the next one's


@any_way
def test_state_that_after_turn_sets_is_kept(way: str) -> None:
    turns: list[Any] = []

    def count(turn: Any) -> None:
        turn.state["turns"] = turn.state.get("turns", 0) + 1
        turns.append(turn.state["turns"])

    play(Scenario("count", lambda: [say("done")], lambda _: {"plugins": [Hooked(after_turn=count)]}), way)
    assert turns == [1, 2]


@any_way
def test_a_call_without_a_name_is_an_unknown_tool_and_counts(way: str) -> None:
    script = lambda: [call("", {}, id="a"), call("", {}, id="b"), call("", {}, id="c")]  # noqa: E731
    agent = lambda _: {"tools": tools([]), "limits": Limits(tool_calls=2)}  # noqa: E731
    seen = play(Scenario("nameless", script, agent), way)
    texts = [result.text for message in seen.outcome.new for result in message.results]
    assert [text.startswith("There is no tool named ''") for text in texts] == [True, True, False]
    assert (seen.outcome.status, seen.outcome.stop_reason) == ("limit", "tool_calls")


def test_identical_calls_are_so_in_any_spelling() -> None:
    raws = ['{"path":"a"}', '{ "path" : "a" }', '{"path":"b"}']
    steps = [ToolCall(f"c{at}", "edit", raw) for at, raw in enumerate(raws)]
    for limit, ran in ((1, 1), (2, 3)):
        notes: list[Any] = []
        with Agent(ScriptedProvider([*steps, say("done")]), tools=tools(notes), limits=Limits(repeated=limit)) as agent:
            agent.run("go")
        assert len(notes) == ran


@any_way
def test_a_message_sent_while_a_direct_tool_runs_is_answered(way: str) -> None:
    held: list[Any] = []

    def direct(ctx: ToolContext) -> str:
        """Answer."""
        held[0].send(ctx.conversation, "one more thing")
        return "direct"

    provider = ScriptedProvider([call("direct", {}, id="a"), say("to both")])
    with Agent(provider, tools=[tool(direct, return_direct=True)]) as agent:
        held.append(agent)
        outcome = go(agent, way, "go", conversation="c")
    assert (outcome.text, outcome.stop_reason) == ("to both", "end")
    assert provider.requests[-1].messages[-1].text == "one more thing"


@any_way
def test_a_limit_that_is_met_between_attempts_is_told_and_answered(way: str) -> None:
    failed = ProviderError("busy", provider="p", retryable=True, partial=Reply(usage=Usage(5, 5, total=10)))

    def agent(notes: list[Any]) -> dict[str, Any]:
        limits = Limits(tokens=10, on_breach="answer")
        return {"limits": limits, "plugins": [Hooked(on_model_error=lambda: Retry())]}

    seen = play(Scenario("retry", lambda: [failed, say("last words")], agent), way)
    assert (seen.outcome.status, seen.outcome.stop_reason, seen.outcome.text) == ("limit", "tokens", "last words")
    assert [isinstance(event, LimitReached) for event in seen.events].count(True) == 1


def test_a_repeated_turn_gives_its_own_error_usage_and_rounds() -> None:
    told: list[str] = []
    ends = Hooked(after_turn=lambda outcome: told.append(outcome.status))
    broken = ProviderError("no such key", provider="p", kind="auth")
    for script, limits, kind in (
        ([EDIT, broken], Limits(), ProviderError),
        ([EDIT], Limits(rounds=1, on_breach="raise"), LimitError),
    ):
        with Agent(ScriptedProvider([*script]), tools=tools([]), limits=limits, plugins=[ends]) as agent:
            errors = []
            for _ in range(2):
                with pytest.raises(kind) as raised:
                    agent.run("go", conversation="c", turn_id="t")
                errors.append(raised.value)
        first, second = (error.outcome for error in errors if error.outcome is not None)
        assert [str(error) for error in errors] == [str(errors[0])] * 2
        assert (first.status, first.stop_reason, first.new) == (second.status, second.stop_reason, second.new)
        assert first.usage == second.usage == reply("x").usage
        assert [one.calls for one in first.rounds] == [one.calls for one in second.rounds]
    assert told == ["failed", "limit"]


def test_a_repeated_turn_that_was_superseded_is_given_as_it_ended() -> None:
    script = [call("pay", {"amount": 4}, id="p"), say("two"), call("pay", {"amount": 5}, id="q")]
    with Agent(ScriptedProvider(script), tools=tools([])) as agent:
        agent.run("one", conversation="c", turn_id="t1")
        agent.run("two", conversation="c", turn_id="t2")
        agent.run("three", conversation="c", turn_id="t3")
        again = agent.run("one", conversation="c", turn_id="t1")
        assert (again.status, again.stop_reason, again.turn_id) == ("stopped", "superseded", "t1")
        assert [waiting.id for waiting in agent.run("three", conversation="c", turn_id="t3").pending] == ["q"]


def test_an_id_that_would_be_read_as_a_suspension_is_refused() -> None:
    with Agent(ScriptedProvider([])) as agent, pytest.raises(ConfigError, match="give another id"):
        agent.run("go", conversation='{"a": 1}')


@any_way
def test_a_turn_that_is_left_before_its_calls_begin_says_that_they_did_not(way: str) -> None:
    held: list[Any] = []

    def leave(conversation: str) -> None:
        held[0].cancel(conversation)

    notes: list[Any] = []
    with Agent(ScriptedProvider([EDIT]), tools=tools(notes), plugins=[Hooked(before_tool=leave)]) as agent:
        held.append(agent)
        outcome = go(agent, way, "go", conversation="c")
    assert (outcome.status, notes) == ("cancelled", [])
    assert "not run" in outcome.new[2].results[0].text


@any_way
@pytest.mark.parametrize("kind", [StopIteration, CancelledError, GeneratorExit, SystemExit, KeyboardInterrupt])
def test_whatever_a_tool_raises_in_its_thread_reads_the_same_in_every_way(way: str, kind: type[BaseException]) -> None:
    def odd() -> str:
        """Fail."""
        raise kind("at once")

    script = lambda: [call("odd", {}, id="a"), say("done")]  # noqa: E731
    seen = play(Scenario("odd", script, lambda _: {"tools": [odd]}), way)
    assert [r.text for m in seen.outcome.new for r in m.results] == [f"odd failed: {kind.__name__}: at once"]
    assert seen.outcome.text == "done"


def test_a_history_may_come_from_an_iterator() -> None:
    provider = ScriptedProvider([say("fine")])
    with Agent(provider) as agent:
        agent.run("go", history=iter([Message.user("a"), Message.assistant("b")]))  # type: ignore[arg-type]
    assert [message.text for message in provider.requests[0].messages] == ["a", "b", "go"]


@any_way
@pytest.mark.parametrize("order", [1, -1])
def test_an_output_that_was_accepted_stays_beside_one_that_was_not(way: str, order: int) -> None:
    def agent(notes: list[Any]) -> dict[str, Any]:
        return {}

    calls = [call("final_int", {"value": 6}, id="good"), call("final_int", {"value": "x"}, id="bad")][::order]
    provider = ScriptedProvider([calls])
    with Agent(provider) as one:
        assert go(one, way, "go", output=int).output == 6


@any_way
def test_half_a_surrogate_pair_in_arguments_reaches_no_tool(way: str) -> None:
    given = ToolCall("c", "edit", '{"path":"a\\ud83d b\\ud83d\\ude00"}')
    seen = play(Scenario("half", lambda: [given, say("done")], lambda notes: {"tools": tools(notes)}), way)
    assert seen.notes == [("edit", "a\ufffd b\U0001f600")]
