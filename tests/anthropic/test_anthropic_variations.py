"""Recorded streams, varied as gateways vary them: the reply stays the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookloop.testing.server import StrictServer
from hookloop_anthropic import AnthropicProvider, Options
from hookloop_hookspecs import Message, ModelRequest, Reply

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"
ABSENT = "the recordings are not beside this repository"

pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=ABSENT)

Json = dict[str, Any]


def streams() -> Iterator[Json]:
    """Every recorded stream of the Messages API that ends well."""
    for file in sorted(RECORDINGS.glob("*/*-msg-s-*.json")):
        recorded = json.loads(file.read_text("utf-8"))
        for exchange in recorded.get("rounds", [recorded]):
            if exchange["response"].get("sse") and not exchange["expect"].get("error"):
                yield exchange


STREAMS = list(streams()) if RECORDINGS.is_dir() else []


def events_of(sse: str) -> list[Json]:
    lines = (line for line in sse.splitlines() if line.startswith("data:"))
    return [json.loads(line.removeprefix("data:")) for line in lines]


def written(events: list[Json], *, named: bool = True, typed: bool = True, end: str = "\n", between: str = "") -> str:
    texts = []
    for event in events:
        value = event if typed else {key: inner for key, inner in event.items() if key != "type"}
        name = f"event: {event['type']}{end}" if named else ""
        texts.append(f"{name}data: {json.dumps(value)}{end}{end}{between}")
    return "".join(texts)


def with_more(event: Json) -> Json:
    """The event with fields that nobody knows, outside of blocks, which return as they came."""
    return {**event, "x_unknown": {"a": [1]}, "x_null": None}


def in_pieces(event: Json) -> Iterator[Json]:
    """The event with its text cut into single characters."""
    delta = event.get("delta", {})
    names = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}
    name = names.get(delta.get("type"))
    if name is None:
        yield event
        return
    yield from ({**event, "delta": {**delta, name: piece}} for piece in ("", *delta[name]))


def variations(sse: str) -> Iterator[tuple[str, str]]:
    events = events_of(sse)
    novel = {"type": "novel", "index": 0, "delta": {"type": "novel_delta"}}
    yield "without names", written(events, named=False)
    yield "types in the names only", written(events, typed=False)
    yield "other line ends", written(events, end="\r\n")
    yield "pings between", written([pair for event in events for pair in (event, {"type": "ping"})])
    yield "events that nobody knows", written([pair for event in events for pair in (novel, event)])
    yield "comments between", written(events, between=": wait\n\n")
    yield "more fields", written([with_more(event) for event in events])
    yield "an end mark of another API", written(events) + "data: [DONE]\n\n"
    yield "single characters", written([piece for event in events for piece in in_pieces(event)])


def read(exchange: Json, sse: str) -> Reply:
    model = exchange["model"] or "claude"
    with StrictServer(strict=False) as server:
        server.replay(200, exchange["response"]["headers"], sse.encode("utf-8"))
        options = {"api_key": "k", "base_url": server.url, "retries": 0}
        provider = AnthropicProvider(model, Options.model_validate(options))
        *_, reply = provider.stream(ModelRequest(model, "", [Message.user("x")]))
        provider.close()
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.parametrize("exchange", STREAMS, ids=[exchange["id"] for exchange in STREAMS])
def test_a_varied_stream_is_read_as_the_recorded_one(exchange: Json) -> None:
    recorded = exchange["response"]["sse"]
    expected = read(exchange, recorded)
    for name, sse in variations(recorded):
        assert (name, read(exchange, sse)) == (name, expected)
