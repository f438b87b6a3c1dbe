"""Every rule of the Responses API: one request that breaks it and one that obeys it, over HTTP."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from hookloop.testing.server import StrictServer, check_responses
from hookloop.testing.server.rules import RESPONSES

Json = dict[str, Any]
HEADERS = {"authorization": "Bearer k", "content-type": "application/json"}


def ask(*items: Json, **fields: Any) -> Json:
    body: Json = {"model": "gpt-4.1", "input": list(items) or "hi", **fields}
    return {key: value for key, value in body.items() if value is not None}


def user(content: Any = "go") -> Json:
    return {"role": "user", "content": content}


def said(text: str = "yes", **more: Any) -> Json:
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}], **more}


def call(call_id: Any = "c1", **more: Any) -> Json:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}", **more}


def output(call_id: Any = "c1", value: Any = "ok", **more: Any) -> Json:
    return {"type": "function_call_output", "call_id": call_id, "output": value, **more}


def asks(kind: str, **more: Any) -> Json:
    return {"type": f"{kind}_call", "call_id": "c1", "status": "completed", **more}


def answers(kind: str, **more: Any) -> Json:
    return {"type": f"{kind}_call_output", "call_id": "c1", "output": [], "status": "completed", **more}


def picture(url: str = "data:image/png;base64,iVBORw0KGgo=") -> Json:
    return {"type": "input_image", "image_url": url}


def file(data: str = "data:application/pdf;base64,JVBERg==") -> Json:
    return {"type": "input_file", "filename": "a", "file_data": data}


def reasoning(id: str = "rs_1", **more: Any) -> Json:
    return {"type": "reasoning", "id": id, "summary": [], "encrypted_content": "secret", **more}


def tool(name: str = "f", parameters: Any = None, **more: Any) -> Json:
    return {"type": "function", "name": name, "parameters": parameters or {"type": "object", "properties": {}}, **more}


def closed(*required: str) -> Json:
    schema = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}}
    return {**schema, "required": list(required), "additionalProperties": False}


RULES: dict[str, tuple[Json, Json]] = {
    "required": (ask(input=None), ask(user())),
    "unknown_field": (ask(messages=[user()]), ask(instructions="be brief")),
    "max_tokens": (ask(max_output_tokens=15), ask(max_output_tokens=16)),
    "temperature": (ask(model="gpt-5.6", temperature=0.1), ask(model="gpt-5.6", temperature=1)),
    "stream_options": (ask(stream_options={"include_obfuscation": False}), ask()),
    "include": (
        ask(include=["reasoning.encrypted_content"]),
        ask(model="gpt-5.4", include=["reasoning.encrypted_content"]),
    ),
    "item_type": (ask({"type": "tool_result"}), ask({"type": "message", **user()})),
    "item_field": (ask(user(), said(parsed=1), user()), ask(user(), said(id="msg_1", phase=None), user())),
    "item_shape": (ask(user(), output(value=None)), ask(user(), call(), output(value=""))),
    "arguments": (ask(user(), call(arguments={}), output()), ask(user(), call(), output())),
    "content_part": (
        ask(user([{"type": "text", "text": "x"}])),
        ask(user([{"type": "input_text", "text": "x"}]), said(), user()),
    ),
    "image": (
        ask(user(), call(), output(value=[picture("data:image/png;base64,!!!")])),
        ask(user([picture(), picture("https://x.example/a.png")])),
    ),
    "file": (
        ask(user([file("data:application/zip;base64,AAAA")])),
        ask(user([file(), {"type": "input_file", "file_url": "https://x.example/a.pdf"}])),
    ),
    "call_id_long": (ask(user(), call("c" * 65), output("c" * 65)), ask(user(), call("c" * 64), output("c" * 64))),
    "item_id": (ask(user(), call(id="c1"), output()), ask(user(), call(id="fc_1"), output())),
    "item_twice": (ask(user(), said(id="msg_1"), said(id="msg_1")), ask(user(), said(id="msg_1"), said(id="msg_2"))),
    "call_twice": (
        ask(user(), call(), output(), call(), output()),
        ask(user(), call(), output(), call("c2"), output("c2")),
    ),
    "call_orphan": (ask(user(), call(), call("c2"), output()), ask(user(), call(), call("c2"), output("c2"), output())),
    "output_orphan": (ask(user(), output()), ask(user(), call(), output())),
    "tool_shape": (ask(tools=[{"type": "function", "function": {"name": "f"}}]), ask(tools=[tool()])),
    "tool_name": (ask(tools=[tool("a.b")]), ask(tools=[tool("a_b")])),
    "choice_name": (
        ask(tools=[tool()], tool_choice={"type": "function", "name": "g"}),
        ask(tools=[tool()], tool_choice={"type": "function", "name": "f"}),
    ),
    "strict": (
        ask(tools=[tool(parameters=closed("a"), strict=True)]),
        ask(tools=[tool(parameters=closed("a", "b"), strict=True)]),
    ),
    "reasoning_alone": (ask(user(), reasoning(), user()), ask(user(), reasoning(), said(), user())),
}
STATEFUL = {"reasoning_missing", "item_unknown", "encrypted", "previous_unknown"}


def post(server: StrictServer, body: Any, headers: dict[str, str] = HEADERS) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    connection.request("POST", "/v1/responses", json.dumps(body), headers)
    response = connection.getresponse()
    answered = json.loads(response.read())
    connection.close()
    return response.status, answered


@pytest.mark.parametrize("rule", RULES)
def test_what_breaks_a_rule_is_refused_under_its_name(rule: str) -> None:
    with StrictServer(off=("encrypted",)) as server:
        status, answered = post(server, RULES[rule][0])
    refusal = server.refusals[-1]
    assert (status, refusal.rule) == (400, rule)
    assert {violation.rule for violation in refusal.all} == {rule}
    error = answered["error"]
    assert (error["message"], error["type"]) == (refusal.message, "invalid_request_error")
    assert set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("rule", RULES)
def test_what_obeys_the_rule_is_answered(rule: str) -> None:
    with StrictServer(["fine"], off=("encrypted",)) as server:
        status, answered = post(server, RULES[rule][1])
    assert server.refusals == []
    assert (status, answered["output"][0]["content"][0]["text"]) == (200, "fine")


def test_every_rule_has_a_pair() -> None:
    assert set(RULES) | STATEFUL | {"auth"} == set(RESPONSES.rules)


def test_a_key_must_be_sent() -> None:
    with StrictServer() as server:
        assert post(server, ask(), {})[0] == 401
    assert server.refusals[-1].rule == "auth"


FURTHER: list[tuple[str, Json]] = [
    ("required", ask(model=None)),
    ("required", ask(input=["hi"])),
    ("unknown_field", ask(response_format={})),
    ("unknown_field", ask(seed=1)),
    ("max_tokens", ask(max_tokens=100)),
    ("stream_options", ask(stream=True, stream_options={"include_usage": True})),
    ("item_type", ask({"role": "tool", "content": "x"})),
    ("content_part", ask(user(), {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}, user())),
    ("content_part", ask(user(), call(), output(value=[{"type": "output_text", "text": "x"}]))),
    ("item_id", ask(user(), reasoning("abc"), said())),
    ("item_id", ask(user(), said(id="chatcmpl_1"), user())),
    ("item_twice", ask(user(), reasoning(), call(), output(), reasoning(), said(), user())),
    ("call_twice", ask(user(), call(), output(), output())),
    ("image", ask(user([picture("data:image/bmp;base64,AAAA")]))),
    ("image", ask(user([picture("data:image/png;base64,")]))),
    ("image", ask(user([picture("a.png")]))),
    ("file", ask(user([file("data:text/plain;base64,?")]))),
    ("file", ask(user([file("JVBERg==")]))),
    ("file", ask(user([{"type": "input_file"}]))),
    ("output_orphan", ask(user(), output(), call())),
    ("output_orphan", ask(user(), call(), output(), answers("shell", call_id="c2"))),
    ("output_orphan", ask(user(), call(), {**output(), "type": "custom_tool_call_output"})),
    ("call_orphan", ask(user(), {"type": "custom_tool_call", "call_id": "c1", "name": "f", "input": ""})),
    ("call_orphan", ask(user(), asks("shell"), output())),
    ("call_orphan", ask(user(), answers("shell"), asks("shell"))),
    ("item_shape", ask(user(), asks("local_shell", id="lsh_1"), answers("local_shell"))),
    ("tool_name", ask(user(), call(name="a b"), output())),
    ("choice_name", ask(tool_choice="required")),
    ("strict", ask(text={"format": {"type": "json_schema", "name": "o", "strict": True, "schema": closed("a")}})),
    ("reasoning_alone", ask(user(), reasoning())),
]


@pytest.mark.parametrize(("rule", "body"), FURTHER)
def test_further_ways_to_break_a_rule(rule: str, body: Json) -> None:
    assert rule in [violation.rule for violation in check_responses(body)]


VENDOR: dict[str, tuple[Json, Json]] = {
    "local_shell": ({"id": "lsh_1"}, {"id": "lsh_1", "call_id": None, "output": ""}),
    "shell": ({}, {}),
    "apply_patch": ({}, {"output": ""}),
    "computer": ({}, {"output": {"type": "computer_screenshot"}}),
    "custom_tool": ({"status": None, "name": "f", "input": ""}, {"status": None, "output": ""}),
}


@pytest.mark.parametrize("kind", VENDOR)
def test_calls_of_the_vendors_tools_want_their_outputs_too(kind: str) -> None:
    item, told = asks(kind, **VENDOR[kind][0]), answers(kind, **VENDOR[kind][1])
    assert check_responses(ask(user(), item, told, user())) == []
    [violation] = check_responses(ask(user(), item, user()))
    assert violation.rule == "call_orphan"
    assert violation.message == f"No tool output found for {kind.replace('_', ' ')} call c1."


def test_what_the_server_ran_itself_wants_no_output() -> None:
    search = {"type": "tool_search_call", "arguments": {}, "execution": "server"}
    found = {"type": "tool_search_output", "tools": [], "execution": "server"}
    assert check_responses(ask(user(), search, found, said(), user())) == []
    assert check_responses(ask(user(), {"type": "web_search_call", "id": "ws_1"}, said(), user())) == []


def test_what_is_not_stored_is_not_found_without_its_content() -> None:
    body = ask(user(), reasoning(encrypted_content=None), said(), user(), store=False)
    [violation] = check_responses(body)
    assert (violation.rule, violation.status) == ("item_unknown", 404)
    assert check_responses({**body, "store": True}) == []


def test_strange_bodies_are_violations_and_no_crash() -> None:
    odd: list[Any] = [None, 1, "x", [], {}, [None], [[]], {"type": None}, [{"type": []}], {"type": "function"}]
    for value in odd:
        for name in ("input", "tools", "tool_choice", "text", "stream_options", "temperature", "model", "store"):
            check_responses({**ask(tools=[tool()]), name: value})
        check_responses(ask({"role": value, "content": value}, {"type": value}))
        check_responses(ask(call(value, id=value, name=value), output(value, value, id=value)))
