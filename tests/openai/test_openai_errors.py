"""Every failure is one family: its kind, whether asking again may help, and nothing secret in its words."""

from __future__ import annotations

import json
import socket
import time
import traceback
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import httpx2
import pytest

import openai
from hookloop.testing import say
from hookloop.testing.server import Cut, Delay, ErrorEvent, Fail, Raw, StrictServer
from hookloop_hookspecs import ModelRequest, ProviderError
from hookloop_openai.errors import Failing, retry_after
from hookloop_openai.exchange import Exchange

Asking = Callable[..., ModelRequest]
LONG = "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens."


def failed(way: Any, *script: Any, **options: Any) -> ProviderError:
    """The error that this script leads to."""
    with StrictServer(script) as server, pytest.raises(ProviderError) as raised:
        way.ask(server, **options)
    return raised.value


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, "invalid", False),
        (401, "auth", False),
        (403, "auth", False),
        (404, "not_found", False),
        (408, "timeout", True),
        (409, "server", True),
        (413, "context", False),
        (422, "invalid", False),
        (429, "rate_limit", True),
        (500, "server", True),
        (503, "overloaded", True),
        (529, "overloaded", True),
    ],
)
def test_status_decides_the_kind(way: Any, status: int, kind: str, retryable: bool) -> None:
    error = failed(way, Fail(status, "went wrong", headers={"x-request-id": "req_9"}))
    assert (error.kind, error.retryable, error.status) == (kind, retryable, status)
    assert error.provider == "openai"
    assert error.request_id
    assert "went wrong" in str(error)
    assert error.partial is None


@pytest.mark.parametrize(
    "step",
    [
        Fail(400, LONG, code="context_length_exceeded"),
        Fail(400, LONG),
        Fail(400, "the request exceeds the available context size, try increasing it"),
        Fail(500, "input length and max_tokens exceed context limit: prompt is too long"),
        Fail(
            400,
            "x",
            body={
                "object": "error",
                "message": "Prompt contains 9 tokens, too large for model with 8 maximum context length",
            },
        ),
    ],
)
def test_too_long_is_a_kind_of_its_own_and_not_retried(way: Any, step: Fail) -> None:
    error = failed(way, step)
    assert (error.kind, error.retryable) == ("context", False)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "nested", "code": "c"}}, "nested"),
        ({"error": "plain"}, "plain"),
        ({"object": "error", "message": "flat", "type": "invalid_request_error"}, "flat"),
        ({"detail": [{"msg": "pydantic"}]}, "pydantic"),
        ({"message": "only"}, "only"),
        ([{"error": {"code": 400, "message": "listed", "status": "INVALID_ARGUMENT"}}], "listed"),
        ("<html>Bad gateway</html>", "Bad gateway"),
        (b"\xff\xfe", "error 400"),
        ("", "no reason given"),
    ],
)
def test_error_bodies_of_every_shape(way: Any, body: Any, words: str) -> None:
    error = failed(way, Fail(400, body=body) if body != "" else Raw(400, {}, b""))
    assert error.kind == "invalid"
    assert words in str(error)


def test_quota_is_a_rate_limit_that_waiting_does_not_cure(way: Any) -> None:
    error = failed(way, Fail(429, "You exceeded your current quota", code="insufficient_quota"))
    assert (error.kind, error.retryable) == ("rate_limit", False)


def test_server_says_whether_to_retry(way: Any) -> None:
    assert not failed(way, Fail(500, headers={"x-should-retry": "false"})).retryable
    assert failed(way, Fail(400, headers={"x-should-retry": "true"})).retryable


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503])
def test_failures_are_retried(way: Any, at_once: None, status: int) -> None:
    with StrictServer([Fail(status), Fail(status), say("ok")]) as server:
        assert way.ask(server, retries=2).reply.text == "ok"
        assert len(server.requests) == 3
        assert all(request.headers["x-stainless-retry-count"] == "0" for request in server.requests)


def test_retries_are_bounded_and_the_last_error_counts(way: Any, at_once: None) -> None:
    with (
        StrictServer([Fail(500, "one"), Fail(500, "two"), say("ok")]) as server,
        pytest.raises(ProviderError, match="two"),
    ):
        way.ask(server, retries=1)
    assert len(server.requests) == 2


def test_what_cannot_help_is_not_retried(way: Any, at_once: None) -> None:
    with StrictServer([Fail(400), say("ok")]) as server, pytest.raises(ProviderError):
        way.ask(server, retries=2)
    assert len(server.requests) == 1


