"""Recorded answers, varied as other servers vary them: what is read stays the same.

The recordings stand beside the repository, in ../shared/recordings; where they are absent these tests are skipped.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from hookloop.testing import say
from hookloop.testing.server import Raw, StrictServer
from hookloop_hookspecs import Message, Reply, Text, ToolCall, ToolResult, ToolSpec
from hookloop_openai import OpenAIProvider, factories

ROOT = Path(__file__).parents[2].parent / "shared" / "recordings"
Json = dict[str, Any]
Events = list[tuple[str, Any]]

pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason="../shared/recordings is absent")

PLAIN = ("arguments", "input", "tools", "parameters", "action", "metadata", "content")
"""Values that are the model's own or the caller's: nothing is added inside them."""


def exchanges() -> Iterator[Json]:
    for line in json.loads((ROOT / "index.json").read_text()) if ROOT.is_dir() else ():
        recorded = json.loads((ROOT / line["file"]).read_text())
        for exchange in recorded.get("rounds", [recorded]) if line["api"] != "messages" else ():
            if not exchange["expect"].get("error") and exchange["expect"]["finish"] != "queued":
                yield exchange


def each(value: Any, change: Callable[[Json], Json]) -> Any:
    """The value with every object in it changed, from the inside."""
    if isinstance(value, dict):
        return change({key: inner if key in PLAIN[:-1] else each(inner, change) for key, inner in value.items()})
    return [each(inner, change) for inner in value] if isinstance(value, list) else value


def without(*names: str) -> Callable[[Any], Any]:
    return lambda value: each(value, lambda found: {k: v for k, v in found.items() if k not in names})


def renamed(old: str, new: str) -> Callable[[Any], Any]:
    return lambda value: each(value, lambda found: {new if k == old else k: v for k, v in found.items()})


def without_nulls(value: Any) -> Any:
    return each(value, lambda found: {k: v for k, v in found.items() if v is not None})


def with_more(value: Any) -> Any:
    """Fields that nobody knows, in every object but those that a server echoes to its caller."""
    more = {"x_unknown": {"a": [1]}, "x_null": None}
    if isinstance(value, dict):
        return {key: inner if key in PLAIN else with_more(inner) for key, inner in value.items()} | more
    return [with_more(inner) for inner in value] if isinstance(value, list) else value


BODIES: dict[str, Callable[[Any], Any]] = {
    "no nulls": without_nulls,
    "more fields": with_more,
    "no numbers and no padding": without("sequence_number", "obfuscation"),
    "reasoning under its other name": renamed("reasoning", "reasoning_content"),
    "reasoning under its first name": renamed("reasoning_content", "reasoning"),
}
"""Changes of a JSON value."""
LATE = {"response.output_item.added", "response.content_part.added", "response.in_progress"}


def split(sse: str) -> Events:
    """The events as (name, value); a value that is no JSON stays a text."""
    found: Events = []
    for block in sse.replace("\r\n", "\n").split("\n\n"):
        lines = block.split("\n")
        data = "\n".join(line[5:].strip() for line in lines if line.startswith("data:"))
        name = next((line[6:].strip() for line in lines if line.startswith("event:")), "")
        if data:
            found.append((name, json.loads(data) if data.startswith("{") else data))
    return found


def joined(events: Events, *, names: bool = True, end: str = "\n", between: str = "") -> bytes:
    texts = [
        (f"event: {name}{end}" if name and names else "")
        + f"data: {value if isinstance(value, str) else json.dumps(value)}{end}{end}{between}"
        for name, value in events
    ]
    return "".join(texts).encode()


def streams(sse: str, responses: bool) -> Iterator[tuple[str, bytes]]:
    """The stream as other servers would send it."""
    events = split(sse)
    for name, change in BODIES.items():
        if responses <= ("reasoning" not in name):
            yield name, joined([(event, change(value)) for event, value in events])
    yield "without names" if responses else "as it was", joined(events, names=not responses)
    yield "other line ends", joined(events, end="\r\n")
    yield "comments between", joined(events, between=": wait\n\n")
    yield "events that nobody knows", joined([pair for event in events for pair in (event, ("", {"type": "novel"}))])
    if responses:
        yield "nothing announced", joined([(n, v) for n, v in events if v.get("type") not in LATE])
        yield "only the ends", joined([(n, v) for n, v in events if not v["type"].endswith(".delta")])
        yield "no places", joined([(n, without("output_index")(v)) for n, v in events])


def variations(exchange: Json) -> Iterator[tuple[str, bytes]]:
    response, responses = exchange["response"], exchange["api"] == "responses"
    if response.get("sse") is not None:
        yield from streams(response["sse"], responses)
    elif isinstance(response["body"], dict):
        for name, change in BODIES.items():
            if responses <= ("reasoning" not in name):
                yield name, json.dumps(change(response["body"])).encode()


def provider_of(exchange: Json, server: StrictServer) -> OpenAIProvider:
    api = "responses" if exchange["api"] == "responses" else "chat"
    given = {"base_url": f"{server.url}/v1", "api_key": "test-key-1", "api": api, "retries": 0}
    given["profile"] = "openai" if api == "responses" else "openrouter"
    factory: Any = factories.openai
    made = factory(exchange["model"] or "m", factory.Options(**given))
    assert isinstance(made, OpenAIProvider)
    return made


def read(exchange: Json, body: bytes, asking: Any, ways: Any) -> Reply:
    response = exchange["response"]
    with StrictServer([Raw(200, response["headers"], body)], strict=False) as server:
        reply = ways("sync-stream").run(provider_of(exchange, server), [asking()])[0].reply
    assert isinstance(reply, Reply)
    return reply


def meaning(reply: Reply) -> Any:
    """What a caller reads of a reply."""
    calls = [(call.id, call.name, call.raw) for call in reply.calls]
    thoughts = [getattr(part, "text", "") for part in reply.content if part.type == "thinking"]
    kinds = [part.type for part in reply.content]
    return reply.text, calls, thoughts, kinds, reply.stop, reply.raw_stop, reply.usage, reply.model


@pytest.mark.parametrize("exchange", list(exchanges()), ids=lambda exchange: exchange["id"])
def test_a_varied_answer_is_read_as_the_recorded_one(exchange: Json, asking: Any, ways: Any) -> None:
    response = exchange["response"]
    recorded = response["sse"] if response.get("sse") is not None else json.dumps(response["body"])
    expected = meaning(read(exchange, recorded.encode(), asking, ways))
    for name, body in variations(exchange):
        assert (name, meaning(read(exchange, body, asking, ways))) == (name, expected)


@pytest.mark.parametrize("exchange", list(exchanges()), ids=lambda exchange: exchange["id"])
def test_a_strict_server_takes_the_recorded_reply_back(exchange: Json, asking: Any, ways: Any) -> None:
    response = exchange["response"]
    recorded = response["sse"] if response.get("sse") is not None else json.dumps(response["body"])
    reply = read(exchange, recorded.encode(), asking, ways)
    results = [Message.tool(ToolResult(call.id, call.name, (Text("r"),))) for call in reply.calls]
    history = [Message.user("a"), Message.assistant(reply.content), *results, Message.user("b")]
    tools = tuple(ToolSpec(name, "", '{"type":"object","properties":{}}') for name in {c.name for c in reply.calls})
    profile = None if exchange["api"] == "responses" else "openrouter"
    with StrictServer([say("ok")], off=["encrypted", "tools_effort"], profile=profile) as server:
        ways("sync-stream").run(provider_of(exchange, server), [asking(history, tools=tools)])
        assert not server.refusals


def test_only_the_first_of_choices_without_a_number_counts(asking: Any, ways: Any) -> None:
    body = {"choices": [{"message": {"content": text}, "finish_reason": "stop"} for text in ("a", "b")]}
    exchange = {"api": "chat", "model": "m", "response": {"headers": {"content-type": "application/json"}}}
    assert read(exchange, json.dumps(body).encode(), asking, ways).text == "a"


@pytest.mark.parametrize("text", ["print(1)", "", '"quoted"', '{"a": 1}'])
def test_a_custom_tools_call_in_chat_goes_back_as_one(text: str, way: Any, asking: Any) -> None:
    entry = {"index": 0, "id": "c1", "type": "custom", "custom": {"name": "run", "input": text}}
    choice = {"index": 0, "finish_reason": "tool_calls"}
    shapes: dict[str, Json] = {"stream": {**choice, "delta": {"tool_calls": [entry]}}}
    shapes["whole"] = {**choice, "message": {"tool_calls": [entry]}}
    data = json.dumps({"choices": [shapes[way.transport]]})
    kind = "application/json" if way.transport == "whole" else "text/event-stream"
    raw = Raw(200, {"content-type": kind}, (data if way.transport == "whole" else f"data: {data}\n\n").encode())
    with StrictServer([raw], strict=False) as server:
        reply = way.ask(server)
    call = reply.reply.calls[0]
    assert isinstance(call, ToolCall)
    assert (call.id, call.name, call.raw) == ("c1", "run", text)
    result = Message.tool(ToolResult("c1", "run", (Text("1"),)))
    with StrictServer([say("ok")]) as server:
        way.ask(server, asking([Message.user("a"), Message.assistant(reply.reply.content), result]))
        assert not server.refusals
        sent = server.requests[0].body["messages"][1]["tool_calls"]
    assert sent == [{"id": "c1", "type": "custom", "custom": {"name": "run", "input": text}}]


def test_an_empty_custom_beside_a_function_is_nothing(asking: Any, ways: Any) -> None:
    function = {"name": "get", "arguments": '{"x":1}'}
    entry = {"id": "c1", "type": "function", "function": function, "custom": {"name": "", "input": ""}}
    body = {"choices": [{"message": {"tool_calls": [entry]}, "finish_reason": "tool_calls"}]}
    exchange = {"api": "chat", "model": "m", "response": {"headers": {"content-type": "application/json"}}}
    reply = read(exchange, json.dumps(body).encode(), asking, ways)
    assert [(call.name, call.raw, call.extra) for call in reply.calls] == [("get", '{"x":1}', "")]
