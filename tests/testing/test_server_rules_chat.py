"""Every rule of Chat Completions and of compatible servers: one request that breaks it and one that obeys it, over HTTP."""

from __future__ import annotations

import http.client
import json
from typing import Any

import pytest

from hookloop.testing.server import StrictServer, check_chat
from hookloop.testing.server.rules import CHAT, CHAT_PROFILES, PROFILES

Json = dict[str, Any]
HEADERS = {"authorization": "Bearer k", "content-type": "application/json"}


def ask(*messages: Json, **fields: Any) -> Json:
    body: Json = {"model": "gpt-4.1", "messages": list(messages) or [user("hi")], **fields}
    return {key: value for key, value in body.items() if value is not None}


def user(content: Any) -> Json:
    return {"role": "user", "content": content}


def says(content: Any = None, *calls: Json, **more: Any) -> Json:
    message: Json = {"role": "assistant", "content": content, **more}
    return {**message, "tool_calls": list(calls)} if calls else message


def call(id: Any = "c1", name: Any = "f", arguments: Any = "{}", **more: Any) -> Json:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}, **more}


def answer(id: Any = "c1", content: Any = "ok") -> Json:
    return {"role": "tool", "tool_call_id": id, "content": content}


def tool(name: str = "f", parameters: Any = None, **more: Any) -> Json:
    schema = parameters or {"type": "object", "properties": {}}
    return {"type": "function", "function": {"name": name, "parameters": schema, **more}}


def looped(*answers: Json, calls: tuple[Json, ...] = (call(),), **fields: Any) -> Json:
    return ask(user("go"), says(None, *calls), *answers, **{"tools": [tool()], **fields})


def closed(required: list[str], **more: Any) -> Json:
    properties = {"a": {"type": "string"}, "b": {"type": ["string", "null"], **more}}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def picture(url: str = "data:image/png;base64,iVBORw0KGgo=") -> Json:
    return {"type": "image_url", "image_url": {"url": url}}


def file(data: str = "data:application/pdf;base64,JVBERg==") -> Json:
    return {"type": "file", "file": {"filename": "a", "file_data": data}}


def sound(format: str = "mp3", data: str = "AAAA") -> Json:
    return {"type": "input_audio", "input_audio": {"format": format, "data": data}}


IMAGE = picture()
FORMAT = {"type": "json_schema", "json_schema": {"name": "out", "strict": True, "schema": closed(["a", "b"])}}

RULES: dict[str, tuple[Json, Json]] = {
    "required": (ask(model=None), ask()),
    "unknown_field": (ask(top_k=5), ask(top_p=0.5)),
    "role": (ask({"role": "model", "content": "x"}), ask({"role": "developer", "content": "x"}, user("y"))),
    "message_field": (
        ask(user("x"), says("y", reasoning_content="hm"), user("z")),
        ask(user("x"), says("y", reasoning_content=None, refusal=None), user("z")),
    ),
    "content_null": (ask(user("x"), says(None), user("y")), looped(answer())),
    "content_part": (looped(answer(content=[IMAGE])), ask(user([{"type": "text", "text": "see"}, IMAGE]))),
    "image": (
        ask(user([picture("data:image/png;base64,!!!")])),
        ask(user([IMAGE, picture("https://x.example/a.png")])),
    ),
    "file": (
        ask(user([file("data:text/plain;base64,AAAA")])),
        ask(user([file(), sound(), {"type": "file", "file": {"file_id": "file-1"}}])),
    ),
    "empty_array": (ask(tools=[]), ask(tools=[tool()])),
    "call_shape": (looped(answer(), calls=(call(id=""),)), looped(answer())),
    "call_twice": (
        looped(answer(), calls=(call(), call())),
        looped(answer(), answer("c2"), calls=(call(), call("c2"))),
    ),
    "call_orphan": (
        looped(answer(), calls=(call(), call("c2"))),
        looped(answer("c2"), answer(), user("and?"), calls=(call(), call("c2"))),
    ),
    "tool_orphan": (ask(user("x"), answer(), says("y"), user("z")), looped(answer(), says("y"), user("z"))),
    "tool_unknown": (looped(answer(), answer("c9")), looped(answer())),
    "tool_twice": (looped(answer(), answer()), looped(answer())),
    "tool_name": (looped(answer(), calls=(call(name="a.b"),)), looped(answer(), calls=(call(name="a-b_1"),))),
    "call_id_long": (
        looped(answer("c" * 41), calls=(call("c" * 41),)),
        looped(answer("c" * 40), calls=(call("c" * 40),)),
    ),
    "arguments": (
        looped(answer(), calls=(call(arguments={"a": 1}),)),
        looped(answer(), calls=(call(arguments='{"a'),)),
    ),
    "tool_shape": (ask(tools=[{"name": "f", "parameters": {}}]), ask(tools=[tool()])),
    "tools_max": (
        ask(tools=[tool(f"f{number}") for number in range(129)]),
        ask(tools=[tool(f"f{number}") for number in range(128)]),
    ),
    "choice_tools": (ask(tool_choice="none"), ask(tool_choice="none", parallel_tool_calls=True, tools=[tool()])),
    "choice_name": (
        ask(tool_choice={"type": "function", "function": {"name": "g"}}, tools=[tool()]),
        ask(tool_choice={"type": "function", "function": {"name": "f"}}, tools=[tool()]),
    ),
    "strict": (
        ask(tools=[tool(parameters=closed(["a"]), strict=True)]),
        ask(tools=[tool(parameters=closed(["a", "b"]), strict=True)], response_format=FORMAT),
    ),
    "max_tokens": (ask(model="gpt-5", max_tokens=10), ask(model="gpt-5", max_completion_tokens=10)),
    "temperature": (ask(model="o3", temperature=0), ask(model="o3", temperature=1)),
    "stream_options": (ask(stream_options={"include_usage": True}), ask()),
    "tools_effort": (
        ask(model="gpt-5.4", tools=[tool()], reasoning_effort="low"),
        ask(model="gpt-5.6", tools=[tool()], reasoning_effort="none"),
    ),
}

