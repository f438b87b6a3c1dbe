"""Random tool conversations against the strict server: nothing is refused, both transports say the same."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookloop.engine.history import clean, clean_text
from hookloop.testing import reply
from hookloop.testing.server import Chunks, Deltas, StrictServer
from hookloop_anthropic import AnthropicProvider, Options
from hookloop_hookspecs import (
    Image,
    Message,
    ModelRequest,
    Opaque,
    Reply,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
)
from hookloop_hookspecs.codec import dump_message, load_message

TOOLS = tuple(ToolSpec(name, "", '{"type":"object"}') for name in ("f", "g.h"))
MODELS = ["claude-haiku-4-5", "claude-sonnet-4-6", "claude-opus-4-8", "claude-sonnet-5", "claude-opus-5-5", "copy"]

texts = st.sampled_from(
    ["", " ", "\n", "a", "é😀", "a\0b", "line\r\nline ", "\u2028", "\udc97", "\ud83d", "x" * 300]
) | st.text(max_size=8)
ids = st.sampled_from(["", "functions.f:0", "a|b", "t1", "toolu_x"])
arguments = st.dictionaries(
    st.text(max_size=4), texts | st.integers() | st.none() | st.lists(texts, max_size=2), max_size=3
)
call = st.builds(lambda id, value: ToolCall(id, "f", json.dumps(value)), ids, arguments)
thought = st.builds(lambda text: Thinking(clean_text(text), "signed"), texts)  # what is signed may not be cleaned later
search = st.just(Opaque('{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"q":"é"}}'))
said = st.lists(st.builds(Text, texts) | call | thought | search, max_size=5)
content = st.lists(st.builds(Text, texts) | st.just(Image.of(b"\x89PNG")), max_size=3)


@dataclass(frozen=True)
class Round:
    """What the model says, what comes of each call, and what is injected after it."""

    parts: list[Any]
    results: list[tuple[list[Any], bool]]
    notes: list[str]
    chunk: int
    delta: int


rounds = st.builds(
    Round,
    said,
    st.lists(st.tuples(content, st.booleans()), min_size=5, max_size=5),
    st.lists(texts, max_size=2),
    st.integers(20, 200),
    st.integers(2, 9),
)


@dataclass
class Talk:
    """One conversation in one transport: its provider, its messages, and what was sent and answered."""

    server: StrictServer
    provider: AnthropicProvider
    messages: list[Message]
    memo: dict[str, Any]
    replies: list[Reply]

    def ask(self) -> Reply:
        model = self.provider.model
        request = ModelRequest(model, "Be kind.", self.messages, TOOLS, memo=self.memo)
        *_, found = self.provider.stream(request)
        assert isinstance(found, Reply)
        self.replies.append(found)
        return found

    def take(self, found: Reply, script: Round) -> None:
        """Append the reply, with ids made unique as the engine makes them, its results, and the notes."""
        seen = {call.id for message in self.messages for call in message.calls}
        parts = [unique(part, seen) for part in found.content]
        self.add(Message.assistant(parts))
        for call_, (parts_, error) in zip(self.messages[-1].calls, script.results, strict=False):
            self.add(Message.tool(ToolResult(call_.id, call_.name, tuple(parts_), error)))
        for note in script.notes:
            self.add(Message.user(note))

    def add(self, message: Message) -> None:
        """Append a message as the engine lets it into a history."""
        self.messages.append(replace(message, content=clean(message.content)))


def unique(part: Any, seen: set[str]) -> Any:
    if not isinstance(part, ToolCall):
        return part
    id = part.id or "made"
    while id in seen:
        id += "'"
    seen.add(id)
    return ToolCall(id, part.name, part.raw, part.extra)


HALF = re.compile(r"\\ud[89a-f]..", re.IGNORECASE)


def answerable(parts: list[Any], taken: set[str], bound: bool) -> Iterator[Any]:
    """The parts, with ids that the server's own ledger can tell apart; whatever a signature is bound to is clean."""
    for part in clean(tuple(parts)) if bound else parts:
        if not isinstance(part, ToolCall):
            yield part
            continue
        id = "" if bound or part.id in taken else part.id
        taken.add(part.id)
        yield replace(part, id=id, raw=HALF.sub("?", part.raw) if bound else part.raw)


