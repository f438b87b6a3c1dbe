"""What real servers sent, replayed through the real SDK and cut anywhere: the reply is what the recording says it is.

The recordings stand beside the repository, in ../shared/recordings; where they are absent these tests are skipped.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hookloop.testing.server import Raw, StrictServer
from hookloop_hookspecs import ProviderError, Reply, Thinking, Usage
from hookloop_openai import OpenAIProvider, factories

ROOT = Path(__file__).parents[2].parent / "shared" / "recordings"
PROFILES = {
    "azure": "azure",
    "crusoe": "vllm",
    "deepseek": "deepseek",
    "gemini": "gemini",
    "groq": "groq",
    "gpustack": "vllm",
    "llama-server": "llamacpp",
    "mistral": "mistral",
    "ollama": "ollama",
    "openrouter": "openrouter",
    "snowflake": "openrouter",
    "together": "together",
    "vercel-gateway": "openrouter",
    "xai": "xai",
    "zai": "deepseek",
}

pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason="../shared/recordings is absent")


def files() -> list[Path]:
    if not ROOT.is_dir():
        return []
    found = json.loads((ROOT / "index.json").read_text())
    return [ROOT / line["file"] for line in found if line["api"] != "messages"]


def exchanges() -> Iterator[dict[str, Any]]:
    for file in files():
        recorded = json.loads(file.read_text())
        yield from recorded.get("rounds", [recorded])


def raw_of(exchange: dict[str, Any], seed: int) -> Raw:
    """The recorded answer, cut at random places."""
    response = exchange["response"]
    if response.get("sse") is not None:
        body = response["sse"].encode()
    else:
        text = response["body"] if isinstance(response["body"], str) else json.dumps(response["body"])
        body = ((response.get("body_prefix") or "") + text).encode()
    cuts = sorted(random.Random(seed).sample(range(1, max(2, len(body))), min(40, max(0, len(body) - 1))))
    return Raw(response["status"], response["headers"], body, tuple(cuts))


def provider_of(exchange: dict[str, Any], server: StrictServer, **options: Any) -> OpenAIProvider:
    factory: Any = getattr(factories, PROFILES.get(exchange["provider"], "openai"))
    api = "responses" if exchange["api"] == "responses" else "chat"
    transport = "stream" if exchange["stream"] else "whole"
    given = {"base_url": f"{server.url}/v1", "api_key": "test-key-1", "transport": transport, "api": api, "retries": 0}
    made = factory(exchange["model"] or "model", factory.Options(**given, **options))
    assert isinstance(made, OpenAIProvider)
    return made


def counts(usage: dict[str, Any] | None) -> tuple[int | None, int | None, int | None]:
    if not usage:
        return None, None, None
    read = usage.get("prompt_tokens", usage.get("input_tokens"))
    written = usage.get("completion_tokens", usage.get("output_tokens"))
    return read, written, usage.get("total_tokens")


def told(usage: Usage) -> tuple[int | None, int | None, int | None]:
    return usage.input, usage.output, usage.total


def reasoning_of(reply: Reply) -> str:
    return "\n\n".join(part.text for part in reply.content if isinstance(part, Thinking) and part.text)


def expected_text(expect: dict[str, Any]) -> str:
    text = expect["text"] or ""
    return text if isinstance(text, str) else json.dumps(text, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("mode", ["sync", "async"])
@pytest.mark.parametrize("exchange", list(exchanges()), ids=lambda exchange: exchange["id"])
def test_recorded_answer_is_read_as_it_was_meant(exchange: dict[str, Any], mode: str, ways: Any, asking: Any) -> None:
    expect = exchange["expect"]
    with StrictServer([raw_of(exchange, 7)], strict=False) as server:
        provider = provider_of(exchange, server)
        if expect.get("error") or expect["finish"] == "queued":
            with pytest.raises(ProviderError) as raised:
                ways(mode).run(provider, [asking()])
            check_error(raised.value, exchange)
            return
        answer = ways(mode).run(provider, [asking()])[0]
    reply = answer.reply
    assert reply.text == expected_text(expect)
    assert answer.text == reply.text
    calls = [(call.name, call.raw) for call in reply.calls]
    assert calls == [(call["name"], call["arguments"]) for call in expect["calls"]]
    ids = [(ours.id, call["id"]) for ours, call in zip(reply.calls, expect["calls"], strict=True)]
    assert all(ours == theirs or (ours and not theirs) for ours, theirs in ids)
    assert reply.raw_stop == (expect["finish"] or "")
    assert told(reply.usage) == counts(expect["usage"])
    assert reasoning_of(reply) == (expect.get("reasoning") or "")
    assert reply.cut == (expect["finish"] in ("length", "content_filter", "incomplete") or bool(expect.get("refusal")))


def check_error(error: ProviderError, exchange: dict[str, Any]) -> None:
    status = exchange["response"]["status"]
    if status >= 400:
        assert error.status == status
    said = exchange["expect"].get("error") or {}
    message = said.get("message") or (said.get("error") or {}).get("message") if isinstance(said, dict) else ""
    if message and "key" not in message.lower():
        assert message[:60] in str(error)
