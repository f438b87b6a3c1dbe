"""The real SDKs read what the server writes: their own typed helpers parse it, whole and streamed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

import anthropic
import openai
from hookloop.testing import call, reply, say, think
from hookloop.testing.server import (
    DONE,
    Cut,
    Drop,
    ErrorEvent,
    Fail,
    Sse,
    StrictServer,
    calls,
    cbd,
    cbe,
    cbs,
    chunk,
    ijd,
    md,
    ms,
    mstop,
    tc,
)
from hookloop_hookspecs import Opaque, Usage

CLAUDE: dict[str, Any] = {"model": "claude-sonnet-4-6", "max_tokens": 3000}
USAGE = Usage(input=20, output=9, cache_read=4, cache_write=2, reasoning=3, total=31)
ITEM = reply(
    think("hm, hm, hm", "s1"),
    say("Händler überall, 你好"),
    call("edit", {"path": "a", "n": [1]}, id="c1"),
    call("now", id="c2"),
    usage=USAGE,
)
TEXT = "Händler überall, 你好"


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


@pytest.fixture
def server(stack: ExitStack) -> StrictServer:
    return stack.enter_context(StrictServer(chunks=7, deltas=3))


@pytest.fixture
def claude(stack: ExitStack, server: StrictServer) -> Any:
    return stack.enter_context(anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0))


@pytest.fixture
def gpt(stack: ExitStack, server: StrictServer) -> Any:
    return stack.enter_context(openai.OpenAI(base_url=server.url + "/v1", api_key="k", max_retries=0))


def user(text: str = "go") -> dict[str, Any]:
    return {"role": "user", "content": text}


def whole_message(claude: Any, **more: Any) -> Any:
    return claude.messages.create(**CLAUDE, **more)


def streamed_message(claude: Any, **more: Any) -> Any:
    with claude.messages.stream(**CLAUDE, **more) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("ask", [whole_message, streamed_message])
def test_messages(server: StrictServer, claude: Any, ask: Any) -> None:
    server.play(ITEM, "done")
    tool = {"name": "edit", "input_schema": {"type": "object"}}
    asked: dict[str, Any] = {"messages": [user()], "tools": [tool], "thinking": {"type": "adaptive"}}
    message = ask(claude, **asked)
    thought, text, edit, now = message.content
    assert (thought.thinking, thought.signature, text.text) == ("hm, hm, hm", "s1", TEXT)
    assert (edit.id, edit.name, edit.input) == ("c1", "edit", {"path": "a", "n": [1]})
    assert (now.id, now.input, message.stop_reason) == ("c2", {}, "tool_use")
    counts = message.usage
    assert (counts.input_tokens, counts.output_tokens, counts.cache_read_input_tokens) == (20, 9, 4)
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "ok"} for block in (edit, now)]
    asked["messages"] += [{"role": "assistant", "content": message.content}, {"role": "user", "content": results}]
    assert ask(claude, **asked).content[0].text == "done"
    assert server.refusals == []


def whole_completion(gpt: Any, **more: Any) -> Any:
    return gpt.chat.completions.create(model="gpt-4.1", **more)


def streamed_completion(gpt: Any, **more: Any) -> Any:
    options = {"include_usage": True}
    with gpt.chat.completions.stream(model="gpt-4.1", stream_options=options, **more) as stream:
        return stream.get_final_completion()


@pytest.mark.parametrize("ask", [whole_completion, streamed_completion])
def test_chat_completions(server: StrictServer, gpt: Any, ask: Any) -> None:
    server.play(ITEM, "done")
    tool = {"type": "function", "function": {"name": "edit", "parameters": {"type": "object", "properties": {}}}}
    completion = ask(gpt, messages=[user()], tools=[tool])
    message = completion.choices[0].message
    assert (message.content, message.reasoning_content) == (TEXT, "hm, hm, hm")
    assert [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls] == [
        ("c1", "edit", '{"path":"a","n":[1]}'),
        ("c2", "now", "{}"),
    ]
    assert completion.choices[0].finish_reason == "tool_calls"
    counts = completion.usage
    assert (counts.prompt_tokens, counts.completion_tokens, counts.total_tokens) == (20, 9, 31)
    assert counts.prompt_tokens_details.cached_tokens == 4
    calls = [
        {"id": c.id, "type": "function", "function": {"name": c.function.name, "arguments": c.function.arguments}}
        for c in message.tool_calls
    ]
    results = [{"role": "tool", "tool_call_id": c["id"], "content": "ok"} for c in calls]
    history = [user(), {"role": "assistant", "content": TEXT, "tool_calls": calls}, *results]
    assert ask(gpt, messages=history, tools=[tool]).choices[0].message.content == "done"
    assert server.refusals == []


def whole_response(gpt: Any, **more: Any) -> Any:
    return gpt.responses.create(model="gpt-5.4", **more)


def streamed_response(gpt: Any, **more: Any) -> Any:
    with gpt.responses.stream(model="gpt-5.4", **more) as stream:
        return stream.get_final_response()


@pytest.mark.parametrize("store", [True, False])
@pytest.mark.parametrize("ask", [whole_response, streamed_response])
def test_responses(server: StrictServer, gpt: Any, ask: Any, store: bool) -> None:
    server.play(ITEM, "done")
    response = ask(gpt, input=[user()], store=store)
    reasoning, message, edit, now = response.output
    assert (reasoning.summary[0].text, reasoning.encrypted_content) == ("hm, hm, hm", "s1")
    assert (message.content[0].text, response.output_text) == (TEXT, TEXT)
    assert (edit.call_id, edit.name, edit.arguments) == ("c1", "edit", '{"path":"a","n":[1]}')
    assert (now.arguments, response.status) == ("{}", "completed")
    counts = response.usage
    assert (counts.input_tokens, counts.output_tokens, counts.total_tokens) == (20, 9, 31)
    assert counts.output_tokens_details.reasoning_tokens == 3
    outputs = [{"type": "function_call_output", "call_id": c.call_id, "output": "ok"} for c in (edit, now)]
    echoed = [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in response.output]
    for part in echoed[1]["content"]:
        part.pop("parsed", None)
    assert ask(gpt, input=[user(), *echoed, *outputs], store=store).output_text == "done"
    assert server.refusals == []


@pytest.mark.parametrize(
    ("stop", "reason"), [("length", "max_tokens"), ("refusal", "refusal"), ("pause", "pause_turn")]
)
@pytest.mark.parametrize("ask", [whole_message, streamed_message])
def test_stop_reasons_of_messages(server: StrictServer, claude: Any, ask: Any, stop: Any, reason: str) -> None:
    server.play(reply("so far", stop=stop))
    assert ask(claude, messages=[user()]).stop_reason == reason


@pytest.mark.parametrize(("stop", "reason"), [("end", "stop"), ("filter", "content_filter"), ("refusal", "stop")])
@pytest.mark.parametrize("ask", [whole_completion, streamed_completion])
def test_stop_reasons_of_chat_completions(server: StrictServer, gpt: Any, ask: Any, stop: Any, reason: str) -> None:
    server.play(reply("so far", stop=stop))
    if stop == "filter" and ask is streamed_completion:
        with pytest.raises(openai.ContentFilterFinishReasonError):
            ask(gpt, messages=[user()])
        return
    choice = ask(gpt, messages=[user()]).choices[0]
    assert choice.finish_reason == reason
    assert (choice.message.refusal if stop == "refusal" else choice.message.content) == "so far"


@pytest.mark.parametrize(("stop", "reason"), [("length", "max_output_tokens"), ("filter", "content_filter")])
def test_incomplete_responses(server: StrictServer, gpt: Any, stop: Any, reason: str) -> None:
    server.play(*[reply("so far", call("f", '{"a'), stop=stop)] * 2)
    response = whole_response(gpt, input="x")
    assert (response.status, response.incomplete_details.reason) == ("incomplete", reason)
    assert response.output[-1].status == "incomplete"
    *_, last = gpt.responses.create(model="gpt-5.4", input="x", stream=True)
    assert (last.type, last.response.incomplete_details.reason) == ("response.incomplete", reason)


@pytest.mark.parametrize("ask", [whole_message, streamed_message])
def test_a_servers_own_blocks_are_sent_as_they_are(server: StrictServer, claude: Any, ask: Any) -> None:
    search = '{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"x"}}'
    server.play(reply("looking", Opaque(search), stop="pause"), "found")
    paused = ask(claude, messages=[user()])
    assert (paused.content[1].type, paused.content[1].input) == ("server_tool_use", {"query": "x"})
    again = ask(claude, messages=[user(), {"role": "assistant", "content": paused.content}])
    assert (again.content[0].text, server.refusals) == ("found", [])


def test_failures_are_the_typed_errors_of_the_sdks(server: StrictServer, claude: Any, gpt: Any) -> None:
    server.play(*[Fail(429, "slow", headers={"retry-after": "3"})] * 3, Fail(529, "busy"))
    with pytest.raises(anthropic.RateLimitError) as limited:
        whole_message(claude, messages=[user()])
    assert (limited.value.type, limited.value.response.headers["retry-after"]) == ("rate_limit_error", "3")
    assert limited.value.request_id
    with pytest.raises(openai.RateLimitError, match="slow"):
        whole_completion(gpt, messages=[user()])
    with pytest.raises(openai.RateLimitError, match="slow"):
        whole_response(gpt, input="x")
    with pytest.raises(anthropic.APIStatusError, match="busy"):
        whole_message(claude, messages=[user()])


def test_refusals_are_bad_requests_to_the_sdks(server: StrictServer, claude: Any, gpt: Any) -> None:
    with pytest.raises(anthropic.BadRequestError, match="text content blocks must be non-empty"):
        whole_message(claude, messages=[{"role": "user", "content": [{"type": "text", "text": ""}]}])
    with pytest.raises(openai.BadRequestError) as empty:
        whole_completion(gpt, messages=[user()], tools=[])
    assert (empty.value.code, empty.value.param) == ("empty_array", "tools")
    assert [refusal.rule for refusal in server.refusals] == ["text_empty", "empty_array"]


def test_errors_inside_a_stream_reach_the_sdks(server: StrictServer, claude: Any, gpt: Any) -> None:
    server.play(*[ErrorEvent("Hello there", after=3)] * 3)
    with pytest.raises(anthropic.APIStatusError, match="Overloaded") as busy:
        streamed_message(claude, messages=[user()])
    assert busy.value.status_code == 200
    with pytest.raises(openai.APIError, match="Overloaded"):
        list(gpt.chat.completions.create(model="m", messages=[user()], stream=True))
    *_, last = gpt.responses.create(model="m", input="x", stream=True)
    assert (last.type, last.message) == ("error", "Overloaded")


def test_cut_connections_reach_the_sdks(server: StrictServer, claude: Any, gpt: Any) -> None:
    server.play(*[Cut("Hello there", after=3)] * 2, Drop(), Cut("Hello there", after=4, how="eof"))
    with pytest.raises(Exception, match=r"reset|closed"):
        streamed_message(claude, messages=[user()])
    for _ in range(2):
        with pytest.raises(openai.APIConnectionError):
            list(gpt.chat.completions.create(model="m", messages=[user()], stream=True))
    assert streamed_message(claude, messages=[user()]).stop_reason is None


def test_odd_streams_can_be_written_event_by_event(server: StrictServer, claude: Any, gpt: Any) -> None:
    text = [cbs(0, {"type": "text", "text": ""}), cbd(0, "text_delta", text="hi"), cbe(0)]
    odd_call = [
        cbs(1, {"type": "tool_use", "id": "t1", "name": "f", "input": {}}),
        ijd(1, '{"a":'),
        ijd(1, "1}"),
        cbe(1),
    ]
    server.play(
        Sse([ms(input_tokens=25, output_tokens=1), *text, *odd_call, md("tool_use", output_tokens=15), mstop()])
    )
    message = streamed_message(claude, messages=[user()])
    assert (message.content[0].text, message.content[1].input, message.usage.output_tokens) == ("hi", {"a": 1}, 15)
    server.play(Sse([calls(tc(0, "c1", "f", "")), calls(tc(0, args="{}")), chunk(finish="tool_calls"), DONE]))
    listed = list(gpt.chat.completions.create(model="m", messages=[user()], stream=True))
    assert [c.choices[0].finish_reason for c in listed] == [None, None, "tool_calls"]
    assert listed[1].choices[0].delta.tool_calls[0].function.arguments == "{}"


def test_the_asynchronous_clients_read_the_same(server: StrictServer) -> None:
    async def ask() -> list[Any]:
        async with (
            anthropic.AsyncAnthropic(base_url=server.url, api_key="k", max_retries=0) as claude,
            openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="k", max_retries=0) as gpt,
        ):
            asked: dict[str, Any] = {"messages": [user()]}
            async with claude.messages.stream(**CLAUDE, **asked) as stream:
                message = await stream.get_final_text()
            completion = await gpt.chat.completions.create(model="m", **asked)
            response = await gpt.responses.create(model="m", input="x")
            return [message, completion.choices[0].message.content, response.output_text]

    server.play(*[TEXT] * 3)
    assert asyncio.run(ask()) == [TEXT] * 3


def test_a_used_up_script_is_not_asked_again(server: StrictServer) -> None:
    with (
        openai.OpenAI(base_url=server.url + "/v1", api_key="k", max_retries=5) as client,
        pytest.raises(openai.InternalServerError, match="asked for one more"),
    ):
        client.responses.create(model="m", input="x")
    assert len(server.requests) == 1


def test_the_fixture_is_a_running_server(strict_server: StrictServer) -> None:
    strict_server.play("hello")
    with openai.OpenAI(base_url=strict_server.url + "/v1", api_key="k") as client:
        assert whole_completion(client, messages=[user()]).choices[0].message.content == "hello"


@pytest.mark.strict_server(profile="mistral")
def test_the_fixture_takes_options_from_its_marker(strict_server: StrictServer) -> None:
    strict_server.play(call("f"))
    with openai.OpenAI(base_url=strict_server.url + "/v1", api_key="k") as client:
        [made] = whole_completion(client, messages=[user()]).choices[0].message.tool_calls
    assert len(made.id) == 9
