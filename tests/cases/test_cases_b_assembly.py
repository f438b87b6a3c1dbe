"""Kind B: streams that odd servers send, through the whole loop: what runs, what is stored, what is sent next."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import pytest
from scenarios import Hooked
from wires import CHAT, MESSAGES, RESPONSES

from cases import SCRIPTED, Place, few, places, shown
from hookloop import tool
from hookloop.testing import call, reply, say, think
from hookloop.testing.server import (
    DONE,
    Cut,
    Drop,
    ErrorEvent,
    Sse,
    ant,
    calls,
    cbd,
    cbe,
    cbs,
    chunk,
    ijd,
    md,
    ms,
    mstop,
    tc,
)
from hookloop_hookspecs import ProviderError, Retry

CHATS = [place for place in places(CHAT) if place.transport == "stream"]
CLAUDES = [place for place in places(MESSAGES) if place.transport == "stream"]


class Ran:
    """Tools under the names of the cases; they note what they were called with."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.lock = threading.Lock()

    def note(self, name: str, **arguments: Any) -> str:
        with self.lock:
            self.calls.append((name, {key: value for key, value in arguments.items() if value is not None}))
        return f"{name} ran"

    def tools(self) -> list[Any]:
        @tool
        def f(a: int | None = None) -> str:
            """F."""
            return self.note("f", a=a)

        @tool
        def s(q: str) -> str:
            """S."""
            return self.note("s", q=q)

        @tool
        def read_file(p: int) -> str:
            """Read."""
            return self.note("read_file", p=p)

        @tool
        def bash(a: int) -> str:
            """Bash."""
            return self.note("bash", a=a)

        @tool
        def now() -> str:
            """Now."""
            return self.note("now")

        @tool
        def pay(n: int = 0) -> str:
            """Pay."""
            return self.note("pay", n=n)

        @tool
        def w(p: str = "", c: str = "") -> str:
            """Write."""
            return self.note("w", p=p, c=c)

        @tool
        def put(file_path: str, content: str) -> str:
            """Put."""
            return self.note("put", file_path=file_path, content=content)

        return [f, s, read_file, bash, now, pay, w, put]


def chat_stream(*events: Any, finish: str = "tool_calls") -> Sse:
    """A Chat Completions stream with its end."""
    return Sse([*events, chunk({}, finish), DONE])


