"""What is sent: one body for a request, checked piece by piece and against the strict server's rules."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Sequence
from typing import Any, get_args

import pytest
from anthropic.types import ModelParam
from pydantic import SecretStr

from hookloop.testing.server import StrictServer, check_messages
from hookloop_anthropic import AnthropicProvider, Options
from hookloop_hookspecs import (
    ConfigError,
    File,
    Image,
    Message,
    ModelRequest,
    Opaque,
    Reply,
    Settings,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
)

Json = dict[str, Any]
EMPTY = '{"type":"object","properties":{}}'
TOOL = ToolSpec("f", "A tool.", EMPTY)
PNG = Image.of(b"\x89PNG", "image/png")


def body(
    messages: Sequence[Message] = (Message.user("q"),),
    model: str = "claude-haiku-4-5",
    options: Json | None = None,
    tools: tuple[ToolSpec, ...] = (TOOL,),
    **fields: Any,
) -> Json:
    """The body of one request, which breaks none of the API's rules."""
    provider = AnthropicProvider(model, Options.model_validate({"api_key": "k", **(options or {})}))
    request = ModelRequest(model, fields.pop("system", ""), messages, tools, **fields)
    found: Json = json.loads(provider.encode(request))
    assert check_messages(found, off=["prefill"]) == []
    return found


def blocks(found: Json, at: int) -> list[Json]:
    return [{k: v for k, v in block.items() if k != "cache_control"} for block in found["messages"][at]["content"]]


def use(id: str, raw: str = "{}", name: str = "f") -> Message:
    return Message.assistant(ToolCall(id, name, raw))


def result(id: str, *content: Any, error: bool = False) -> Message:
    return Message.tool(ToolResult(id, "f", tuple(content), error))


# messages


def test_the_first_message_is_the_users() -> None:
    found = body([Message.assistant("hello"), Message.user("q")])
    assert [message["role"] for message in found["messages"]] == ["user", "assistant", "user"]


def test_a_request_without_messages_is_filled() -> None:
    assert [message["role"] for message in body([])["messages"]] == ["user"]


@pytest.mark.parametrize(
    ("raw", "sent"),
    [
        ('{"x": 1}', {"x": 1}),
        ("", {}),
        ("  ", {}),
        ("{", {}),
        ('["x"]', {}),
        ("3", {}),
        ('"{\\"n\\":2}"', {"n": 2}),
        ('"ls"', {}),
        ('{"p":"C:\\Users"}', {}),
        ('{"x":NaN}', {}),
        ('{"x":"\\ud800"}', {"x": "?"}),
        ('{"x":"\\ud83d\\ude00"}', {"x": "😀"}),
        ("[" * 100_000, {}),
    ],
)
def test_a_calls_input_is_always_an_object(raw: str, sent: Json) -> None:
    found = body([Message.user("q"), use("t1", raw), result("t1", Text("r"))])
    assert blocks(found, 1)[0]["input"] == sent


@pytest.mark.parametrize("id", ["functions.f:0", "a|b", "ünï", "", " ", "x" * 200, "\ud800"])
def test_odd_ids_are_rewritten_on_both_sides(id: str) -> None:
    found = body([Message.user("q"), use(id), result(id, Text("r"))])
    assert blocks(found, 1)[0]["id"] == blocks(found, 2)[0]["tool_use_id"]


def test_rewritten_ids_do_not_collide_and_stay_the_same() -> None:
    odd = ["f:0", "f.0", "f 0", "f_0"]
    messages = [Message.user("q")]
    for id in odd:
        messages += [use(id), result(id, Text(id))]
    first, second = body(messages), body(messages)
    ids = [blocks(first, at)[0]["id"] for at in range(1, 9, 2)]
    assert len(set(ids)) == 4
    assert ids[3] == "f_0"
    assert first == second


def test_a_repeated_id_gets_another_form_for_both() -> None:
    found = body([Message.user("q"), use("f_0"), result("f_0"), use("f_0"), result("f_0")])
    ids = [blocks(found, at)[0].get("id") or blocks(found, at)[0]["tool_use_id"] for at in range(1, 5)]
    assert ids[0] == ids[1] == "f_0"
    assert ids[2] == ids[3] != "f_0"


def test_images_and_files_in_results_are_blocks() -> None:
    pdf = File.of(b"%PDF", "application/pdf", "a.pdf")
    found = body([Message.user("q"), use("t1"), result("t1", Text("see"), PNG, pdf)])
    assert [part["type"] for part in blocks(found, 2)[0]["content"]] == ["text", "image", "document"]


