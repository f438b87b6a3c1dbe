"""Agents on real SDKs against the strict local server: one table of providers and transports."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hookloop import Agent, Outcome, provider
from hookloop.testing.server import Recorded, StrictServer


@dataclass(frozen=True)
class Wire:
    """A provider as the tests use it: reference, where its API lies under the server's URL, its options.

    `demands` is the compatible server whose rules the strict server adds for it.
    """

    name: str
    reference: str
    path: str
    options: tuple[tuple[str, Any], ...] = ()
    demands: str | None = None

    def provider(self, server: StrictServer, transport: str, **more: Any) -> Any:
        """A provider object that talks to the server."""
        options = {
            "api_key": "key",
            "base_url": server.url + self.path,
            "transport": transport,
            "retries": 0,
            **dict(self.options),
        }
        return provider(self.reference, **{**options, **more})


CHAT = Wire("chat", "openai:gpt-4.1", "/v1", (("api", "chat"),))
RESPONSES = Wire("responses", "openai:gpt-4.1", "/v1", (("api", "responses"),))
MESSAGES = Wire("messages", "anthropic:claude-sonnet-4-6", "")
WIRES = (CHAT, RESPONSES, MESSAGES)


def _compatible(reference: str, demands: str | None = None) -> Wire:
    return Wire(reference.partition(":")[0], reference, "/v1", (("api", "chat"),), demands)


DEEPSEEK = _compatible("deepseek:deepseek-reasoner", "deepseek")
MISTRAL = _compatible("mistral:mistral-large-latest", "mistral")
GEMINI = _compatible("gemini:gemini-3-pro", "gemini")
COMPATIBLE = (
    _compatible("azure:gpt-4.1"),
    DEEPSEEK,
    MISTRAL,
    GEMINI,
    _compatible("ollama:gpt-oss:20b", "ollama"),
    _compatible("vllm:qwen3", "vllm"),
    _compatible("llamacpp:gpt-oss-20b", "llama.cpp"),
    _compatible("groq:openai/gpt-oss-120b", "groq"),
    _compatible("openrouter:google/gemini-3-pro", "openrouter"),
    _compatible("together:llama", "together"),
    _compatible("xai:grok-4", "xai"),
)
"""Every profile of an OpenAI-compatible server, with that server's own demands."""


@contextmanager
def served(*script: Any, **options: Any) -> Iterator[StrictServer]:
    """A strict server that must have refused nothing and seen nobody leave early."""
    with StrictServer(script=list(script), **options) as server:
        yield server
        assert server.refusals == []


def play(agent: Agent, way: str, prompt: str = "go", **arguments: Any) -> Outcome:
    """One turn of conversation "c" in one of the four ways."""
    turn = {"conversation": "c", **arguments}
    if way == "run":
        return agent.run(prompt, **turn)
    if way == "stream":
        with agent.stream(prompt, **turn) as events:
            for _ in events:
                pass
        assert events.outcome is not None
        return events.outcome
    return asyncio.run(_later(agent, way, prompt, turn))


async def _later(agent: Agent, way: str, prompt: str, turn: dict[str, Any]) -> Outcome:
    try:
        if way == "arun":
            return await agent.arun(prompt, **turn)
        async with agent.astream(prompt, **turn) as events:
            async for _ in events:
                pass
        assert events.outcome is not None
        return events.outcome
    finally:
        for made in agent._providers.values():
            await made.aclose()


def texts(recorded: Recorded) -> list[tuple[str, str]]:
    """The flattened (role, text) of a request's messages, whatever the API: calls as "call name", results as their text."""
    body = recorded.body
    if recorded.path.endswith("/responses"):
        return [_item(item) for item in body["input"]]
    flat: list[tuple[str, str]] = []
    for message in body["messages"]:
        if message["role"] in ("system", "developer"):
            continue
        content = message.get("content") or []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        flat += [(message["role"], _block(block)) for block in blocks]
        flat += [(message["role"], f"call {call['function']['name']}") for call in message.get("tool_calls") or []]
    return flat


def _item(item: dict[str, Any]) -> tuple[str, str]:
    kind = item.get("type", "message")
    if kind == "function_call":
        return "assistant", f"call {item['name']}"
    if kind == "function_call_output":
        return "tool", str(item["output"])
    if kind == "reasoning":
        return "assistant", "reasoning"
    content = item["content"]
    return item["role"], content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _block(block: dict[str, Any]) -> str:
    match block["type"]:
        case "tool_use":
            return f"call {block['name']}"
        case "tool_result":
            content = block.get("content", "")
            return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
    return str(block.get("text", block["type"]))