FILTERED = {"choices": [], "prompt_filter_results": [{"prompt_index": 0}], "model": "", "id": ""}
ODD: dict[str, tuple[Sse, list[tuple[str, dict[str, Any]]]]] = {
    "B01 two entries of one index in a chunk": (
        chat_stream(calls(tc(0, "c1", "f", ""), tc(0, args='{"a":')), calls(tc(0, args="1}"))),
        [("f", {"a": 1})],
    ),
    "B02 no index": (
        chat_stream(calls(tc(None, "c1", "f", '{"a":')), calls(tc(None, args="1}"))),
        [("f", {"a": 1})],
    ),
    "B04 all at index 0": (
        chat_stream(calls(tc(0, "c1", "s", '{"q":"a"}')), calls(tc(0, "c2", "s", '{"q":"b"}'))),
        [("s", {"q": "a"}), ("s", {"q": "b"})],
    ),
    "B04 all at index 0 in one chunk": (
        chat_stream(calls(tc(0, "c1", "s", '{"q":"a"}'), tc(0, "c2", "s", '{"q":"b"}'))),
        [("s", {"q": "a"}), ("s", {"q": "b"})],
    ),
    "B06 the name in every chunk": (
        chat_stream(
            calls(tc(0, "c1", "read_file", "")),
            calls(tc(0, name="read_file", args='{"p"')),
            calls(tc(0, name="read_file", args=":1}")),
        ),
        [("read_file", {"p": 1})],
    ),
    "B07 an empty name later": (
        chat_stream(calls(tc(0, "c1", "f", "")), calls(tc(0, name="", args="{}"))),
        [("f", {})],
    ),
    "B09 the name later": (
        chat_stream(calls(tc(0, "c1", "", "")), calls(tc(0, "c1", "bash", '{"a":1}'))),
        [("bash", {"a": 1})],
    ),
    "B10 no arguments": (chat_stream(calls(tc(0, "c1", "now", ""))), [("now", {})]),
    "B10 not even an empty text": (chat_stream(calls(tc(0, "c1", "now"))), [("now", {})]),
    "B12 first chunk without choices": (
        chat_stream({**chunk(), **FILTERED}, calls(tc(0, "c1", "f", '{"a":1}'))),
        [("f", {"a": 1})],
    ),
    "G01 finish stop though it calls": (
        chat_stream(calls(tc(0, "c1", "f", '{"a":1}')), finish="stop"),
        [("f", {"a": 1})],
    ),
    "G11 JSON in a JSON string": (
        chat_stream(calls(tc(0, "c1", "f", '"{\\"a\\":2}"'))),
        [("f", {"a": 2})],
    ),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("place", CHATS[::3], ids=str)
def test_B_odd_streams_run_what_was_meant(place: Place, name: str) -> None:
    step, expected = ODD[name]
    ran = Ran()
    with place.stage(step, say("done"), tools=ran.tools()) as stage:
        assert stage.run().text == "done"
        assert sorted(ran.calls, key=str) == expected
        kinds = [kind for kind, _ in stage.sent[1]]
        assert kinds == ["user", *["call"] * len(expected), *["result"] * len(expected)]


@pytest.mark.parametrize("name", ["B01 two entries of one index in a chunk", "B04 all at index 0"])
@pytest.mark.parametrize("place", CHATS[1:3], ids=str)
def test_B01_B04_in_the_other_ways(place: Place, name: str) -> None:
    test_B_odd_streams_run_what_was_meant(place, name)


@pytest.mark.parametrize("args", ['{"n":2}', '["x"]', "3", '"text"', '"\\"{}\\""'])
@pytest.mark.parametrize("place", few(CHAT)[::3], ids=str)
def test_G11_C04_only_an_object_inside_a_string_is_taken_out(place: Place, args: str) -> None:
    import json

    ran = Ran()
    raw = json.dumps(args)
    with place.stage(reply(call("pay", raw, id="c1")), say("done"), tools=ran.tools()) as stage:
        assert stage.run().text == "done"
        assert ran.calls == ([("pay", {"n": 2})] if args == '{"n":2}' else [])


@pytest.mark.parametrize("place", CHATS, ids=str)
def test_B13_usage_in_a_chunk_of_its_own(place: Place) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    step = Sse([chunk({"content": "hi"}), chunk({}, "stop"), chunk(choices=[], usage=usage), DONE])
    with place.stage(step) as stage:
        outcome = stage.run()
        assert (outcome.text, outcome.usage.input, outcome.usage.output) == ("hi", 10, 5)


T1 = {"type": "tool_use", "id": "t1", "name": "w", "input": {}}
PUT = {"type": "tool_use", "id": "t1", "name": "put", "input": {}}
BROKEN: dict[str, tuple[Any, Any]] = {
    "B15 an error inside the stream": (MESSAGES, ErrorEvent(say("Partial text that is long"), after=4)),
    "B15 an error inside the stream, chat": (CHAT, ErrorEvent(say("Partial text that is long"), after=2)),
    "B15 an error inside the stream, responses": (RESPONSES, ErrorEvent(say("Partial text that is long"), after=6)),
    "B15 after a whole call": (
        MESSAGES,
        Sse(
            [
                *(ms(input_tokens=1), cbs(0, T1), ijd(0, '{"p":"x"}'), cbe(0)),
                ant("error", error={"type": "overloaded_error", "message": "Overloaded"}),
            ]
        ),
    ),
    "B17 no end": (CHAT, Sse([calls(tc(0, "c1", "pay", '{"n":1}'))])),
    "B17 no end, responses": (RESPONSES, Cut(call("pay", {"n": 1}, id="c1"), after=5, how="eof")),
    "B17 no message_stop": (MESSAGES, Sse([ms(input_tokens=1), cbs(0, T1), ijd(0, '{"p":"x"}'), cbe(0)])),
    "B18 cut in the arguments": (MESSAGES, Sse([ms(input_tokens=1), cbs(1, T1), ijd(1, '{"p":"x","c":"par')])),
    "B18 the connection is closed": (MESSAGES, Cut(call("w", {"p": "x" * 40}, id="t1"), after=4, how="close")),
    "B18 the connection breaks": (CHAT, Cut(call("w", {"p": "x" * 40}, id="t1"), after=2, how="reset")),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("way", ["stream", "arun"])
def test_B15_B17_B18_a_broken_stream_runs_and_stores_nothing(way: str, name: str) -> None:
    wire, step = BROKEN[name]
    ran = Ran()
    with Place(wire, way, "stream").stage(step, say("fine"), tools=ran.tools()) as stage:
        outcome = stage.run("delete x")
        assert isinstance(stage.error, ProviderError)
        assert stage.error.retryable
        assert (outcome.status, ran.calls) == ("failed", [])
        assert [m.role for m in outcome.messages] == ["user"]
        assert stage.run("hello").text == "fine"
        assert stage.sent[1] == [("user", "hello")]


@pytest.mark.parametrize("name", ["B17 no end", "B18 cut in the arguments", "B15 an error inside the stream"])
@pytest.mark.parametrize("way", ["run", "astream"])
def test_B15_B18_in_the_other_ways(way: str, name: str) -> None:
    test_B15_B17_B18_a_broken_stream_runs_and_stores_nothing(way, name)


LONG = "Here is the plan that breaks before anybody has read all of it"
"""A text that a cut after four pieces does not hold whole."""


@pytest.mark.parametrize("second", [False, True], ids=["first round", "second round"])
@pytest.mark.parametrize("place", [*CLAUDES[::3], CHATS[1]], ids=str)
def test_B22_a_retry_that_a_plugin_asks_for_shows_the_text_once(place: Place, second: bool) -> None:
    """After visible text only a plugin has the model asked again; it is told what to forget, and history has one text."""
    kinds: list[str] = []
    plugins = [
        Hooked("again", on_model_error=lambda error: Retry()),
        Hooked("ear", on_event=lambda event: kinds.append(event.kind)),
    ]
    first = [call("now", id="n")] if second else []
    script = [*first, Cut(say(LONG), after=4, how="reset"), say("Here is the plan")]
    ran = Ran()
    with place.stage(*script, tools=ran.tools(), plugins=plugins) as stage:
        assert stage.run().text == "Here is the plan"
        assert kinds.count("reply_discarded") == 1
        assert [text for kind, text in shown(stage.outcome.messages) if kind == "assistant"] == ["Here is the plan"]
        assert stage.sent[-1] == stage.sent[-2]


@pytest.mark.parametrize("place", [*CLAUDES[::3], CHATS[1]], ids=str)
def test_B22_pieces_of_a_call_are_not_glued_to_the_next_attempt(place: Place) -> None:
    ran = Ran()
    plugins = [Hooked("again", on_model_error=lambda error: Retry())]
    whole = {"p": "a long path that is cut somewhere", "c": "print()"}
    script = [Cut(call("w", whole, id="t1"), after=4, how="reset"), call("w", whole, id="t1"), say("done")]
    with place.stage(*script, tools=ran.tools(), plugins=plugins) as stage:
        assert stage.run().text == "done"
        assert ran.calls == [("w", whole)]


@pytest.mark.parametrize("place", [CLAUDES[0], CLAUDES[3], CHATS[1], CHATS[2]], ids=str)
def test_B22_without_a_plugin_nothing_is_asked_again(place: Place) -> None:
    step = Cut(say(LONG), after=4, how="reset")
    with place.stage(step, say("later"), options={"retries": 2}) as stage:
        assert stage.run().status == "failed"
        assert len(stage.raw) == 1
        assert "Here is" in stage.outcome.partial
        stage.run("again")


@pytest.mark.parametrize("drop", ["at once", "while it thinks"])
@pytest.mark.parametrize("place", [CLAUDES[1], CHATS[2]], ids=str)
def test_B24_a_stream_that_dies_before_anything_visible_leaves_no_trace(place: Place, drop: str) -> None:
    thinks = Cut([think("hm, let me think about it"), say("never")], after=3, how="reset")
    step = Drop() if drop == "at once" else thinks
    with place.stage(step, say("fine"), options={"retries": 1}) as stage:
        assert stage.run().text == "fine"
        assert [m.role for m in stage.outcome.messages] == ["user", "assistant"]
        assert stage.outcome.messages[1].text == "fine"


WHOLE_INPUT = {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1}}
ANTHROPIC: dict[str, tuple[Sequence[Any], list[Any]]] = {
    "B19 the input at the start": ([cbs(0, WHOLE_INPUT), cbe(0)], [("f", {"a": 1})]),
    "B19 an empty start and deltas": (
        [cbs(0, {**WHOLE_INPUT, "input": {}}), ijd(0, '{"a":'), ijd(0, "1}"), cbe(0)],
        [("f", {"a": 1})],
    ),
    "B19 nothing at all": ([cbs(0, {**WHOLE_INPUT, "input": {}}), cbe(0)], [("f", {})]),
    "B20 fragments": (
        [cbs(0, PUT), ijd(0, '{"file_'), ijd(0, 'path":"a","cont'), ijd(0, 'ent":"b"}'), cbe(0)],
        [("put", {"file_path": "a", "content": "b"})],
    ),
}


@pytest.mark.parametrize("name", ANTHROPIC)
@pytest.mark.parametrize("place", CLAUDES[::3], ids=str)
def test_B19_B20_the_tool_runs_with_the_whole_input(place: Place, name: str) -> None:
    events, expected = ANTHROPIC[name]
    ran = Ran()
    end = [md("tool_use", output_tokens=5), mstop()]
    with place.stage(Sse([ms(input_tokens=1), *events, *end]), say("done"), tools=ran.tools()) as stage:
        assert stage.run().text == "done"
        assert ran.calls == expected


@pytest.mark.parametrize("place", SCRIPTED, ids=str)
def test_B17_a_provider_whose_stream_just_ends_is_an_error(place: Place) -> None:
    """Whatever provider it is: pieces without a reply at the end are nothing."""
    from hookloop.testing import ScriptedProvider

    class Ends(ScriptedProvider):
        def stream(self, request: Any) -> Any:
            yield from (piece for piece in super().stream(request) if type(piece).__name__ != "Reply")

    ran = Ran()
    with place.stage(call("pay", {"n": 1}, id="c1"), tools=ran.tools()) as stage:
        made = Ends([*stage._script], transport=place.transport)
        stage._provider = lambda: made  # type: ignore[method-assign]  # this one provider for one turn
        assert stage.run().status == "failed"
        assert (ran.calls, stage.error.kind) == ([], "stream")
        del stage._provider
        assert stage.raw


@pytest.mark.parametrize("where", ["text", "call"])
@pytest.mark.parametrize("place", [CLAUDES[0], CHATS[3]], ids=str)
def test_B15_plugins_hear_of_the_failure_with_what_had_come(place: Place, where: str) -> None:
    heard: list[Any] = []
    plugins = [Hooked(on_model_error=lambda error: heard.append(error))]
    item = say("Partial text that is long") if where == "text" else call("w", {"p": "x" * 50}, id="t1")
    with place.stage(ErrorEvent(item, after=4), plugins=plugins, tools=Ran().tools()) as stage:
        stage.run()
        (error,) = heard
        assert error is stage.error
        assert error.kind in ("overloaded", "server", "stream")


def test_B15_text_delta_of_the_notation_is_what_the_server_sends() -> None:
    """The builders of this file, checked against a stream that is in order."""
    events = [ms(input_tokens=1), cbs(0, {"type": "text", "text": ""}), cbd(0, "text_delta", text="hi"), cbe(0)]
    with CLAUDES[0].stage(Sse([*events, md("end_turn", output_tokens=2), mstop()])) as stage:
        assert stage.run().text == "hi"
