"""Whatever a server sends: a reply or a `ProviderError`, never another exception, never a call it did not complete."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop_hookspecs import Delta, ProviderError, Reply
from hookloop_openai.assembly import Assembly, Context
from hookloop_openai.chat_assemble import ChatAssembly
from hookloop_openai.errors import Failing, Said
from hookloop_openai.identity import Identity
from hookloop_openai.profile import profiles
from hookloop_openai.reader import Reader
from hookloop_openai.responses_assemble import ResponsesAssembly
from hookloop_openai.sse import EventLines

STREAM = {"content-type": "text/event-stream"}
WHOLE = {"content-type": "application/json"}

leaves = st.none() | st.booleans() | st.integers(-3, 5) | st.floats() | st.text(max_size=5)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
texts = st.sampled_from(["", "a", "{", '{"a":', "1}", '{"a":1}', '"', "\ud83d", "\ude00", "}", " ", "\x00"])


def odd(good: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what belongs there, sometimes anything."""
    return st.one_of(good, good, good, anything)


def record(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional={name: odd(value) for name, value in fields.items()})


ids = st.sampled_from(["", "c1", "c2"])
functions = record(name=st.sampled_from(["", "f", "g"]), arguments=texts)
entries = record(index=st.integers(0, 2), id=ids, function=functions, type=st.just("function"))
chat_deltas = record(
    role=st.just("assistant"),
    content=texts,
    reasoning_content=texts,
    reasoning_details=st.lists(record(type=st.just("reasoning.text"), text=texts, index=st.integers(0, 1)), max_size=2),
    refusal=texts,
    tool_calls=st.lists(odd(entries), max_size=2),
)
finishes = st.sampled_from([None, "", "stop", "length", "tool_calls", "content_filter", "error", "whatever"])
chat_events = record(
    choices=st.lists(
        odd(record(index=st.just(0), delta=chat_deltas, message=chat_deltas, finish_reason=finishes)), max_size=2
    ),
    usage=record(prompt_tokens=st.integers(0, 9), completion_tokens=st.integers(0, 9)),
    error=st.none() | record(message=st.text(max_size=5), code=st.integers(300, 700) | st.text(max_size=3)),
    model=st.text(max_size=3),
)
items = record(
    type=st.sampled_from(["message", "function_call", "reasoning", "custom_tool_call", "web_search_call"]),
    id=ids,
    call_id=ids,
    name=st.sampled_from(["", "f"]),
    arguments=texts,
    input=texts,
    content=st.lists(odd(record(type=st.sampled_from(["output_text", "refusal"]), text=texts)), max_size=2),
    summary=st.lists(odd(record(text=texts)), max_size=2),
)
responses_events = record(
    type=st.sampled_from(
        [
            "response.created",
            "response.output_item.added",
            "response.output_item.done",
            "response.output_text.delta",
            "response.output_text.done",
            "response.refusal.delta",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.function_call_arguments.delta",
            "response.function_call_arguments.done",
            "response.completed",
            "response.incomplete",
            "response.failed",
            "response.new_thing",
            "error",
        ]
    ),
    output_index=st.integers(0, 2),
    item_id=ids,
    content_index=st.integers(0, 1),
    delta=texts,
    text=texts,
    arguments=texts,
    item=items,
    response=record(
        status=st.sampled_from(["completed", "incomplete", "failed", "queued"]),
        output=st.lists(odd(items), max_size=2),
        usage=record(input_tokens=st.integers(0, 9)),
        error=st.none() | record(message=st.text(max_size=4)),
        incomplete_details=record(reason=st.sampled_from(["max_output_tokens", "content_filter"])),
    ),
)


def reader(api: str, headers: dict[str, str], profile: str = "gemini") -> Reader:
    kind = ResponsesAssembly if api == "responses" else ChatAssembly
    identity = Identity(profile, profile, "m", "m", profiles[profile])

    def make(request_id: str) -> Assembly:
        made: Assembly = kind(Context(identity, request_id, None, "seed"))
        return made

    return Reader(make, Failing(profile), headers)


def read(api: str, headers: dict[str, str], chunks: list[bytes]) -> Reply | ProviderError:
    """The reply, or the one error that may come."""
    reading = reader(api, headers)
    outputs: list[Delta | Reply] = []
    try:
        for chunk in chunks:
            outputs += reading.feed(chunk)
        outputs += reading.end()
    except ProviderError as error:
        return error
    assert isinstance(outputs[-1], Reply)
    assert not any(isinstance(output, Reply) for output in outputs[:-1])
    return outputs[-1]


def stream_of(events: list[Any], done: bool) -> bytes:
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n"] if done else lines).encode()


