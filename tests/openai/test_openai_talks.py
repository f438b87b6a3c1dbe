"""Random tool conversations through the SDK and the strict server: nothing is refused, both transports say the same.

Each endpoint's profile asks a server with that endpoint's own demands. What is saved and loaded is sent again as the same
bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookloop.engine.history import clean, clean_text
from hookloop.testing import reply, say
from hookloop.testing.server import Chunks, Deltas, Fail, StrictServer
from hookloop_hookspecs import (
    Image,
    Message,
    ModelRequest,
    Opaque,
    Part,
    Reply,
    Settings,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from hookloop_hookspecs.codec import dump_message, load_message
from hookloop_openai import OpenAIProvider, factories

ENDPOINTS: dict[str, tuple[str, str, str, str | None]] = {
    "openai": ("openai", "gpt-4.1", "chat", None),
    "azure": ("azure", "gpt-4.1", "chat", None),
    "deepseek": ("deepseek", "deepseek-reasoner", "chat", "deepseek"),
    "mistral": ("mistral", "mistral-small-latest", "chat", "mistral"),
    "gemini": ("gemini", "gemini-3-pro", "chat", "gemini"),
    "ollama": ("ollama", "gpt-oss:20b", "chat", "ollama"),
    "vllm": ("vllm", "qwen3", "chat", "vllm"),
    "llamacpp": ("llamacpp", "gpt-oss-20b", "chat", "llama.cpp"),
    "groq": ("groq", "openai/gpt-oss-120b", "chat", "groq"),
    "openrouter": ("openrouter", "google/gemini-3-pro", "chat", "openrouter"),
    "together": ("together", "llama", "chat", "together"),
    "xai": ("xai", "grok-4", "chat", "xai"),
    "own": ("openai", "anything", "chat", None),
    "responses": ("openai", "gpt-5.4", "responses", None),
    "responses, no reasoning": ("openai", "gpt-4.1", "responses", None),
    "responses of azure": ("azure", "gpt-5.4", "responses", None),
    "responses of xai": ("xai", "grok-4", "responses", None),
}
"""By name: profile, model, API, and whose demands the server makes."""

SCHEMA = '{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}'
TOOLS = tuple(ToolSpec(name, "does a thing", SCHEMA, strict) for name, strict in (("get", False), ("edit_file", True)))
SEARCH = Opaque('{"type":"web_search_call","status":"completed"}')

texts = st.sampled_from(
    ["", " ", "\n", "a", "é😀", "a\0b", "line\r\nline ", "\u2028", "\udc97", "\ud83d", "x" * 300, "</think>", "data: x"]
) | st.text(max_size=8)
ids = st.sampled_from(["", "functions.get:0", "a|b", "call_1", "toolu_x", "x" * 70, "ü", "abcdefghi"])
names = st.sampled_from(["get", "edit_file", "edit_file", "no such tool!"])
values = st.dictionaries(
    st.text(max_size=4), texts | st.integers() | st.none() | st.lists(texts, max_size=2), max_size=3
)
raws = st.builds(json.dumps, values) | st.sampled_from(["", "[1]", '"ls"', "null", '{"a":', '{"p":"C:\\Users"}'])
calls = st.builds(ToolCall, ids, names, raws)
thoughts = st.builds(lambda text: Thinking(text, "signed"), texts)
said = st.lists(st.builds(Text, texts) | calls | thoughts | st.just(SEARCH), max_size=5)
shown = st.lists(st.builds(Text, texts) | st.just(Image.of(b"\x89PNG")), max_size=3)


@dataclass(frozen=True)
class Round:
    """What the model says, what comes of each call, what is injected after it, and how the answer travels."""

    parts: list[Any]
    results: list[tuple[list[Any], bool]]
    notes: list[list[Any]]
    fails_first: bool
    delta: int
    cuts: list[int]


rounds = st.builds(
    Round,
    said,
    st.lists(st.tuples(shown, st.booleans()), min_size=5, max_size=5),
    st.lists(shown, max_size=2),
    st.booleans(),
    st.integers(1, 9),
    st.lists(st.integers(1, 2500), max_size=12),
)


@dataclass
class Talk:
    """One conversation in one transport: who is asked, what was said, and what was answered."""

    server: StrictServer
    provider: OpenAIProvider
    messages: list[Message] = field(default_factory=lambda: [Message.user("q")])
    memo: dict[str, Any] = field(default_factory=dict)
    replies: list[Reply] = field(default_factory=list)

    def request(self, messages: Sequence[Message], memo: dict[str, Any]) -> ModelRequest:
        """A request of this conversation."""
        more: dict[str, Any] = {"turn": "t", "round": len(self.replies) + 1, "settings": Settings(max_tokens=500)}
        return ModelRequest(self.provider.model, "Be kind.", messages, TOOLS, memo=memo, **more)

    def play(self, one: Round) -> None:
        """Ask once, and append what the model said, the results of its calls, and what is injected behind them."""
        parts = list(sayable(one.parts, self.provider, len(self.replies)))
        failing = [Fail(503, headers={"retry-after": "0"})] if one.fails_first else []
        step = Deltas(reply(*parts), one.delta)
        self.server.play(*failing, Chunks(step, 4096, one.cuts))
        found = self.ask(self.provider, self.messages, self.memo)
        self.replies.append(found)
        seen = {call.id for message in self.messages for call in message.calls}
        self.add(Message.assistant([unique(part, seen) for part in found.content]))
        for call, (content, error) in zip(self.messages[-1].calls, one.results, strict=False):
            self.add(Message.tool(ToolResult(call.id, call.name, tuple(content), error)))
        for note in one.notes:
            self.add(Message.user(note))
        if self.messages[-1].role == "assistant":
            self.add(Message.user("go on"))

    def add(self, message: Message) -> None:
        """Append a message as the engine lets it into a history."""
        self.messages.append(replace(message, content=clean(message.content)))

    def ask(self, provider: OpenAIProvider, messages: Sequence[Message], memo: dict[str, Any]) -> Reply:
        """The reply to these messages."""
        *_, found = provider.stream(self.request(messages, memo))
        assert isinstance(found, Reply)
        return found

    def ask_again(self, other: OpenAIProvider) -> None:
        """The next request, and the same by another process that has loaded the conversation: the same bytes."""
        self.server.play(say("end"), say("end"))
        self.ask(self.provider, self.messages, self.memo)
        self.ask(other, [load_message(dump_message(message)) for message in self.messages], {})
        assert self.server.requests[-1].raw == self.server.requests[-2].raw


def unique(part: Part, seen: set[str]) -> Part:
    """A call whose id was there gets another, as the engine does it."""
    if not isinstance(part, ToolCall):
        return part
    id = part.id
    while id in seen:
        id += "'"
    seen.add(id)
    return replace(part, id=id)


def sayable(parts: Sequence[Any], by: OpenAIProvider, round: int) -> Iterator[Any]:
    """The parts as this endpoint says them: DeepSeek always reasons, Gemini signs calls, items have ids of their own."""
    if by.name == "deepseek":
        yield Thinking("hm")
    for at, part in enumerate(parts):
        if isinstance(part, ToolCall):
            extra = {"extra_content": {"google": {"thought_signature": f"sig{round}.{at}"}}}
            kept = json.dumps(extra) if by.name == "gemini" else ""
            yield replace(part, id=part.id or f"call_{round}_{at}", extra=kept)
        elif isinstance(part, Opaque):
            yield Opaque(json.dumps({**part.value, "id": f"ws_{round}_{at}"}))
        elif isinstance(part, Thinking) and by.name == "deepseek":
            yield replace(part, text=clean_text(part.text))  # it wants back what it said, and history is clean
        else:
            yield part


def made(name: str, server: StrictServer, transport: str) -> OpenAIProvider:
    """A provider that asks the server."""
    profile, model, api, _ = ENDPOINTS[name]
    factory = getattr(factories, profile)
    given_: dict[str, Any] = {"base_url": f"{server.url}/v1", "api_key": "test-key-1", "transport": transport}
    if name == "own":
        own = {"name": "own", "one_system": True, "merge_roles": True, "call_content": "empty", "id_length": 12}
        given_ |= {"profile": own}
    built: OpenAIProvider = factory(model, factory.Options(**given_, api=api, retries=1))
    return built


def played(name: str, script: Sequence[Round], transport: str) -> Talk:
    """The whole conversation in one transport."""
    with StrictServer(profile=ENDPOINTS[name][3]) as server:
        with closing(made(name, server, transport)) as provider, closing(made(name, server, transport)) as other:
            talk = Talk(server, provider)
            for one in script:
                talk.play(one)
            talk.ask_again(other)
        assert [refusal.message for refusal in server.refusals] == []
        assert server.left == 0
        return talk


def bodies(talk: Talk) -> list[dict[str, Any]]:
    """What was sent, without what says how it is to be answered."""
    transport = ("stream", "stream_options")
    return [
        {key: value for key, value in request.body.items() if key not in transport} for request in talk.server.requests
    ]


def check(name: str, script: Sequence[Round]) -> None:
    """Both transports of one conversation say and send the same."""
    streamed, whole = (played(name, script, transport) for transport in ("stream", "whole"))
    assert [replace(one, request_id="") for one in streamed.replies] == [
        replace(one, request_id="") for one in whole.replies
    ]
    assert bodies(streamed) == bodies(whole)
    assert {request.stream for request in streamed.server.requests} == {True}
    assert {request.stream for request in whole.server.requests} == {False}


scripts = st.lists(rounds, min_size=1, max_size=4)


@pytest.mark.parametrize("name", ENDPOINTS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=scripts)
def test_nothing_is_refused_and_both_transports_say_the_same(name: str, script: list[Round]) -> None:
    check(name, script)


@pytest.mark.soak
@pytest.mark.parametrize("name", ENDPOINTS)
@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=scripts)
def test_nor_in_many_more_conversations(name: str, script: list[Round]) -> None:
    check(name, script)
