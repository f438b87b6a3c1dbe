"""Checks of a provider where something goes wrong: refusals, broken connections, callers who leave."""

from __future__ import annotations

import asyncio
import threading
from typing import Any, Final
from unittest import SkipTest

from hookloop_hookspecs import Provider, ProviderError, Reply

from .provider_subject import SECRET, TEXT, ProviderSubject, aclose, asks, provider_error, within
from .script import call, reply
from .server.steps import Cut, Delay, Drop, Fail

STATUSES: Final = ((400, False), (401, False), (404, False), (429, True), (500, True), (503, True))
"""HTTP failures, and whether asking again may help."""
LONG: Final = TEXT * 5
"""A text whose first deltas come long before its end."""


def raises_provider_errors(subject: ProviderSubject) -> None:
    """Each refusal is a `ProviderError` with the status and whether asking again may help."""
    for way in subject.ways:
        for status, retryable in STATUSES:
            what = f"HTTP {status} ({way})"
            error = provider_error(subject.ask(asks(), Fail(status, "no"), way=way), what)
            assert error.status == status, f"{what}: the error's status is {error.status}"
            assert error.retryable is retryable, f"{what}: retryable is {error.retryable}"
            assert error.provider, f"{what}: the error names no provider"


def raises_when_the_connection_breaks(subject: ProviderSubject) -> None:
    """No answer, and an answer that breaks off, are retryable `ProviderError`s, and no reply."""
    steps = (("no answer", Drop()), ("an answer that breaks off", Cut(reply(TEXT), 2, "close")))
    for way, transport in subject.both():
        for what, step in steps:
            error = provider_error(
                subject.ask(asks(), step, way=way, transport=transport), f"{what} ({way}, {transport})"
            )
            assert error.retryable, f"{what} ({way}, {transport}): the error is not retryable"
    provider_error(subject.ask_at("http://127.0.0.1:9", asks()), "nobody listens")


def never_takes_half_for_whole(subject: ProviderSubject) -> None:
    """A stream that ends properly before its reply is whole is an error, never an answer."""
    for way, transport in subject.both():
        for what, said in (("a text", reply(TEXT)), ("a call", reply(call("edit", {"path": "a"}, id="c1")))):
            asked = subject.ask(asks(), Cut(said, 1, "eof"), way=way, transport=transport)
            provider_error(asked, f"half of {what} ({way}, {transport})")


def tells_no_secrets(subject: ProviderSubject) -> None:
    """The key stands in no error, also where the server repeats it."""
    words = f"Incorrect API key provided: {SECRET} (Authorization: Bearer {SECRET})"
    for status in (401, 500):
        error = subject.ask(asks(), Fail(status, words)).error
        assert SECRET not in f"{error} {error!r}", f"HTTP {status}: the error repeats the key"


def can_be_left(subject: ProviderSubject) -> None:
    """A stream can be left in its middle, and the provider goes on; a task's cancel goes through; close ends its threads."""
    before = set(threading.enumerate())
    go_on = threading.Event()
    try:
        for way in subject.ways:
            with subject.serve() as server:
                server.play(Delay(go_on, reply(LONG), 8 if way == "stream" else 0), reply("ok"))
                _left(subject, server.url, way)
    finally:
        go_on.set()
    alive = [one.name for one in set(threading.enumerate()) - before if one.is_alive() and not _ends(one)]
    assert not alive, f"after close these threads are alive: {', '.join(sorted(alive))}"


def _ends(thread: threading.Thread) -> bool:
    thread.join(2)
    return not thread.is_alive()


def _left(subject: ProviderSubject, url: str, way: str) -> None:
    with subject.provider(url, "stream" if "stream" in subject.transports else "") as made:
        if way == "astream":
            within(lambda: asyncio.run(_cancelled(made)), "a cancelled astream")
            return
        stream = made.stream(asks())
        if "stream" in subject.transports:
            within(lambda: next(stream), "the first delta")
            within(stream.close, "leaving a stream")
            items = within(lambda: list(made.stream(asks())), "asking again")
            whole = any(isinstance(item, Reply) for item in items)
            assert whole, "after a stream was left, the next one came to no reply"
        within(made.close, "close")


async def _cancelled(made: Any) -> None:
    async def read() -> None:
        async for _ in made.astream(asks()):
            pass

    task = asyncio.ensure_future(read())
    done, _ = await asyncio.wait([task], timeout=0.3)
    assert not done, f"astream ended before its answer came: {task.exception()!r}"
    task.cancel()
    await asyncio.wait([task], timeout=5)
    assert task.done(), "astream did not end when its task was cancelled"
    error = None if task.cancelled() else task.exception()
    assert task.cancelled(), f"a cancel came out as {error!r:.80}; CancelledError must pass"
    await aclose(made)


def can_be_aborted(subject: ProviderSubject) -> None:
    """`abort`, where it is there, makes a blocked stream come back with an error from another thread."""
    with subject.provider("http://127.0.0.1:9") as made:
        own = getattr(type(made), "abort", Provider.abort) is not Provider.abort
        if not own or not callable(getattr(made, "stream", None)):
            raise SkipTest("it has no abort of its own")
    go_on = threading.Event()
    with subject.serve() as server, subject.provider(server.url) as made:
        server.play(Delay(go_on, reply(TEXT)))
        request = asks()
        timer = threading.Timer(0.3, lambda: made.abort(request))
        timer.start()
        try:
            within(lambda: _aborted(made, request), "an aborted stream")
        finally:
            timer.join()
            go_on.set()


def _aborted(made: Any, request: Any) -> None:
    try:
        items = list(made.stream(request))
    except ProviderError:
        return
    assert not any(isinstance(item, Reply) for item in items), "an aborted stream came to a reply"


RULES: Final = (
    raises_provider_errors,
    raises_when_the_connection_breaks,
    never_takes_half_for_whole,
    tells_no_secrets,
    can_be_left,
    can_be_aborted,
)

__all__ = ["RULES"]
