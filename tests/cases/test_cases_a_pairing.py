"""Kind A: calls and results stay paired, whatever ids a server gives and whatever a caller or another writer hands over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cases import FEW, ON_EACH_WIRE, THROUGHOUT, Place, few, hooked, shown
from hookloop import Agent, ToolError, tool
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Batch, Entry, Message, Said, ToolCall, ToolResult


def search(notes: list[Any]) -> Any:
    """A tool that notes what it was asked."""

    @tool
    def search(q: str) -> str:
        """Search."""
        notes.append(q)
        return f"r{q}"

    return search


def asked(*queries: str, id: str) -> list[Any]:
    """Calls of `search`, all with one id."""
    return [call("search", {"q": q}, id=id) for q in queries]


def stand_in(id: str = "c1") -> Message:
    """An assistant message that only calls."""
    return Message.assistant(ToolCall.of("search", {"q": "a"}, id))


def result(id: str = "c1", text: str = "r") -> Message:
    return Message.tool(ToolResult(id, "search", content=(say(text),)))


@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_A08_ids_that_repeat_in_each_round_are_two_calls(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(*asked("a", "b", id="search:0"), say("done"), tools=[search(ran)]) as stage:
        assert stage.run().text == "done"
        assert ran == ["a", "b"]
        assert stage.sent[2] == [
            ("user", "go"),
            ("call", 'search {"q":"a"}'),
            ("result", "ra"),
            ("call", 'search {"q":"b"}'),
            ("result", "rb"),
        ]


@pytest.mark.parametrize("id", ["x", ""])
@pytest.mark.parametrize("place", FEW, ids=str)
def test_A08_ids_that_repeat_inside_one_reply_are_two_calls(place: Place, id: str) -> None:
    ran: list[Any] = []
    with place.stage(asked("a", "b", id=id), say("done"), tools=[search(ran)]) as stage:
        stage.run()
        assert sorted(ran) == ["a", "b"]
        assert stage.sent[1][3:] == [("result", "ra"), ("result", "rb")]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_A08_an_id_made_unique_may_be_taken_by_the_model_later(place: Place) -> None:
    """The model repeats the very id that the engine made, as it read it in its history."""
    ran: list[Any] = []

    def again(request: Any) -> Any:
        made = stage.outcome.messages[-2].results[0].call_id if stage.outcomes else ""
        return call("search", {"q": "c"}, id=made)

    with place.stage(*asked("a", "b", id="x"), say("one"), again, say("two"), tools=[search(ran)]) as stage:
        stage.run()
        assert stage.run("more").text == "two"
        assert ran == ["a", "b", "c"]


@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_A10_nothing_guards_against_an_id_that_was_seen_before(place: Place) -> None:
    ran: list[Any] = []
    rounds = [*asked("a", "b", "c", id="run_0"), say("done")]
    with place.stage(*rounds, *rounds, tools=[search(ran)]) as stage:
        stage.run()
        stage.run("again, after a reload")
        assert ran == ["a", "b", "c"] * 2


@pytest.mark.parametrize("place", FEW, ids=str)
def test_A10_the_same_call_in_two_rounds_runs_twice(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(*asked("a", "a", id="run_0"), say("done"), tools=[search(ran)]) as stage:
        stage.run()
        assert ran == ["a", "a"]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_A10_ids_repeat_across_a_window(place: Place) -> None:
    """The first turn is out of view and not even loaded when its id comes again; later the window is taken away."""
    ran: list[Any] = []
    rounds = [asked("a", id="x")[0], say("one"), asked("b", id="x")[0], say("two"), asked("c", id="x")[0], say("three")]
    with place.stage(*rounds, tools=[search(ran)]) as stage:
        for prompt in ("1", "2", "3"):
            stage.run(prompt, with_={"config": {"window": {"messages": 4}}})
        assert ran == ["a", "b", "c"]
        assert stage.sent[-1] == [("user", "3"), ("call", 'search {"q":"c"}'), ("result", "rc")]


BROKEN: dict[str, list[Message]] = {
    "A12 the id occurred earlier": [
        Message.user("u"),
        stand_in("k"),
        result("k"),
        Message.assistant("t"),
        Message.user("u"),
        result("k", "orphan"),
    ],
    "a result first": [result("k", "orphan"), Message.user("u"), Message.assistant("t")],
    "two results": [Message.user("u"), stand_in("k"), result("k"), result("k", "orphan"), Message.assistant("t")],
    "a result of another call": [
        Message.user("u"),
        stand_in("k"),
        result("k"),
        result("other", "orphan"),
        Message.assistant("t"),
    ],
    "behind a user message": [Message.user("u"), stand_in("k"), Message.user("and?"), result("k", "orphan")],
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_A12_orphans_of_a_history_that_is_handed_over_are_left_out(place: Place, name: str) -> None:
    before = list(BROKEN[name])
    with place.stage(say("ok"), say("ok"), tools=[search([])]) as stage:
        stage.run("go")
        outcome = stage.run("go", conversation="other", history=BROKEN[name])
        assert BROKEN[name] == before
        assert ("result", "orphan") not in stage.sent[1]
        assert [w for w in outcome.warnings if "left out" in w]


def seed(memory: Any, *messages: Message) -> None:
    """Entries of another writer, who knows no marks."""
    agent = Agent(ScriptedProvider(), memory=[memory])
    with agent:
        turn = "before"
        entries = tuple(Entry(at + 1, turn, Said(message)) for at, message in enumerate(messages))
        agent.memories[0].persist_memory(Batch("c", entries, 0))


@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_A14_E03_a_stored_call_without_result_is_answered_and_not_run(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(say("fine"), tools=[search(ran)]) as stage:
        seed(stage.memory, Message.user("U1"), stand_in())
        assert stage.run("U2").text == "fine"
        kinds = [kind for kind, _ in stage.sent[0]]
        assert kinds == ["user", "call", "result", "user"]
        assert "not run" in stage.sent[0][2][1] or "interrupted" in stage.sent[0][2][1]
        assert ran == []


@pytest.mark.parametrize("place", FEW, ids=str)
def test_A14_some_of_the_stored_calls_have_results(place: Place) -> None:
    two = Message.assistant([ToolCall.of("search", {"q": q}, f"c{q}") for q in "ab"])
    with place.stage(say("fine"), tools=[search([])]) as stage:
        seed(stage.memory, Message.user("U1"), two, result("ca"))
        stage.run("U2")
        assert next(text for kind, text in stage.sent[0] if kind == "result") == "r"
        assert [kind for kind, _ in stage.sent[0]] == ["user", "call", "call", "result", "result", "user"]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_A14_a_history_handed_over_that_ends_in_a_call(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(say("one"), say("ok"), tools=[search(ran)]) as stage:
        stage.run()
        outcome = stage.run("U2", conversation="other", history=[Message.user("U1"), stand_in()])
        assert [kind for kind, _ in shown(outcome.messages)] == ["user", "call", "result", "user", "assistant"]
        assert ran == []


def _raise(error: BaseException) -> Callable[[], str]:
    def boom() -> str:
        """Fail."""
        raise error

    return boom


def _araise(error: BaseException) -> Callable[[], Any]:
    async def boom() -> str:
        """Fail."""
        raise error

    return boom


class Odd(Exception):
    """An error that cannot even be printed."""

    def __str__(self) -> str:
        raise ValueError("no text")


@pytest.mark.parametrize("make", [_raise, _araise], ids=["sync", "async"])
@pytest.mark.parametrize(
    "error", [OSError("broken"), ToolError("no"), TimeoutError(), RecursionError(), StopIteration()]
)
@pytest.mark.parametrize("place", [*few(None)[1:], *ON_EACH_WIRE], ids=str)
def test_A13_every_call_has_its_result_before_the_next_request(place: Place, error: Exception, make: Any) -> None:
    script = [[call("search", {"q": "a"}, id="c1"), call("boom", id="c2")], say("done")]
    with place.stage(*script, tools=[search([]), tool(make(error))]) as stage:
        assert stage.run().text == "done"
        assert [kind for kind, _ in stage.sent[1]] == ["user", "call", "call", "result", "result"]
        good, bad = (message.results[0] for message in stage.outcome.messages if message.role == "tool")
        assert (good.is_error, good.text, bad.is_error) == (False, "ra", True)


EVIL = {
    "an error that cannot be printed": Odd(),
    "sys.exit": SystemExit(2),
    "a cancelled future": asyncio.CancelledError(),
    "a closed generator": GeneratorExit(),
}
"""What a tool may raise beside usual errors; none of it says that the turn is to end."""


@pytest.mark.parametrize("make", [_raise, _araise], ids=["sync", "async"])
@pytest.mark.parametrize("name", EVIL)
@pytest.mark.parametrize("way", ["run", "arun"])
def test_A13_whatever_a_tool_raises_is_an_error_result(way: str, name: str, make: Any) -> None:
    script = [[call("search", {"q": "a"}, id="c1"), call("boom", id="c2")], say("done")]
    config = {"tools": {"cancel_grace": 0.1}}
    tools = [search([]), tool(make(EVIL[name]))]
    with Place(None, way, "stream").stage(*script, tools=tools, config=config, patience=1.5) as stage:
        assert stage.run().text == "done"
        good, bad = (message.results[0] for message in stage.outcome.messages if message.role == "tool")
        assert (good.is_error, good.text, bad.is_error) == (False, "ra", True)


@pytest.mark.parametrize("text", ["", "  "])
@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_A15_a_message_that_only_calls_is_never_empty(place: Place, text: str) -> None:
    reply = [say(text), *asked("a", id="c1")] if text else asked("a", id="c1")
    with place.stage(reply, say("done"), say("two"), tools=[search([])], config={"window": {"messages": 9}}) as stage:
        stage.run()
        stage.run("more")
        pairs = [line for line in stage.sent[-1] if line[0] in ("call", "result")]
        assert pairs == [("call", 'search {"q":"a"}'), ("result", "ra")]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_A15_call_only_messages_of_a_history_that_is_handed_over(place: Place) -> None:
    history = [Message.user("U"), Message.assistant([say(""), stand_in().calls[0]]), result(), Message.assistant("t")]
    with place.stage(say("one"), say("two"), tools=[search([])]) as stage:
        stage.run()
        stage.run("go", conversation="other", history=history)
        assert ("call", 'search {"q":"a"}') in stage.sent[1]
        assert ("result", "r") in stage.sent[1]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_A15_call_only_messages_survive_a_recut_of_the_open_turn(place: Place) -> None:
    """The open turn alone passes the window: whole groups go, never half of one."""
    script = [*(asked(str(at), id=f"c{at}")[0] for at in range(6)), say("done")]
    with place.stage(*script, tools=[search([])], config={"window": {"messages": 4}}) as stage:
        assert stage.run().text == "done"
        assert all(request[0] == ("user", "go") for request in stage.sent)
        assert len(stage.sent[-1]) <= 5


@pytest.mark.parametrize("hook", ["after_tool", "after_reply", "next_instructions", "before_round"])
@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_A13_what_plugins_add_never_stands_between_a_call_and_its_results(place: Place, hook: str) -> None:
    script = [[*asked("a", id="c1"), call("boom", id="c2")], say("done")]
    plugins = [hooked(hook, lambda turn: f"note of {hook}")]
    with place.stage(*script, tools=[search([]), tool(_raise(OSError("no")))], plugins=plugins) as stage:
        stage.run()
        kinds = [kind for kind, _ in stage.sent[1]]
        at = kinds.index("call")
        assert kinds[at : at + 4] == ["call", "call", "result", "result"]
        assert ("user", f"note of {hook}") in stage.sent[1]
