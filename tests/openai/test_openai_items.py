"""Responses items that are neither text nor a function call: kept as they came, and sent only where a server takes them."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from hookloop.testing import say
from hookloop.testing.server import Raw, StrictServer
from hookloop_hookspecs import Message, ModelRequest, Opaque, Part, Reply, Text, Thinking, ToolResult, json_text

Asking = Callable[..., ModelRequest]
Json = dict[str, Any]
MODEL = "gpt-5.4"
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "get", "arguments": "{}", "status": "completed"}
SEARCH = {"type": "tool_search_call", "id": "tsc_1", "status": "completed", "arguments": {"queries": ["rate"]}}
FOUND = {"type": "tool_search_output", "status": "completed", "tools": [{"type": "function", "name": "rate"}]}

ASKED: dict[str, tuple[Json, Json]] = {
    "local shell": (
        {"type": "local_shell_call", "id": "lsh_1", "call_id": "c9", "status": "completed", "action": {"type": "exec"}},
        {"type": "local_shell_call_output", "id": "lsh_1", "output": "done"},
    ),
    "shell": (
        {"type": "shell_call", "id": "sh_1", "call_id": "c9", "status": "completed", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "call_id": "c9", "output": [{"stdout": "a", "stderr": ""}]},
    ),
    "apply patch": (
        {
            "type": "apply_patch_call",
            "id": "apc_1",
            "call_id": "c9",
            "status": "completed",
            "operation": {"diff": "+a"},
        },
        {"type": "apply_patch_call_output", "call_id": "c9", "status": "completed", "output": ""},
    ),
    "computer": (
        {"type": "computer_call", "id": "cu_1", "call_id": "c9", "status": "completed", "action": {"type": "wait"}},
        {"type": "computer_call_output", "call_id": "c9", "output": {"type": "computer_screenshot"}},
    ),
    "mcp approval": (
        {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "n", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ),
    "tool search": (
        {**SEARCH, "call_id": "c9", "execution": "client"},
        {**FOUND, "call_id": "c9", "execution": "client"},
    ),
}
"""Items that a client has to answer, each with an answer."""

OWN_WORK: dict[str, list[Json]] = {
    "web search": [{"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}],
    "file search": [
        {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["q"], "results": None}
    ],
    "code": [{"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "code": "1", "container_id": "x"}],
    "image": [{"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aGk="}],
    "mcp": [
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
        {"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n", "arguments": "{}", "output": "o"},
    ],
    "compaction": [{"type": "compaction", "id": "cmp_1", "encrypted_content": "secret"}],
    "tool search": [
        {**SEARCH, "call_id": None, "execution": "server"},
        {**FOUND, "id": "tso_1", "call_id": None, "execution": "server"},
    ],
    "hosted shell": [
        {"type": "shell_call", "id": "sh_1", "call_id": "c9", "status": "completed", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "id": "sho_1", "call_id": "c9", "output": [{"stdout": "a", "stderr": ""}]},
    ],
    "program": [
        {"type": "program", "id": "pr_1", "call_id": "c9", "code": "1", "fingerprint": "f"},
        {"type": "program_output", "id": "po_1", "call_id": "c9", "result": "1", "status": "completed"},
    ],
}
"""Items of work that the server did itself."""


def answered(way: Any, asking: Asking, items: list[Json]) -> Reply:
    """The reply that these items are, by whichever transport."""
    body = {"id": "resp_1", "object": "response", "model": MODEL, "status": "completed", "output": items}
    if way.transport == "whole":
        raw = Raw(200, {"content-type": "application/json"}, json.dumps(body).encode())
    else:
        events = [{"type": "response.output_item.done", "output_index": n, "item": i} for n, i in enumerate(items)]
        events.append({"type": "response.completed", "response": body})
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        raw = Raw(200, {"content-type": "text/event-stream"}, lines.encode())
    with StrictServer([raw], strict=False) as server:
        reply = way.ask(server, asking(), model=MODEL, api="responses").reply
    assert isinstance(reply, Reply)
    return reply


def sent(way: Any, asking: Asking, *messages: Message) -> list[Json]:
    """The items that reach a strict server behind the first user message; it did not issue the reasoning itself."""
    with StrictServer([say("ok")], off=["encrypted"]) as server:
        way.ask(server, asking([Message.user("a"), *messages]), model=MODEL, api="responses")
        assert not server.refusals
        body = server.requests[0].body
        assert isinstance(body, dict)
        items: list[Json] = body["input"]
    return items[1:]


def reply_to(reply: Reply, item: Json, *more: Part) -> Message:
    """A user's message that answers the reply's opaque part with an item."""
    part = next(part for part in reply.content if isinstance(part, Opaque))
    return Message.user([replace(part, data=json_text(item)), *more])


@pytest.mark.parametrize("kind", ASKED)
def test_an_item_that_asks_travels_with_its_answer(kind: str, way: Any, asking: Asking) -> None:
    item, answer = ASKED[kind]
    reply = answered(way, asking, [REASONING, item])
    assert (reply.calls, reply.stop, reply.text) == ((), "end", "")
    told = reply_to(reply, answer, Text("go on"))
    spoken = {"role": "user", "content": "go on"}
    assert sent(way, asking, Message.assistant(reply.content), told) == [REASONING, item, answer, spoken]


@pytest.mark.parametrize("kind", ASKED)
def test_an_item_that_asks_is_not_sent_without_its_answer(kind: str, way: Any, asking: Asking) -> None:
    reply = answered(way, asking, [REASONING, ASKED[kind][0]])
    assert sent(way, asking, Message.assistant(reply.content), Message.user("b")) == [{"role": "user", "content": "b"}]


@pytest.mark.parametrize("kind", ASKED)
def test_an_answer_is_not_sent_without_its_item(kind: str, way: Any, asking: Asking) -> None:
    reply = answered(way, asking, [ASKED[kind][0]])
    assert sent(way, asking, reply_to(reply, ASKED[kind][1], Text("b"))) == [{"role": "user", "content": "b"}]


def test_an_item_that_nobody_answers_takes_nothing_from_the_calls_beside_it(way: Any, asking: Asking) -> None:
    reply = answered(way, asking, [REASONING, ASKED["shell"][0], CALL])
    assert [made.id for made in reply.calls] == ["c1"]
    result = Message.tool(ToolResult("c1", "get", (Text("r"),)))
    output = {"type": "function_call_output", "call_id": "c1", "output": "r"}
    assert sent(way, asking, Message.assistant(reply.content), result) == [REASONING, CALL, output]


@pytest.mark.parametrize("kind", OWN_WORK)
def test_what_the_server_did_itself_comes_back_as_it_was(kind: str, way: Any, asking: Asking) -> None:
    items = OWN_WORK[kind]
    said = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "t"}]}
    output = [*items, REASONING, said]
    reply = answered(way, asking, output)
    assert [type(part) for part in reply.content] == [Opaque] * len(items) + [Thinking, Text]
    assert sent(way, asking, Message.assistant(reply.content), Message.user("b"))[:-1] == output


def test_opaque_parts_of_a_users_message(way: Any, asking: Asking) -> None:
    own = answered(way, asking, OWN_WORK["web search"]).content[0]
    assert isinstance(own, Opaque)
    image = {"type": "input_image", "file_id": "file-1", "detail": "auto"}
    asked = Message.user([Text("what is it?"), replace(own, data=json_text(image)), replace(own, provider="other")])
    assert sent(way, asking, asked) == [
        {"role": "user", "content": [{"type": "input_text", "text": "what is it?"}, image]}
    ]


def test_opaque_parts_of_a_users_message_in_chat(way: Any, asking: Asking) -> None:
    part = {"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}
    with StrictServer([say("ok")], strict=False) as server:
        provider = way.provider(server, model="gpt-4.1")
        mine = Opaque(json_text(part), provider._identity.tag, provider.family)
        foreign = Message.user([Text("b"), replace(mine, provider="other")])
        way.run(provider, [asking([Message.user([Text("a"), mine]), foreign])])
        messages = server.requests[0].body["messages"]
    assert [message["content"] for message in messages] == [[{"type": "text", "text": "a"}, part], "b"]