A9, B9 = "abcdefGH1", "abcdefGH2"
SIGNED = {"extra_content": {"google": {"thought_signature": "sig"}}}
PROFILE_RULES: dict[str, tuple[str, Json, Json]] = {
    "mistral_id": ("mistral", looped(answer()), looped(answer(A9), calls=(call(A9),))),
    "user_after_tool": (
        "mistral",
        looped(answer(A9), user("and?"), calls=(call(A9),)),
        looped(answer(A9), says("."), user("and?"), calls=(call(A9),)),
    ),
    "last_role": ("mistral", ask(user("x"), says("y")), ask(user("x"), says("y", prefix=True))),
    "arguments_object": (
        "vllm",
        looped(answer(), calls=(call(arguments='"{}"'),)),
        looped(answer(), calls=(call(arguments='{"a":1}'),)),
    ),
    "reasoning_back": (
        "deepseek",
        ask(user("x"), says("", call(), reasoning_content=""), answer(), tools=[tool()]),
        ask(user("x"), says("", call(), reasoning_content="hm"), answer(), says("y"), user("z"), tools=[tool()]),
    ),
    "thought_signature": (
        "gemini",
        looped(answer(), model="gemini-3-pro"),
        looped(answer(), answer("c2"), calls=(call(**SIGNED), call("c2")), model="gemini-3-pro"),
    ),
    "name_start": ("gemini", ask(tools=[tool("1f")]), ask(tools=[tool("_1f")])),
    "single_call": ("vllm", looped(answer(), answer("c2"), calls=(call(), call("c2"))), looped(answer())),
    "alternation": (
        "llama.cpp",
        looped(answer(), user("and?")),
        looped(answer(), says("."), user("and?")),
    ),
    "system_first": (
        "llama.cpp",
        ask(user("x"), {"role": "system", "content": "s"}),
        ask({"role": "system", "content": "s"}, user("x")),
    ),
    "content_and_thinking": (
        "llama.cpp",
        ask(user("x"), says("y", call(), reasoning_content="hm"), answer(), model="gpt-oss-20b", tools=[tool()]),
        ask(user("x"), says(None, call(), reasoning_content="hm"), answer(), model="gpt-oss-20b", tools=[tool()]),
    ),
}


def post(server: StrictServer, body: Any, headers: dict[str, str] = HEADERS) -> tuple[int, Any]:
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rsplit(":", 1)[1]))
    connection.request("POST", "/v1/chat/completions", json.dumps(body), headers)
    response = connection.getresponse()
    answered = json.loads(response.read())
    connection.close()
    return response.status, answered


