"""Agents on real SDKs against the strict local server: one table of providers and transports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hookloop import provider
from hookloop.testing.server import Recorded, StrictServer


@dataclass(frozen=True)
class Wire:
    """A provider as the tests use it: reference, where its API lies under the server's URL, and its options."""

    name: str
    reference: str
    path: str
    options: tuple[tuple[str, Any], ...] = ()

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


@contextmanager
def served(*script: Any, **options: Any) -> Iterator[StrictServer]:
    """A strict server that must have refused nothing and seen nobody leave early."""
    with StrictServer(script=list(script), **options) as server:
        yield server
        assert server.refusals == []


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