def test_an_error_result_holds_text_only() -> None:
    found = body([Message.user("q"), use("t1"), result("t1", PNG, Text("no"), error=True)])
    assert blocks(found, 2)[0] == {"type": "tool_result", "tool_use_id": "t1", "content": "[image]no", "is_error": True}


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        (PNG, "image"),
        (Image(url="https://x.example/a.png"), "image"),
        (Image.of(b"BM", "image/bmp"), "text"),
        (Image(), "text"),
        (File(url="https://x.example/a.pdf"), "document"),
        (File.of("héllo".encode(), "text/csv", "a.csv"), "document"),
        (File.of(b" ", "text/plain"), "text"),
        (File.of(b"\0\1", "application/zip", "a.zip"), "text"),
        (File("?", "text/plain"), "text"),
    ],
)
def test_media_goes_as_what_the_api_takes(part: Any, kind: str) -> None:
    assert blocks(body([Message.user([Text("see"), part])]), 0)[1]["type"] == kind
    assert [block["type"] for block in blocks(body([Message.user("q"), Message.assistant(part)]), 1)] == ["text"]


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (Image("!!!not base64"), "[image left out: its data is not base64]"),
        (Image("abc"), "[image left out: its data is not base64]"),
        (Image("é\ud800"), "[image left out: its data is not base64]"),
        (Image(" "), "[image left out: it has no data]"),
        (Image("Qk0=", "image/bmp"), "[image left out: image/bmp cannot be sent to this model]"),
        (Image("Qk0=", ""), "[image left out: no media type cannot be sent to this model]"),
        (Image(url="a.png"), "[image left out: its address is no web address]"),
        (Image(url="data:image/png,raw"), "[image left out: its address is no data URL in base64]"),
        (File("?", "application/pdf", "a.pdf"), "[file a.pdf left out: its data is not base64]"),
        (File("!!!not base64", "text/plain"), "[file left out: its data is not base64]"),
        (File("", "application/pdf"), "[file left out: it has no data]"),
        (
            File("AAAA", "application/zip", "a.zip"),
            "[file a.zip left out: application/zip cannot be sent to this model]",
        ),
        (File(url="file:///a.pdf"), "[file left out: its address is no web address]"),
    ],
)
def test_f04_what_the_api_refuses_is_told_in_words(part: Any, text: str) -> None:
    told = {"type": "text", "text": text}
    history = [
        Message.user([Text("see"), part]),
        use("t1"),
        result("t1", Text("got"), part),
        use("t2"),
        result("t2", part),
    ]
    found = body(history)
    assert blocks(found, 0)[1] == told
    assert blocks(found, 2)[0]["content"] == [{"type": "text", "text": "got"}, told]
    assert blocks(found, 4)[0]["content"] == text


@pytest.mark.parametrize(
    ("image", "kind"),
    [
        (Image("iVBORw0K\r\nGgo="), "image/png"),
        (Image("iVBORw0KGgo=", "Image/PNG; charset=binary"), "image/png"),
        (Image(url="data:image/png;base64,iVBORw0KGgo="), "image/png"),
        (Image("iVBORw0KGgo=", "image/jpeg"), "image/png"),
        (Image("/9j/", "image/jpg"), "image/jpeg"),
        (Image("/9j/", "image/png"), "image/jpeg"),
        (Image("R0lGODlh", "image/png"), "image/gif"),
        (Image("UklGRgAAAABXRUJQ", "image/png"), "image/webp"),
    ],
)
def test_f04_an_image_goes_under_the_type_that_its_bytes_tell(image: Image, kind: str) -> None:
    source = blocks(body([Message.user(image)]), 0)[0]["source"]
    assert (source["type"], source["media_type"]) == ("base64", kind)
    assert "\n" not in source["data"]


def test_a_text_file_goes_as_its_text() -> None:
    found = blocks(body([Message.user(File.of("héllo".encode(), "text/csv", "a.csv"))]), 0)[0]
    assert found["source"] == {"type": "text", "media_type": "text/plain", "data": "héllo"}
    assert found["title"] == "a.csv"