def check(reply: Reply | ProviderError) -> None:
    if isinstance(reply, ProviderError):
        assert reply.partial is None or not reply.partial.calls
        return
    assert len({call.id for call in reply.calls}) == len(reply.calls) or reply.cut
    for call in reply.calls:
        assert call.id
        assert call.name or reply.cut
    for text in (reply.text, reply.model, reply.raw_stop, *(call.raw for call in reply.calls)):
        text.encode()


@settings(max_examples=400, deadline=None)
@given(st.lists(odd(chat_events), max_size=6), st.booleans())
def test_any_chat_events_give_a_reply_or_an_error(events: list[Any], done: bool) -> None:
    outcome = read("chat", STREAM, [stream_of(events, done)])
    check(outcome)
    told = [c.get("finish_reason") for e in events if isinstance(e, dict) for c in choices(e)]
    if not done and not any(isinstance(reason, str) and reason for reason in told):
        assert isinstance(outcome, ProviderError)


def choices(event: dict[str, Any]) -> list[dict[str, Any]]:
    listed = event.get("choices")
    return [choice for choice in listed if isinstance(choice, dict)] if isinstance(listed, list) else []


@settings(max_examples=400, deadline=None)
@given(st.lists(odd(responses_events), max_size=8))
def test_any_responses_events_give_a_reply_or_an_error(events: list[Any]) -> None:
    outcome = read("responses", STREAM, [stream_of(events, False)])
    check(outcome)
    ends = ("response.completed", "response.incomplete")
    if not any(isinstance(event, dict) and event.get("type") in ends for event in events):
        assert isinstance(outcome, ProviderError)


@settings(max_examples=200, deadline=None)
@given(odd(chat_events), st.sampled_from(["chat", "responses"]))
def test_any_whole_body_gives_a_reply_or_an_error(body: Any, api: str) -> None:
    check(read(api, WHOLE, [json.dumps(body).encode()]))


@settings(max_examples=200, deadline=None)
@given(odd(record(status=st.just("completed"), output=st.lists(odd(items), max_size=3))))
def test_any_whole_response_gives_a_reply_or_an_error(body: Any) -> None:
    check(read("responses", WHOLE, [json.dumps(body).encode()]))


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.binary(max_size=12), max_size=5),
    st.sampled_from(["chat", "responses"]),
    st.sampled_from([STREAM, WHOLE, {}]),
)
def test_any_bytes_give_a_reply_or_an_error(chunks: list[bytes], api: str, headers: dict[str, str]) -> None:
    check(read(api, headers, chunks))


@settings(max_examples=300, deadline=None)
@given(st.lists(chat_events, max_size=4), st.lists(st.integers(0, 2000), max_size=12))
def test_cuts_between_chunks_change_nothing(events: list[Any], at: list[int]) -> None:
    body = stream_of(events, True)
    places = sorted({0, len(body), *(place for place in at if place < len(body))})
    pieces = [body[start:end] for start, end in pairwise(places)]
    whole, cut = read("chat", STREAM, [body]), read("chat", STREAM, pieces)
    assert str(whole) == str(cut)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=6), max_size=5),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.lists(st.integers(0, 200), max_size=9),
)
def test_events_survive_line_ends_and_cuts(datas: list[str], end: str, at: list[int]) -> None:
    body = "".join(f": note{end}event: e{end}data: {data}{end}id: 1{end}{end}" for data in datas).encode()
    places = sorted({0, len(body), *(place for place in at if place < len(body))})
    lines = EventLines()
    found = [event for start, stop in pairwise(places) for event in lines.feed(body[start:stop])]
    found += lines.end()
    assert [event.data.decode() for event in found] == datas
    assert all(event.name == "e" for event in found)


@settings(max_examples=200, deadline=None)
@given(anything | st.text() | st.binary(max_size=20))
def test_any_error_body_can_be_read(body: Any) -> None:
    error = Failing("p").answered(body, 500)
    assert error.kind in ("server", "context")
    assert isinstance(Said.of(body).message, str)


@pytest.mark.parametrize("finish", [None, "tool_calls"])
def test_call_cut_in_its_arguments_is_never_complete(finish: str | None) -> None:
    entry = {"index": 0, "id": "c1", "function": {"name": "pay", "arguments": '{"n": 1'}}
    events = [{"choices": [{"index": 0, "delta": {"tool_calls": [entry]}, "finish_reason": None}]}]
    if finish is not None:
        events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    outcome = read("chat", STREAM, [stream_of(events, finish is None)])
    if finish is None:
        assert isinstance(outcome, ProviderError)
    else:
        assert isinstance(outcome, Reply)
        assert outcome.calls[0].arguments == {}
        assert outcome.calls[0].raw == '{"n": 1'