@pytest.mark.parametrize("rule", RULES)
def test_what_breaks_a_rule_is_refused_under_its_name(rule: str) -> None:
    with StrictServer() as server:
        status, answered = post(server, RULES[rule][0])
    refusal = server.refusals[-1]
    assert (status, refusal.rule) == (400, rule)
    assert {violation.rule for violation in refusal.all} == {rule}
    error = answered["error"]
    assert (error["message"], error["type"]) == (refusal.message, "invalid_request_error")
    assert set(answered) == {"error"}
    assert set(error) == {"message", "type", "param", "code"}


@pytest.mark.parametrize("rule", RULES)
def test_what_obeys_the_rule_is_answered(rule: str) -> None:
    with StrictServer(["fine"]) as server:
        status, answered = post(server, RULES[rule][1])
    assert server.refusals == []
    assert (status, answered["choices"][0]["message"]["content"]) == (200, "fine")


@pytest.mark.parametrize("rule", PROFILE_RULES)
def test_what_breaks_a_rule_of_a_compatible_server(rule: str) -> None:
    profile, broken, _ = PROFILE_RULES[rule]
    with StrictServer(profile=profile, off=()) as server:
        status, _ = post(server, broken)
    assert {violation.rule for violation in server.refusals[-1].all} == {rule}
    assert status == server.refusals[-1].status >= 400


@pytest.mark.parametrize("rule", PROFILE_RULES)
def test_what_obeys_the_rule_of_a_compatible_server(rule: str) -> None:
    profile, _, fine = PROFILE_RULES[rule]
    with StrictServer(["fine"], profile=profile, off=()) as server:
        assert post(server, fine)[0] == 200, server.refusals[-1].all
    assert check_chat(fine, profile) == []


def test_every_rule_has_a_pair() -> None:
    assert set(RULES) | {"auth"} == set(CHAT.rules)
    assert set(PROFILE_RULES) == set(CHAT_PROFILES.rules)


def test_every_rule_of_a_profile_exists() -> None:
    assert all(profile.rules <= set(CHAT_PROFILES.rules) for profile in PROFILES.values())


def test_a_key_must_be_sent() -> None:
    with StrictServer() as server:
        status, answered = post(server, ask(), {})
    assert (status, server.refusals[-1].rule, answered["error"]["type"]) == (401, "auth", "invalid_request_error")


def test_the_error_of_mistral_is_flat_and_that_of_gemini_a_list() -> None:
    with StrictServer(profile="mistral") as server:
        assert post(server, ask(tools=[]))[1]["object"] == "error"
    with StrictServer(profile="gemini") as server:
        assert post(server, ask(tools=[]))[1][0]["error"]["code"] == 400


CODES: list[tuple[Json, str]] = [
    (ask(tools=[]), "empty_array"),
    (ask(messages=[]), "empty_array"),
    (ask(tools=[tool(parameters=closed(["a"]), strict=True)]), "invalid_function_parameters"),
    (looped(answer("c" * 41), calls=(call("c" * 41),)), "string_above_max_length"),
    (ask(model="gpt-5", max_tokens=1), "unsupported_parameter"),
]


@pytest.mark.parametrize(("body", "code"), CODES)
def test_the_codes_that_clients_look_at(body: Json, code: str) -> None:
    assert check_chat(body)[0].code == code