def test_metadata_goes_back_to_the_model_that_made_it() -> None:
    provider = AnthropicProvider("claude-haiku-4-5", Options.model_validate({"api_key": "k"}))
    caller = '{"anthropic":{"family":"%s","caller":{"type":"direct"},"toolset_name":"browser"}}'
    own, foreign = caller % provider.family, caller % "claude-opus-5"
    messages = [
        Message.user("q"),
        Message.assistant([ToolCall("t1", "f", "{}", own), ToolCall("t2", "f", "{}", foreign)]),
    ]
    found = body([*messages, result("t1"), result("t2")])
    assert [block.get("caller") for block in blocks(found, 1)] == [{"type": "direct"}, None]
    assert [block.get("toolset_name") for block in blocks(found, 2)] == ["browser", None]


def test_a_users_own_block_is_sent_as_it_is() -> None:
    provider = AnthropicProvider("claude-haiku-4-5", Options.model_validate({"api_key": "k"}))
    upload = Opaque('{"type":"container_upload","file_id":"f1"}', "anthropic", provider.family)
    assert blocks(body([Message.user([upload, Text("q")])]), 0)[0] == {"type": "container_upload", "file_id": "f1"}


# what is asked beside the messages


def test_the_usual_body_is_small() -> None:
    found = body(tools=(), options={"cache": False})
    assert found == {
        "model": "claude-haiku-4-5",
        "max_tokens": 32_000,
        "stream": True,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "q"}]}],
    }


@pytest.mark.parametrize(
    ("model", "thinking", "sent"),
    [
        ("claude-haiku-4-5", None, None),
        ("claude-haiku-4-5", 2048, {"type": "enabled", "budget_tokens": 2048}),
        ("claude-haiku-4-5", "off", None),
        ("claude-sonnet-4-6", "adaptive", {"type": "adaptive"}),
        ("claude-sonnet-4-6", 1024, {"type": "enabled", "budget_tokens": 1024}),
        ("claude-opus-4-7", "adaptive", {"type": "adaptive"}),
        ("claude-opus-5", "off", {"type": "disabled"}),
        ("claude-opus-5", None, None),
        ("claude-sonnet-5-5", "off", {"type": "between_tools"}),
        ("some-copy", 5000, {"type": "enabled", "budget_tokens": 5000}),
    ],
)
def test_thinking_is_asked_for_as_the_model_wants(model: str, thinking: Any, sent: Json | None) -> None:
    assert body(model=model, options={"thinking": thinking}).get("thinking") == sent


@pytest.mark.parametrize(
    ("model", "thinking", "hint"),
    [
        ("claude-opus-5-5", "off", "always thinks"),
        ("claude-opus-4-7", 2048, "adaptive"),
        ("claude-haiku-4-5", "adaptive", "budget"),
        ("claude-haiku-4-5", 100, "1024"),
        ("claude-3-5-haiku-20241022", 2048, "does not think"),
    ],
)
def test_thinking_that_the_model_refuses_is_a_configuration_error(model: str, thinking: Any, hint: str) -> None:
    with pytest.raises(ConfigError, match=hint):
        AnthropicProvider(model, Options.model_validate({"api_key": "k", "thinking": thinking}))


@pytest.mark.parametrize(
    ("limit", "sent"),
    [(None, 3000), (5000, 3000), (2000, 1999), (1024, None), (200, None)],
)
def test_a_budget_leaves_room_for_the_reply(limit: int | None, sent: int | None) -> None:
    found = body(options={"thinking": 3000}, settings=Settings(max_tokens=limit))
    assert (found.get("thinking") or {}).get("budget_tokens") == sent


def test_thinking_does_not_begin_in_the_middle_of_a_turn() -> None:
    turn = [Message.user("q"), use("t1"), result("t1")]
    assert "thinking" not in body(turn, options={"thinking": 3000})
    assert "thinking" in body([*turn, Message.assistant("a"), Message.user("r")], options={"thinking": 3000})


@pytest.mark.parametrize(
    ("model", "options", "sent"),
    [
        ("claude-haiku-4-5", {}, 0.5),
        ("claude-haiku-4-5", {"thinking": 2000}, None),
        ("claude-opus-4-7", {}, None),
        ("claude-sonnet-5", {}, None),
        ("some-copy", {}, 0.5),
    ],
)
def test_a_temperature_is_sent_where_it_is_taken(model: str, options: Json, sent: float | None) -> None:
    found = body(model=model, options=options, settings=Settings(temperature=0.5, top_p=0.9, stop=("END", " ")))
    assert (found.get("temperature"), found.get("top_p")) == (sent, None)
    assert found["stop_sequences"] == ["END"]


