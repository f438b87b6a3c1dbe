"""Every rule of the Messages API: one request that breaks it and one that obeys it, over HTTP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest

from hookloop.testing.server import StrictServer, check_messages
from hookloop.testing.server.rules import MESSAGES

Json = dict[str, Any]
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
PIXEL = "iVBORw0KGgo="


def ask(*messages: Json, **fields: Any) -> Json:
    body: Json = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 2000,
        "messages": list(messages) or [user("hi")],
        **fields,
    }
    return {key: value for key, value in body.items() if value is not None}


def user(*content: Any) -> Json:
    return {"role": "user", "content": content[0] if content and isinstance(content[0], str) else list(content)}


def says(*content: Any) -> Json:
    return {**user(*content), "role": "assistant"}


def system(text: str) -> Json:
    return {"role": "system", "content": text}


def text(words: str, **more: Any) -> Json:
    return {"type": "text", "text": words, **more}


def use(id: str = "t1", name: str = "f", **more: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": {}, **more}


def result(id: str = "t1", content: Any = "ok", **more: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def thought(words: str = "hm", signature: str = "s") -> Json:
    return {"type": "thinking", "thinking": words, "signature": signature}


def document(**source: Any) -> Json:
    return {"type": "document", "source": source}


PDF = {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}


def image(media_type: str = "image/png", data: str = PIXEL) -> Json:
    return {"type": "image", "source": {"type": "base64", "media_type": media_type, "data": data}}


def tool(name: str = "f", schema: Any = None, **more: Any) -> Json:
    return {"name": name, "input_schema": schema or {"type": "object", "properties": {}}, **more}


def looped(*results: Json, calls: tuple[Json, ...] = (use(),), **fields: Any) -> Json:
    return ask(user("go"), says(*calls), user(*results), **{"tools": [tool()], **fields})


def prop(name: str) -> Json:
    return {"type": "object", "properties": {name: {"type": "string"}}}


MARK: Json = {"cache_control": {"type": "ephemeral"}}
THINK = {"type": "enabled", "budget_tokens": 1024}
HAIKU, OPUS, FIVE = "claude-haiku-4-5", "claude-opus-4-8", "claude-sonnet-5"
SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}

RULES: dict[str, tuple[Json, Json]] = {
    "required": (ask(max_tokens=None), ask(max_tokens=0)),
    "unknown_field": (ask(seed=1), ask(metadata={"user_id": "u"})),
    "message_shape": (ask({**user("x"), "name": "bob"}), ask(user("x"))),
    "role": (ask(user("x"), system("s")), ask(user("x"), system("s"), model=OPUS)),
    "system_place": (
        ask(user("x"), says("y"), system("s"), user("z"), model=OPUS),
        ask(user("x"), system("s"), says("y"), user("z"), model=OPUS),
    ),
    "first_role": (ask(says("x"), user("y")), ask(user("x"), says("y"), user("z"))),
    "content_empty": (ask(user("x"), says(), user("y")), ask(user("x"), says("y"), user("z"))),
    "text_empty": (ask(user(text(""))), ask(user(text(".")))),
    "text_blank": (looped(result(content=[text(" \n")])), looped(result(content=[text(".")]))),
    "block_type": (ask(user({"type": "input_text", "text": "x"})), ask(user(text("x")))),
    "block_role": (
        ask(user("x"), says(image()), user("y")),
        ask(user(image())),
    ),
    "block_field": (
        ask(user("x"), says(text("y", parsed=1)), user("z")),
        ask(user("x"), says(text("y", citations=None)), user("z")),
    ),
    "image": (ask(user(image("image/bmp"))), ask(user(image("image/png"), image("image/webp", "AAAA")))),
    "document": (
        looped(result(content=[document(**{**PDF, "data": "!!!"})])),
        looped(result(content=[document(**PDF), document(type="text", media_type="text/plain", data="a")])),
    ),
    "prefill": (ask(user("x"), says("Sure:")), ask(user("x"), says("Sure:"), model=HAIKU)),
    "prefill_space": (ask(user("x"), says("Sure: "), model=HAIKU), ask(user("x"), says(text("a ")), user("y"))),
    "prefill_thinking": (
        ask(user("x"), says("Sure:"), model=HAIKU, thinking=THINK),
        ask(user("x"), model=HAIKU, thinking=THINK),
    ),
    "sampling": (ask(model=FIVE, top_p=0.5), ask(top_p=0.5)),
    "cache_max": (
        ask(user(*[text("x", **MARK)] * 3), system=[text("s", **MARK)], tools=[tool(**MARK)]),
        ask(user(*[text("x", **MARK)] * 2), system=[text("s", **MARK)], tools=[tool(**MARK)]),
    ),
    "cache_empty": (
        ask(user("x"), says({**thought(), **MARK}, text("y")), user("z"), thinking=THINK),
        ask(user("x"), says(thought(), text("y", **MARK)), user("z"), thinking=THINK),
    ),
    "tool_name": (ask(tools=[tool("a.b")]), ask(tools=[tool("a" * 64)])),
    "tool_unique": (ask(tools=[tool(), tool()]), ask(tools=[tool(), tool("g")])),
    "tool_field": (ask(tools=[tool(parameters={})]), ask(tools=[tool(description="d")])),
    "tool_schema": (
        ask(tools=[tool(schema={"type": "object", "anyOf": []})]),
        ask(tools=[tool(schema={"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}})]),
    ),
    "tool_property": (ask(tools=[tool(schema=prop("naïve name"))]), ask(tools=[tool(schema=prop("a.b-c_1"))])),
    "choice_tools": (ask(tool_choice={"type": "none"}), ask(tool_choice={"type": "none"}, tools=[tool()])),
    "choice_type": (
        ask(tool_choice={"type": "required"}, tools=[tool()]),
        ask(tool_choice={"type": "any", "disable_parallel_tool_use": True}, tools=[tool()]),
    ),
    "choice_name": (
        ask(tool_choice={"type": "tool", "name": "g"}, tools=[tool()]),
        ask(tool_choice={"type": "tool", "name": "f"}, tools=[tool()]),
    ),
    "thinking_choice": (
        ask(tool_choice={"type": "any"}, tools=[tool()], thinking=THINK),
        ask(tool_choice={"type": "auto"}, tools=[tool()], thinking=THINK),
    ),
    "tools_missing": (looped(result(), tools=None), looped(result())),
    "tool_id": (looped(result("f:0"), calls=(use("f:0"),)), looped(result("f-0"), calls=(use("f-0"),))),
    "tool_id_unique": (
        ask(user("x"), says(use()), user(result()), says(use()), user(result()), tools=[tool()]),
        ask(user("x"), says(use()), user(result()), says(use("t2")), user(result("t2")), tools=[tool()]),
    ),
    "tool_input": (looped(result(), calls=(use(input="{}"),)), looped(result(), calls=(use(input={"a": 1}),))),
    "tool_use_orphan": (
        looped(result(), calls=(use(), use("t2"))),
        looped(result("t2"), result(), text("and?"), calls=(use(), use("t2"))),
    ),
    "tool_result_orphan": (looped(result(), result("t9")), looped(result())),
    "tool_result_twice": (looped(result(), result()), looped(result())),
    "tool_result_content": (looped(result(content=[use()])), looped(result(content=None))),
    "is_error_text": (
        looped(result(content=[image()], is_error=True)),
        looped(result(content=[image()], is_error=False)),
    ),
    "toolset": (
        looped(result(), calls=(use(toolset_name="browser"),)),
        looped(result(toolset_name="browser"), calls=(use(toolset_name="browser"),)),
    ),
    "server_id": (
        ask(user("x"), says({**SEARCH, "id": "toolu_1"}, {**FOUND, "tool_use_id": "toolu_1"}), user("y")),
        ask(user("x"), says(SEARCH, FOUND), user("y")),
    ),
    "server_pair": (ask(user("x"), says(FOUND, SEARCH), user("y")), ask(user("x"), says(SEARCH, FOUND))),
    "thinking_config": (ask(model=OPUS, thinking=THINK), ask(model=OPUS, thinking={"type": "adaptive"})),
    "thinking_budget": (ask(thinking={"type": "enabled", "budget_tokens": 2000}), ask(thinking=THINK)),
    "thinking_temperature": (ask(thinking=THINK, temperature=0.2), ask(thinking=THINK, temperature=1)),
    "thinking_off": (
        ask(user("x"), says(thought(), text("y")), user("z")),
        ask(user("x"), says(thought(), text("y")), user("z"), thinking=THINK),
    ),
    "thinking_last": (
        ask(user("x"), says(SEARCH, FOUND, thought()), thinking=THINK),
        ask(user("x"), says(text("y"), thought()), user("z"), thinking=THINK),
    ),
    "thinking_first": (
        looped(result(), thinking=THINK),
        looped(result(), calls=(thought(), use()), thinking=THINK),
    ),
}
STATEFUL = {"thinking_dropped", "thinking_modified", "signature", "thinking_prefix"}
HEADER = {"auth", "version"}


@pytest.fixture(scope="module")
def server() -> Iterator[StrictServer]:
    with StrictServer(off=("signature",)) as running:
        yield running


def post(server: StrictServer, body: Any, headers: dict[str, str] = HEADERS) -> tuple[int, Json]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    connection.request("POST", "/v1/messages", json.dumps(body), headers)
    response = connection.getresponse()
    answer = json.loads(response.read())
    connection.close()
    return response.status, answer


@pytest.mark.parametrize("rule", RULES)
def test_what_breaks_a_rule_is_refused_under_its_name(server: StrictServer, rule: str) -> None:
    status, answer = post(server, RULES[rule][0])
    refusal = server.refusals[-1]
    assert (status, refusal.rule) == (400, rule)
    assert {violation.rule for violation in refusal.all} == {rule}
    assert answer == {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": refusal.message},
        "request_id": answer["request_id"],
    }


@pytest.mark.parametrize("rule", RULES)
def test_what_obeys_the_rule_is_answered(server: StrictServer, rule: str) -> None:
    server.play("fine")
    status, answer = post(server, RULES[rule][1])
    assert (status, answer.get("content")) == (200, [{"type": "text", "text": "fine"}]), server.refusals[-1].all


def test_every_rule_has_a_pair() -> None:
    assert set(RULES) | STATEFUL | HEADER == set(MESSAGES.rules)


def test_every_rule_says_what_it_is_about() -> None:
    assert all(about.endswith(".") for about in MESSAGES.names.values())


@pytest.mark.parametrize(
    ("left_out", "rule", "status"), [("x-api-key", "auth", 401), ("anthropic-version", "version", 400)]
)
def test_headers_that_must_be_sent(server: StrictServer, left_out: str, rule: str, status: int) -> None:
    got, answer = post(server, ask(), {name: value for name, value in HEADERS.items() if name != left_out})
    assert (got, server.refusals[-1].rule) == (status, rule)
    assert answer["error"]["type"] == ("authentication_error" if status == 401 else "invalid_request_error")


FURTHER: list[tuple[str, Json]] = [
    ("required", ask(model=None)),
    ("required", ask(messages=[])),
    ("required", ask(messages="hi")),
    ("required", ask(max_tokens=True)),
    ("message_shape", ask({"role": "user", "content": None})),
    ("message_shape", {**ask(), "messages": ["hi"]}),
    ("role", ask({"role": "tool", "content": "x"})),
    ("system_place", ask(system("s"), user("x"), model=OPUS)),
    ("system_place", ask(user("x"), system("s"), system("t"), model=FIVE)),
    ("content_empty", ask(user(""))),
    ("text_empty", ask(user("x"), system=[text("")])),
    ("text_blank", ask(user(" "))),
    ("text_blank", ask(user("x"), system="\n")),
    ("block_field", ask(user("x"), says({"type": "thinking", "thinking": "a"}, text("y")), user("z"), thinking=THINK)),
    ("block_role", ask(user(use()))),
    ("image", looped(result(content=[image(data="not base64!")]))),
    ("image", ask(user({"type": "image", "source": {"type": "path"}}))),
    ("image", ask(user(image("image/jpeg")))),
    ("image", ask(user({"type": "image", "source": {"type": "url", "url": "data:image/png;base64,AAAA"}}))),
    ("document", ask(user(document(**{**PDF, "media_type": "text/plain"})))),
    ("document", ask(user(document(type="text", media_type="text/csv", data="a")))),
    ("document", ask(user(document(type="url", url="a.pdf")))),
    ("document", ask(user(document(type="path")))),
    ("sampling", ask(model=OPUS, temperature=0.5)),
    ("cache_max", ask(user(*[text("x", **MARK)] * 4), **MARK)),
    ("cache_empty", ask(user(text("a"), text(" ", **MARK)))),
    ("tool_name", looped(result(), calls=(use(name="a b"),))),
    ("tool_name", ask(tools=[tool("a" * 65)])),
    ("tool_schema", ask(tools=[{"name": "f"}])),
    ("tool_schema", ask(tools=[tool(schema={"type": "array"})])),
    ("tool_property", ask(tools=[tool(schema={"type": "object", "properties": {"a": prop("b c")}})])),
    ("choice_type", ask(tool_choice="auto", tools=[tool()])),
    ("thinking_choice", ask(model=FIVE, tool_choice={"type": "tool", "name": "f"}, tools=[tool()])),
    ("tool_use_orphan", ask(user("x"), says(use()), user("never mind"), tools=[tool()])),
    ("tool_use_orphan", looped(text("before"), result())),
    ("tool_use_orphan", ask(user("x"), says(use()), tools=[tool()])),
    ("tool_use_orphan", ask(user("x"), says(use(), use("t2")), user(result()), user(result("t2")), tools=[tool()])),
    ("tool_result_orphan", ask(user(result()), tools=[tool()])),
    ("tool_result_content", looped(result(content={"a": 1}))),
    ("thinking_config", ask(model=HAIKU, thinking={"type": "adaptive"})),
    ("thinking_config", ask(thinking={"type": "on"})),
    ("thinking_budget", ask(thinking={"type": "enabled", "budget_tokens": 100})),
    ("thinking_off", ask(user("x"), says(thought(), text("y")), user("z"), thinking={"type": "disabled"})),
]


@pytest.mark.parametrize(("rule", "body"), FURTHER)
def test_further_ways_to_break_a_rule(rule: str, body: Json) -> None:
    assert rule in [violation.rule for violation in check_messages(body)]


FINE: list[Json] = [
    ask(user("x"), says("y"), says("more"), user("z"), user("zz")),
    ask(user("x"), says(SEARCH), model=FIVE, thinking={"type": "disabled"}),
    ask(user("x"), says(SEARCH, FOUND), system("s"), model=FIVE),
    looped(result(content="")),
    looped(result(content=[image(), text("seen")])),
    looped(result(), thinking={"type": "adaptive"}),
    ask(model="claude-3-5-sonnet-20241022", temperature=0.3, top_k=5),
    ask(model="claude-opus-4-20250514", thinking=THINK),
    ask(thinking={"type": "enabled", "budget_tokens": 4000}, model="some-proxy/model", max_tokens=8000),
]


@pytest.mark.parametrize("body", FINE)
def test_what_is_allowed_is_not_refused(body: Json) -> None:
    assert check_messages(body, off=("tools_missing",)) == []


def test_interleaved_thinking_may_have_a_budget_beyond_the_limit() -> None:
    body = ask(thinking={"type": "enabled", "budget_tokens": 9000})
    beta = {**HEADERS, "anthropic-beta": "interleaved-thinking-2025-05-14"}
    assert [violation.rule for violation in check_messages(body)] == ["thinking_budget"]
    assert check_messages(body, beta) == []


def test_rules_can_be_switched_off() -> None:
    assert check_messages(ask(seed=1), off=("unknown_field",)) == []


def test_strange_bodies_are_violations_and_no_crash() -> None:
    odd: list[Any] = [None, 1, "x", [], {}, [None], [[]], {"type": None}, [{"type": []}]]
    for value in odd:
        for name in ("messages", "tools", "system", "tool_choice", "thinking", "max_tokens", "model"):
            check_messages({**ask(), name: value})
        check_messages(ask({"role": value, "content": value}))
        check_messages(
            ask(user("x"), {"role": "assistant", "content": [value, {**use(), "id": value}]}, user(result()))
        )
