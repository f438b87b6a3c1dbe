"""What is sent through Chat Completions: the cases that people met, and the choices of each profile."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from hookloop.testing import call, say, think
from hookloop.testing.server import StrictServer
from hookloop_hookspecs import (
    File,
    Image,
    Message,
    ModelRequest,
    Opaque,
    Origin,
    ProviderError,
    Settings,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
)

Asking = Callable[..., ModelRequest]
SCHEMA = '{"type":"object","properties":{"x":{"type":"integer"},"note":{"type":"string"}},"required":["x"]}'
TOOLS = (ToolSpec("get", "gets", SCHEMA), ToolSpec("put", "puts", SCHEMA))
SERVERS = {"llamacpp": "llama.cpp", "openai": None, "azure": None}


def user(text: str = "hi") -> Message:
    return Message.user(text)


def made(*parts: Any, model: str = "") -> Message:
    """A model's message."""
    return Message(
        "assistant",
        tuple(Text(part) if isinstance(part, str) else part for part in parts),
        Origin("model", model=model),
    )


def result(id: str, *parts: Any) -> Message:
    content = tuple(Text(part) if isinstance(part, str) else part for part in parts)
    return Message.tool(ToolResult(id, "get", content))


def sent(way: Any, request: ModelRequest, profile: str = "openai", **options: Any) -> dict[str, Any]:
    """The body of a request that the strict server of the profile took."""
    with StrictServer([say("ok")], profile=SERVERS.get(profile, profile)) as server:
        way.ask(server, request, profile=profile, **options)
        assert not server.refusals
        body: dict[str, Any] = server.requests[0].body
    return body