@pytest.mark.parametrize(
    ("model", "effort", "sent"),
    [
        ("claude-opus-4-6", "xhigh", "high"),
        ("claude-opus-4-7", "xhigh", "xhigh"),
        ("claude-opus-4-5", "max", "high"),
        ("claude-opus-4-6", "minimal", "low"),
        ("claude-opus-5-5", "none", "low"),
        ("claude-opus-5", "none", None),
        ("claude-haiku-4-5", "high", None),
        ("claude-opus-4-6", "strange", None),
    ],
)
def test_effort_is_said_in_the_models_words(model: str, effort: str, sent: str | None) -> None:
    found = body(model=model, settings=Settings(effort=effort))
    assert found.get("output_config", {}).get("effort") == sent


def test_no_effort_turns_thinking_off_where_it_can_be() -> None:
    assert body(model="claude-opus-5", settings=Settings(effort="none"))["thinking"] == {"type": "disabled"}


@pytest.mark.parametrize(
    ("choice", "parallel", "sent"),
    [
        ("auto", None, None),
        ("auto", False, {"type": "auto", "disable_parallel_tool_use": True}),
        ("none", None, {"type": "none"}),
        ("none", False, {"type": "none"}),
        ("required", None, {"type": "any"}),
        ("f", False, {"type": "tool", "name": "f", "disable_parallel_tool_use": True}),
    ],
)
def test_the_tool_choice(choice: str, parallel: bool | None, sent: Json | None) -> None:
    found = body(tool_choice=choice, settings=Settings(parallel=parallel))
    assert found.get("tool_choice") == sent
    assert "tool_choice" not in body(tools=(), tool_choice=choice, settings=Settings(parallel=parallel))


@pytest.mark.parametrize(("model", "options"), [("claude-opus-5", {}), ("claude-haiku-4-5", {"thinking": 2000})])
def test_no_call_is_forced_while_the_model_thinks(model: str, options: Json) -> None:
    assert "tool_choice" not in body(model=model, options=options, tool_choice="required")


def test_an_allow_list_leaves_the_tools_as_they_are() -> None:
    tools = (TOOL, ToolSpec("g", "", EMPTY))
    assert [tool["name"] for tool in body(tools=tools, allowed=frozenset({"g"}))["tools"]] == ["f", "g"]


def test_odd_tool_names_are_rewritten_everywhere() -> None:
    odd = ["a.b", "a b", "a_b", "日本", "x" * 80]
    tools = tuple(ToolSpec(name, "", EMPTY) for name in odd)
    found = body([Message.user("q"), use("t1", name="a.b"), result("t1")], tools=tools, tool_choice="日本")
    names = [tool["name"] for tool in found["tools"]]
    assert len(set(names)) == len(odd)
    assert names[2] == "a_b"
    assert blocks(found, 1)[0]["name"] == names[0]
    assert found["tool_choice"]["name"] == names[3]


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "anyOf": [{"properties": {"a": {}}, "required": ["a"]}, {"properties": {"b": {}}}]},
        {"oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}], "$defs": {"A": {"properties": {"a": {}}}, "B": {}}},
        {"allOf": [{"properties": {"a": {}}, "required": ["a"]}], "required": ["b"], "properties": {"b": {}}},
        {"$ref": "#/$defs/A", "$defs": {"A": {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}}}},
        {"$ref": "#/definitions/N", "definitions": {"N": {"$ref": "#/definitions/N"}}},
        {"type": ["object", "null"], "properties": {"a": {}}},
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_any_schema_is_brought_to_a_plain_object(schema: Json, strict: bool) -> None:
    found = body(tools=(ToolSpec("f", "", json.dumps(schema), strict),))["tools"][0]
    assert found["input_schema"]["type"] == "object"
    assert found.get("strict", False) is strict


def test_a_schema_of_both_keeps_what_both_ask() -> None:
    schema = {"allOf": [{"properties": {"a": {}}, "required": ["a"]}], "required": ["b"], "properties": {"b": {}}}
    found = body(tools=(ToolSpec("f", "", json.dumps(schema)),))["tools"][0]["input_schema"]
    assert (sorted(found["properties"]), sorted(found["required"])) == (["a", "b"], ["a", "b"])


@pytest.mark.parametrize(("model", "own"), [("claude-haiku-4-5", True), ("claude-sonnet-4-0", False), ("copy", False)])
def test_structured_output_where_the_model_has_it(model: str, own: bool) -> None:
    schema = '{"type":"object","properties":{"a":{"type":"integer","minimum":1}},"required":["a"]}'
    found = body(model=model, output=schema, output_name="A")
    provider = AnthropicProvider(model, Options.model_validate({"api_key": "k"}))
    assert provider.traits.structured is own
    if own:
        form = found["output_config"]["format"]
        assert form["type"] == "json_schema"
        assert form["schema"]["additionalProperties"] is False
    else:
        assert "output_config" not in found


