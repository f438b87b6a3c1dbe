"""Recorded sequences: our request after the recorded reply says what the recorded client's next request said.

Both are brought to one form (`same_words`): a field that is null, or stands at its default, is one that is not there,
but for a call's input, where null is a value. What may still differ are the classes in `FORGIVEN`.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from hookloop.testing.server import StrictServer
from hookloop_anthropic import AnthropicProvider, Options
from hookloop_hookspecs import (
    File,
    Image,
    Message,
    ModelRequest,
    Opaque,
    Part,
    Reply,
    Settings,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    json_text,
)

RECORDINGS = Path(__file__).parents[3] / "shared" / "recordings"
ABSENT = "the recordings are not beside this repository"

pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=ABSENT)

Json = dict[str, Any]

FORGIVEN = {
    "reasoning": "we send thinking back, which the API asks for; one client drops what has a signature and no text",
    "blank text": "one client fills a message with a space, which the API has come to refuse",
}
"""The classes of difference that remain, each with its reason. None touches a call or a result."""
DIRECT = {"type": "direct"}
"""Who calls a tool where nobody is named."""


def sequences() -> Iterator[tuple[str, Json, Json]]:
    """Each pair of neighbouring rounds of which both requests were recorded."""
    for file in sorted(RECORDINGS.glob("*/*-msg-*.json")):
        rounds = json.loads(file.read_text("utf-8")).get("rounds", [])
        for first, second in itertools.pairwise(rounds):
            if first["request"] and second["request"] and first["response"]["status"] == 200:
                yield second["id"], first, second


PAIRS = list(sequences()) if RECORDINGS.is_dir() else []


def read_messages(body: Json, family: str) -> list[Message]:
    """A recorded request's messages in the contract's words."""
    return [message for given in body["messages"] for message in read_message(given, family)]


def read_message(given: Json, family: str) -> Iterator[Message]:
    content = given["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if given["role"] == "assistant":
        yield Message.assistant([read_block(block, family) for block in blocks])
        return
    for block in blocks:
        if block["type"] == "tool_result":
            yield Message.tool(read_result(block))
    rest = [read_block(block, family) for block in blocks if block["type"] != "tool_result"]
    if rest:
        yield Message.user(rest)


def read_result(block: Json) -> ToolResult:
    content = block.get("content", "")
    parts = [Text(content)] if isinstance(content, str) else [read_block(part, "") for part in content]
    return ToolResult(block["tool_use_id"], "", tuple(parts), bool(block.get("is_error")))  # type: ignore[arg-type]  # what stands in a result is a part of one


def read_block(block: Json, family: str) -> Part:
    kind = block["type"]
    if kind == "text":
        cited = block.get("citations")
        extra = json_text({"anthropic": {"family": family, "citations": cited}}) if cited else ""
        return Text(block["text"], extra)
    if kind == "thinking":
        return Thinking(block["thinking"], block["signature"], provider="anthropic", family=family)
    if kind == "tool_use":
        return ToolCall(block["id"], block["name"], json_text(block["input"]))
    if kind in ("image", "document") and block["source"]["type"] == "base64":
        source = block["source"]
        return (Image if kind == "image" else File)(source["data"], source["media_type"])
    return Opaque(json_text(block), "anthropic", family)


def read_tools(body: Json) -> tuple[list[ToolSpec], list[Json]]:
    """The client's tools, and the vendor's own."""
    tools = body.get("tools") or []
    own = [tool for tool in tools if "input_schema" in tool]
    specs = [
        ToolSpec(t["name"], t.get("description", ""), json_text(t["input_schema"]), bool(t.get("strict"))) for t in own
    ]
    return specs, [tool for tool in tools if "input_schema" not in tool]


def system_of(body: Json) -> str:
    system = body.get("system") or ""
    return system if isinstance(system, str) else "".join(block["text"] for block in system)


def recorded_reply(exchange: Json, model: str) -> tuple[Reply, str]:
    """The recorded answer through the real SDK, and the family that its thinking is tagged with."""
    sse, body = exchange["response"].get("sse"), exchange["response"].get("body")
    raw = sse.encode("utf-8") if sse is not None else json.dumps(body).encode("utf-8")
    with StrictServer(strict=False) as server:
        server.replay(200, exchange["response"]["headers"], raw)
        transport = "stream" if sse is not None else "whole"
        options = {"api_key": "k", "base_url": server.url, "transport": transport}
        provider = AnthropicProvider(model, Options.model_validate(options))
        *_, reply = provider.stream(ModelRequest(model, "", [Message.user("x")]))
        provider.close()
    assert isinstance(reply, Reply)
    return reply, provider.family


def our_request(first: Json, second: Json) -> Json:
    """What we send after the first round's recorded reply, with what the second round's client added."""
    model = second["request"].get("model") or second["model"]
    reply, family = recorded_reply(first, model)
    before = read_messages(first["request"], family)
    theirs = second["request"]["messages"]
    last = max((at for at, message in enumerate(theirs) if message["role"] == "assistant"), default=-1)
    added = [message for given in theirs[last + 1 :] for message in read_message(given, family)]
    specs, vendors = read_tools(second["request"])
    return sent(
        model, [*before, Message.assistant(reply.content), *added], specs, vendors, system_of(second["request"])
    )


def sent(model: str, messages: Sequence[Message], tools: list[ToolSpec], vendors: list[Json], system: str) -> Json:
    """The body that reaches a server which refuses what the API refuses."""
    with StrictServer(
        [lambda request: "ok"], off=["signature", "thinking_modified", "thinking_off", "unknown_field"]
    ) as server:
        options = {"api_key": "k", "base_url": server.url, "cache": False}
        provider = AnthropicProvider(model, Options.model_validate(options))
        settings = Settings(extra={"tools": vendors} if vendors else {})
        list(provider.stream(ModelRequest(model, system, messages, tuple(tools), settings=settings)))
        provider.close()
        assert not server.refusals
        return server.requests[0].body


def same_words(messages: Sequence[Json]) -> list[Json]:
    """Messages in one form: strings as blocks, without cache marks and defaults, neighbours of one role together."""
    joined: list[Json] = []
    for message in messages:
        blocks = [same_block(block) for block in as_blocks(message["content"])]
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1]["content"] += blocks
        else:
            joined.append({"role": message["role"], "content": blocks})
    return joined


def as_blocks(content: Any) -> list[Json]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return list(content or [])


def same_block(block: Json) -> Json:
    same = {key: same_value(key, value) for key, value in block.items() if key != "cache_control" and value is not None}
    if same["type"] == "tool_result":
        same["content"] = [same_block(part) for part in as_blocks(same.get("content"))]
    defaults = {"is_error": False, "caller": DIRECT}
    return {key: value for key, value in same.items() if key not in defaults or value != defaults[key]}


def same_value(key: str, value: Any) -> Any:
    if key == "input":
        return value
    if isinstance(value, dict):
        return {inner: same_value(inner, held) for inner, held in value.items() if held is not None}
    return [same_value("", held) for held in value] if isinstance(value, list) else value


def forgive(messages: list[Json]) -> tuple[list[Json], set[str]]:
    """The messages without what the forgiven classes touch, and the classes that touched something."""
    used: set[str] = set()
    kept = [{**message, "content": [*forgiven(message["content"], used)]} for message in messages]
    return kept, used


def forgiven(blocks: Sequence[Json], used: set[str]) -> Iterator[Json]:
    for block in blocks:
        if block["type"] == "text" and not block["text"].strip():
            used.add("blank text")
        elif block["type"] == "thinking" and not block["thinking"]:
            used.add("reasoning")
        else:
            yield block


@pytest.mark.parametrize(("first", "second"), [pair[1:] for pair in PAIRS], ids=[pair[0] for pair in PAIRS])
def test_our_next_request_says_what_the_recorded_one_said(first: Json, second: Json) -> None:
    ours, theirs = our_request(first, second), second["request"]
    mine, _ = forgive(same_words(ours["messages"]))
    recorded, _ = forgive(same_words(theirs["messages"]))
    assert mine == recorded
    assert system_of(ours) == system_of(theirs)
    assert ours.get("container") == theirs.get("container")
    assert sorted(tool["name"] for tool in ours.get("tools", [])) == sorted(
        t["name"] for t in theirs.get("tools") or []
    )


def test_each_forgiven_class_is_met() -> None:
    used: set[str] = set()
    for _, first, second in PAIRS:
        for body in (our_request(first, second), second["request"]):
            used |= forgive(same_words(body["messages"]))[1]
    assert used == set(FORGIVEN)