def messages(
    way: Any, asking: Asking, history: list[Message], profile: str = "openai", **options: Any
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = sent(way, asking(history, tools=TOOLS), profile, **options)["messages"]
    return found


def test_G03_content_of_a_message_that_only_calls_is_null(way: Any, asking: Asking) -> None:
    wire = messages(way, asking, [user(), made("", ToolCall("c1", "get")), result("c1", "r")])
    assert wire[1]["content"] is None
    assert [entry["id"] for entry in wire[1]["tool_calls"]] == ["c1"]


def test_G03_content_without_calls_is_a_string(way: Any, asking: Asking) -> None:
    wire = messages(way, asking, [user(), made(""), user("go on")])
    assert wire[1] == {"role": "assistant", "content": ""}


def test_G05_no_tools_no_keys_about_tools(way: Any, asking: Asking) -> None:
    body = sent(way, asking([user()], tool_choice="none", settings=Settings(parallel=False)))
    assert {"tools", "tool_choice", "parallel_tool_calls"}.isdisjoint(body)


def test_G05_all_tools_narrowed_away(way: Any, asking: Asking) -> None:
    body = sent(way, asking([user()], tools=TOOLS, allowed=frozenset()))
    assert [tool["function"]["name"] for tool in body["tools"]] == ["get", "put"]
    assert body["tool_choice"] == "none"


@pytest.mark.parametrize(("tools", "choice"), [((), "required"), (TOOLS, "drop"), ((), "get")])
def test_G06_choice_that_cannot_be_met_is_not_sent(way: Any, asking: Asking, tools: Any, choice: str) -> None:
    with StrictServer([say("ok")]) as server, pytest.raises(ProviderError) as raised:
        way.ask(server, asking([user()], tools=tools, tool_choice=choice), retries=2)
    assert (raised.value.kind, raised.value.retryable, server.requests) == ("invalid", False, [])
    assert choice in str(raised.value)


FOREIGN = ["call_PTLP8x" + "y" * 20, "toolu_01A", "search:0", "abcdefghi", "x" * 90]


@pytest.mark.parametrize("profile", ["mistral", "openai"])
def test_G07_foreign_ids_fit_on_both_sides(way: Any, asking: Asking, profile: str) -> None:
    history = [user(), made(*(ToolCall(id, "get") for id in FOREIGN)), *(result(id, id) for id in FOREIGN)]
    wire = messages(way, asking, history, profile)
    ids = [entry["id"] for entry in wire[1]["tool_calls"]]
    answers = {entry["tool_call_id"]: entry["content"] for entry in wire if entry["role"] == "tool"}
    assert [answers[id] for id in ids] == FOREIGN
    assert "abcdefghi" in ids
    assert all(id.isalnum() and len(id) == 9 for id in ids) or profile != "mistral"
    assert messages(way, asking, history, profile) == wire
    assert history[1].calls[1].id == "toolu_01A"


def test_A08_ids_that_repeat_in_a_history_are_told_apart(way: Any, asking: Asking) -> None:
    rounds = [[made(ToolCall("search:0", "get")), result("search:0", f"r{n}")] for n in (1, 2)]
    wire = messages(way, asking, [user(), *rounds[0], *rounds[1]])
    assert len({entry["tool_calls"][0]["id"] for entry in wire if "tool_calls" in entry}) == 2


def test_G09_deepseek_gets_its_reasoning_back(way: Any, asking: Asking) -> None:
    with StrictServer(
        [[think("R"), call("get", {"x": 1}, id="c1")], [think("S"), say("done")], say("ok")], profile="deepseek"
    ) as server:
        provider = way.provider(server, "deepseek", "deepseek-reasoner")
        history = [user()]
        for _ in range(3):
            reply = way.run(provider, [asking(list(history), tools=TOOLS)])[0].reply
            history.append(made(*reply.content, model=provider.reference))
            history += [result(found.id, "r") for found in reply.calls] or [user("and?")]
        assert not server.refusals
        wire = server.requests[2].body["messages"]
    assert (wire[1]["reasoning_content"], wire[1]["content"]) == ("R", None)
    assert wire[3]["reasoning_content"] == "S"


def test_G09_reasoning_stays_home(way: Any, asking: Asking) -> None:
    thought = Thinking("R", provider="deepseek", family="deepseek-reasoner")
    history = [user(), made(thought, ToolCall("c1", "get"), model="deepseek:deepseek-reasoner"), result("c1", "r")]
    assert "reasoning_content" not in messages(way, asking, history)[1]
    other = messages(way, asking, history, "deepseek", model="deepseek-other")[1]
    assert "R" not in other["reasoning_content"]


def test_G09_deepseek_gets_a_filler_for_calls_of_others(way: Any, asking: Asking) -> None:
    history = [user(), made(ToolCall("c1", "get"), model="openai:gpt-4.1"), result("c1", "r"), made("text"), user()]
    wire = messages(way, asking, history, "deepseek", model="deepseek-reasoner")
    assert wire[1]["reasoning_content"]
    assert "reasoning_content" not in wire[3]


@pytest.mark.parametrize("raw", ['{"p":"C:\\Users"}', '{"a":', "", "[1]", "null", '{"a": NaN}'])
def test_G13_arguments_in_history_are_an_object(way: Any, asking: Asking, raw: str) -> None:
    wire = messages(way, asking, [user(), made(ToolCall("c1", "get", raw)), result("c1", f"not run: {raw}")], "vllm")
    assert wire[1]["tool_calls"][0]["function"]["arguments"] == "{}"
    assert wire[2]["content"] == f"not run: {raw}"


def test_valid_arguments_stay_as_they_were_written(way: Any, asking: Asking) -> None:
    raw = '{ "x" : 1,  "note":"ü" }'
    wire = messages(way, asking, [user(), made(ToolCall("c1", "get", raw)), result("c1", "r")])
    assert wire[1]["tool_calls"][0]["function"]["arguments"] == raw


def test_names_that_no_server_takes_are_mended(way: Any, asking: Asking) -> None:
    wire = messages(
        way, asking, [user(), made(ToolCall("c1", "get site!"), ToolCall("c2", "")), result("c1", ""), result("c2", "")]
    )
    assert [entry["function"]["name"] for entry in wire[1]["tool_calls"]] == ["get_site_", "unknown"]


def test_H02_user_text_stands_behind_all_results(way: Any, asking: Asking) -> None:
    history = [
        user(),
        made(ToolCall("c1", "get"), ToolCall("c2", "get")),
        result("c1", "1"),
        result("c2", "2"),
        user("and NY?"),
    ]
    assert [entry["role"] for entry in messages(way, asking, history)] == ["user", "assistant", "tool", "tool", "user"]


def test_images_of_results_stand_behind_all_results(way: Any, asking: Asking) -> None:
    history = [
        user(),
        made(ToolCall("c1", "get"), ToolCall("c2", "get")),
        result("c1", Image("aGk=")),
        result("c2", "2"),
        made("ok"),
        user(),
    ]
    wire = messages(way, asking, history)
    assert [entry["role"] for entry in wire] == ["user", "assistant", "tool", "tool", "user", "assistant", "user"]
    assert wire[4]["content"][1] == {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}
    assert "c1" in wire[4]["content"][0]["text"]


def test_files_travel_where_they_are_taken(way: Any, asking: Asking) -> None:
    history = [Message.user([Text("read"), File("aGk=", "application/pdf", "a.pdf"), File("aGk=", "audio/mpeg")])]
    parts = messages(way, asking, history)[0]["content"]
    assert parts[1]["file"] == {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}
    assert parts[2]["input_audio"] == {"data": "aGk=", "format": "mp3"}
    assert "a.pdf" in messages(way, asking, history, "groq")[0]["content"][1]["text"]


def test_C16_images_are_placeholders_where_the_model_is_blind(way: Any, asking: Asking) -> None:
    image = Image("aGk=")
    history = [
        Message.user([Text("look"), image]),
        made(ToolCall("c1", "get")),
        result("c1", "found", image),
        user("and?"),
    ]
    wire = messages(way, asking, history, vision=False)
    assert "aGk=" not in json.dumps(wire)
    assert [entry["role"] for entry in wire] == ["user", "assistant", "tool", "user"]
    assert "cannot see" in wire[2]["content"]
    assert history[0].content[1] is image


def test_D12_lone_surrogates_and_nul_are_valid_on_the_wire(way: Any, asking: Asking) -> None:
    odd = "a\udc97\x00b"
    history = [user(odd), made(odd, ToolCall(odd, "get", '{"note":"\udc97"}')), result(odd, odd)]
    request = asking(history, system=odd, tools=(ToolSpec("get", odd, SCHEMA),))
    for profile in ("openai", "mistral", "deepseek"):
        with StrictServer([say("ok")], profile=SERVERS.get(profile, profile)) as server:
            way.ask(server, request, profile=profile)
            assert not server.refusals
            server.requests[0].raw.decode("utf-8")
        assert server.requests[0].body["messages"][1]["content"] == "a\ufffd\x00b"


def test_H14_system_messages_stand_where_they_stood(way: Any, asking: Asking) -> None:
    history = [user("U1"), made("A1"), Message.system("S2"), user("U2")]
    wire = sent(way, asking(history, system="S1"))["messages"]
    assert [entry["content"] for entry in wire] == ["S1", "U1", "A1", "S2", "U2"]
    one = sent(way, asking(history, system="S1"), "ollama")["messages"]
    assert [entry["content"] for entry in one] == ["S1\n\nS2", "U1", "A1", "U2"]


def test_mistral_puts_words_between_result_and_user(way: Any, asking: Asking) -> None:
    history = [user(), made(ToolCall("c1", "get")), result("c1", "r"), user("go on"), made("so")]
    wire = messages(way, asking, history, "mistral")
    assert [entry["role"] for entry in wire] == ["user", "assistant", "tool", "assistant", "user", "assistant", "user"]


def test_llamacpp_alternates(way: Any, asking: Asking) -> None:
    history = [
        made("hello"),
        user("a"),
        user("b"),
        made("c"),
        made("d", ToolCall("c1", "get")),
        result("c1", "r"),
        user("e"),
    ]
    wire = messages(way, asking, history, "llamacpp")
    assert [entry["role"] for entry in wire] == ["user", "assistant", "user", "assistant", "tool", "assistant", "user"]
    assert wire[2]["content"] == "a\n\nb"
    assert wire[3]["content"] == "c\n\nd"


def test_vllm_sends_one_call_a_message(way: Any, asking: Asking) -> None:
    history = [user(), made("both", ToolCall("c1", "get"), ToolCall("c2", "put")), result("c1", "1"), result("c2", "2")]
    wire = messages(way, asking, history, "vllm")
    assert [entry["role"] for entry in wire] == ["user", "assistant", "tool", "assistant", "tool"]
    assert (wire[1]["content"], wire[3]["content"]) == ("both", None)
    assert [entry["tool_calls"][0]["id"] for entry in wire if "tool_calls" in entry] == ["c1", "c2"]


def test_gemini_gets_its_signatures_back_on_the_same_call(way: Any, asking: Asking) -> None:
    signed = ToolCall("c1", "get", "{}", '{"extra_content":{"google":{"thought_signature":"sig"}}}')
    with StrictServer([[signed, ToolCall("c2", "get")], say("ok"), say("ok")], profile="gemini") as server:
        provider = way.provider(server, "gemini", "gemini-3-pro")
        reply = way.run(provider, [asking(tools=TOOLS)])[0].reply
        history = [user(), made(*reply.content, model=provider.reference), result("c1", "1"), result("c2", "2")]
        way.run(provider, [asking(history, tools=TOOLS)])
        assert not server.refusals
        calls = server.requests[1].body["messages"][1]["tool_calls"]
    assert calls[0]["extra_content"] == {"google": {"thought_signature": "sig"}}
    assert "extra_content" not in calls[1]
    with StrictServer([say("ok")]) as other:
        way.ask(other, asking(history, tools=TOOLS))
    assert "extra_content" not in json.dumps(other.requests[0].body)


def test_gemini_3_gets_a_filler_for_calls_of_others(way: Any, asking: Asking) -> None:
    history = [user(), made(ToolCall("c1", "get"), ToolCall("c2", "get")), result("c1", "1"), result("c2", "2")]
    calls = messages(way, asking, history, "gemini", model="gemini-3-flash")[1]["tool_calls"]
    assert "extra_content" in calls[0]
    assert "extra_content" not in calls[1]
    assert "extra_content" not in messages(way, asking, history, "gemini", model="gemini-2.5-pro")[1]["tool_calls"][0]


def test_H07_opaque_parts_and_foreign_thinking_leave_no_trace(way: Any, asking: Asking) -> None:
    history = [
        user(),
        made(Thinking("x", "sig", provider="anthropic", family="f"), Opaque('{"type":"y"}', "anthropic", "f"), "said"),
        user(),
    ]
    assert messages(way, asking, history)[1] == {"role": "assistant", "content": "said"}


@pytest.mark.parametrize(
    ("choice", "allowed", "expected"),
    [
        ("auto", None, None),
        ("none", None, "none"),
        ("required", None, "required"),
        ("get", None, {"type": "function", "function": {"name": "get"}}),
        ("auto", {"get", "put", "more"}, None),
        ("none", {"get"}, "none"),
        (
            "auto",
            {"put"},
            {
                "type": "allowed_tools",
                "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "put"}}]},
            },
        ),
    ],
)
def test_tool_choice_and_narrowing(way: Any, asking: Asking, choice: str, allowed: Any, expected: Any) -> None:
    request = asking([user()], tools=TOOLS, tool_choice=choice, allowed=frozenset(allowed) if allowed else None)
    body = sent(way, request)
    assert body.get("tool_choice") == expected
    assert len(body["tools"]) == 2


def test_narrowing_leaves_tools_alone_where_the_endpoint_knows_none(way: Any, asking: Asking) -> None:
    body = sent(way, asking([user()], tools=TOOLS, allowed=frozenset({"get"})), "groq")
    assert "tool_choice" not in body
    assert len(body["tools"]) == 2


def test_settings_reach_the_wire_and_nothing_is_sent_unasked(way: Any, asking: Asking) -> None:
    plain = sent(way, asking([user()]))
    assert set(plain) - {"stream", "stream_options"} == {"model", "messages"}
    settings = Settings(max_tokens=9, temperature=0.2, top_p=0.9, stop=("x",), seed=3, extra={"user": "u"})
    body = sent(way, asking([user()], settings=settings))
    expected = {"max_completion_tokens": 9, "temperature": 0.2, "top_p": 0.9, "stop": ["x"], "seed": 3, "user": "u"}
    assert expected.items() <= body.items()
    assert sent(way, asking([user()], settings=Settings(max_tokens=9)), "deepseek")["max_tokens"] == 9


def test_reasoning_models_get_no_temperature(way: Any, asking: Asking) -> None:
    settings = Settings(max_tokens=9, temperature=0.2, top_p=0.9, stop=("x",), effort="low")
    for model in ("o3-mini", "gpt-5", "gpt-5-mini"):
        body = sent(way, asking([user()], settings=settings), model=model)
        assert {"temperature", "top_p", "stop", "max_tokens"}.isdisjoint(body)
        assert (body["max_completion_tokens"], body["reasoning_effort"]) == (9, "low")


def test_new_models_on_chat_are_told_not_to_reason_beside_tools(way: Any, asking: Asking) -> None:
    body = sent(way, asking([user()], tools=TOOLS), model="gpt-5.6", api="chat")
    assert body["reasoning_effort"] == "none"


def test_usage_is_asked_for_only_in_streams(ways: Any, asking: Asking) -> None:
    assert sent(ways("sync-stream"), asking())["stream_options"] == {"include_usage": True}
    assert {"stream", "stream_options"}.isdisjoint(sent(ways("sync-whole"), asking()))


def test_strict_tools_and_structured_output(way: Any, asking: Asking) -> None:
    tools = (ToolSpec("get", "gets", SCHEMA, strict=True), ToolSpec("put", "puts", SCHEMA))
    body = sent(way, asking([user()], tools=tools, output=SCHEMA, output_name="answer"))
    strict, loose = (tool["function"] for tool in body["tools"])
    assert strict["strict"] is True
    assert strict["parameters"]["additionalProperties"] is False
    assert sorted(strict["parameters"]["required"]) == ["note", "x"]
    assert "strict" not in loose
    assert loose["parameters"] == json.loads(SCHEMA)
    wanted = body["response_format"]["json_schema"]
    assert "response_format" not in sent(way, asking([user()], output=SCHEMA), "vllm")
    assert (wanted["name"], wanted["strict"], wanted["schema"]["additionalProperties"]) == ("answer", True, False)


def test_only_what_is_new_is_encoded_and_the_body_only_grows(way: Any, asking: Asking) -> None:
    memo: dict[str, Any] = {}
    history, bodies = [user()], []
    for number in range(4):
        bodies.append(sent(way, asking(list(history), memo=memo, system="s"))["messages"])
        history += [made(ToolCall(f"c{number}", "get")), result(f"c{number}", "r"), user(f"u{number}")]
    for before, after in itertools.pairwise(bodies):
        assert after[: len(before)] == before
    assert len(bodies[3]) == 11


def test_memo_of_other_messages_is_not_used(way: Any, asking: Asking) -> None:
    memo: dict[str, Any] = {}
    sent(way, asking([user("one"), user("two")], memo=memo))
    assert [entry["content"] for entry in sent(way, asking([user("three")], memo=memo))["messages"]] == ["three"]
    assert [entry["content"] for entry in sent(way, asking([user("four"), user("five")], memo=memo))["messages"]] == [
        "four",
        "five",
    ]


def test_tools_of_the_server_stand_beside_ours(way: Any, asking: Asking) -> None:
    extra = {"tools": [{"type": "custom", "custom": {"name": "shell"}}], "user": "u"}
    body = sent(way, asking([user()], tools=TOOLS, settings=Settings(extra=extra)))
    assert [tool["type"] for tool in body["tools"]] == ["function", "function", "custom"]
    assert body["user"] == "u"
    assert len(sent(way, asking([user()], settings=Settings(extra=extra)))["tools"]) == 1


def test_request_that_json_cannot_say_is_an_error_of_the_family(way: Any, asking: Asking) -> None:
    with StrictServer([say("ok")]) as server, pytest.raises(ProviderError) as raised:
        way.ask(server, asking([user()], settings=Settings(temperature=float("nan"))))
    assert (raised.value.kind, server.requests) == ("invalid", [])
