"""Any conversation that the engine may hold: the strict rules of each endpoint refuse nothing of what is sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop.testing.server import check_chat, check_responses
from hookloop_hookspecs import (
    File,
    Image,
    Message,
    ModelRequest,
    Opaque,
    Origin,
    Part,
    Settings,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from hookloop_hookspecs.codec import dump_message, load_message
from hookloop_openai.encoding import encoded
from hookloop_openai.errors import Failing
from hookloop_openai.identity import Identity
from hookloop_openai.profile import profiles
from hookloop_openai.wire_text import tagged

SERVERS = {
    "openai": (None, "gpt-4.1"),
    "azure": (None, "gpt-4.1"),
    "deepseek": ("deepseek", "deepseek-reasoner"),
    "mistral": ("mistral", "mistral-small-latest"),
    "gemini": ("gemini", "gemini-3-pro"),
    "ollama": ("ollama", "gpt-oss:20b"),
    "vllm": ("vllm", "qwen3"),
    "llamacpp": ("llama.cpp", "gpt-oss-20b"),
    "groq": ("groq", "openai/gpt-oss-120b"),
    "openrouter": ("openrouter", "google/gemini-3-pro"),
    "together": ("together", "llama"),
    "xai": ("xai", "grok-4"),
}
SCHEMA = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}'
TOOLS = tuple(ToolSpec(name, "does a thing", SCHEMA, strict) for name, strict in (("get", False), ("edit_file", True)))

texts = st.one_of(
    st.sampled_from(["", " ", "hello", "a\x00b", "\udc97", "\ud83d\ude00", "ü😀", "</tool_call>", "x" * 200]),
    st.text(max_size=8),
)
ids = st.sampled_from(
    ["c1", "call_PTLP8xabcdef", "toolu_01A", "search:0", "functions.f:0", "x" * 70, "a b|c", "ü", "abcdefghi", "\udc97"]
)
names = st.sampled_from(["get", "edit_file", "no such tool!", "", "x" * 80, "ünder"])
raws = st.sampled_from(
    ["{}", '{"a":1}', "", "[1]", '"ls"', '{"p":"C:\\Users"}', '{"a":', "null", '{"a":NaN}', '{"a":"\ud83d"}']
)
images = st.builds(Image, st.just("aGk=")) | st.builds(Image, url=st.just("https://x.example/a.png"))
media = images | st.builds(File, st.just("aGk="), st.just("application/pdf"), texts)


def owned(identity: Identity, item: dict[str, Any] | None, **more: Any) -> dict[str, str]:
    """Fields of a part that came from here, or from a neighbour."""
    extra = tagged(identity.tag, identity.family, item=item, **more) if item else ""
    return {"provider": identity.tag, "family": identity.family, "extra": extra}


def thoughts(identity: Identity) -> st.SearchStrategy[Part]:
    item = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "secret"}
    homes = st.sampled_from(
        [owned(identity, item), owned(identity, None), {"provider": "other", "family": "f", "extra": ""}]
    )
    return st.builds(lambda text, home: Thinking(text, **home), texts, homes)


def opaques(identity: Identity) -> st.SearchStrategy[Part]:
    items = st.sampled_from(
        ['{"type":"web_search_call","id":"ws_1","status":"completed"}', '{"type":"mcp_approval_request"}', '{"x":1}']
    )
    return st.builds(Opaque, items, st.sampled_from([identity.tag, "other"]), st.just(identity.family))


@st.composite
def groups(draw: st.DrawFn, identity: Identity) -> list[Message]:
    """An assistant message, and the results of its calls in order."""
    calls = draw(st.lists(st.builds(ToolCall, ids, names, raws), max_size=3, unique_by=lambda call: call.id))
    said = draw(st.lists(thoughts(identity) | st.builds(Text, texts) | opaques(identity), max_size=3))
    origin = Origin("model", model=draw(st.sampled_from(["other:model", "", f"{identity.name}:{identity.model}"])))
    messages = [Message("assistant", (*said, *calls), origin)]
    for call in calls:
        content = draw(st.lists(st.builds(Text, texts) | media, max_size=2))
        messages.append(Message.tool(ToolResult(call.id, call.name, tuple(content), draw(st.booleans()))))
    return messages


@st.composite
def conversations(draw: st.DrawFn, identity: Identity) -> list[Message]:
    """User messages first and between, groups, and now and then a system message."""
    users = st.builds(Message.user, st.lists(st.builds(Text, texts) | media, max_size=2))
    system = st.builds(Message.system, texts)
    blocks = draw(st.lists(groups(identity) | users.map(lambda m: [m]) | system.map(lambda m: [m]), max_size=7))
    return [draw(users), *(message for block in blocks for message in block)]


def identity_of(name: str, model: str, *, vision: bool = True) -> Identity:
    profile = profiles[name]
    return Identity(name, name, profile.family_of(model), model, profile, vision)


def bodies(name: str, model: str, api: Any, draw: Any) -> dict[str, Any]:
    """The request at the end of a conversation: step by step, at once, and after saving and loading the same bytes."""
    identity = identity_of(name, model, vision=draw(st.booleans()))
    conversation: Sequence[Message] = draw(conversations(identity))
    memo: dict[str, Any] = {}
    wire = b""
    settings_ = Settings(max_tokens=5, temperature=0.5, top_p=0.9, stop=("x",), seed=1, parallel=True)
    fields: dict[str, Any] = {"tools": TOOLS, "settings": settings_, "output": SCHEMA, "output_name": "answer"}
    ends = [i for i in range(1, len(conversation) + 1) if i == len(conversation) or conversation[i].role != "tool"]
    for end in ends:
        request = ModelRequest("m", "be \udc97 kind", conversation[:end], memo=memo, **fields)
        wire = encoded(request, identity, api, Failing(name), stream=True)
    fresh = ModelRequest("m", "be \udc97 kind", conversation, **fields)
    assert wire == encoded(fresh, identity, api, Failing(name), stream=True)
    if all(half not in repr(conversation) for half in ("\\udc", "\\ud8")):  # what the engine lets into a history
        loaded = [load_message(dump_message(message)) for message in conversation]
        assert wire == encoded(replace(fresh, messages=loaded, memo={}), identity, api, Failing(name), stream=True)
    body: dict[str, Any] = json.loads(wire.decode("utf-8"))
    return body


@pytest.mark.parametrize("name", sorted(SERVERS))
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_chat_servers_refuse_nothing(name: str, data: Any) -> None:
    server, model = SERVERS[name]
    body = bodies(name, model, "chat", data.draw)
    faults = check_chat(body, server)
    assert not [(fault.rule, fault.message) for fault in faults]


@pytest.mark.parametrize(("name", "model"), [("openai", "gpt-5.4"), ("azure", "gpt-4.1"), ("xai", "grok-4")])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_responses_refuses_nothing(name: str, model: str, data: Any) -> None:
    body = bodies(name, model, "responses", data.draw)
    faults = check_responses(body, {"authorization": "Bearer k"})
    assert not [(fault.rule, fault.message) for fault in faults]


@settings(max_examples=100, deadline=None)
@given(data=st.data(), api=st.sampled_from(["chat", "responses"]))
def test_calls_and_results_say_what_they_said(data: Any, api: Any) -> None:
    identity = identity_of("openai", "gpt-4.1")
    conversation = data.draw(conversations(identity))
    body = json.loads(encoded(ModelRequest("m", "", conversation), identity, api, Failing("openai"), stream=False))
    results = [message.results[0] for message in conversation if message.role == "tool"]
    sent = results_of(body)
    assert len(sent) == len(results)
    for result, text in zip(results, sent, strict=True):
        if all(isinstance(part, Text) for part in result.content):
            assert text == result.text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def results_of(body: dict[str, Any]) -> list[str]:
    """The texts of the results on the wire, as far as they are texts."""
    found = []
    for entry in body.get("messages") or body["input"]:
        if entry.get("role") == "tool" or entry.get("type") == "function_call_output":
            found.append(entry.get("content", entry.get("output")))
    return found
