"""The assembler and the event reader on anything at all: a reply or a `ProviderError`, and never a call cut short."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop_anthropic.assemble import Assembler, as_events
from hookloop_anthropic.blocks import Maker
from hookloop_anthropic.options import Prices
from hookloop_anthropic.sse import Event, EventReader
from hookloop_hookspecs import CallDelta, Message, Opaque, ProviderError, Reply, Text, TextDelta, Thinking
from hookloop_hookspecs.codec import dump_message, load_message

MAKER = Maker("anthropic", "claude", {})
KINDS = ["text", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "web_search_tool_result", "novel"]
DELTAS = ["text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "novel_delta"]
FIELDS = ["text", "thinking", "signature", "partial_json", "citation", "data", "input", "id", "name", "citations"]

words = st.text(st.characters(exclude_categories=()), max_size=6)
junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
index = st.integers(0, 2) | st.none() | junk
fields = st.dictionaries(st.sampled_from(FIELDS), words | junk, max_size=4)
usage = st.dictionaries(st.sampled_from(["input_tokens", "output_tokens", "cache_read_input_tokens"]), junk)
stops = st.sampled_from(["end_turn", "tool_use", "max_tokens", "pause_turn", "refusal", "new"]) | junk


def typed(kinds: list[str]) -> st.SearchStrategy[Any]:
    return st.builds(lambda kind, rest: {**rest, "type": kind}, st.sampled_from(kinds) | junk, fields) | junk


events = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("message_start"), "message": st.fixed_dictionaries({"usage": usage}) | junk}
    ),
    st.fixed_dictionaries({"type": st.just("content_block_start"), "index": index, "content_block": typed(KINDS)}),
    st.fixed_dictionaries({"type": st.just("content_block_delta"), "index": index, "delta": typed(DELTAS)}),
    st.fixed_dictionaries({"type": st.just("content_block_stop"), "index": index}),
    st.fixed_dictionaries(
        {
            "type": st.just("message_delta"),
            "delta": st.fixed_dictionaries({"stop_reason": stops}),
            "usage": usage | junk,
        }
    ),
    st.fixed_dictionaries({"type": st.just("error"), "error": junk}),
    st.fixed_dictionaries({"type": st.sampled_from(["message_stop", "ping", "novel"])}),
    junk,
)


def outcome(script: list[Any]) -> tuple[Reply, bool]:
    """What has become of the events, and whether it is a reply or the partial one of an error."""
    try:
        return assembled(script), True
    except ProviderError as error:
        return error.partial or Reply(raw_stop="nothing"), False


def assembled(script: list[Any]) -> Reply:
    assembler = Assembler(MAKER)
    for event in script:
        assembler.feed(event)
    return assembler.reply()


@settings(max_examples=600, deadline=None)
@given(st.lists(events, max_size=12), st.booleans())
def test_any_events_give_a_reply_or_a_typed_error(script: list[Any], ended: bool) -> None:
    if ended:
        script = [*script, {"type": "message_stop"}]
    reply, complete = outcome(script)
    assert reply.raw_stop != "nothing"
    if complete:
        assert {"type": "message_stop"} in [event for event in script if isinstance(event, dict)]
        assert reply.cut or len(reply.calls) <= stopped_calls(script)
    message = Message.assistant(reply.content)
    assert load_message(dump_message(message)) == message


def stopped_calls(script: list[Any]) -> int:
    """How many calls the events both open and close."""
    open_at: dict[Any, bool] = {}
    closed = 0
    for event in (event for event in script if isinstance(event, dict)):
        at = event.get("index") if isinstance(event.get("index"), int) else None
        block = event.get("content_block")
        if event.get("type") == "content_block_start" and isinstance(block, dict):
            open_at[at] = block.get("type") == "tool_use"
        elif event.get("type") == "content_block_stop":
            closed += bool(open_at.pop(at, False))
        elif event.get("type") == "message_stop":
            break
    return closed


@settings(max_examples=200, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            "content": st.lists(typed(KINDS), max_size=4) | junk,
            "usage": usage,
            "stop_reason": stops,
            "type": st.sampled_from(["message", "error"]),
        },
    )
)
def test_any_body_gives_a_reply_or_a_typed_error(body: dict[str, Any]) -> None:
    try:
        reply = assembled(list(as_events(body)))
    except ProviderError:
        return
    assert isinstance(reply, Reply)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=8))
def test_events_do_not_depend_on_where_bytes_are_cut(data: bytes, cuts: list[int]) -> None:
    assert read(data, []) == read(data, cuts)


def read(data: bytes, cuts: list[int]) -> list[Event]:
    reader, out = EventReader(), list[Event]()
    edges = [0, *sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for start, end in itertools.pairwise(edges):
        out += reader.feed(data[start:end])
    return out + list(reader.end())


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_events_are_read_with_any_line_end_comments_and_a_mark_in_front(line_end: str) -> None:
    lines = [
        ": hello",
        "event: a",
        'data: {"x":',
        "data: 1}",
        "id: 7",
        "",
        "",
        "data:é",
        "retry: 3",
        "",
        "event: lost",
        "",
    ]
    data = b"\xef\xbb\xbf" + line_end.join(lines).encode()
    expected = [Event("a", b'{"x":\n1}'), Event("", "é".encode())]
    assert read(data, []) == expected
    assert read(data, list(range(len(data)))) == expected


def test_a_last_event_without_its_empty_line_counts() -> None:
    assert read(b'data: {"type":"message_stop"}', []) == [Event("", b'{"type":"message_stop"}')]


def test_an_event_name_stands_for_a_missing_type() -> None:
    assembler = Assembler(MAKER)
    assembler.feed({"index": 0, "content_block": {"type": "text", "text": "a"}}, "content_block_start")
    assembler.feed({}, "message_stop")
    assert assembler.reply().text == "a"


def test_a_delta_whose_start_was_lost_still_counts_for_text_but_not_for_a_call() -> None:
    reply = assembled(
        [
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "a"}},
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ]
    )
    assert reply.content == (Text("a"),)


def test_blocks_may_be_interleaved() -> None:
    def delta(at: int, kind: str, **rest: str) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": at, "delta": {"type": kind, **rest}}

    assembler = Assembler(MAKER)
    use = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
    shown = [
        assembler.feed(event)
        for event in [
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_start", "index": 1, "content_block": use},
            delta(0, "text_delta", text="a"),
            delta(1, "input_json_delta", partial_json='{"x"'),
            {"type": "ping"},
            delta(0, "text_delta", text="b"),
            delta(1, "input_json_delta", partial_json=":1}"),
            {"type": "content_block_stop", "index": 1},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
            {"type": "message_stop"},
        ]
    ]
    raw = [item.raw for item in shown if isinstance(item, CallDelta)]
    assert (assembler.reply().text, raw) == ("ab", ['{"x"', ":1}"])


def test_a_character_cut_in_two_is_whole_again() -> None:
    assembler = Assembler(MAKER)
    assembler.feed({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}})
    halves = [r'{"type":"text_delta","text":"a\ud83d"}', r'{"type":"text_delta","text":"\ude00b\udc00"}']
    events = [{"type": "content_block_delta", "index": 0, "delta": json.loads(half)} for half in halves]
    shown = [assembler.feed(event) for event in events]
    assembler.feed({"type": "message_stop"})
    assert shown == [TextDelta("a"), TextDelta("😀b\ufffd")]
    assert assembler.reply().text == "a😀b\ufffd"


def test_unknown_blocks_and_deltas_are_kept_as_they_came() -> None:
    start = {"type": "compaction", "content": None, "nested": {"a": [1]}}
    reply = assembled(
        [
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": "so "}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "compaction_delta", "content": "far"}},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_stop"},
        ]
    )
    assert reply.content == (
        Opaque('{"type":"compaction","content":"so far","nested":{"a":[1]}}', "anthropic", "claude"),
    )


def test_unknown_keys_of_thinking_are_kept() -> None:
    block = {"type": "thinking", "thinking": "R", "signature": "s", "novel": 1}
    reply = assembled([*as_events({"content": [block], "stop_reason": "end_turn"})])
    assert reply.content == (Thinking("R", "s", "", "anthropic", "claude", '{"novel":1}'),)


def test_cost_is_counted_by_the_prices() -> None:
    assembler = Assembler(MAKER, prices=Prices(input=10, output=100))
    counts = {
        "input_tokens": 1000,
        "output_tokens": 10,
        "cache_read_input_tokens": 100,
        "cache_creation_input_tokens": 8,
    }
    for event in as_events({"content": [], "usage": counts}):
        assembler.feed(event)
    found = assembler.reply().usage
    assert found.total == 1118
    assert found.cost == pytest.approx((10_000 + 1_000 + 100 + 100) / 1_000_000)


def test_no_counts_are_unknown_and_not_zero() -> None:
    found = assembled(list(as_events({"content": []}))).usage
    assert (found.input, found.output, found.total, found.cost) == (None, None, None, None)
