"""Real exchanges: what real servers took is refused for nothing, and what they sent can be replayed to the byte."""

from __future__ import annotations

import http.client
import json
import random
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookloop.testing.server import StrictServer, Violation, check_chat, check_messages, check_responses

RECORDINGS = Path(__file__).parents[2].parent / "shared" / "recordings"
PROFILES = {"openai": None, "azure": None, "deepseek": "deepseek", "mistral": "mistral", "gemini": "gemini"}
PROFILES |= {name: name for name in ("groq", "ollama", "xai")} | {"llama-server": "llama.cpp"}
HEADERS = {"x-api-key": "k", "authorization": "Bearer k", "anthropic-version": "2023-06-01", "anthropic-beta": "any"}
BLANK_TEXT = "anthropic-msg-s-test-tools.r2"
"""This one was taken although it has a text of white space; the same is on record as refused."""


def exchanges() -> Iterator[dict[str, Any]]:
    for file in sorted(RECORDINGS.glob("*/*.json")):
        recording = json.loads(file.read_text("utf-8"))
        yield from recording.get("rounds", [recording])


@pytest.fixture(scope="module")
def recorded() -> list[dict[str, Any]]:
    found = list(exchanges())
    if not found:
        pytest.skip("the recordings of real exchanges are not beside this checkout")
    return found


def check(exchange: dict[str, Any]) -> list[Violation]:
    api, body, provider = exchange["api"], exchange["request"], exchange["provider"]
    if api == "messages":
        return check_messages(body, HEADERS, off=("tools_missing",))
    if api == "responses":
        return check_responses(body)
    return check_chat(body, PROFILES[provider], off=("single_call",))


def test_requests_that_real_servers_took_break_no_rule(recorded: list[dict[str, Any]]) -> None:
    known = {*PROFILES, "anthropic"}
    taken = [e for e in recorded if e["request"] and e["response"]["status"] == 200 and e["provider"] in known]
    refused = {e["id"]: [v.rule for v in check(e)] for e in taken if check(e)}
    assert len(taken) > 80
    assert refused == {BLANK_TEXT: ["text_blank"]}


def test_recorded_streams_are_replayed_to_the_byte(recorded: list[dict[str, Any]]) -> None:
    streams = [exchange["response"]["sse"].encode() for exchange in recorded if exchange["response"].get("sse")]
    cut = random.Random(7)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}], "stream": True})
    with StrictServer() as server:
        connection = http.client.HTTPConnection("127.0.0.1", urllib.parse.urlsplit(server.url).port or 0)
        for sent in streams:
            server.replay(200, {}, sent, [cut.randrange(len(sent)) for _ in range(20)])
            connection.request("POST", "/v1/chat/completions", body, HEADERS)
            assert connection.getresponse().read() == sent
        connection.close()
    assert len(streams) > 50