FURTHER: list[tuple[str, Json]] = [
    ("required", ask(messages="hi")),
    ("required", {**ask(), "messages": ["hi"]}),
    ("message_field", looped(answer(), calls=(call(**SIGNED),))),
    ("content_null", ask(user(None))),
    ("content_null", looped(answer(content=None))),
    ("content_part", ask(user({"text": "x"}))),
    ("content_part", ask(user([{"type": "image_url", "image_url": "http://x"}]))),
    ("image", ask(user([picture("data:image/bmp;base64,AAAA")]))),
    ("image", ask(user([picture("data:image/png;base64,")]))),
    ("image", ask(user([picture("a.png")]))),
    ("file", ask(user([file("JVBERg==")]))),
    ("file", ask(user([file("data:application/pdf;base64,?")]))),
    ("file", ask(user([sound("ogg")]))),
    ("file", ask(user([sound(data="?")]))),
    ("content_part", ask({"role": "system", "content": [IMAGE]}, user("x"))),
    ("empty_array", ask(user([]))),
    ("empty_array", ask(user("x"), says("y", tool_calls=[]), user("z"))),
    ("call_shape", looped({"role": "tool", "content": "x"})),
    ("call_orphan", looped(user("wait"), answer())),
    ("call_orphan", looped()),
    ("tool_name", ask(tools=[tool("a" * 65)])),
    ("tool_name", ask(tools=[tool("a b")])),
    ("choice_tools", ask(parallel_tool_calls=False)),
    ("choice_name", ask(tool_choice="sometimes", tools=[tool()])),
    ("strict", ask(tools=[tool(parameters={"type": "array"})])),
    ("strict", ask(tools=[tool(parameters=closed(["a", "b"], default="x"), strict=True)])),
    ("strict", ask(tools=[tool(parameters=closed(["a", "b"], anyOf=[{"type": "object"}]), strict=True)])),
    (
        "strict",
        ask(response_format={"type": "json_schema", "json_schema": {"name": "o", "strict": True, "schema": {}}}),
    ),
    ("temperature", ask(model="gpt-5-mini", temperature=0.7)),
    ("tools_effort", ask(model="gpt-5.6", tools=[tool()])),
]


def test_copies_of_the_api_know_other_types_of_images_but_no_broken_ones() -> None:
    assert check_chat(ask(user([picture("data:image/bmp;base64,AAAA")])), "vllm") == []
    assert [found.rule for found in check_chat(ask(user([picture("data:image/bmp;base64,?")])), "vllm")] == ["image"]


@pytest.mark.parametrize(("rule", "body"), FURTHER)
def test_further_ways_to_break_a_rule(rule: str, body: Json) -> None:
    assert rule in [violation.rule for violation in check_chat(body)]


FINE: list[tuple[str | None, Json]] = [
    (None, ask(user(""))),
    (None, looped(answer(content=""), answer("c2", [{"type": "text", "text": "t"}]), calls=(call(), call("c2")))),
    (None, looped(answer(), says(None, call()), answer())),
    (None, ask(user("x"), says(None, refusal="no"), user("y"))),
    (None, ask(model="gpt-5.4", tools=[tool()])),
    (None, ask(model="gpt-5.2-chat-latest", temperature=0.2, max_tokens=5)),
    ("groq", ask(user("x"), says("y", reasoning="hm"), user("z"))),
    ("ollama", ask(user("x"), says("y", thinking="hm"), user("z"), keep_alive=5)),
    ("deepseek", looped(answer(), thinking={"type": "disabled"})),
    ("gemini", looped(answer(), says("done"), user("next"))),
]


@pytest.mark.parametrize(("profile", "body"), FINE)
def test_what_is_allowed_is_not_refused(profile: str | None, body: Json) -> None:
    assert check_chat(body, profile) == []


def test_groq_and_mistral_refuse_the_keys_of_other_servers() -> None:
    body = ask(user("x"), says("y", reasoning_content="hm"), user("z"))
    for profile in ("groq", "mistral"):
        assert [violation.rule for violation in check_chat(body, profile)] == ["message_field"]


def test_compatible_servers_know_no_developer() -> None:
    body = ask({"role": "developer", "content": "x"}, user("y"))
    assert [violation.rule for violation in check_chat(body, "deepseek")] == ["role"]


def test_an_unknown_profile_is_an_error() -> None:
    with pytest.raises(ValueError, match="no profile 'deepsea'"):
        StrictServer(profile="deepsea")


def test_strange_bodies_are_violations_and_no_crash() -> None:
    odd: list[Any] = [None, 1, "x", [], {}, [None], [[]], {"type": None}, [{"type": []}], {"type": "function"}]
    for value in odd:
        for name in ("messages", "tools", "tool_choice", "response_format", "stream_options", "temperature", "model"):
            check_chat({**ask(tools=[tool()]), name: value})
        check_chat(ask({"role": value, "content": value}))
        for profile in (None, *PROFILES):
            check_chat(ask(user("x"), {"role": "assistant", "content": value, "tool_calls": value}, answer()), profile)
            check_chat(looped(answer(value), calls=(call(value, value, value),)), profile)