def test_error_event_before_anything_visible_is_retried(streaming: Any, at_once: None) -> None:
    with StrictServer([ErrorEvent(say("x"), after=0, type="server_error"), say("ok")]) as server:
        assert streaming.ask(server, retries=1).reply.text == "ok"


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The waits before retries, which are not made."""
    asked: list[float] = []

    async def asleep(exchange: Exchange, seconds: float) -> None:
        asked.append(seconds)

    monkeypatch.setattr(Exchange, "sleep", lambda exchange, seconds: asked.append(seconds))
    monkeypatch.setattr(Exchange, "asleep", asleep)
    return asked


def test_server_wish_to_wait_is_obeyed(way: Any, waits: list[float]) -> None:
    script: list[Any] = [
        Fail(429, headers={"retry-after-ms": "30", "retry-after": "50"}),
        Fail(429, headers={"retry-after": "7"}),
        say("ok"),
    ]
    with StrictServer(script) as server:
        assert way.ask(server, retries=2).reply.text == "ok"
    assert waits == [0.03, 7.0]


def test_waits_grow_where_the_server_asks_for_none(way: Any, waits: list[float]) -> None:
    with StrictServer([Fail(500), Fail(500), say("ok")]) as server:
        way.ask(server, retries=2)
    assert 0.5 <= waits[0] <= 1.0 <= waits[1] <= 1.5


def test_server_that_wants_a_long_wait_is_left_to_the_caller(way: Any) -> None:
    error = failed(way, Fail(429, headers={"retry-after": "3600"}), say("ok"), retries=1)
    assert error.retry_after == 3600


def test_retry_after_is_read_in_each_form() -> None:
    assert retry_after({"retry-after": "1.5"}) == 1.5
    assert retry_after({"retry-after-ms": "250"}) == 0.25
    soon = retry_after({"retry-after": formatdate(time.time() + 30, usegmt=True)})
    assert soon is not None
    assert 20 < soon <= 30
    assert [retry_after({"retry-after": word}) for word in ("", "soon", "-1", "inf", "nan")] == [None] * 5


def test_nobody_listens(way: Any, asking: Asking) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        with StrictServer() as server:
            provider = way.provider(server, base_url=f"http://127.0.0.1:{closed.getsockname()[1]}/v1")
            with pytest.raises(ProviderError) as raised:
                way.run(provider, [asking()])
    assert (raised.value.kind, raised.value.retryable) == ("connection", True)


def test_name_that_does_not_resolve(way: Any, asking: Asking) -> None:
    with StrictServer() as server, pytest.raises(ProviderError) as raised:
        way.run(way.provider(server, base_url="http://no-such-host.invalid/v1"), [asking()])
    assert raised.value.kind == "connection"


def test_request_timeout_waits_for_headers(way: Any) -> None:
    error = failed(way, Delay(5.0, say("late")), request_timeout=0.1)
    assert (error.kind, error.retryable) == ("timeout", True)


def test_idle_timeout_waits_between_chunks(streaming: Any) -> None:
    error = failed(streaming, Delay(5.0, say("text that stops"), after=2), idle_timeout=0.1)
    assert error.kind == "timeout"
    assert error.partial is not None
    assert error.partial.text


@pytest.mark.parametrize("how", ["reset", "close"])
def test_broken_connection_within_a_body(way: Any, how: Any) -> None:
    error = failed(way, Cut(say("a longer text that is cut"), after=2, how=how))
    assert error.retryable
    assert error.kind in ("connection", "stream")


@pytest.mark.parametrize("body", [b"", b"{", b"not json", b"[]", b"null", b"{}", b'{"choices": []}', b'{"choices": 3}'])
def test_body_that_is_no_answer(way: Any, body: bytes) -> None:
    error = failed(way, Raw(200, {"content-type": "application/json"}, body))
    assert (error.kind, error.retryable) == ("stream", True)


def test_broken_compression(way: Any) -> None:
    error = failed(way, Raw(200, {"content-type": "application/json", "content-encoding": "gzip"}, b"no gzip at all"))
    assert error.retryable


def test_L06_key_is_in_no_text(way: Any, asking: Asking) -> None:
    leak = "Incorrect API key provided: SECRET-KEY-1. Header Authorization: Bearer SECRET-KEY-1, url ?key=SECRET2"
    with StrictServer([Fail(401, leak), ErrorEvent(say("x"), after=0, message=leak)]) as server:
        for _ in range(2):
            with pytest.raises(ProviderError) as raised:
                way.ask(server, api_key="SECRET-KEY-1", headers={"x-auth-token": "SECRET3"})
            text = "".join(line for line in traceback.format_exception(raised.value) if not line.startswith("  File"))
            assert "SECRET-KEY-1" not in text
            assert "SECRET2" not in text
        assert server.requests[0].headers["authorization"] == "Bearer SECRET-KEY-1"


def test_options_do_not_show_their_key(ways: Any) -> None:
    with StrictServer() as server:
        provider = ways("sync-stream").provider(server, api_key="SECRET-KEY-1")
        shown = repr(vars(provider))
        provider.close()
    assert "SECRET" not in shown


def test_any_exception_becomes_one_of_the_family() -> None:
    failing = Failing("p")
    request = httpx2.Request("POST", "http://x")
    kinds: list[tuple[Exception, str]] = [
        (openai.APITimeoutError(request=request), "timeout"),
        (openai.APIConnectionError(request=request), "connection"),
        (httpx2.ReadTimeout("t"), "timeout"),
        (httpx2.RemoteProtocolError("cut"), "connection"),
        (httpx2.DecodingError("gzip"), "stream"),
        (OSError("no route"), "connection"),
        (TimeoutError(), "timeout"),
        (openai.OpenAIError("no key"), "invalid"),
        (ValueError("odd"), "invalid"),
        (json.JSONDecodeError("odd", "", 0), "invalid"),
    ]
    assert [failing.raised(error).kind for error, _ in kinds] == [kind for _, kind in kinds]