def test_extra_settings_stand_over_ours_and_its_tools_beside_ours() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    found = body(settings=Settings(extra={"service_tier": "auto", "max_tokens": 7, "tools": [search]}))
    assert (found["service_tier"], found["max_tokens"]) == ("auto", 7)
    assert [tool["name"] for tool in found["tools"]] == ["f", "web_search"]
    alone = body(tools=(), settings=Settings(extra={"tools": [search]}))
    assert [tool["name"] for tool in alone["tools"]] == ["web_search"]


def test_bound_thinking_may_be_dropped_by_the_server() -> None:
    found = body(model="claude-opus-5-5", options={"binding": "drop_block"})
    assert found["thinking"] == {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    assert "thinking" not in body(model="claude-opus-5", options={"binding": "drop_block"})


# growing


def requests(model: str = "claude-haiku-4-5", rounds: int = 6, **fields: Any) -> list[Json]:
    """The bodies of an epoch's requests; each round a call, its result and two notes from plugins."""
    provider = AnthropicProvider(model, Options.model_validate({"api_key": "k"}))
    memo: dict[str, Any] = {}
    messages = [Message.user("q")]
    found: list[Json] = []
    for number in range(rounds):
        request = ModelRequest(model, "You are.", messages, (TOOL,), memo=memo, **fields)
        found.append(json.loads(provider.encode(request)))
        messages += [use(f"t{number}"), result(f"t{number}", Text("r")), Message.user("note"), Message.user("more")]
    return found


def flattened(found: Json) -> list[tuple[str, str]]:
    return [
        (message["role"], json.dumps({k: v for k, v in block.items() if k != "cache_control"}))
        for message in found["messages"]
        for block in message["content"]
    ]


def test_each_request_of_an_epoch_extends_the_one_before() -> None:
    found = requests()
    for before, after in itertools.pairwise(found):
        assert flattened(after)[: len(flattened(before))] == flattened(before)
        assert {k: v for k, v in before.items() if k != "messages"} == {
            k: v for k, v in after.items() if k != "messages"
        }
        assert check_messages(after) == []


def marked(found: Json) -> list[int]:
    """Which blocks of the messages carry a mark, counted over all messages."""
    every = [block for message in found["messages"] for block in message["content"]]
    return [at for at, block in enumerate(every) if "cache_control" in block]


def test_a_request_marks_its_end_and_the_end_of_the_one_before() -> None:
    found = requests()
    for before, after in itertools.pairwise(found):
        last = len(flattened(after)) - 1
        assert marked(after) == [marked(before)[-1], last]
    assert all("cache_control" in body["system"][-1] for body in found)


def test_marks_can_be_turned_off() -> None:
    assert "cache_control" not in json.dumps(body(system="S", options={"cache": False}))


def test_the_last_tool_is_marked_where_there_is_no_system_text() -> None:
    found = body(tools=(ToolSpec("e", "", EMPTY), TOOL))
    assert ["cache_control" in tool for tool in found["tools"]] == [False, True]


def test_another_attempt_at_a_request_sends_the_same() -> None:
    provider = AnthropicProvider("claude-haiku-4-5", Options.model_validate({"api_key": "k"}))
    memo: dict[str, Any] = {}
    messages = [Message.user("q")]
    request = ModelRequest("claude-haiku-4-5", "", messages, memo=memo)
    first = provider.encode(request)
    assert provider.encode(request) == first
    messages += [use("t1"), result("t1")]
    second = provider.encode(request)
    assert provider.encode(request) == second


def test_a_memo_of_another_history_is_not_used() -> None:
    provider = AnthropicProvider("claude-haiku-4-5", Options.model_validate({"api_key": "k"}))
    memo: dict[str, Any] = {}
    provider.encode(ModelRequest("m", "", [Message.user("old"), Message.assistant("a")], memo=memo))
    found = json.loads(provider.encode(ModelRequest("m", "", [Message.user("new")], memo=memo)))
    assert blocks(found, 0) == [{"type": "text", "text": "new"}]


def test_bytes_are_utf8_whatever_the_text() -> None:
    found = body([Message.user("a\ud800b\0c" + "é😀")])
    assert blocks(found, 0)[0]["text"] == "a?b\0cé😀"


def test_big_data_is_sent_unchanged() -> None:
    data = base64.b64encode(bytes(range(256)) * 4000).decode("ascii")
    assert blocks(body([Message.user(Image(data, "image/png"))]), 0)[0]["source"]["data"] == data


def test_odd_property_names_are_rewritten_both_ways() -> None:
    inner = {"type": "object", "properties": {"$ref name": {"type": "string"}}, "required": ["$ref name"]}
    schema = {
        "type": "object",
        "properties": {"城市": {"type": "string"}, "ok": {"enum": ["城市"]}, "in": {"$ref": "#/$defs/I"}},
        "required": ["城市", "ok"],
        "$defs": {"I": inner},
    }
    spec = ToolSpec("book", "", json.dumps(schema))
    value = {"城市": "上海", "ok": "城市", "in": {"$ref name": "x"}}
    history = [Message.user("q"), use("t1", json.dumps(value), "book"), result("t1")]
    found = body(history, tools=(spec,))
    sent = found["tools"][0]["input_schema"]
    city = sent["required"][0]
    assert sent["properties"][city] == {"title": "城市", "type": "string"}
    assert sent["properties"]["ok"] == {"enum": ["城市"]}
    assert sent["$defs"]["I"]["required"] == list(sent["$defs"]["I"]["properties"])
    wire = blocks(found, 1)[0]["input"]
    assert (wire[city], wire["ok"]) == ("上海", "城市")
    with StrictServer([lambda request: ToolCall("t2", "book", json.dumps(wire))]) as server:
        provider = AnthropicProvider("copy", Options(api_key=SecretStr("k"), base_url=server.url))
        *_, reply = provider.stream(ModelRequest("copy", "", history, (spec,)))
        provider.close()
    assert isinstance(reply, Reply)
    assert reply.calls[0].arguments == value


def test_a_schema_without_odd_names_is_sent_as_it_is() -> None:
    schema = {"type": "object", "properties": {"properties": {"type": "object", "properties": {"a.b": {}}}}}
    assert body(tools=(ToolSpec("f", "", json.dumps(schema)),))["tools"][0]["input_schema"] == schema


# The strict server does not know Mythos, whose rules are those of Fable.
NAMED = [model for model in get_args(get_args(ModelParam)[0]) if "mythos" not in model]


@pytest.mark.parametrize("model", [*NAMED, "claude-opus-9", "claude-3-haiku-20240307"])
def test_every_model_that_the_sdk_names_is_asked_as_it_wants(model: str) -> None:
    turn = [Message.user("q"), use("t1"), result("t1"), Message.assistant("a")]
    settings = Settings(temperature=0.2, effort="high")
    found = body([*turn, Message.system("S"), Message.user("r")], model=model, settings=settings, tool_choice="f")
    assert found["max_tokens"] <= 128_000


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("claude-3-7-sonnet@20250219", "claude-3-7-sonnet"),
        ("claude-3-5-haiku-latest", "claude-3-5-haiku"),
        ("anthropic/claude-opus-4.5", "claude-opus-4-5"),
        ("Kimi-K2.5", "kimi-k2.5"),
    ],
)
def test_one_model_has_one_family_under_all_its_names(model: str, name: str) -> None:
    assert AnthropicProvider(model, Options(api_key=SecretStr("k"))).family == name


def test_thinking_is_bound_where_the_model_binds_it() -> None:
    bound = {model: AnthropicProvider(model, Options(api_key=SecretStr("k"))).traits.bound_thinking for model in NAMED}
    assert {model for model, known in bound.items() if known} == {
        "claude-fable-5-2",
        "claude-fable-5-1",
        "claude-opus-5-5",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
    }


def test_the_first_request_of_a_turn_marks_where_the_turn_before_ended() -> None:
    turn = [Message.user("q"), use("t1"), result("t1", Text("r")), Message.user("note"), Message.assistant("a")]
    found = body([*turn, Message.user("next")])
    assert marked(found) == [3, 5]


def test_no_mark_is_set_on_thinking_or_on_a_vendors_block() -> None:
    provider = AnthropicProvider("claude-haiku-4-5", Options(api_key=SecretStr("k")))
    server_use = Opaque(
        '{"type":"server_tool_use","id":"srvtoolu_1","name":"s","input":{}}', "anthropic", provider.family
    )
    found = body([Message.user("q"), Message.assistant([Text("a"), server_use])])
    assert marked(found) == [0, 1]
