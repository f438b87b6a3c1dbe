"""What goes wrong on the way: every failure is one `ProviderError`, retries are bounded, nothing is left open."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
import traceback
from collections.abc import Iterator
from typing import Any, Literal

import pytest

from hookloop.testing import reply, say
from hookloop.testing.server import Cut, Delay, Fail, Raw, Sse, StrictServer, cbd, cbe, cbs, md, ms, mstop
from hookloop_anthropic import AnthropicProvider, Options
from hookloop_hookspecs import ConfigError, Message, ModelRequest, ProviderError, Reply, TextDelta

MODEL = "claude-haiku-4-5"
Mode = Literal["sync", "async"]
both = pytest.mark.parametrize("mode", ["sync", "async"])


def provider(url: str, **options: Any) -> AnthropicProvider:
    return AnthropicProvider(MODEL, Options.model_validate({"api_key": "sk-ant-secret", "base_url": url, **options}))


def question(text: str = "q") -> ModelRequest:
    return ModelRequest(MODEL, "", [Message.user(text)])


def ask(asked: AnthropicProvider, mode: Mode, request: ModelRequest | None = None) -> list[Any]:
    request = request or question()
    if mode == "sync":
        try:
            return list(asked.stream(request))
        finally:
            asked.close()

    async def go() -> list[Any]:
        try:
            return [item async for item in asked.astream(request)]
        finally:
            await asked.aclose()

    return asyncio.run(go())


def failure(asked: AnthropicProvider, mode: Mode) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        ask(asked, mode)
    assert caught.value.provider == "anthropic"
    return caught.value


# failures


@both
@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid", False),
        (401, "auth", False),
        (402, "auth", False),
        (403, "auth", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "invalid", True),
        (413, "context", False),
        (418, "invalid", False),
        (429, "rate_limit", True),
        (500, "server", True),
        (503, "server", True),
        (504, "timeout", True),
        (529, "overloaded", True),
    ],
)
def test_a_status_has_its_kind(mode: Mode, status: int, kind: str, retryable: bool) -> None:
    with StrictServer([Fail(status, "no", headers={"request-id": "req_1"})]) as server:
        error = failure(provider(server.url, retries=0), mode)
    assert (error.status, error.kind, error.retryable, error.request_id) == (status, kind, retryable, "req_1")
    assert "no" in str(error)


@both
@pytest.mark.parametrize(
    "message",
    ["prompt is too long: 210000 tokens > 200000 maximum", "input length and `max_tokens` exceed context limit: 1 > 2"],
)
def test_a_prompt_that_is_too_long_is_told_apart(mode: Mode, message: str) -> None:
    with StrictServer([Fail(400, message)]) as server:
        assert failure(provider(server.url), mode).kind == "context"


@both
@pytest.mark.parametrize(
    "body",
    ["", "<html>bad gateway</html>", "[]", '{"error":"plain"}', '{"error":{"message":null}}', b"\xff\xfe", "null"],
)
@pytest.mark.parametrize("status", [400, 502])
def test_any_error_body_is_taken(mode: Mode, status: int, body: Any) -> None:
    with StrictServer([Raw(status, {}, body if isinstance(body, bytes) else body.encode())]) as server:
        assert failure(provider(server.url, retries=0), mode).status == status


@both
@pytest.mark.parametrize("transport", ["stream", "whole"])
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("text/html", b"<html>hello</html>"),
        ("application/json", b"[1]"),
        ("application/json", b'{"type":"message"'),
        ("application/json", b"[" * 100_000),
        ("application/json", b""),
        ("text/event-stream", b"data: {broken\n\ndata: {}\n\n"),
        ("text/event-stream", b""),
        ("text/event-stream", b"\xff\xfe\x00\n\n"),
    ],
)
def test_a_good_status_with_nonsense_is_a_stream_error(mode: Mode, transport: str, kind: str, body: bytes) -> None:
    with StrictServer([Raw(200, {"content-type": kind}, body)]) as server:
        error = failure(provider(server.url, retries=0, transport=transport), mode)
    assert (error.kind, error.retryable) == ("stream", True)


@both
def test_an_error_body_with_a_good_status_is_an_error(mode: Mode) -> None:
    body = b'{"type":"error","error":{"type":"overloaded_error","message":"busy"}}'
    with StrictServer([Raw(200, {"content-type": "application/json"}, body)]) as server:
        error = failure(provider(server.url, retries=0, transport="whole"), mode)
    assert (error.kind, error.status) == ("overloaded", 529)


@both
@pytest.mark.parametrize("transport", ["stream", "whole"])
def test_the_other_transports_answer_is_taken_too(mode: Mode, transport: str) -> None:
    stream = Sse([ms(), cbs(0, {"type": "text", "text": ""}), cbd(0, "text_delta", text="a"), cbe(0), md(), mstop()])
    whole = Raw(200, {"content-type": "application/json"}, b' \n{"content":[{"type":"text","text":"a"}]}')
    with StrictServer([whole if transport == "stream" else stream]) as server:
        items = ask(provider(server.url, transport=transport), mode)
    assert items[-1].text == "a"


@both
def test_nobody_there_is_a_connection_error(mode: Mode) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
        error = failure(provider(url, retries=0), mode)
    assert (error.kind, error.retryable) == ("connection", True)


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1", "127.0.0.1:9", "http://", "http://[::1", "http://127.0.0.1:99999", "http://a:b/"]
)
def test_a_foolish_address_is_a_configuration_error(url: str) -> None:
    with pytest.raises(ConfigError, match="base_url"):
        provider(url)


@both
def test_a_key_that_no_header_can_hold_is_not_sent_again(mode: Mode) -> None:
    with StrictServer([say("ok")]) as server:
        assert failure(provider(server.url, api_key="a\nb", retries=3), mode).retryable is False
        assert not server.requests


@both
def test_silence_is_a_timeout(mode: Mode) -> None:
    gate = threading.Event()
    with StrictServer([Delay(gate, say("late"))]) as server:
        error = failure(provider(server.url, retries=0, idle_timeout=0.1), mode)
        gate.set()
    assert (error.kind, error.retryable) == ("timeout", True)


@both
def test_silence_in_a_stream_is_a_timeout_with_what_came(mode: Mode) -> None:
    gate = threading.Event()
    with StrictServer([Delay(gate, say("Hello"), after=4)]) as server:
        error = failure(provider(server.url, retries=2, idle_timeout=0.1), mode)
        gate.set()
        assert len(server.requests) == 1
    assert error.kind == "timeout"
    assert error.partial is not None
    assert error.partial.text == "Hello"


@both
def test_a_stream_that_drips_for_ever_ends_at_the_request_timeout(mode: Mode) -> None:
    drip = Delay(0.03, Delay(0.03, Delay(0.03, Delay(0.03, say("x"), after=4), after=3), after=2), after=1)
    with StrictServer([drip]) as server:
        error = failure(provider(server.url, retries=0, request_timeout=0.08), mode)
    assert error.kind == "timeout"


@both
def test_what_breaks_after_the_end_does_not_matter(mode: Mode) -> None:
    with StrictServer([Cut(say("done"), after=99, how="close")]) as server:
        assert ask(provider(server.url, retries=0), mode)[-1].text == "done"


# retries


@both
def test_retries_are_bounded_and_the_last_error_is_raised(mode: Mode) -> None:
    fails = [Fail(529, f"no {n}", headers={"retry-after-ms": "1"}) for n in range(5)]
    with StrictServer(fails) as server:
        assert "no 2" in str(failure(provider(server.url, retries=2), mode))
        assert len(server.requests) == 3


@both
@pytest.mark.parametrize(("status", "told", "requests"), [(529, "false", 1), (400, "true", 2), (400, "", 1)])
def test_the_servers_word_on_retrying_counts(mode: Mode, status: int, told: str, requests: int) -> None:
    fails = [Fail(status, headers={"x-should-retry": told, "retry-after-ms": "1"})] * 2
    with StrictServer(fails) as server:
        failure(provider(server.url, retries=1), mode)
        assert len(server.requests) == requests


@both
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "3600"}, 3600.0),
        ({"retry-after-ms": "90500", "retry-after": "1"}, 90.5),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
    ],
)
def test_the_servers_wish_is_on_the_error(mode: Mode, headers: dict[str, str], seconds: float | None) -> None:
    with StrictServer([Fail(529, headers=headers)]) as server:
        error = failure(provider(server.url, retries=1 if seconds and seconds > 60 else 0), mode)
        assert len(server.requests) == 1
    assert error.retry_after == seconds


@both
def test_the_memo_survives_a_retry(mode: Mode) -> None:
    with StrictServer([Fail(529, headers={"retry-after-ms": "1"}), say("ok")]) as server:
        ask(provider(server.url), mode)
        first, second = (request.raw for request in server.requests)
    assert first == second


# secrets


@both
def test_keys_are_in_no_error_text(mode: Mode) -> None:
    message = "bad sk-ant-secret at https://x.example/?key=SECRET1&b=1 with Authorization: Bearer SECRET2"
    with StrictServer([Fail(400, message)]) as server:
        error = failure(provider(server.url), mode)
    text = "".join(traceback.format_exception(error))
    assert not [secret for secret in ("SECRET1", "SECRET2", "sk-ant-secret") if secret in text]


def test_the_key_is_in_no_repr() -> None:
    asked = provider("http://127.0.0.1:9")
    assert "sk-ant-secret" not in repr(asked.options) + str(vars(asked).keys())


# options


def test_a_missing_key_names_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY"):
        AnthropicProvider(MODEL, Options())


@both
def test_the_key_comes_from_the_environment(mode: Mode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", " from-env\n")  # a line end could not be sent
    with StrictServer([say("ok")]) as server:
        ask(AnthropicProvider(MODEL, Options(base_url=server.url)), mode)
        assert not server.refusals


@both
def test_headers_are_sent_and_betas_are_joined(mode: Mode) -> None:
    headers = {"X-Mine": "1", "Anthropic-Beta": "context-1m-2025-08-07"}
    with StrictServer([say("ok")]) as server:
        given = {"api_key": "k", "base_url": server.url, "headers": headers, "binding": "drop_block"}
        asked = AnthropicProvider("claude-opus-5-5", Options.model_validate(given))
        ask(asked, mode, ModelRequest("claude-opus-5-5", "", [Message.user("q")]))
        sent = server.requests[0].headers
    assert sent["x-mine"] == "1"
    assert sent["anthropic-beta"] == "context-1m-2025-08-07,thinking-binding-controls-2026-08-01"


@both
def test_a_big_whole_answer_may_be_asked_for(mode: Mode) -> None:
    with StrictServer([say("ok")]) as server:
        ask(provider(server.url, transport="whole", max_tokens=64_000), mode)
        assert (server.requests[0].body["max_tokens"], server.requests[0].stream) == (64_000, False)


# leaving


def test_a_sync_stream_that_is_left_closes_its_connection() -> None:
    gate = threading.Event()
    with StrictServer([Delay(gate, reply(say("a" * 200)), after=4), say("next")]) as server:
        asked = provider(server.url)
        items = asked.stream(question())
        assert isinstance(next(iter(items)), TextDelta)
        items.close()  # type: ignore[attr-defined]  # a generator, as every stream is
        gate.set()
        assert ask(asked, "sync")[-1].text == "next"


def test_an_async_stream_that_is_cancelled_closes_its_connection() -> None:
    gate = threading.Event()

    async def go(server: StrictServer) -> str:
        asked = provider(server.url)
        begun = asyncio.Event()

        async def read() -> None:
            async for _ in asked.astream(question()):
                begun.set()

        task = asyncio.create_task(read())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        found = [item async for item in asked.astream(question())][-1]
        await asked.aclose()
        assert isinstance(found, Reply)
        return found.text

    with StrictServer([Delay(gate, say("a" * 200), after=4), say("next")]) as server:
        assert asyncio.run(go(server)) == "next"


@pytest.fixture(params=["before headers", "in the stream", "on a kept connection", "while waiting to ask again"])
def blocked(request: pytest.FixtureRequest) -> Iterator[tuple[StrictServer, AnthropicProvider, threading.Event]]:
    """A server that leaves a sync stream blocked, and the event that lets it go."""
    gate = threading.Event()
    hold = Delay(gate, say("late"), after=4 if request.param == "in the stream" else 0)
    script: list[Any] = [hold]
    if request.param == "on a kept connection":
        script = [say("first"), hold]
    if request.param == "while waiting to ask again":
        script = [Fail(529, headers={"retry-after": "50"})]
    with StrictServer(script) as server:
        asked = provider(server.url)
        if len(script) == 2:
            list(asked.stream(question()))
        yield server, asked, gate
        gate.set()
        asked.close()


def test_abort_wakes_a_blocked_stream(blocked: tuple[StrictServer, AnthropicProvider, threading.Event]) -> None:
    server, asked, _ = blocked
    request = question()
    ended: list[BaseException | str] = []
    expected = len(server.requests) + 1

    def read() -> None:
        try:
            list(asked.stream(request))
            ended.append("whole")
        except ProviderError as error:
            ended.append(error)

    thread = threading.Thread(target=read)
    thread.start()
    while len(server.requests) < expected:
        thread.join(0.01)
    asked.abort(request)
    thread.join(20)
    assert not thread.is_alive()
    assert isinstance(ended[0], ProviderError)


def test_abort_of_one_stream_leaves_the_others_whole() -> None:
    gates = [threading.Event(), threading.Event()]
    with StrictServer([Delay(gates[0], say("one"), after=4), Delay(gates[1], say("two")), say("two")]) as server:
        asked = provider(server.url)
        first, second = question("1"), question("2")
        texts: dict[str, str] = {}

        def read(name: str, request: ModelRequest) -> None:
            try:
                found = list(asked.stream(request))[-1]
                texts[name] = found.text if isinstance(found, Reply) else ""
            except ProviderError:
                texts[name] = "broken"

        threads = [
            threading.Thread(target=read, args=("first", first)),
            threading.Thread(target=read, args=("second", second)),
        ]
        for number, thread in enumerate(threads, 1):
            thread.start()
            while len(server.requests) < number:
                thread.join(0.01)
        asked.abort(second)
        threads[1].join(20)
        gates[0].set()
        gates[1].set()
        threads[0].join(20)
        asked.close()
    assert texts == {"first": "one", "second": "broken"}


def test_abort_of_nothing_does_nothing() -> None:
    provider("http://127.0.0.1:9").abort(question())


def test_one_provider_serves_several_event_loops() -> None:
    with StrictServer([say("a"), say("b"), say("c")]) as server:
        asked = provider(server.url)

        async def one() -> str:
            return "".join([item.text async for item in asked.astream(question()) if isinstance(item, TextDelta)])

        assert [asyncio.run(one()) for _ in range(2)] == ["a", "b"]
        assert [item.text for item in asked.stream(question()) if isinstance(item, TextDelta)] == ["c"]
        asked.close()
    gc.collect()


def test_a_closed_provider_may_be_used_again() -> None:
    with StrictServer([say("a"), say("b")]) as server:
        asked = provider(server.url)
        assert ask(asked, "sync")[-1].text == "a"
        assert ask(asked, "async")[-1].text == "b"
        asked.close()


def test_no_thread_is_left() -> None:
    before = threading.active_count()
    with StrictServer([say("a"), say("b")]) as server:
        asked = provider(server.url)
        ask(asked, "sync")
        ask(asked, "async")
    assert threading.active_count() == before
