"""The reported faults that concern the Messages API, each under its number with its neighbours, sync and async."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pytest

from hookloop.testing import call, reply, say, think
from hookloop.testing.server import Cut, ErrorEvent, Fail, Sse, Step, StrictServer, cbd, cbe, cbs, ijd, md, ms, mstop
from hookloop_anthropic import AnthropicProvider, Options
from hookloop_hookspecs import (
    Delta,
    Message,
    ModelRequest,
    Opaque,
    Part,
    ProviderError,
    Reply,
    Text,
    TextDelta,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    json_text,
)
from hookloop_hookspecs.codec import dump_message, load_message

MODEL = "claude-haiku-4-5"
THINKER = "claude-sonnet-5"
TOOL = ToolSpec("f", "A tool.", '{"type":"object","properties":{"x":{"type":"integer"}}}')
Json = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """One way to ask: sync or async, streamed or whole."""

    mode: Literal["sync", "async"]
    transport: Literal["stream", "whole"]

    def provider(self, server: StrictServer, model: str = MODEL, **options: Any) -> AnthropicProvider:
        given = {"api_key": "k", "base_url": server.url, "transport": self.transport, **options}
        return AnthropicProvider(model, Options.model_validate(given))

    def ask(self, server: StrictServer, messages: Sequence[Message], model: str = MODEL, **fields: Any) -> list[Any]:
        """All that one request gives, through a provider made for it."""
        options = fields.pop("options", {})
        request = ModelRequest(model, fields.pop("system", ""), messages, fields.pop("tools", (TOOL,)), **fields)
        return self.run(self.provider(server, model, **options), request)

    def run(self, provider: AnthropicProvider, request: ModelRequest) -> list[Delta | Reply]:
        if self.mode == "sync":
            try:
                return list(provider.stream(request))
            finally:
                provider.close()
        return asyncio.run(self._collect(provider, request))

    async def _collect(self, provider: AnthropicProvider, request: ModelRequest) -> list[Delta | Reply]:
        try:
            return [item async for item in provider.astream(request)]
        finally:
            await provider.aclose()


WAYS = [Way("sync", "stream"), Way("sync", "whole"), Way("async", "stream"), Way("async", "whole")]
STREAMED = [way for way in WAYS if way.transport == "stream"]

every_way = pytest.mark.parametrize("way", WAYS, ids=lambda way: f"{way.mode}-{way.transport}")
streamed = pytest.mark.parametrize("way", STREAMED, ids=lambda way: way.mode)


def user(text: str) -> Message:
    return Message.user(text)


def said(*parts: Any) -> Message:
    return Message.assistant([Text(part) if isinstance(part, str) else part for part in parts])


def tool(id: str, text: str = "r", *, error: bool = False) -> Message:
    return Message.tool(ToolResult(id, "f", (Text(text),), is_error=error))


def use(id: str, raw: str = "{}") -> ToolCall:
    return ToolCall(id, "f", raw)


def sent(way: Way, messages: Sequence[Message], model: str = MODEL, **fields: Any) -> list[Json]:
    """The wire messages of a request that the strict server took, without cache marks."""
    with StrictServer([say("ok")], off=fields.pop("off", ())) as server:
        way.ask(server, messages, model, **fields)
        assert not server.refusals
        return [plain(message) for message in server.requests[0].body["messages"]]


def plain(message: Json) -> Json:
    blocks = [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]]
    return {"role": message["role"], "content": blocks}


def shape(messages: Sequence[Json]) -> list[tuple[str, list[str]]]:
    return [(message["role"], [block["type"] for block in message["content"]]) for message in messages]


def last_reply(items: Sequence[Any]) -> Reply:
    assert isinstance(items[-1], Reply)
    return items[-1]


# B: assembly


@every_way
def test_b15_an_error_inside_a_stream_is_a_typed_error(way: Way) -> None:
    script = [ErrorEvent(say("Par"), after=4, type="overloaded_error")]
    with StrictServer(script) as server, pytest.raises(ProviderError) as caught:
        way.ask(server, [user("q")], options={"retries": 0})
    assert (caught.value.kind, caught.value.status, caught.value.retryable) == ("overloaded", 529, True)
    if way.transport == "stream":
        assert caught.value.partial is not None
        assert caught.value.partial.text == "Par"


@streamed
@pytest.mark.parametrize(
    ("type", "kind", "status", "retryable"),
    [
        ("rate_limit_error", "rate_limit", 429, True),
        ("api_error", "server", 500, True),
        ("invalid_request_error", "invalid", 400, False),
        ("never_heard_of", "server", 500, True),
    ],
)
def test_b15_errors_in_streams_keep_their_kind(way: Way, type: str, kind: str, status: int, retryable: bool) -> None:
    with StrictServer([ErrorEvent(say("Par"), after=4, type=type)]) as server, pytest.raises(ProviderError) as caught:
        way.ask(server, [user("q")], options={"retries": 0})
    assert (caught.value.kind, caught.value.status, caught.value.retryable) == (kind, status, retryable)


@every_way
@pytest.mark.parametrize("how", ["reset", "close", "eof"])
def test_b17_a_complete_looking_call_without_the_end_of_the_stream_is_no_reply(way: Way, how: Any) -> None:
    whole = reply(say("a"), call("f", {"x": 1}))
    with StrictServer([Cut(whole, after=9, how=how)]) as server, pytest.raises(ProviderError) as caught:
        way.ask(server, [user("q")], options={"retries": 0})
    assert caught.value.kind == "stream"
    assert caught.value.retryable


@streamed
@pytest.mark.parametrize("how", ["reset", "close", "eof"])
def test_b18_a_stream_cut_inside_arguments_runs_nothing(way: Way, how: Any) -> None:
    events = [ms(input_tokens=1), cbs(0, {"type": "tool_use", "id": "t1", "name": "f", "input": {}})]
    cut = Cut(Sse([*events, ijd(0, '{"p":"x","c":"par'), mstop()]), after=3, how=how)
    with StrictServer([cut]) as server, pytest.raises(ProviderError) as caught:
        way.ask(server, [user("q")], options={"retries": 0})
    assert caught.value.kind == "stream"
    assert caught.value.partial is not None
    assert caught.value.partial.calls[0].arguments == {}


@streamed
@pytest.mark.parametrize("how", ["reset", "close", "eof"])
@pytest.mark.parametrize("rest", ["data: {broken\n\n", 'data: {"type":"pi'])
def test_f15_what_breaks_behind_the_stop_does_not_matter(way: Way, how: Any, rest: str) -> None:
    said = [ms(), cbs(0, {"type": "text", "text": "hi"}), cbe(0), md("end_turn", output_tokens=2), mstop()]
    with StrictServer([Cut(Sse([*said, rest, mstop()]), after=6, how=how)]) as server:
        found = last_reply(way.ask(server, [user("q")], options={"retries": 0}))
    assert (found.text, found.stop, found.usage.output) == ("hi", "end", 2)


@streamed
@pytest.mark.parametrize("how", ["reset", "close", "eof"])
def test_f15_a_stop_reason_alone_is_no_end(way: Way, how: Any) -> None:
    said = [ms(), cbs(0, {"type": "text", "text": "hi"}), cbe(0), md("end_turn"), mstop()]
    with StrictServer([Cut(Sse(said), after=4, how=how)]) as server, pytest.raises(ProviderError) as caught:
        way.ask(server, [user("q")], options={"retries": 0})
    assert caught.value.kind == "stream"


@streamed
def test_b18_a_stop_inside_a_call_is_no_reply(way: Way) -> None:
    start = cbs(0, {"type": "tool_use", "id": "t1", "name": "f", "input": {}})
    script = [Sse([ms(), start, ijd(0, '{"x":1}'), md("tool_use"), mstop()])]
    with StrictServer(script) as server, pytest.raises(ProviderError, match="inside a call"):
        way.ask(server, [user("q")], options={"retries": 0})


@streamed
@pytest.mark.parametrize(
    ("given", "deltas", "raw"),
    [
        ({"a": 1}, [], '{"a":1}'),
        ({}, ['{"a":1}'], '{"a":1}'),
        ({"a": 1}, ['{"b":', "2}"], '{"b":2}'),
        ({}, [""], "{}"),
        (None, [], "{}"),
        ('{"a": 1}', [], '{"a": 1}'),
    ],
)
def test_b19_deltas_stand_for_the_input_of_the_start(way: Way, given: Any, deltas: list[str], raw: str) -> None:
    start = cbs(0, {"type": "tool_use", "id": "t1", "name": "f", "input": given})
    events = [ms(), start, *(ijd(0, piece) for piece in deltas), cbe(0), md("tool_use"), mstop()]
    with StrictServer([Sse(events)]) as server:
        items = way.ask(server, [user("q")])
    assert last_reply(items).calls == (ToolCall("t1", "f", raw),)
    assert "".join(item.raw for item in items[:-1]) == raw


@streamed
def test_b20_arguments_are_read_when_they_are_whole(way: Way) -> None:
    pieces = ['{"file_', 'path":"a","cont', 'ent":"b"}']
    start = cbs(0, {"type": "tool_use", "id": "t1", "name": "f", "input": {}})
    events = [ms(), start, *(ijd(0, piece) for piece in pieces), cbe(0), md("tool_use"), mstop()]
    with StrictServer([Sse(events)]) as server:
        found = last_reply(way.ask(server, [user("q")]))
    assert found.calls[0].arguments == {"file_path": "a", "content": "b"}


@streamed
def test_b22_nothing_is_asked_again_after_visible_text(way: Way) -> None:
    with StrictServer([Cut(say("Here is the plan"), after=4), say("Here is the plan")]) as server:
        with pytest.raises(ProviderError) as caught:
            way.ask(server, [user("q")], options={"retries": 2})
        assert len(server.requests) == 1
    assert caught.value.partial is not None
    assert caught.value.partial.text


@streamed
def test_b22_half_a_call_is_not_glued_to_another(way: Way) -> None:
    with StrictServer([Cut(call("f", '{"code":"print(1)","more":"text"}'), after=5), call("f", {"x": 1})]) as server:
        with pytest.raises(ProviderError):
            way.ask(server, [user("q")], options={"retries": 2})
        assert len(server.requests) == 1


@every_way
def test_b22_what_broke_before_anything_is_asked_again(way: Way) -> None:
    with StrictServer([Cut(say("Here"), after=0), say("Here is the plan")]) as server:
        items = way.ask(server, [user("q")], options={"retries": 1})
    assert last_reply(items).text == "Here is the plan"
    assert "".join(item.text for item in items if isinstance(item, TextDelta)) == "Here is the plan"


@streamed
def test_b24_a_stream_that_dies_while_thinking_is_asked_again(way: Way) -> None:
    broken = Cut(reply(think("hmm, let me see"), say("x")), after=4)
    with StrictServer([broken, reply(think("again"), say("fine"))]) as server:
        items = way.ask(server, [user("q")], THINKER, options={"retries": 1})
    found = last_reply(items)
    assert [part.text for part in found.content if isinstance(part, Text | Thinking)] == ["again", "fine"]


# F: stop reasons and usage


@streamed
@pytest.mark.parametrize(
    "late",
    [
        {"input_tokens": 25, "output_tokens": 15, "cache_read_input_tokens": 100},
        {"output_tokens": 15},
        {"input_tokens": None, "output_tokens": 15, "cache_read_input_tokens": None},
    ],
)
def test_f06_usage_is_cumulative(way: Way, late: Any) -> None:
    first = ms(input_tokens=25, output_tokens=1, cache_read_input_tokens=100)
    events = [first, cbs(0, {"type": "text", "text": "a"}), cbe(0), md("end_turn", **late), mstop()]
    with StrictServer([Sse(events)]) as server:
        usage = last_reply(way.ask(server, [user("q")])).usage
    assert (usage.input, usage.output, usage.cache_read, usage.total) == (25, 15, 100, 140)
    assert usage.cache_write is None


@every_way
def test_f06_both_transports_count_the_same(way: Way) -> None:
    with StrictServer([say("a")]) as server:
        usage = last_reply(way.ask(server, [user("q")])).usage
    assert (usage.input, usage.output, usage.total, usage.cache_read) == (10, 5, 15, None)


@every_way
@pytest.mark.parametrize("raw", ["{}", '{"path":"a"', '{"path":"a"}'])
def test_f08_a_call_at_the_output_limit_is_cut(way: Way, raw: str) -> None:
    with StrictServer([reply(ToolCall("t1", "f", raw), stop="length")]) as server:
        found = last_reply(way.ask(server, [user("q")]))
    assert (found.stop, found.raw_stop, found.cut) == ("length", "max_tokens", True)


@streamed
def test_f08_a_block_that_the_limit_left_open_is_cut_too(way: Way) -> None:
    start = cbs(0, {"type": "tool_use", "id": "t1", "name": "f", "input": {}})
    with StrictServer([Sse([ms(), start, ijd(0, '{"x":1}'), md("max_tokens"), mstop()])]) as server:
        assert last_reply(way.ask(server, [user("q")])).stop == "length"


@every_way
@pytest.mark.parametrize(
    ("raw_stop", "stop"),
    [
        ("refusal", "refusal"),
        ("model_context_window_exceeded", "context"),
        ("stop_sequence", "end"),
        ("something_new", "end"),
    ],
)
@pytest.mark.parametrize("parts", [(), ("some text",)], ids=["empty", "partial"])
def test_f12_a_refusal_is_told_from_an_answer(way: Way, raw_stop: str, stop: str, parts: tuple[str, ...]) -> None:
    answer = Reply(tuple(Text(text) for text in parts), raw_stop=raw_stop)
    with StrictServer([answer]) as server:
        found = last_reply(way.ask(server, [user("q")]))
        assert len(server.requests) == 1
    assert (found.stop, found.text) == (stop, "".join(parts))


# H: the wire


@every_way
def test_h01_all_results_are_in_one_user_message_in_call_order(way: Way) -> None:
    messages = [user("q"), said(use("t1"), use("t2"), use("t3")), tool("t1"), tool("t2", error=True), tool("t3")]
    wire = sent(way, messages)
    assert shape(wire) == [("user", ["text"]), ("assistant", ["tool_use"] * 3), ("user", ["tool_result"] * 3)]
    assert [block["tool_use_id"] for block in wire[2]["content"]] == ["t1", "t2", "t3"]
    assert [block.get("is_error", False) for block in wire[2]["content"]] == [False, True, False]


@every_way
def test_h02_text_comes_behind_the_results(way: Way) -> None:
    wire = sent(way, [user("q"), said(use("t1"), use("t2")), tool("t1"), tool("t2"), user("and NY?"), user("quick")])
    assert shape(wire)[2] == ("user", ["tool_result", "tool_result", "text", "text"])


@every_way
def test_h02_text_between_results_is_moved_behind_them(way: Way) -> None:
    wire = sent(way, [user("q"), said(use("t1"), use("t2")), tool("t1"), user("note"), tool("t2")])
    assert shape(wire)[2] == ("user", ["tool_result", "tool_result", "text"])


@every_way
@pytest.mark.parametrize("stored", [False, True], ids=["at hand", "loaded"])
def test_h03_a_signature_goes_back_with_its_thinking(way: Way, stored: bool) -> None:
    script: list[Step] = [reply(think("R", "s1"), call("f", {"x": 1}, id="t1")), say("done")]
    with StrictServer(script) as server:
        first = last_reply(way.ask(server, [user("q")], THINKER))
        message = Message.assistant(first.content)
        kept = load_message(dump_message(message)) if stored else message
        way.ask(server, [user("q"), kept, tool("t1")], THINKER)
        assert not server.refusals
        blocks = server.requests[1].body["messages"][1]["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "R", "signature": "s1"}
    assert blocks[1]["type"] == "tool_use"


@streamed
def test_h03_a_signature_is_assigned_and_may_come_without_text(way: Way) -> None:
    events = [
        ms(),
        cbs(0, {"type": "thinking", "thinking": "", "signature": ""}),
        cbd(0, "signature_delta", signature="s1"),
        cbd(0, "signature_delta", signature="s2"),
        cbe(0),
        cbs(1, {"type": "redacted_thinking", "data": "xyz"}),
        cbe(1),
        cbs(2, {"type": "text", "text": "a"}),
        cbe(2),
        md(),
        mstop(),
    ]
    with StrictServer([Sse(events)]) as server:
        provider = way.provider(server, THINKER)
        found = last_reply(way.run(provider, ModelRequest(THINKER, "", [user("q")])))
    assert found.content[0] == Thinking("", "s2", "", "anthropic", provider.family)
    assert found.content[1] == Thinking("", "", "xyz", "anthropic", provider.family)
    wire = sent(way, [user("q"), Message.assistant(found.content), user("r")], THINKER, off=["signature"])
    assert wire[1]["content"][:2] == [
        {"type": "thinking", "thinking": "", "signature": "s2"},
        {"type": "redacted_thinking", "data": "xyz"},
    ]


@every_way
def test_h05_interleaved_thinking_keeps_its_places(way: Way) -> None:
    content: list[Part] = [think("a"), call("f", {"x": 1}), think("b"), call("f", {"x": 2}), call("f", {"x": 3})]
    with StrictServer([content, say("done")]) as server:
        first = last_reply(way.ask(server, [user("q")], THINKER))
        results = [tool(made.id) for made in first.calls]
        way.ask(server, [user("q"), Message.assistant(first.content), *results], THINKER)
        assert not server.refusals
        blocks = server.requests[1].body["messages"][1]["content"]
    kinds = ["thinking", "tool_use", "thinking", "tool_use", "tool_use"]
    assert [block["type"] for block in blocks] == kinds
    assert [block["thinking"] for block in blocks if block["type"] == "thinking"] == ["a", "b"]


@every_way
def test_h05_neighbouring_thinking_is_not_merged(way: Way) -> None:
    with StrictServer([[think("a"), think("b"), think(""), call("f", {"x": 1}, id="t1")], say("done")]) as server:
        first = last_reply(way.ask(server, [user("q")], THINKER))
        way.ask(server, [user("q"), Message.assistant(first.content), tool("t1")], THINKER)
        assert not server.refusals


@every_way
@pytest.mark.parametrize(
    "foreign",
    [
        Thinking("R", "s1", provider="openai", family="gpt-5"),
        Thinking("R", "s1", provider="anthropic", family="claude-opus-5"),
        Thinking("R", "s1", provider="anthropic", family="claude-sonnet-5@bedrock.example"),
        Thinking("R", "s1"),
        Thinking("R", "", provider="anthropic", family="claude-sonnet-5@127.0.0.1"),
        Opaque('{"type":"reasoning","id":"rs_1"}', "openai", "gpt-5"),
    ],
    ids=["provider", "model", "platform", "nobody", "unsigned", "opaque"],
)
def test_h07_what_another_model_signed_stays_at_home(way: Way, foreign: Any) -> None:
    wire = sent(way, [user("q"), said(foreign, "hm", use("t1")), tool("t1"), user("r")], THINKER)
    assert shape(wire)[1:] == [("assistant", ["text", "tool_use"]), ("user", ["tool_result", "text"])]


@every_way
def test_h07_it_comes_back_when_the_first_model_returns(way: Way) -> None:
    with StrictServer([reply(think("R"), say("a")), say("b"), say("c")]) as server:
        first = last_reply(way.ask(server, [user("q")], THINKER))
        history = [user("q"), Message.assistant(first.content), user("r")]
        way.ask(server, history, "claude-opus-5")
        way.ask(server, history, THINKER)
        assert not server.refusals
        other, same = (request.body["messages"][1]["content"] for request in server.requests[1:])
    assert [block["type"] for block in other] == ["text"]
    assert [block["type"] for block in same] == ["thinking", "text"]


@every_way
def test_h09_only_the_end_of_a_final_message_is_stripped(way: Way) -> None:
    model = "claude-haiku-4-5"
    mark = Thinking(" r ", "s1", provider="anthropic", family="claude-haiku-4-5@127.0.0.1")
    off = ["signature", "prefill_thinking"]
    last = sent(way, [user("q"), said(mark, "a  \n")], model, off=off)
    assert last[1]["content"] == [
        {"type": "thinking", "thinking": " r ", "signature": "s1"},
        {"type": "text", "text": "a"},
    ]
    inner = sent(way, [user("q"), said(mark, "a  \n"), user("r")], model, off=off)
    assert inner[1]["content"][1] == {"type": "text", "text": "a  \n"}


@every_way
@pytest.mark.parametrize("blank", ["", " ", "\n\t", "\u3000"])
def test_h10_blank_text_is_not_sent(way: Way, blank: str) -> None:
    wire = sent(way, [user("q"), said(blank, use("t1")), tool("t1"), said("ok"), user("r")])
    assert shape(wire)[1] == ("assistant", ["tool_use"])


@every_way
@pytest.mark.parametrize("parts", [(), ("",), (" \n",)], ids=["none", "empty", "blank"])
def test_h10_a_message_left_empty_leaves_the_roles_in_order(way: Way, parts: tuple[str, ...]) -> None:
    wire = sent(way, [user("q"), said(*parts), user("r")])
    assert wire == [{"role": "user", "content": [{"type": "text", "text": "q"}, {"type": "text", "text": "r"}]}]


@every_way
@pytest.mark.parametrize("content", [(), (Text(""),), (Text("  "),), (Text(""), Text("\n"))])
@pytest.mark.parametrize("error", [False, True])
def test_h10_blank_results_are_sent_as_the_api_takes_them(way: Way, content: Any, error: bool) -> None:
    result = Message.tool(ToolResult("t1", "f", content, is_error=error))
    wire = sent(way, [user("q"), said(use("t1")), result])
    assert wire[2]["content"][0]["content"] == ("error" if error else "")


@every_way
def test_h10_a_blank_question_is_filled(way: Way) -> None:
    wire = sent(way, [user(" "), said("a"), user("\n")], off=["prefill"])
    assert [message["role"] for message in wire] == ["user", "assistant", "user"]
    assert all(block["text"].strip() for message in wire for block in message["content"])


@every_way
def test_h12_a_paused_turn_goes_back_as_it_is(way: Way) -> None:
    use_block = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    script: list[Step] = [
        reply(say("Let me look."), Opaque(json_text(use_block)), stop="pause"),
        reply(Opaque(json_text(found)), say("Here.")),
        say("bye"),
    ]
    with StrictServer(script) as server:
        history = [user("q")]
        paused = last_reply(way.ask(server, history))
        assert (paused.stop, paused.raw_stop) == ("pause", "pause_turn")
        history.append(Message.assistant(paused.content))
        ended = last_reply(way.ask(server, history))
        history += [Message.assistant(ended.content), user("thanks")]
        way.ask(server, history)
        assert not server.refusals
        second, third = ([plain(m) for m in r.body["messages"]] for r in server.requests[1:])
    assert second[1]["content"] == [{"type": "text", "text": "Let me look."}, use_block]
    assert shape(third) == [
        ("user", ["text"]),
        ("assistant", ["text", "server_tool_use", "web_search_tool_result", "text"]),
        ("user", ["text"]),
    ]


@every_way
@pytest.mark.parametrize("model", ["claude-haiku-4-5", "claude-opus-4-8"])
def test_h14_all_system_text_reaches_the_model(way: Way, model: str) -> None:
    history = [Message.system("S1"), user("U1"), said("A1"), Message.system("S2"), user("U2")]
    with StrictServer([say("ok")]) as server:
        way.ask(server, history, model, system="S0")
        assert not server.refusals
        body = server.requests[0].body
    top = [block["text"] for block in body["system"]]
    roles = [message["role"] for message in body["messages"]]
    if model == "claude-opus-4-8":
        assert (top, roles) == (["S0", "S1"], ["user", "assistant", "user", "system"])
        assert plain(body["messages"][3])["content"] == [{"type": "text", "text": "S2"}]
    else:
        assert (top, roles) == (["S0", "S1", "S2"], ["user", "assistant", "user"])


@every_way
def test_h14_system_text_in_its_place_stays_there(way: Way) -> None:
    history = [user("U1"), Message.system("S1"), Message.system("S2"), said("A1"), Message.system(" "), user("U2")]
    wire = sent(way, history, "claude-opus-5")
    assert shape(wire) == [
        ("user", ["text"]),
        ("system", ["text", "text"]),
        ("assistant", ["text"]),
        ("user", ["text"]),
    ]


@every_way
def test_h14_system_text_without_a_place_goes_on_top(way: Way) -> None:
    with StrictServer([say("ok")], off=["prefill"]) as server:
        way.ask(server, [user("U1"), said("A1"), Message.system("S1"), said("A2"), user("U2")], "claude-opus-5")
        assert not server.refusals
        assert [block["text"] for block in server.requests[0].body["system"]] == ["S1"]


@every_way
def test_a_server_that_is_overloaded_is_asked_again(way: Way) -> None:
    fails = [Fail(529, headers={"retry-after-ms": "1"}), Fail(429, headers={"retry-after": "0"})]
    with StrictServer([*fails, say("ok")]) as server:
        assert last_reply(way.ask(server, [user("q")])).text == "ok"
        assert len(server.requests) == 3
