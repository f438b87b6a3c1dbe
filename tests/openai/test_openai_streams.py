"""Odd streams and their whole bodies, each the way a real server sends them, in all four ways."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hookloop.testing import call, say, think
from hookloop.testing.server import DONE, Cut, Delay, ErrorEvent, Fail, Raw, Sse, StrictServer, calls, chunk, tc
from hookloop_hookspecs import Message, ModelRequest, Opaque, ProviderError, Reply, Text, Thinking, ToolCall, ToolSpec

TOOLS = tuple(
    ToolSpec(name, "", '{"type":"object","properties":{}}') for name in ("f", "s", "now", "bash", "read_file")
)
Asking = Callable[..., ModelRequest]


def with_tools(asking: Asking) -> ModelRequest:
    return asking(tools=TOOLS)


def whole(*entries: dict[str, Any], finish: str | None = "tool_calls", **message: Any) -> dict[str, Any]:
    """A body with these calls."""
    said = {"role": "assistant", "content": None, **message} | ({"tool_calls": list(entries)} if entries else {})
    choice = {"index": 0, "message": said, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "odd", "choices": [choice]}


def asked(way: Any, asking: Asking, events: list[Any], body: dict[str, Any] | None = None, **options: Any) -> Reply:
    """The reply to events (or, where HTTP does not stream, to a body)."""
    with StrictServer([Sse(events, whole=body)]) as server:
        reply: Reply = way.ask(server, with_tools(asking), **options).reply
    return reply


def ended(*events: Any, finish: str | None = "tool_calls") -> list[Any]:
    return [*events, chunk({}, finish), DONE]


def told(reply: Reply) -> list[tuple[str, str, str]]:
    return [(made.id, made.name, made.raw) for made in reply.calls]


def test_B01_two_entries_of_one_index_in_one_chunk(way: Any, asking: Asking) -> None:
    events = ended(calls(tc(0, "c1", "f", ""), tc(0, args='{"a":')), calls(tc(0, args="1}")))
    reply = asked(way, asking, events, whole(tc(None, "c1", "f", '{"a":1}')))
    assert told(reply) == [("c1", "f", '{"a":1}')]


def test_B02_no_index(way: Any, asking: Asking) -> None:
    events = ended(calls(tc(None, "c1", "f", '{"a":')), calls(tc(None, args="1}")))
    assert told(asked(way, asking, events, whole(tc(None, "c1", "f", '{"a":1}')))) == [("c1", "f", '{"a":1}')]


def test_B02_no_index_and_two_calls_in_turns(way: Any, asking: Asking) -> None:
    pieces = [
        tc(None, "c1", "f", '{"a"'),
        tc(None, "c2", "s", '{"b"'),
        tc(None, "c1", args=":1}"),
        tc(None, "c2", args=":2}"),
    ]
    events = ended(*(calls(piece) for piece in pieces))
    body = whole(tc(None, "c1", "f", '{"a":1}'), tc(None, "c2", "s", '{"b":2}'))
    assert told(asked(way, asking, events, body)) == [("c1", "f", '{"a":1}'), ("c2", "s", '{"b":2}')]


def test_B04_parallel_calls_all_at_index_0(way: Any, asking: Asking) -> None:
    two = [tc(0, "c1", "s", '{"q":"a"}'), tc(0, "c2", "s", '{"q":"b"}')]
    reply = asked(way, asking, ended(*(calls(entry) for entry in two)), whole(*two))
    assert told(reply) == [("c1", "s", '{"q":"a"}'), ("c2", "s", '{"q":"b"}')]


def test_B04_parallel_calls_at_index_0_cut_into_pieces(streaming: Any, asking: Asking) -> None:
    pieces = [tc(0, "c1", "s", ""), tc(0, args='{"q":"a"}'), tc(0, "c2", "s", ""), tc(0, args='{"q":"b"}')]
    reply = asked(streaming, asking, ended(*(calls(piece) for piece in pieces)))
    assert told(reply) == [("c1", "s", '{"q":"a"}'), ("c2", "s", '{"q":"b"}')]


@pytest.mark.parametrize("id", ["", None])
def test_B04_parallel_calls_without_ids_get_different_ones(way: Any, asking: Asking, id: str | None) -> None:
    two = [tc(0, id, "s", '{"q":"a"}'), tc(0, id, "s", '{"q":"b"}')]
    reply = asked(way, asking, ended(*(calls(entry) for entry in two)), whole(*two))
    assert [made.raw for made in reply.calls] == ['{"q":"a"}', '{"q":"b"}']
    assert len({made.id for made in reply.calls}) == 2
    assert all(made.id for made in reply.calls)


NOW, F = ("now", "{}"), ("f", '{"a":1}')


@pytest.mark.parametrize("id", ["", None])
@pytest.mark.parametrize("index", [0, None])
@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([("now", ""), ("f", "")], [NOW, ("f", "{}")]),
        ([("now", None), ("f", '{"a":1}')], [NOW, F]),
        ([("now", " "), ("f", '{"a":1}')], [NOW, F]),
        ([("now", ""), ("f", ""), (None, '{"a":1}')], [NOW, F]),
        ([("now", ""), ("f", '{"a"'), ("f", ":1}")], [NOW, F]),
        ([("f", '{"a":1}'), ("now", ""), ("f", '{"a":1}')], [F, NOW, F]),
        ([("f", '"{\\"a\\":1}"'), ("now", "")], [F, NOW]),
        ([("f", '"{\\"a\\":1}"'), ("f", '"{\\"a\\":1}"')], [F, F]),
        ([("f", '["x"]'), ("now", "")], [("f", '["x"]'), NOW]),
        ([("now", "null"), ("f", '{"a":1}')], [("now", "null"), F]),
        ([("f", '{"a":"b"c"}'), ("f2", '{"a":1}')], [("f", '{"a":"b"c"}'), ("f2", '{"a":1}')]),
    ],
)
def test_F11_calls_without_ids_are_told_apart_by_their_names(
    streaming: Any, asking: Asking, index: int | None, id: str | None, pieces: list[Any], found: list[Any]
) -> None:
    reply = asked(streaming, asking, ended(*(calls(tc(index, id, name, args)) for name, args in pieces)))
    assert [(made.name, made.raw) for made in reply.calls] == found
    assert len({made.id for made in reply.calls}) == len(found)


def test_F11_a_call_with_an_id_and_one_without_are_two(streaming: Any, asking: Asking) -> None:
    reply = asked(streaming, asking, ended(calls(tc(0, "c1", "now", "")), calls(tc(0, "", "f", '{"a":1}'))))
    assert [(made.name, made.raw) for made in reply.calls] == [NOW, F]


@pytest.mark.parametrize("again", ["c1", "", None])
def test_F11_a_name_in_pieces_is_one_call_under_its_first(streaming: Any, asking: Asking, again: str | None) -> None:
    pieces = [tc(0, "c1", "read", ""), tc(0, again, "_file", ""), tc(0, None, None, '{"p":1}')]
    assert told(asked(streaming, asking, ended(*map(calls, pieces)))) == [("c1", "read", '{"p":1}')]


@pytest.mark.parametrize("id", ["c1", "", None])
def test_F11_a_name_in_every_delta_is_one_call(streaming: Any, asking: Asking, id: str | None) -> None:
    pieces = [tc(0, "c1", "f", ""), tc(0, id, "f", ""), tc(0, id, "f", '{"p"'), tc(0, id, "f", ":1}"), tc(0, id, "f")]
    assert told(asked(streaming, asking, ended(*map(calls, pieces)))) == [("c1", "f", '{"p":1}')]


def test_F11_a_name_behind_the_arguments_is_that_calls(streaming: Any, asking: Asking) -> None:
    pieces = [tc(0, "c1", "", '{"p":1}'), tc(0, "", "f", "")]
    assert told(asked(streaming, asking, ended(*map(calls, pieces)))) == [("c1", "f", '{"p":1}')]


def test_made_ids_are_the_same_in_both_transports_and_differ_between_rounds(ways: Any, asking: Asking) -> None:
    seen = []
    for name in ("sync-stream", "sync-whole", "async-whole"):
        two = [tc(0, "", "s", '{"q":"a"}'), tc(0, "", "s", '{"q":"b"}')]
        with StrictServer([Sse(ended(calls(*two)), whole=whole(*two))] * 2) as server:
            requests = [asking(tools=TOOLS, turn="t", round=number) for number in (1, 2)]
            answers = ways(name).run(ways(name).provider(server), requests)
        seen.append([made.id for answer in answers for made in answer.reply.calls])
    assert seen[0] == seen[1] == seen[2]
    assert len(set(seen[0])) == 4


def test_two_calls_of_one_id_are_two_calls(way: Any, asking: Asking) -> None:
    two = [tc(0, "x", "f", '{"a":1}'), tc(1, "x", "f", '{"a":2}')]
    reply = asked(way, asking, ended(*(calls(entry) for entry in two)), whole(*two))
    assert [made.raw for made in reply.calls] == ['{"a":1}', '{"a":2}']
    assert len({made.id for made in reply.calls}) == 2


def test_a_call_said_again_is_one_call(streaming: Any, asking: Asking) -> None:
    again = calls(tc(0, "c1", "f", '{"a":1}'))
    assert told(asked(streaming, asking, ended(again, again))) == [("c1", "f", '{"a":1}')]


def test_B06_name_in_every_chunk(streaming: Any, asking: Asking) -> None:
    pieces = [tc(0, "c1", "read_file", ""), tc(0, None, "read_file", '{"p"'), tc(0, None, "read_file", ":1}")]
    reply = asked(streaming, asking, ended(*(calls(piece) for piece in pieces)))
    assert told(reply) == [("c1", "read_file", '{"p":1}')]


def test_B06_id_and_name_in_every_chunk(streaming: Any, asking: Asking) -> None:
    pieces = [tc(0, "c1", "f", '{"p"'), tc(0, "c1", "f", ":1"), tc(0, "c1", "f", "}")]
    assert told(asked(streaming, asking, ended(*(calls(piece) for piece in pieces)))) == [("c1", "f", '{"p":1}')]


def test_B07_empty_name_does_not_erase_the_name(streaming: Any, asking: Asking) -> None:
    pieces = [tc(0, "c1", "f", ""), tc(0, "", "", "{}")]
    assert told(asked(streaming, asking, ended(*(calls(piece) for piece in pieces)))) == [("c1", "f", "{}")]


def test_B09_name_comes_later(streaming: Any, asking: Asking) -> None:
    pieces = [tc(0, "c1", "", ""), tc(0, "c1", "bash", '{"a":1}')]
    assert told(asked(streaming, asking, ended(*(calls(piece) for piece in pieces)))) == [("c1", "bash", '{"a":1}')]


@pytest.mark.parametrize("args", ["", "  ", None])
def test_B10_C08_no_arguments_are_an_empty_object(way: Any, asking: Asking, args: str | None) -> None:
    reply = asked(way, asking, ended(calls(tc(0, "c1", "now", args))), whole(tc(None, "c1", "now", args)))
    assert told(reply) == [("c1", "now", "{}")]
    assert reply.calls[0].arguments == {}


def test_arguments_as_an_object_are_taken(way: Any, asking: Asking) -> None:
    entry = tc(0, "c1", "f", {"a": 1})
    assert told(asked(way, asking, ended(calls(entry)), whole(entry))) == [("c1", "f", '{"a":1}')]


@pytest.mark.parametrize("raw", ['["x"]', '"ls"', "3", "true"])
def test_C04_arguments_that_are_no_object_stay_as_they_came(way: Any, asking: Asking, raw: str) -> None:
    reply = asked(way, asking, ended(calls(tc(0, "c1", "f", raw))), whole(tc(None, "c1", "f", raw)))
    assert reply.calls[0].raw == raw
    assert reply.calls[0].arguments == {}


def test_C06_malformed_arguments_stay_as_they_came(way: Any, asking: Asking) -> None:
    raw = '{"code": "print("hi")"}'
    reply = asked(way, asking, ended(calls(tc(0, "c1", "f", raw))), whole(tc(None, "c1", "f", raw)))
    assert reply.calls[0].raw == raw


def test_B12_first_chunk_without_choices(way: Any, asking: Asking) -> None:
    first = chunk(choices=[], prompt_filter_results=[{"prompt_index": 0}], model="", id="")
    reply = asked(
        way, asking, ended(first, chunk({"content": "hi"}), finish="stop"), whole(content="hi", finish="stop")
    )
    assert (reply.text, reply.model) == ("hi", "odd")


def test_B13_usage_in_a_last_chunk_without_choices(way: Any, asking: Asking) -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5}
    events = [chunk({"content": "hi"}), chunk({}, "stop"), chunk(choices=[], usage=usage), DONE]
    reply = asked(way, asking, events, whole(content="hi", finish="stop") | {"usage": usage})
    assert (reply.text, reply.usage.input, reply.usage.output, reply.usage.total) == ("hi", 10, 5, 15)
    assert reply.usage.cache_read is None
    assert reply.usage.reasoning is None


def test_last_usage_that_is_not_null_counts(streaming: Any, asking: Asking) -> None:
    first, last = ({"prompt_tokens": 1, "completion_tokens": n, "total_tokens": n + 1} for n in (1, 7))
    events = [chunk({"content": "a"}, usage=first), chunk({}, "stop", usage=last), chunk(choices=[], usage=None), DONE]
    assert asked(streaming, asking, events).usage.output == 7


def test_unknown_usage_is_not_zero(way: Any, asking: Asking) -> None:
    usage = asked(way, asking, ended(chunk({"content": "hi"}), finish="stop"), whole(content="hi", finish="stop")).usage
    assert (usage.input, usage.output, usage.total, usage.cost) == (None, None, None, None)


def test_B15_error_inside_a_stream(streaming: Any, asking: Asking) -> None:
    with (
        StrictServer([ErrorEvent(say("Partial"), after=2, type="overloaded_error")]) as server,
        pytest.raises(ProviderError) as raised,
    ):
        streaming.ask(server)
    assert raised.value.retryable
    assert raised.value.partial is not None
    assert raised.value.partial.text == "Partial"


def test_B15_error_in_a_body_with_status_200(way: Any, asking: Asking) -> None:
    body = b'{"error": {"message": "The response was filtered", "code": "content_filter", "status": 400}}'
    with (
        StrictServer([Raw(200, {"content-type": "application/json"}, body)]) as server,
        pytest.raises(ProviderError) as raised,
    ):
        way.ask(server)
    assert (raised.value.kind, raised.value.retryable, raised.value.status) == ("invalid", False, 400)
    assert "The response was filtered" in str(raised.value)


def test_B17_end_without_finish_reason(streaming: Any, asking: Asking) -> None:
    with StrictServer([Sse([calls(tc(0, "c1", "f", '{"n":1}'))])]) as server, pytest.raises(ProviderError) as raised:
        streaming.ask(server, with_tools(asking))
    assert (raised.value.kind, raised.value.retryable) == ("stream", True)
    assert raised.value.partial is not None
    assert not raised.value.partial.calls


def test_B17_end_mark_without_finish_reason_needs_whole_calls(streaming: Any, asking: Asking) -> None:
    assert told(asked(streaming, asking, [calls(tc(0, "c1", "f", '{"n":1}')), DONE])) == [("c1", "f", '{"n":1}')]
    with StrictServer([Sse([calls(tc(0, "c1", "f", '{"n":')), DONE])]) as server, pytest.raises(ProviderError):
        streaming.ask(server, with_tools(asking))


def test_B17_finish_reason_without_end_mark_is_an_end(streaming: Any, asking: Asking) -> None:
    assert asked(streaming, asking, [chunk({"content": "hi"}), chunk({}, "stop")]).text == "hi"


USAGE = chunk({}) | {"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}


@pytest.mark.parametrize("how", ["reset", "close", "eof"])
@pytest.mark.parametrize("after", [2, 3])
def test_F15_a_reply_is_whole_with_its_finish_reason(streaming: Any, asking: Asking, how: Any, after: int) -> None:
    script = Cut(Sse([calls(tc(0, "c1", "f", "{}")), chunk({}, "tool_calls"), USAGE, DONE]), after=after, how=how)
    with StrictServer([script]) as server:
        reply = streaming.ask(server, with_tools(asking)).reply
    assert (told(reply), reply.stop) == ([("c1", "f", "{}")], "calls")
    assert reply.usage.input == (None if after == 2 else 3)


@pytest.mark.parametrize("rest", ['data: {"choi', 'data: {"choices":[],"usage":{"prompt_tokens":3', "data: ?\n\n"])
def test_F15_a_rest_that_is_broken_costs_the_usage_alone(streaming: Any, asking: Asking, rest: str) -> None:
    reply = asked(streaming, asking, [chunk({"content": "hi"}), chunk({}, "stop"), rest])
    assert (reply.text, reply.stop) == ("hi", "end")
    assert (reply.usage.input, reply.usage.output, reply.usage.total) == (None, None, None)


def test_F15_usage_behind_a_broken_event_counts(streaming: Any, asking: Asking) -> None:
    events = [chunk({"content": "hi"}), chunk({}, "stop"), "data: {?\n\n", USAGE, DONE]
    assert asked(streaming, asking, events).usage.input == 3


def test_F15_silence_behind_the_finish_reason_costs_the_usage_alone(streaming: Any, asking: Asking) -> None:
    gate = threading.Event()
    with StrictServer([Delay(gate, Sse([chunk({"content": "hi"}), chunk({}, "stop"), DONE]), after=2)]) as server:
        reply = streaming.ask(server, idle_timeout=0.2).reply
        gate.set()
    assert (reply.text, reply.stop) == ("hi", "end")


def test_F15_what_the_server_calls_an_error_stays_one_behind_the_finish_reason(streaming: Any, asking: Asking) -> None:
    events = [chunk({"content": "hi"}), chunk({}, "stop"), {"error": {"message": "withdrawn", "code": 500}}]
    with StrictServer([Sse(events)]) as server, pytest.raises(ProviderError, match="withdrawn"):
        streaming.ask(server)


@pytest.mark.parametrize("how", ["reset", "close"])
def test_F15_a_finish_that_says_the_server_gave_up_is_no_end(streaming: Any, asking: Asking, how: Any) -> None:
    script = Cut(Sse([chunk({"content": "hi"}), chunk({}, "error"), USAGE]), after=2, how=how)
    with StrictServer([script]) as server, pytest.raises(ProviderError):
        streaming.ask(server)


@pytest.mark.parametrize("how", ["reset", "close", "eof"])
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_B18_stream_cut_within_a_call(way: Any, asking: Asking, how: Any, api: str) -> None:
    script: list[Any] = [Cut(call("f", {"p": "x", "c": "partial"}, id="c1"), after=3, how=how)]
    with StrictServer(script) as server, pytest.raises(ProviderError) as raised:
        way.ask(server, with_tools(asking), api=api)
    assert raised.value.retryable
    assert raised.value.partial is None or not raised.value.partial.calls


def test_B20_arguments_in_fragments(streaming: Any, asking: Asking) -> None:
    pieces = ['{"file_', 'path":"a","cont', 'ent":"b"}']
    events = ended(calls(tc(0, "c1", "f", "")), *(calls(tc(0, args=piece)) for piece in pieces))
    assert asked(streaming, asking, events).calls[0].arguments == {"file_path": "a", "content": "b"}


def test_B22_no_retry_after_the_first_text(streaming: Any, asking: Asking) -> None:
    script: list[Any] = [Cut(say("Here is the plan"), after=2), say("Here is the plan")]
    with StrictServer(script) as server, pytest.raises(ProviderError) as raised:
        streaming.ask(server, retries=3)
    assert len(server.requests) == 1
    assert raised.value.partial is not None


def test_B22_no_retry_after_the_first_piece_of_a_call(streaming: Any, asking: Asking) -> None:
    script: list[Any] = [Cut(call("f", {"code": "print"}, id="c1"), after=2), call("f", {"code": "print"}, id="c1")]
    with StrictServer(script) as server, pytest.raises(ProviderError):
        streaming.ask(server, with_tools(asking), retries=3)
    assert len(server.requests) == 1


def test_B24_retry_where_nothing_visible_came(streaming: Any, asking: Asking, at_once: None) -> None:
    role = Raw(
        200, {"content-type": "text/event-stream"}, b'data: {"choices":[{"index":0,"delta":{"role":"assistant"}}]}\n\n'
    )
    with StrictServer([role, say("fine")]) as server:
        answer = streaming.ask(server, retries=2)
    assert answer.reply.text == answer.text == "fine"
    assert len(server.requests) == 2


def test_B24_retry_after_thinking_shows_it_once(streaming: Any, asking: Asking, at_once: None) -> None:
    thought: list[Any] = [chunk({"reasoning_content": "hm"}), "data: {broken\n\n"]
    with StrictServer([Sse(thought), [think("hm"), say("fine")]], profile="deepseek") as server:
        answer = streaming.ask(server, retries=2, profile="deepseek", model="deepseek-reasoner")
    assert answer.thinking == "hm"
    assert [part.text for part in answer.reply.content if isinstance(part, Thinking)] == ["hm"]
    assert answer.reply.text == "fine"


def test_whole_answer_is_retried_as_long_as_it_is_broken(ways: Any, asking: Asking, at_once: None) -> None:
    for name in ("sync-whole", "async-whole"):
        with StrictServer([Cut(say("hello")), Fail(500), say("hello")]) as server:
            assert ways(name).ask(server, retries=2).reply.text == "hello"
        assert len(server.requests) == 3


def test_G01_calls_with_finish_stop(way: Any, asking: Asking) -> None:
    entry = tc(0, "c1", "f", "{}")
    reply = asked(way, asking, ended(calls(entry), finish="stop"), whole(entry, finish="stop"))
    assert told(reply) == [("c1", "f", "{}")]
    assert (reply.stop, reply.cut, reply.raw_stop) == ("calls", False, "stop")


def test_G11_arguments_inside_a_json_string(way: Any, asking: Asking) -> None:
    entry = tc(0, "c1", "f", '"{\\"n\\":2}"')
    assert asked(way, asking, ended(calls(entry)), whole(entry)).calls[0].arguments == {"n": 2}


def test_G11_only_objects_are_unwrapped_and_only_once(way: Any, asking: Asking) -> None:
    raws = ['"[1]"', '"\\"{}\\""', '{"n":"{\\"m\\":1}"}']
    entries = [tc(place, f"c{place}", "f", raw) for place, raw in enumerate(raws)]
    reply = asked(way, asking, ended(calls(*entries)), whole(*entries))
    assert [made.raw for made in reply.calls] == raws


@pytest.mark.parametrize("raw", ['{"path":"a"', '{"path":"a"}', ""])
def test_F08_length_inside_a_call(way: Any, asking: Asking, raw: str) -> None:
    entry = tc(0, "c1", "f", raw)
    reply = asked(way, asking, ended(calls(entry), finish="length"), whole(entry, finish="length"))
    assert (reply.stop, reply.cut) == ("length", True)


@pytest.mark.parametrize("finish", ["length", "max_tokens", "model_length"])
def test_F08_words_for_length(way: Any, asking: Asking, finish: str) -> None:
    events = ended(chunk({"content": "so far"}), finish=finish)
    reply = asked(way, asking, events, whole(content="so far", finish=finish))
    assert (reply.stop, reply.text, reply.raw_stop) == ("length", "so far", finish)


@pytest.mark.parametrize("text", [None, "part"])
def test_F12_content_filter(way: Any, asking: Asking, text: str | None) -> None:
    events = ended(chunk({"content": text}), finish="content_filter")
    reply = asked(way, asking, events, whole(content=text, finish="content_filter"))
    assert (reply.stop, reply.cut, reply.text) == ("filter", True, text or "")


def test_F12_refusal(way: Any, asking: Asking) -> None:
    events = ended(chunk({"refusal": "I ca"}), chunk({"refusal": "n't."}), finish="stop")
    reply = asked(way, asking, events, whole(refusal="I can't.", finish="stop"))
    assert (reply.stop, reply.cut, reply.text) == ("refusal", True, "")
    assert [part.value for part in reply.content if isinstance(part, Opaque)] == [
        {"type": "refusal", "refusal": "I can't."}
    ]


@pytest.mark.parametrize("finish", ["function_call", "eos", "whatever"])
def test_F12_unknown_finish_is_an_end(way: Any, asking: Asking, finish: str) -> None:
    reply = asked(way, asking, ended(chunk({"content": "hi"}), finish=finish), whole(content="hi", finish=finish))
    assert (reply.stop, reply.raw_stop) == ("end", finish)


@pytest.mark.parametrize("finish", ["error", "abort", "insufficient_system_resource"])
def test_finish_that_says_the_server_gave_up(way: Any, asking: Asking, finish: str) -> None:
    script = [Sse(ended(chunk({"content": "hi"}), finish=finish), whole=whole(content="hi", finish=finish))]
    with StrictServer(script) as server, pytest.raises(ProviderError) as raised:
        way.ask(server)
    assert raised.value.retryable


def test_surrogate_pair_cut_over_two_events_is_one_character(streaming: Any, asking: Asking) -> None:
    halves = [
        'data: {"choices":[{"index":0,"delta":{"content":"a\\ud83d"}}]}\n\n',
        'data: {"choices":[{"index":0,"delta":{"content":"\\ude00b"}}]}\n\n',
    ]
    with StrictServer([Sse([*halves, chunk({}, "stop"), DONE])]) as server:
        answer = streaming.ask(server)
    assert answer.reply.text == answer.text == "a😀b"


def test_lone_surrogate_becomes_a_replacement_character(way: Any, asking: Asking) -> None:
    event = 'data: {"choices":[{"index":0,"delta":{"content":"a\\udc97"}}]}\n\n'
    reply = asked(way, asking, [event, chunk({}, "stop"), DONE], whole(content="a\udc97", finish="stop"))
    assert reply.text == "a\ufffd"


def test_reply_is_the_same_in_every_way(ways: Any, asking: Asking) -> None:
    said: Any = [think("hm"), say("text"), call("f", {"a": [1, {"b": "ü"}]}, id="c1"), call("s", {}, id="c2")]
    for api in ("chat", "responses"):
        replies = []
        for name in ("sync-stream", "sync-whole", "async-stream", "async-whole"):
            with StrictServer([said]) as server:
                reply = ways(name).ask(server, with_tools(asking), api=api, model="gpt-5.4").reply
                replies.append(replace(reply, request_id=""))
        assert replies[0] == replies[1] == replies[2] == replies[3]
        assert told(replies[0]) == [("c1", "f", '{"a":[1,{"b":"ü"}]}'), ("c2", "s", "{}")]


def test_server_that_ignores_what_was_asked_for(ways: Any, asking: Asking) -> None:
    body = b' \n {"choices":[{"index":0,"message":{"content":"whole"},"finish_reason":"stop"}]}'
    events = (
        b'data: {"choices":[{"index":0,"delta":{"content":"streamed"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    )
    script = [Raw(200, {}, body, (1, 3)), Raw(200, {}, events)]
    for name in ("sync-stream", "sync-whole", "async-stream", "async-whole"):
        with StrictServer(script) as server:
            answers = ways(name).run(ways(name).provider(server), [asking(), asking()])
        assert [answer.reply.text for answer in answers] == ["whole", "streamed"]


def test_whole_answer_gives_one_delta_a_part(ways: Any, asking: Asking) -> None:
    with StrictServer(
        [[think("hm"), say("a longer text"), call("f", {"a": "b"}, id="c1")]], profile="deepseek"
    ) as server:
        answer = ways("sync-whole").ask(server, with_tools(asking), profile="deepseek")
    assert len(answer.deltas) == 3
    assert (answer.thinking, answer.text, answer.arguments) == ("hm", "a longer text", ['{"a":"b"}'])


def test_only_the_first_choice_counts(way: Any, asking: Asking) -> None:
    second = {"index": 1, "delta": {"content": "other"}, "message": {"content": "other"}, "finish_reason": "stop"}
    body = whole(content="hi", finish="stop")
    body["choices"].append(second)
    events = [chunk({"content": "hi"}), chunk(choices=[second]), chunk({}, "stop"), DONE]
    assert asked(way, asking, events, body).text == "hi"


def test_parts_of_a_conversation_stay_equal_after_a_round(way: Any, asking: Asking) -> None:
    reply = asked(way, asking, ended(calls(tc(0, "c1", "f", "{}"))), whole(tc(None, "c1", "f", "{}")))
    assert Message("assistant", reply.content).calls == (ToolCall("c1", "f", "{}"),)
    assert not any(isinstance(part, Text) for part in reply.content)


@pytest.mark.parametrize(
    "thought",
    [
        {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
        {"type": "thinking", "thinking": "hm"},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm", "signature": ""}]},
        {"type": "reasoning", "text": "hm"},
    ],
)
def test_content_in_parts(way: Any, asking: Asking, thought: dict[str, Any]) -> None:
    content = [thought, {"type": "text", "text": "hi"}, {"type": "new", "x": 1}]
    reply = asked(way, asking, ended(chunk({"content": content}), finish="stop"), whole(content=content, finish="stop"))
    assert reply.text == "hi"
    assert [part.text for part in reply.content if isinstance(part, Thinking)] == ["hm"]


def test_content_as_an_object_is_its_json(way: Any, asking: Asking) -> None:
    content = {"title": "ü", "n": [1]}
    reply = asked(way, asking, ended(chunk({"content": content}), finish="stop"), whole(content=content, finish="stop"))
    assert reply.text == '{"title":"ü","n":[1]}'
