"""Random valid histories, from any provider: no request breaks a rule, and each extends the one before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from hookloop.testing.server import check_messages
from hookloop_anthropic import AnthropicProvider, Options
from hookloop_hookspecs import (
    File,
    Image,
    Message,
    ModelRequest,
    Opaque,
    Settings,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
)

Json = dict[str, Any]
MODELS = ["claude-haiku-4-5", "claude-sonnet-4-6", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5", "a-copy"]
FAMILIES = [*MODELS, "gpt-5", ""]
OFF = ["prefill", "prefill_thinking", "thinking_off"]
"""A history may end with a reply, and think from the middle of a turn on, which no model does."""
TOOLS = (
    ToolSpec("f", "A tool.", '{"type":"object","properties":{"x":{}}}'),
    ToolSpec("g.h", "", '{"type":"object","properties":{"ä":{}}}'),
)

texts = st.sampled_from(["", " ", "\n\t", "a", "a \n", "é😀", "a\0b", "\u2028", "a\ud800b"]) | st.text(max_size=6)
raws = st.sampled_from(["", "{}", '{"x":1}', '{"ä":{"ä":[1]}}', "{", "[1]", '"{}"', '{"x":NaN}', '{"a":"\\udc00"}'])
names = st.sampled_from(["f", "g.h", "gone", "日本", "x" * 90])
providers = st.sampled_from(["anthropic", "openai", ""])
families = st.sampled_from(FAMILIES)
thoughts = st.builds(Thinking, texts, st.sampled_from(["", "sig"]), st.sampled_from(["", "data"]), providers, families)
opaque = st.builds(
    Opaque, st.just('{"type":"server_tool_use","id":"srvtoolu_1","name":"s","input":{}}'), providers, families
)
images = st.builds(
    Image,
    st.sampled_from(["", "iVBORw0="]),
    st.sampled_from(["image/png", "image/bmp"]),
    st.sampled_from(["", "https://x.example/i"]),
)
files = st.builds(
    File, st.sampled_from(["", "aGk=", "?"]), st.sampled_from(["application/pdf", "text/csv", "x/y"]), texts
)
seen = st.builds(Text, texts, st.sampled_from(["", '{"anthropic":{"family":"gpt-5","citations":[1]}}', "[]", "{"]))
said = st.lists(seen | thoughts | opaque | images | st.tuples(names, raws), max_size=5)
told = st.lists(seen | images | files, max_size=3)
ids = st.sampled_from(["", "t", "f.0", "f:0", "a|b", "ü", "x" * 90, "\ud800"])
results = st.tuples(st.lists(st.builds(Text, texts) | images | files, max_size=3), st.booleans())
steps = st.tuples(st.sampled_from(["user", "system", "assistant"]), told, texts, said, ids, results)


def history(drawn: list[Any]) -> list[Message]:
    """Messages that keep the pairing of calls and results, with ids unique as the engine makes them."""
    messages: list[Message] = []
    for at, (role, heard, text, spoken, id, (content, error)) in enumerate(drawn):
        if role == "user":
            messages.append(Message.user(heard))
        elif role == "system":
            messages.append(Message.system(text))
        else:
            calls = iter(range(100))
            parts = [ToolCall(f"{id}{at}.{next(calls)}", *p) if isinstance(p, tuple) else p for p in spoken]
            messages.append(Message.assistant(parts))
            answers = (ToolResult(call.id, call.name, tuple(content), error) for call in messages[-1].calls)
            messages += [Message.tool(answer) for answer in answers]
    return messages


def whole_groups(messages: list[Message]) -> Iterator[int]:
    """Where a request may end: behind a whole call group, before a reply, or at the end."""
    for at in range(1, len(messages) + 1):
        if at == len(messages) or messages[at].role == "assistant":
            yield at


def flattened(body: Json) -> list[tuple[str, str]]:
    return [
        (message["role"], json.dumps({k: v for k, v in block.items() if k != "cache_control"}))
        for message in body["messages"]
        for block in message["content"]
    ]


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=100, deadline=None)
@given(drawn=st.lists(steps, max_size=7), choice=st.sampled_from(["auto", "none", "required", "g.h"]))
def test_no_history_makes_a_request_that_is_refused(model: str, drawn: list[Any], choice: str) -> None:
    provider = AnthropicProvider(model, Options(api_key=SecretStr("k")))
    messages = history(drawn)
    memo: dict[str, Any] = {}
    before: list[tuple[str, str]] = []
    for end in whole_groups(messages):
        options: dict[str, Any] = {
            "tools": TOOLS,
            "tool_choice": choice,
            "settings": Settings(temperature=0.3, effort="high"),
        }
        view = messages[:end]
        body = json.loads(provider.encode(ModelRequest(model, "Be.", view, memo=memo, **options)))
        assert check_messages(body, off=OFF) == []
        fresh = json.loads(provider.encode(ModelRequest(model, "Be.", view, **options)))
        assert flattened(fresh) == flattened(body)
        if all(message.role != "system" for message in view) and view[-1].role != "assistant":
            assert flattened(body)[: len(before)] == before
            before = flattened(body)
