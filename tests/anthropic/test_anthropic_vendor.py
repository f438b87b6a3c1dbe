"""What the vendor's own tools leave in a reply: read alike from both transports, kept, and returned as it came."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from hookloop.testing import say
from hookloop.testing.server import Raw, StrictServer
from hookloop_anthropic import AnthropicProvider, Options
from hookloop_hookspecs import Message, ModelRequest, Opaque, Reply, Settings, Text, ToolResult, ToolSpec, json_text

Json = dict[str, Any]
MODEL = "claude-sonnet-4-6"
WAYS = [f"{mode}-{transport}" for mode in ("sync", "async") for transport in ("stream", "whole")]
CONTAINER = {"id": "container_1", "expires_at": "2026-01-01T00:00:00Z"}
CODE = {"type": "code_execution_20260120", "name": "code_execution"}
TOOL = ToolSpec("roll", "rolls", '{"type":"object","properties":{}}')


def use(name: str, id: str = "srvtoolu_1", **input: Any) -> Json:
    return {"type": "server_tool_use", "id": id, "name": name, "input": input}


def result(kind: str, content: Any, id: str = "srvtoolu_1", **more: Any) -> Json:
    return {"type": f"{kind}_tool_result", "tool_use_id": id, "content": content, **more}


FOUND = {
    "type": "web_search_result",
    "title": "t",
    "url": "https://example.org",
    "encrypted_content": "e",
    "page_age": None,
}
CITED = {
    "type": "text",
    "text": "It is so.",
    "citations": [
        {"type": "web_search_result_location", "url": "https://example.org", "title": "t", "cited_text": "so"},
        {"type": "char_location", "document_index": 0, "cited_text": "is", "start_char_index": 0, "end_char_index": 2},
    ],
}
LISTED = {
    "type": "tool_search_tool_search_result",
    "tool_references": [{"type": "tool_reference", "tool_name": "roll"}],
}

LEFT: dict[str, list[Json]] = {
    "web search": [use("web_search", query="é"), result("web_search", [FOUND]), CITED],
    "web fetch": [
        use("web_fetch", url="https://example.org"),
        result("web_fetch", {"type": "web_fetch_tool_error", "error_code": "url_not_accessible"}),
    ],
    "code execution": [
        use("code_execution", code="print(1)"),
        result("code_execution", {"type": "code_execution_result", "stdout": "1", "stderr": "", "return_code": 0}),
    ],
    "bash": [
        use("bash_code_execution", command="ls"),
        result("bash_code_execution", {"type": "bash_code_execution_result", "stdout": "", "content": []}),
    ],
    "text editor": [
        use("text_editor_code_execution", command="view", path="a"),
        result("text_editor_code_execution", {"type": "text_editor_code_execution_view_result", "content": "a"}),
    ],
    "tool search": [use("tool_search_tool_regex", pattern="r.*"), result("tool_search", LISTED)],
    "mcp": [
        {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": {"a": [1, None]}},
        result("mcp", [{"type": "text", "text": "hi"}], "mcptoolu_1", is_error=False),
    ],
    "compaction": [{"type": "compaction", "content": "so far"}],
    "an unknown kind": [{"type": "novel_block", "id": "n1", "nested": {"a": [1]}}],
}
"""Blocks of a reply, each kind in the form in which it comes."""


@dataclass
class Way:
    """One of the four ways to ask."""

    mode: str
    transport: str

    def ask(self, server: StrictServer, messages: Sequence[Message], **extra: Any) -> Reply:
        options = {"api_key": "k", "base_url": server.url, "transport": self.transport, "retries": 0, "cache": False}
        provider = AnthropicProvider(MODEL, Options.model_validate(options))
        request = ModelRequest(MODEL, "", list(messages), (TOOL,), settings=Settings(extra=extra))
        reply = asyncio.run(_last(provider, request)) if self.mode == "async" else list(provider.stream(request))[-1]
        provider.close()
        assert isinstance(reply, Reply)
        return reply

    def read(self, content: list[Json], stop: str = "end_turn", **more: Any) -> Reply:
        """The reply that these blocks are."""
        body = {
            "type": "message",
            "role": "assistant",
            "model": MODEL,
            "usage": {"input_tokens": 1, "output_tokens": 2},
        }
        whole = {**body, "content": content, "stop_reason": stop, **more}
        kind = "application/json" if self.transport == "whole" else "text/event-stream"
        data = json.dumps(whole) if self.transport == "whole" else streamed(body, content, stop, more)
        with StrictServer([Raw(200, {"content-type": kind}, data.encode())], strict=False) as server:
            return self.ask(server, [Message.user("x")])

    def send(self, reply: Reply, *behind: Message, **extra: Any) -> Json:
        """The body that reaches a strict server when the reply goes back."""
        with StrictServer([say("ok")], off=["block_type", "block_field", "unknown_field"]) as server:
            self.ask(server, [Message.user("x"), Message.assistant(reply.content), *behind], **extra)
            assert not server.refusals
            return server.requests[0].body


async def _last(provider: AnthropicProvider, request: ModelRequest) -> Any:
    items = [item async for item in provider.astream(request)]
    await provider.aclose()
    return items[-1]


def streamed(body: Json, content: list[Json], stop: str, more: Json) -> str:
    """The reply as events: inputs, texts, citations and compactions come in pieces, the container with the end."""
    events: list[Json] = [{"type": "message_start", "message": {**body, "content": []}}]
    for index, block in enumerate(content):
        start, deltas = pieces(block)
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop, **more}, "usage": {"output_tokens": 2}})
    events.append({"type": "message_stop"})
    return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)


def pieces(block: Json) -> tuple[Json, list[Json]]:
    if "input" in block:
        raw = json_text(block["input"])
        return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *raw)]
    if block["type"] == "text":
        cited = [{"type": "citations_delta", "citation": citation} for citation in block.get("citations", [])]
        return {"type": "text", "text": ""}, [
            *cited,
            *({"type": "text_delta", "text": piece} for piece in block["text"]),
        ]
    if block["type"] == "compaction":
        return {**block, "content": None}, [{"type": "compaction_delta", "content": block["content"]}]
    return block, []


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    mode, _, transport = request.param.partition("-")
    return Way(mode, transport)


@pytest.mark.parametrize("kind", LEFT)
def test_blocks_of_the_vendors_tools_return_as_they_came(kind: str, way: Way) -> None:
    content = [*LEFT[kind], {"type": "text", "text": "done"}]
    reply = way.read(content)
    assert (reply.calls, reply.stop, reply.text.endswith("done")) == ((), "end", True)
    assert sum(isinstance(part, Opaque) for part in reply.content) == sum(b["type"] != "text" for b in content)
    assert way.send(reply, Message.user("go on"))["messages"][1]["content"] == content


def test_work_that_waits_in_a_container_goes_on_there(way: Way) -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "srvtoolu_1"}
    call = {"type": "tool_use", "id": "toolu_1", "name": "roll", "input": {}, "caller": caller}
    content = [use("code_execution", code="roll()"), call]
    reply = way.read(content, "tool_use", container=CONTAINER)
    assert [made.id for made in reply.calls] == ["toolu_1"]
    body = way.send(reply, Message.tool(ToolResult("toolu_1", "roll", (Text("6"),))), tools=[CODE])
    assert body["container"] == "container_1"
    assert body["messages"][1]["content"] == content


@pytest.mark.parametrize("content", [LEFT["bash"], [*LEFT["bash"], CITED]], ids=["blocks", "text"])
def test_a_container_returns_whatever_stands_last(content: list[Json], way: Way) -> None:
    reply = way.read(content, "pause_turn", container=CONTAINER)
    assert reply.stop == "pause"
    body = way.send(reply, Message.user("go on"), tools=[CODE])
    assert body["container"] == "container_1"
    assert body["messages"][1]["content"] == content


def test_a_container_is_named_only_beside_tools_that_use_it_and_by_the_caller_first(way: Way) -> None:
    reply = way.read([*LEFT["bash"], CITED], container=CONTAINER)
    behind = Message.user("go on")
    assert "container" not in way.send(reply, behind)
    assert way.send(reply, behind, tools=[CODE], container="mine")["container"] == "mine"
    skills = {"skills": [{"type": "anthropic", "skill_id": "pptx"}]}
    assert way.send(reply, behind, tools=[CODE], container=skills)["container"] == {"id": "container_1", **skills}


def test_a_pause_for_compaction_is_sent_back(way: Way) -> None:
    assert way.read(LEFT["compaction"], "compaction").stop == "pause"


MCP = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": {}}


@pytest.mark.parametrize("waiting", [use("web_search", query="x"), MCP], ids=["server", "mcp"])
def test_f14_a_call_of_the_vendors_that_waits_is_a_pause(waiting: Json, way: Way) -> None:
    content = [{"type": "text", "text": "I look."}, *LEFT["bash"], {**waiting, "id": waiting["id"] + "9"}]
    reply = way.read(content, "tool_use")
    assert (reply.stop, reply.raw_stop, reply.calls, reply.cut) == ("pause", "tool_use", (), False)
    assert way.send(reply)["messages"][-1] == {"role": "assistant", "content": content}


@pytest.mark.parametrize("content", [[CITED], [*LEFT["bash"], CITED]], ids=["text", "answered"])
def test_f14_nothing_waits_where_every_call_is_answered(content: list[Json], way: Way) -> None:
    assert way.read(content, "tool_use").stop == "end"


def test_f14_our_own_calls_come_first(way: Way) -> None:
    call = {"type": "tool_use", "id": "toolu_1", "name": "roll", "input": {}}
    reply = way.read([use("web_search", query="x"), call], "tool_use")
    assert (reply.stop, [made.id for made in reply.calls]) == ("calls", ["toolu_1"])


def test_f14_an_end_is_an_end_whatever_waits(way: Way) -> None:
    assert way.read([use("web_search", query="x")], "end_turn").stop == "end"
    assert way.read([use("web_search", query="x")], "max_tokens").stop == "length"
