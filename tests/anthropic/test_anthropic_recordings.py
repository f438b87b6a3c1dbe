"""What providers really sent, replayed through the SDK in network chunks cut at random places."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookloop.testing.server import StrictServer
from hookloop_anthropic import AnthropicProvider, Options
from hookloop_hookspecs import (
    Delta,
    Message,
    ModelRequest,
    Opaque,
    Part,
    ProviderError,
    Reply,
    Text,
    TextDelta,
    Thinking,
)

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"
ABSENT = "the recordings are not beside this repository"

pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=ABSENT)

Json = dict[str, Any]


def exchanges() -> Iterator[Json]:
    """Every recorded exchange of the Messages API, single ones and rounds of sequences."""
    for file in sorted(RECORDINGS.glob("*/*-msg-*.json")):
        recorded = json.loads(file.read_text("utf-8"))
        yield from recorded.get("rounds", [recorded])


EXCHANGES = list(exchanges()) if RECORDINGS.is_dir() else []


def served(response: Json) -> bytes:
    if response.get("sse") is not None:
        return str(response["sse"]).encode("utf-8")
    body = response["body"]
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    return f"{response.get('body_prefix', '')}{text}".encode()


def collect(provider: AnthropicProvider, request: ModelRequest, way: str) -> list[Delta | Reply]:
    if way == "sync":
        with_close = list(provider.stream(request))
        provider.close()
        return with_close

    async def go() -> list[Delta | Reply]:
        try:
            return [item async for item in provider.astream(request)]
        finally:
            await provider.aclose()

    return asyncio.run(go())


def replay(exchange: Json, way: str, seed: int) -> list[Delta | Reply]:
    """The exchange's answer through the real SDK, its bytes cut at random places."""
    body = served(exchange["response"])
    dice = random.Random(seed)
    cuts = sorted(dice.randrange(len(body)) for _ in range(min(60, len(body) // 3)))
    transport = "stream" if exchange["stream"] else "whole"
    model = exchange["model"] or "claude"
    with StrictServer(strict=False) as server:
        server.replay(exchange["response"]["status"], exchange["response"]["headers"], body, cuts)
        options = {"api_key": "k", "base_url": server.url, "transport": transport, "retries": 0}
        provider = AnthropicProvider(model, Options.model_validate(options))
        try:
            return collect(provider, ModelRequest(model, "", [Message.user("x")]), way)
        finally:
            provider.close()


def block_type(part: Part) -> str:
    if isinstance(part, Thinking):
        return "redacted_thinking" if part.redacted else "thinking"
    if isinstance(part, Opaque):
        return str(part.value["type"])
    return {"text": "text", "call": "tool_use"}[part.type]


def thinking_of(reply: Reply) -> list[Json]:
    return [
        {"redacted": part.redacted} if part.redacted else {"thinking": part.text, "signature": part.signature}
        for part in reply.content
        if isinstance(part, Thinking)
    ]


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize("exchange", EXCHANGES, ids=[exchange["id"] for exchange in EXCHANGES])
def test_a_recorded_answer_is_read_as_it_was_meant(exchange: Json, way: str) -> None:
    expect = exchange["expect"]
    if expect.get("error"):
        with pytest.raises(ProviderError) as caught:
            replay(exchange, way, seed=1)
        assert caught.value.status == exchange["response"]["status"]
        assert expect["error"]["message"][:60] in str(caught.value)
        return
    items = replay(exchange, way, seed=2)
    reply = items[-1]
    assert isinstance(reply, Reply)
    assert [block_type(part) for part in reply.content] == expect["blocks"]
    texts = [part.text for part in reply.content if isinstance(part, Text)]
    assert ("".join(texts) if texts else None) == expect["text"]
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == (expect["text"] or "")
    assert [(c.id, c.name) for c in reply.calls] == [(c["id"], c["name"]) for c in expect["calls"]]
    assert [c.arguments for c in reply.calls] == [json.loads(c["arguments"] or "{}") for c in expect["calls"]]
    if exchange["stream"] and "input-in-block-start" not in exchange["tags"]:
        assert [c.raw for c in reply.calls] == [c["arguments"] or "{}" for c in expect["calls"]]
    assert reply.raw_stop == expect["finish"]
    assert thinking_of(reply) == expect.get("thinking", [])
    check_usage(reply, expect["usage"])


def check_usage(reply: Reply, counted: Json) -> None:
    usage = reply.usage
    assert usage.input == counted["input_tokens"]
    assert usage.output == counted["output_tokens"]
    assert usage.cache_read == counted.get("cache_read_input_tokens")
    assert usage.cache_write == counted.get("cache_creation_input_tokens")
    assert usage.total == sum(n or 0 for n in (usage.input, usage.output, usage.cache_read, usage.cache_write))


def test_cuts_do_not_change_what_is_read() -> None:
    streams = [exchange for exchange in EXCHANGES if exchange["stream"] and not exchange["expect"].get("error")]
    for exchange in streams[:12]:
        first = replay(exchange, "sync", seed=3)[-1]
        for seed in (4, 5):
            assert replay(exchange, "sync", seed=seed)[-1] == first
    replies = [replay(exchange, "sync", 6)[-1] for exchange in streams]
    assert any(isinstance(reply, Reply) and reply.calls for reply in replies)
