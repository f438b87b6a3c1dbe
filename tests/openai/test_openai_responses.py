"""Responses: items travel whole and in order, streams must end, and what others made is written anew."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from hookloop.testing import call, say, think
from hookloop.testing.server import DONE, Cut, Sse, StrictServer, ant
from hookloop_hookspecs import (
    Image,
    Message,
    ModelRequest,
    Opaque,
    Origin,
    ProviderError,
    Reply,
    Settings,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from hookloop_openai import OpenAIProvider

Asking = Callable[..., ModelRequest]
SCHEMA = '{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}'
TOOLS = (ToolSpec("get", "gets", SCHEMA), ToolSpec("put", "puts", SCHEMA))
MODEL = "gpt-5.4"


def message(text: str, id: str = "msg_1", **more: Any) -> dict[str, Any]:
    part: dict[str, Any] = {"type": "output_text", "annotations": [], "text": text}
    return {"type": "message", "id": id, "role": "assistant", "status": "completed", "content": [part], **more}


def function_call(raw: str, id: str = "fc_1", call_id: str = "c1", **more: Any) -> dict[str, Any]:
    said = {
        "type": "function_call",
        "id": id,
        "call_id": call_id,
        "name": "get",
        "arguments": raw,
        "status": "completed",
    }
    return said | more


def reasoning(id: str = "rs_1", secret: str | None = "secret", text: str = "") -> dict[str, Any]:
    summary = [{"type": "summary_text", "text": text}] if text else []
    return {"type": "reasoning", "id": id, "summary": summary, "encrypted_content": secret}


def response(*output: dict[str, Any], status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"id": "resp_1", "object": "response", "model": MODEL, "status": status, "output": list(output), **more}


def done(index: int, item: dict[str, Any]) -> dict[str, Any]:
    return ant("response.output_item.done", output_index=index, item=item)


def ended(body: dict[str, Any]) -> dict[str, Any]:
    return ant(f"response.{body['status']}", response=body)


def asked(way: Any, asking: Asking, events: list[Any], body: dict[str, Any]) -> Reply:
    with StrictServer([Sse(events, whole=body)]) as server:
        reply: Reply = way.ask(server, asking(tools=TOOLS), model=MODEL).reply
    return reply


def asked_items(way: Any, asking: Asking, *items: dict[str, Any], **more: Any) -> Reply:
    """The reply to these items, each announced as done."""
    body = response(*items, **more)
    return asked(way, asking, [*(done(index, item) for index, item in enumerate(items)), ended(body)], body)


def loop(way: Any, asking: Asking, server: StrictServer, rounds: int, **options: Any) -> list[Message]:
    """A small loop: ask, answer every call, until there is none."""
    provider: OpenAIProvider = way.provider(server, model=MODEL, **options)
    history = [Message.user("go")]
    for _ in range(rounds):
        reply = way.run(provider, [asking(list(history), tools=TOOLS, system="be kind")])[0].reply
        history.append(Message("assistant", reply.content, Origin("model", model=provider.reference)))
        history += [Message.tool(ToolResult(made.id, made.name, (Text("r"),))) for made in reply.calls]
        history += [] if reply.calls else [Message.user("and?")]
    return history


def test_conversation_with_reasoning_is_accepted_and_only_grows(way: Any, asking: Asking) -> None:
    script: list[Any] = [
        [think("a"), call("get", {"x": 1}, id="c1"), call("put", {"x": 2}, id="c2")],
        [think("b"), call("get", {"x": 3}, id="c3")],
        [think("c"), say("done")],
        say("more"),
    ]
    with StrictServer(script) as server:
        loop(way, asking, server, 4)
        assert not server.refusals
        inputs = [request.body["input"] for request in server.requests]
    for before, after in itertools.pairwise(inputs):
        assert after[: len(before)] == before
    kinds = [item.get("type", item.get("role")) for item in inputs[3]]
    once = ["reasoning", "function_call", "function_call_output"]
    assert kinds == [
        "user",
        "reasoning",
        "function_call",
        "function_call",
        *["function_call_output"] * 2,
        *once,
        "reasoning",
        "message",
        "user",
    ]
    assert server.requests[0].body["store"] is False
    assert server.requests[0].body["include"] == ["reasoning.encrypted_content"]
    assert server.requests[0].body["instructions"] == "be kind"


def test_reasoning_goes_back_byte_for_byte(way: Any, asking: Asking) -> None:
    thought, said = reasoning(text="hm"), function_call('{ "x": 1 }', namespace="n")
    reply = asked_items(way, asking, thought, said)
    history = [
        Message.user("go"),
        Message("assistant", reply.content),
        Message.tool(ToolResult("c1", "get", (Text("r"),))),
    ]
    with StrictServer([say("ok")], strict=False) as server:
        way.ask(server, asking(history, tools=TOOLS), model=MODEL)
        items = server.requests[0].body["input"]
    assert items[1] == thought
    assert items[2] == said
    assert [part.text for part in reply.content if isinstance(part, Thinking)] == ["hm"]


def test_reasoning_that_is_not_encrypted_stays_away_and_takes_the_ids_along(way: Any, asking: Asking) -> None:
    reply = asked_items(way, asking, reasoning(secret=None), function_call('{"x":1}'))
    history = [
        Message.user("go"),
        Message("assistant", reply.content),
        Message.tool(ToolResult("c1", "get", (Text("r"),))),
    ]
    with StrictServer([say("ok")]) as server:
        way.ask(server, asking(history, tools=TOOLS), model=MODEL)
        assert not server.refusals
        items = server.requests[0].body["input"]
    assert [item.get("type", item.get("role")) for item in items] == ["user", "function_call", "function_call_output"]
    assert "id" not in items[1]


def test_reasoning_never_goes_alone(way: Any, asking: Asking) -> None:
    reply = asked_items(
        way, asking, reasoning(), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    )
    assert (reply.stop, reply.cut, reply.raw_stop) == ("length", True, "incomplete")
    history = [Message.user("go"), Message("assistant", reply.content), Message.user("go on")]
    with StrictServer([say("ok")], strict=False) as server:
        way.ask(server, asking(history), model=MODEL)
    assert [item["role"] for item in server.requests[0].body["input"]] == ["user", "user"]


def test_items_of_another_family_or_endpoint_are_written_anew(way: Any, asking: Asking) -> None:
    reply = asked_items(way, asking, reasoning(), message("hello"), function_call('{"x":1}'))
    history = [
        Message.user("go"),
        Message("assistant", reply.content),
        Message.tool(ToolResult("c1", "get", (Text("r"),))),
    ]
    with StrictServer([say("ok")]) as server:
        way.ask(server, asking(history, tools=TOOLS), model="gpt-5.5")
        assert not server.refusals
        items = server.requests[0].body["input"]
    assert items[1:3] == [
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hello"}]},
        {"type": "function_call", "call_id": "c1", "name": "get", "arguments": '{"x":1}'},
    ]


def test_message_items_keep_what_they_came_with(way: Any, asking: Asking) -> None:
    item = message("hello", phase="final_answer")
    reply = asked_items(way, asking, item)
    with StrictServer([say("ok")]) as server:
        way.ask(
            server, asking([Message.user("a"), Message("assistant", reply.content), Message.user("b")]), model=MODEL
        )
        assert server.requests[0].body["input"][1] == item


def test_text_that_a_plugin_replaced_is_what_goes_out(way: Any, asking: Asking) -> None:
    two = message("my secret")
    two["content"].append({"type": "output_text", "annotations": [], "text": " is out"})
    for item in (message("my secret is out"), two):
        reply = asked_items(way, asking, item)
        part = reply.content[0]
        assert isinstance(part, Text)
        assert part.text == "my secret is out"
        changed = Message("assistant", (Text("[redacted]", part.extra),))
        with StrictServer([say("ok")]) as server:
            way.ask(server, asking([Message.user("a"), changed, Message.user("b")]), model=MODEL)
            wire = json.dumps(server.requests[0].body)
        assert "secret" not in wire
        assert "[redacted]" in wire


def test_server_tools_are_kept_and_echoed(way: Any, asking: Asking) -> None:
    search = {
        "type": "web_search_call",
        "id": "ws_1",
        "status": "completed",
        "action": {"type": "search", "query": "q"},
    }
    reply = asked_items(way, asking, search, message("found"))
    assert [type(part) for part in reply.content] == [Opaque, Text]
    assert (reply.stop, reply.calls) == ("end", ())
    with StrictServer([say("ok")]) as server:
        way.ask(
            server, asking([Message.user("a"), Message("assistant", reply.content), Message.user("b")]), model=MODEL
        )
        assert server.requests[0].body["input"][1] == search


def test_items_that_want_an_answer_of_their_own_are_not_echoed(way: Any, asking: Asking) -> None:
    shell = {"type": "local_shell_call", "id": "lsh_1", "call_id": "c9", "status": "completed", "action": {}}
    reply = asked_items(way, asking, reasoning(), shell)
    with StrictServer([say("ok")]) as server:
        way.ask(
            server, asking([Message.user("a"), Message("assistant", reply.content), Message.user("b")]), model=MODEL
        )
        assert not server.refusals
        assert len(server.requests[0].body["input"]) == 2


def test_custom_tool_call_is_a_call_and_answered_as_one(way: Any, asking: Asking) -> None:
    custom = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c1", "name": "run", "input": "print(1)"}
    reply = asked_items(way, asking, custom)
    assert [(made.id, made.name, made.raw) for made in reply.calls] == [("c1", "run", "print(1)")]
    history = [
        Message.user("a"),
        Message("assistant", reply.content),
        Message.tool(ToolResult("c1", "run", (Text("1"),))),
    ]
    with StrictServer([say("ok")]) as server:
        way.ask(server, asking(history), model=MODEL)
        assert not server.refusals
        assert server.requests[0].body["input"][1:] == [
            custom,
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "1"},
        ]


def test_arguments_only_in_the_done_event(streaming: Any, asking: Asking) -> None:
    added = ant("response.output_item.added", output_index=0, item=function_call("", status="in_progress"))
    told = ant("response.function_call_arguments.done", output_index=0, item_id="fc_1", arguments='{"x":1}')
    reply = asked(streaming, asking, [added, told, ended(response())], {})
    assert [(made.id, made.name, made.raw) for made in reply.calls] == [("c1", "get", '{"x":1}')]


def test_item_is_taken_from_done_not_from_added(streaming: Any, asking: Asking) -> None:
    added = ant("response.output_item.added", output_index=0, item=reasoning(secret="half"))
    reply = asked(
        streaming, asking, [added, done(0, reasoning(secret="whole")), done(1, message("hi")), ended(response())], {}
    )
    assert '"whole"' in str(reply.content[0])
    assert "half" not in str(reply.content[0])


def test_items_only_in_the_last_event(streaming: Any, asking: Asking) -> None:
    body = response(reasoning(text="hm"), message("hi"), function_call('{"x":1}'))
    with StrictServer([Sse([ended(body)])]) as server:
        answer = streaming.ask(server, asking(tools=TOOLS), model=MODEL)
    assert (answer.text, answer.thinking, answer.arguments) == ("hi", "hm", ['{"x":1}'])
    assert [type(part) for part in answer.reply.content] == [Thinking, Text, ToolCall]


def test_order_is_the_servers_whatever_is_done_first(streaming: Any, asking: Asking) -> None:
    items = [reasoning(), message("hi"), function_call('{"x":1}')]
    events = [*(done(index, items[index]) for index in (2, 0, 1)), ended(response(*items))]
    reply = asked(streaming, asking, events, {})
    assert [type(part) for part in reply.content] == [Thinking, Text, ToolCall]


def test_unknown_events_are_ignored(streaming: Any, asking: Asking) -> None:
    events = [
        ant("keepalive", sequence_number=1),
        ant("response.new.thing", delta="x"),
        done(0, message("hi")),
        ended(response()),
    ]
    assert asked(streaming, asking, events, {}).text == "hi"


def test_summaries_of_several_parts_are_apart(streaming: Any, asking: Asking) -> None:
    item = reasoning()
    item["summary"] = [{"type": "summary_text", "text": text} for text in ("one", "two")]
    pieces: list[tuple[str, dict[str, Any]]] = [
        ("part.added", {}),
        ("text.delta", {"delta": "one"}),
        ("part.added", {"summary_index": 1}),
        ("text.delta", {"summary_index": 1, "delta": "two"}),
    ]
    events = [ant(f"response.reasoning_summary_{name}", output_index=0, **fields) for name, fields in pieces]
    with StrictServer([Sse([*events, done(0, item), ended(response())])]) as server:
        answer = streaming.ask(server, model=MODEL)
    assert answer.thinking == "one\n\ntwo"
    assert [part.text for part in answer.reply.content if isinstance(part, Thinking)] == ["one\n\ntwo"]


def test_stream_without_its_terminal_event(streaming: Any, asking: Asking) -> None:
    with (
        StrictServer([Sse([done(0, message("hi")), "data: [DONE]\n\n"])]) as server,
        pytest.raises(ProviderError) as raised,
    ):
        streaming.ask(server, model=MODEL)
    assert (raised.value.kind, raised.value.retryable) == ("stream", True)
    assert raised.value.partial is not None
    assert raised.value.partial.text == "hi"


@pytest.mark.parametrize("how", ["reset", "close", "eof"])
@pytest.mark.parametrize("rest", [": still here\n\n", 'data: {"type":"respon'])
def test_F15_what_breaks_behind_the_terminal_event_does_not_matter(
    streaming: Any, asking: Asking, how: Any, rest: str
) -> None:
    with StrictServer([Cut(Sse([done(0, message("hi")), ended(response()), rest, DONE]), after=3, how=how)]) as server:
        assert streaming.ask(server, model=MODEL).reply.text == "hi"


@pytest.mark.parametrize("how", ["reset", "close", "eof"])
def test_F15_items_that_are_done_are_no_reply_without_the_terminal_event(
    streaming: Any, asking: Asking, how: Any
) -> None:
    cut = Cut(Sse([done(0, message("hi")), ended(response())]), after=1, how=how)
    with StrictServer([cut]) as server, pytest.raises(ProviderError):
        streaming.ask(server, model=MODEL)


@pytest.mark.parametrize("status", ["queued", "in_progress"])
def test_response_that_is_not_finished_is_no_answer(ways: Any, asking: Asking, status: str) -> None:
    for name in ("sync-whole", "async-whole"):
        with pytest.raises(ProviderError):
            asked(ways(name), asking, [], response(status=status))


@pytest.mark.parametrize(
    ("code", "kind", "retryable"),
    [
        ("server_error", "server", True),
        ("rate_limit_exceeded", "rate_limit", True),
        ("invalid_prompt", "invalid", False),
    ],
)
def test_failed_response(way: Any, asking: Asking, code: str, kind: str, retryable: bool) -> None:
    body = response(status="failed", error={"code": code, "message": "went wrong"})
    with pytest.raises(ProviderError, match="went wrong") as raised:
        asked(way, asking, [ended(body)], body)
    assert (raised.value.kind, raised.value.retryable) == (kind, retryable)


def test_error_event(streaming: Any, asking: Asking) -> None:
    events = [done(0, message("part")), ant("error", code="server_error", message="broke", param=None)]
    with pytest.raises(ProviderError, match="broke") as raised:
        asked(streaming, asking, events, {})
    assert raised.value.retryable


@pytest.mark.parametrize(
    ("reason", "stop"), [("max_output_tokens", "length"), ("content_filter", "filter"), ("new", "length")]
)
def test_incomplete_response_is_cut(way: Any, asking: Asking, reason: str, stop: str) -> None:
    cut = function_call('{"x":', status="incomplete")
    reply = asked_items(way, asking, cut, status="incomplete", incomplete_details={"reason": reason})
    assert (reply.stop, reply.cut) == (stop, True)
    history = [
        Message.user("a"),
        Message("assistant", reply.content),
        Message.tool(ToolResult("c1", "get", (Text("cut"),))),
    ]
    with StrictServer([say("ok")]) as server:
        way.ask(server, asking(history), model=MODEL)
        assert server.requests[0].body["input"][1]["arguments"] == "{}"


def test_refusal(way: Any, asking: Asking) -> None:
    item = message("")
    item["content"] = [{"type": "refusal", "refusal": "I can't."}]
    reply = asked_items(way, asking, item)
    assert (reply.stop, reply.text) == ("refusal", "")
    assert "I can't." in reply.content[0].data  # type: ignore[union-attr] # the item as it came


def test_usage_is_exact_and_unknown_is_none(way: Any, asking: Asking) -> None:
    said = {
        "input_tokens": 88,
        "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 3},
        "output_tokens": 14,
        "output_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 102,
    }
    usage = asked_items(way, asking, message("hi"), usage=said).usage
    assert (usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning, usage.total) == (
        88,
        14,
        8,
        3,
        4,
        102,
    )
    assert asked_items(way, asking, message("hi")).usage.input is None


def test_what_is_asked_for(way: Any, asking: Asking) -> None:
    settings = Settings(max_tokens=4, effort="low", parallel=False, temperature=0.5, stop=("x",), seed=1)
    request = asking(
        tools=TOOLS,
        tool_choice="required",
        allowed=frozenset({"put"}),
        settings=settings,
        output=SCHEMA,
        output_name="answer",
    )
    with StrictServer([say("ok")]) as server:
        way.ask(server, request, model=MODEL)
        assert not server.refusals
        body = server.requests[0].body
    assert body["max_output_tokens"] == 16
    assert body["reasoning"] == {"effort": "low"}
    assert body["parallel_tool_calls"] is False
    assert {"temperature", "stop", "seed", "messages"}.isdisjoint(body)
    assert [(tool["type"], tool["name"], tool["strict"]) for tool in body["tools"]] == [
        ("function", "get", False),
        ("function", "put", False),
    ]
    assert body["tool_choice"] == {
        "type": "allowed_tools",
        "mode": "required",
        "tools": [{"type": "function", "name": "put"}],
    }
    assert body["text"]["format"]["name"] == "answer"


def test_images_of_results_stand_in_the_output(way: Any, asking: Asking) -> None:
    image = Message.tool(ToolResult("c1", "get", (Text("see"), Image("aGk="))))
    history = [
        Message.user([Text("look"), Image(url="https://x.example/a.png")]),
        Message("assistant", (ToolCall("c1", "get"),)),
        image,
    ]
    with StrictServer([say("ok")] * 2) as server:
        way.ask(server, asking(history), model=MODEL)
        way.ask(server, asking(history), model=MODEL, vision=False)
        assert not server.refusals
        seen, blind = (request.body["input"] for request in server.requests)
    assert [part["type"] for part in seen[2]["output"]] == ["input_text", "input_image"]
    assert "input_image" not in json.dumps(blind)


def test_repeated_item_ids_are_sent_once(way: Any, asking: Asking) -> None:
    first, second = asked_items(way, asking, message("one")), asked_items(way, asking, message("two"))
    history = [
        Message.user("a"),
        Message("assistant", first.content),
        Message.user("b"),
        Message("assistant", second.content),
        Message.user("c"),
    ]
    with StrictServer([say("ok")]) as server:
        way.ask(server, asking(history), model=MODEL)
        assert not server.refusals
        assert [item.get("id") for item in server.requests[0].body["input"]] == [None, "msg_1", None, None, None]


def test_conversation_may_change_its_api(way: Any, asking: Asking) -> None:
    script: list[Any] = [
        [think("a"), call("get", {"x": 1}, id="c1")],
        [say("t"), call("put", {"x": 1}, id="c2")],
        say("ok"),
    ]
    with StrictServer(script) as server:
        history = [Message.user("go")]
        for options in ({"model": MODEL}, {"model": "gpt-4.1"}, {"model": MODEL}):
            reply = way.ask(server, asking(list(history), tools=TOOLS), **options).reply
            history.append(Message("assistant", reply.content, Origin("model", model=f"openai:{options['model']}")))
            history += [Message.tool(ToolResult(made.id, made.name, (Text("r"),))) for made in reply.calls]
        assert not server.refusals
        first, last = server.requests[1].body["messages"], server.requests[2].body["input"]
    assert [entry["role"] for entry in first] == ["user", "assistant", "tool"]
    assert [item.get("type", item.get("role")) for item in last[:3]] == ["user", "reasoning", "function_call"]