def played(script: list[Round], model: str, transport: str) -> Talk:
    thinking = "adaptive" if model in ("claude-sonnet-4-6", "claude-opus-4-8", "copy") else None
    budget = 2000 if model == "claude-haiku-4-5" else thinking
    given: dict[str, Any] = {"api_key": "k", "transport": transport, "thinking": budget, "retries": 0}
    with StrictServer() as server, closing(AnthropicProvider(model, Options(base_url=server.url, **given))) as provider:
        talk = Talk(server, provider, [Message.user("q")], {}, [])
        bound = talk.provider.traits.bound_thinking  # an odd id is rewritten, so what was bound to it is lost
        taken: set[str] = set()
        for one in script:
            opening = [Thinking("", "signed")] if budget == 2000 else []
            parts = list(answerable(one.parts, taken, bound))
            server.play(Chunks(Deltas(reply(*opening, *parts), one.delta), one.chunk))
            talk.take(talk.ask(), one)
            if not talk.messages[-1].calls and not talk.messages[-1].results:
                talk.messages.append(Message.user("go on"))
                talk.memo = {}
        assert [refusal.message for refusal in server.refusals] == []
        return talk


@pytest.mark.parametrize("model", MODELS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(script=st.lists(rounds, min_size=1, max_size=4))
def test_nothing_is_refused_and_both_transports_say_the_same(model: str, script: list[Round]) -> None:
    streamed, whole = (played(script, model, transport) for transport in ("stream", "whole"))
    assert [spoken(reply) for reply in streamed.replies] == [spoken(reply) for reply in whole.replies]
    bodies = [{**request.body, "stream": None} for request in streamed.server.requests]
    assert bodies == [{**request.body, "stream": None} for request in whole.server.requests]
    kept = [load_message(dump_message(message)) for message in streamed.messages]
    loaded = streamed.provider.encode(ModelRequest(model, "Be kind.", kept, TOOLS))
    assert loaded == streamed.provider.encode(ModelRequest(model, "Be kind.", streamed.messages, TOOLS))
    assert flattened(json.loads(loaded))[: len(flattened(bodies[-1]))] == flattened(bodies[-1])


def test_an_escaped_half_of_a_pair_is_read_the_same_in_both_transports() -> None:
    said_ = [ToolCall("t1", "f", '{"a":"\\ud83d","b":"\\ud83d\\ude00"}')]
    script = [Round(said_, [([Text("r")], False)], [], 50, 3)]
    replies = [played(script, "claude-sonnet-5", transport).replies[0] for transport in ("stream", "whole")]
    assert [reply_.calls[0].arguments for reply_ in replies] == [{"a": "\ufffd", "b": "😀"}] * 2


def flattened(body: dict[str, Any]) -> list[tuple[str, str]]:
    return [
        (message["role"], json.dumps({k: v for k, v in block.items() if k != "cache_control"}))
        for message in body["messages"]
        for block in message["content"]
    ]


def spoken(found: Reply) -> tuple[Any, ...]:
    """A reply without the request's id; arguments as values, for only a stream keeps their white space."""
    parts = [part.arguments if isinstance(part, ToolCall) else part for part in found.content]
    return parts, found.stop, found.usage, [(call.id, call.name) for call in found.calls]


def test_many_at_once_share_one_provider() -> None:
    async def go(provider: AnthropicProvider) -> list[str]:
        async def one(number: int) -> str:
            request = ModelRequest("claude-haiku-4-5", "", [Message.user(str(number))])
            found = [item async for item in provider.astream(request)][-1]
            assert isinstance(found, Reply)
            return found.text

        try:
            return await asyncio.gather(*(one(number) for number in range(40)))
        finally:
            await provider.aclose()

    def echo(request: Any) -> Any:
        return request.body["messages"][0]["content"][0]["text"]

    with StrictServer([echo] * 40) as server:
        options = Options.model_validate({"api_key": "k", "base_url": server.url})
        found = asyncio.run(go(AnthropicProvider("claude-haiku-4-5", options)))
    assert found == [str(number) for number in range(40)]
