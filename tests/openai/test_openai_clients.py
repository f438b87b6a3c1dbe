"""Connections: made late, one set for each loop, closed by whoever has to, and ended from outside when asked."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from hookloop.testing import say
from hookloop.testing.server import Delay, Fail, StrictServer
from hookloop_hookspecs import ModelRequest, ProviderError, Reply, TextDelta
from hookloop_openai import OpenAIProvider

Asking = Callable[..., ModelRequest]


async def answer(provider: OpenAIProvider, request: ModelRequest) -> str:
    outputs = [output async for output in provider.astream(request)]
    assert isinstance(outputs[-1], Reply)
    return outputs[-1].text


def test_K02_two_loops_with_one_provider(ways: Any, asking: Asking) -> None:
    with StrictServer([say("one"), say("two"), say("three")]) as server:
        provider = ways("async-stream").provider(server)
        assert asyncio.run(answer(provider, asking())) == "one"
        assert asyncio.run(answer(provider, asking())) == "two"
        *_, reply = provider.stream(asking())
        assert isinstance(reply, Reply)
        assert reply.text == "three"
        provider.close()
        del provider
        gc.collect()


def test_two_loops_at_once(ways: Any, asking: Asking) -> None:
    with StrictServer([say("same")] * 8) as server:
        provider = ways("async-stream").provider(server)
        found: list[str] = []

        async def both() -> None:
            found.extend(await asyncio.gather(*(answer(provider, asking()) for _ in range(4))))

        threads = [threading.Thread(target=lambda: asyncio.run(both())) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == ["same"] * 8


def test_closed_provider_can_be_asked_again(way: Any, asking: Asking) -> None:
    with StrictServer([say("one"), say("two")]) as server:
        provider = way.provider(server)
        assert way.run(provider, [asking()])[0].reply.text == "one"
        assert way.run(provider, [asking()])[0].reply.text == "two"


def test_connection_is_used_again(way: Any, asking: Asking) -> None:
    with StrictServer([say("a")] * 3) as server:
        way.run(way.provider(server), [asking()] * 3)
        assert not server.departures


def test_closing_what_was_never_opened(ways: Any) -> None:
    with StrictServer() as server:
        provider = ways("sync-stream").provider(server)
        provider.close()
        asyncio.run(provider.aclose())


def test_leaving_a_stream_early_closes_its_connection(streaming: Any, asking: Asking) -> None:
    with StrictServer([Delay(threading.Event(), say("a text of some length"), after=2)]) as server:
        provider = streaming.provider(server)
        if streaming.is_async:
            asyncio.run(first_async(provider, asking()))
        else:
            stream = provider.stream(asking())
            assert isinstance(next(stream), TextDelta)
            stream.close()
            provider.close()


async def first_async(provider: OpenAIProvider, request: ModelRequest) -> None:
    stream = provider.astream(request)
    assert isinstance(await anext(stream), TextDelta)
    await stream.aclose()
    await provider.aclose()


def test_cancelled_task_ends_its_request(ways: Any, asking: Asking) -> None:
    async def run(provider: OpenAIProvider) -> None:
        task = asyncio.create_task(answer(provider, asking()))
        while not server.requests:  # noqa: ASYNC110 - the server is a thread and knows no event of this loop
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await provider.aclose()

    with StrictServer([Delay(threading.Event(), say("never"))]) as server:
        asyncio.run(run(ways("async-stream").provider(server)))


@pytest.mark.parametrize("after", [0, 2])
@pytest.mark.parametrize("transport", ["stream", "whole"])
def test_abort_ends_a_blocked_stream(ways: Any, asking: Asking, after: int, transport: str) -> None:
    request, errors, begun = asking(), [], threading.Event()

    def ask(provider: OpenAIProvider) -> None:
        try:
            for _ in provider.stream(request):
                begun.set()
        except ProviderError as error:
            errors.append(error)

    with StrictServer([Delay(threading.Event(), say("a text of some length"), after=after)] * 2) as server:
        provider = ways(f"sync-{transport}").provider(server, retries=3)
        thread = threading.Thread(target=ask, args=(provider,))
        thread.start()
        if after and transport == "stream":
            begun.wait()
        while not server.requests:
            thread.join(0.001)
        provider.abort(request)
        thread.join(10)
        assert not thread.is_alive()
        provider.close()
        assert len(server.requests) == 1
    assert [(error.kind, error.retryable) for error in errors] == [("connection", False)]


def test_abort_ends_the_wait_before_a_retry(ways: Any, asking: Asking) -> None:
    request, errors = asking(), []

    def ask(provider: OpenAIProvider) -> None:
        try:
            list(provider.stream(request))
        except ProviderError as error:
            errors.append(error)

    with StrictServer([Fail(429, headers={"retry-after": "50"}), say("never")]) as server:
        provider = ways("sync-stream").provider(server, retries=3)
        thread = threading.Thread(target=ask, args=(provider,))
        thread.start()
        while not server.requests:
            thread.join(0.001)
        provider.abort(request)
        thread.join(10)
        assert not thread.is_alive()
        provider.close()
    assert len(errors) == 1


def test_abort_of_what_does_not_run_does_nothing(ways: Any, asking: Asking) -> None:
    with StrictServer() as server:
        ways("sync-stream").provider(server).abort(asking())


def test_abort_leaves_other_requests_alone(ways: Any, asking: Asking) -> None:
    found: list[object] = []
    hold = threading.Event()
    first, second = asking("first"), asking("second")

    def ask(provider: OpenAIProvider, request: ModelRequest) -> None:
        try:
            found.append(list(provider.stream(request))[-1])
        except ProviderError as error:
            found.append(error)

    with StrictServer([Delay(hold, say("fine")), Delay(hold, say("fine"))]) as server:
        provider = ways("sync-stream").provider(server)
        threads = [threading.Thread(target=ask, args=(provider, request)) for request in (first, second)]
        for thread in threads:
            thread.start()
        while len(server.requests) < 2:
            threads[0].join(0.001)
        provider.abort(first)
        threads[0].join(10)
        hold.set()
        threads[1].join(10)
        provider.close()
    assert [type(outcome) for outcome in found] == [ProviderError, Reply]


def test_headers_and_organization_are_sent(way: Any, asking: Asking) -> None:
    with StrictServer([say("ok")]) as server:
        way.ask(server, headers={"x-mine": "1"}, organization="org-1")
        headers = server.requests[0].headers
    assert (headers["x-mine"], headers["openai-organization"], headers["authorization"]) == (
        "1",
        "org-1",
        "Bearer test-key-1",
    )


def test_key_stands_in_the_header_of_the_profile_too(way: Any, asking: Asking) -> None:
    with StrictServer([say("ok")]) as server:
        way.ask(server, profile="azure")
        headers = server.requests[0].headers
    assert (headers["api-key"], headers["authorization"]) == ("test-key-1", "Bearer test-key-1")


def test_nothing_of_the_environment_is_sent_to_others(
    ways: Any, asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-secret")
    monkeypatch.setenv("OPENAI_ADMIN_KEY", "admin-secret")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-leak: secret")
    with StrictServer([say("ok")] * 2) as server:
        for name in ("sync-stream", "async-stream"):
            ways(name).ask(server, profile="groq")
        assert not any("secret" in value for request in server.requests for value in request.headers.values())
