"""Conformance of a provider: what it must do, whichever API it speaks.

All at once: `print(check_provider(make, serve=serve))`, where `make(url, transport)` gives a provider that asks a server at
`url` (without retries of its own, with `provider_checks.SECRET` as its key), and `serve()` gives that server: `StrictServer`
for the APIs that it speaks, a `LocalEndpoint` for any other. In a test suite with pytest, one test for each check::

    @pytest.mark.parametrize("check", provider_checks.CHECKS, ids=str)
    def test_my_provider(check):
        provider_checks.verify(check, make, serve=serve)
"""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from unittest import SkipTest

from hookloop_hookspecs import (
    CallDelta,
    Image,
    Message,
    Provider,
    ProviderError,
    ProviderTraits,
    Reply,
    Text,
    TextDelta,
    Usage,
)

from .endpoint import Endpoint
from .provider_subject import (
    MARKS,
    SECRET,
    Asked,
    Make,
    ProviderSubject,
    aclose,
    asks,
    conversation,
    pairs,
    provider_error,
    within,
)
from .report import Report, judged
from .script import call, reply
from .server.steps import Cut, Delay, Drop, Fail
from .server.strict import StrictServer

Rule: TypeAlias = Callable[[ProviderSubject], "str | None"]
TEXT: Final = "Grüße, 世界 🌍!\n\n  A second paragraph, long enough to come in several pieces."
REPLIES: Final[tuple[tuple[str, Reply], ...]] = (
    ("a text", reply(TEXT)),
    ("a call", reply(call("edit", {"path": "ä.txt", "n": [1, {"deep": None}]}, id="c1"))),
    ("a call without arguments", reply(call("edit", {}, id="c1"))),
    ("two calls", reply(call("edit", {"path": "a"}, id="c1"), call("edit", {"path": "b"}, id="c2"))),
    ("a text and a call", reply("I shall edit it.", call("edit", {"path": "a"}, id="c1"))),
)
STATUSES: Final = ((400, False), (401, False), (404, False), (429, True), (500, True), (503, True))
"""HTTP failures, and whether asking again may help."""
LONG: Final = TEXT * 5
"""A text whose first deltas come long before its end."""
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@dataclass(frozen=True, slots=True)
class Check:
    """One named check."""

    name: str
    rule: Rule

    def __str__(self) -> str:
        return self.name


def is_a_provider(subject: ProviderSubject) -> None:
    """It has a stream, sync or async; a name and traits, where it has them, are what the contract says."""
    with subject.provider("http://127.0.0.1:9") as made:
        name, traits = getattr(made, "name", "provider"), _traits(made)
        assert isinstance(name, str), f"its name must be text, not {type(name).__name__}"
        assert name, "its name is empty"
        assert isinstance(traits, ProviderTraits), f"traits must be ProviderTraits, not {type(traits).__name__}"
    assert subject.ways, "it has neither stream nor astream"


def _traits(made: Any) -> Any:
    return getattr(made, "traits", None) or ProviderTraits()


def sends_the_whole_request(subject: ProviderSubject) -> None:
    """System text, tools and every message reach the server, in order, and results are tied to their calls."""
    body = subject.ask(asks(*conversation(), system="Msystem"), reply("ok")).body
    for mark in (*MARKS, "Msystem", "Mtool", "Mschema", "edit"):
        assert mark in body, f"{_WHERE.get(mark, 'a message')} did not reach the server: {mark!r} is not in the request"
    places = [body.index(mark) for mark in MARKS]
    assert places == sorted(places), "the messages reached the server in another order"
    straight, crossed = (subject.ask(asks(*pairs(*ids)), reply("ok")).body for ids in (("c1", "c2"), ("c2", "c1")))
    assert straight != crossed, "a result is not tied to its call: two calls' results can be swapped unseen"


_WHERE: Final = {"Msystem": "the system text", "Mtool": "a tool's description", "Mschema": "a tool's schema"}


def sends_images_as_it_declares(subject: ProviderSubject) -> None:
    """With `traits.vision` images reach the server, without it they do not."""
    message = Message.user([Text("Look."), Image(PIXEL)])
    with subject.provider("http://127.0.0.1:9") as made:
        vision = getattr(_traits(made), "vision", None)
    if vision is None:
        raise SkipTest("its traits are none")
    asked = subject.ask(asks(message, tools=()), reply("ok"))
    assert asked.error is None, f"a request with an image: {type(asked.error).__name__}: {asked.error}"
    sent = PIXEL in asked.body
    assert sent or not vision, "traits.vision is set, but the image did not reach the server"
    assert vision or not sent, "traits.vision is not set, but the image was sent"


def reads_replies(subject: ProviderSubject) -> None:
    """Texts and calls come back as the model said them, in order."""
    for what, said in REPLIES:
        got = subject.ask(asks(), said).reply
        assert got.text == said.text, f"{what}: the text was {said.text!r} and came back as {got.text!r}"
        expected = [(one.name, one.arguments) for one in said.calls]
        calls = [(one.name, one.arguments) for one in got.calls]
        assert calls == expected, f"{what}: the calls were {expected} and came back as {calls}"
        ids = [one.id for one in got.calls]
        assert len(set(filter(None, ids))) == len(ids), f"{what}: call ids are missing or repeated: {ids}"


def knows_a_cut_reply(subject: ProviderSubject) -> None:
    """A reply that was cut by the output limit has `stop == "length"`; a whole one is not cut."""
    cut = subject.ask(asks(), reply("so far", stop="length")).reply
    assert cut.stop == "length", f"a reply that was cut by its length came back with stop {cut.stop!r}"
    for what, said in REPLIES:
        got = subject.ask(asks(), said).reply
        assert not got.cut, f"{what}: a whole reply came back with stop {got.stop!r}"


def yields_deltas_that_add_up(subject: ProviderSubject) -> None:
    """The deltas are the reply's text and arguments, in pieces."""
    for what, said in REPLIES:
        for way, transport in subject.both():
            _adds_up(subject.ask(asks(), said, way=way, transport=transport), f"{what} ({way}, {transport})")


def _adds_up(asked: Asked, what: str) -> None:
    got = asked.reply
    text = "".join(item.text for item in asked.items if isinstance(item, TextDelta))
    assert text == got.text, f"{what}: the text deltas add up to {text!r}, the reply says {got.text!r}"
    pieces = [item for item in asked.items if isinstance(item, CallDelta)]
    for index, one in enumerate(got.calls):
        raw = "".join(piece.raw for piece in pieces if piece.index == index)
        same = raw == one.raw or (not raw and not one.arguments)
        assert same, f"{what}: the deltas of call {index} add up to {raw!r}, the reply says {one.raw!r}"


def ends_with_the_reply(subject: ProviderSubject) -> None:
    """The reply comes once, and last."""
    for way, transport in subject.both():
        items = subject.ask(asks(), reply(TEXT), way=way, transport=transport).items
        replies = sum(isinstance(item, Reply) for item in items)
        assert replies == 1, f"{way}, {transport}: {replies} replies in one stream"
        assert isinstance(items[-1], Reply), f"{way}, {transport}: {type(items[-1]).__name__} came after the reply"


def counts_tokens(subject: ProviderSubject) -> None:
    """Tokens are those that the server reported; what it does not say is None."""
    usage = subject.ask(asks(), reply("ok", usage=Usage(10, 5, total=15))).reply.usage
    for name, value in (("input", 10), ("output", 5), ("total", 15)):
        got = getattr(usage, name)
        assert got == value, f"usage.{name} is {got}, the server reported {value}"


def is_the_same_in_all_ways(subject: ProviderSubject) -> None:
    """stream and astream send the same requests, and come to the same reply with every transport."""
    request = asks(*conversation(), system="Msystem")
    for what, said in REPLIES:
        first: dict[str, Asked] = {}
        for way, transport in subject.both():
            asked = subject.ask(request, said, way=way, transport=transport)
            same = first.setdefault(transport, asked)
            assert asked.bodies == same.bodies, f"{way} sends another request than {subject.ways[0]} ({transport})"
            one, other = _plain(next(iter(first.values())).reply), _plain(asked.reply)
            assert one == other, f"{what}: {way}, {transport} came to {other!r:.160} in place of {one!r:.160}"


def _plain(got: Reply) -> object:
    return got.text, [(one.name, one.arguments) for one in got.calls], got.stop, got.usage


def keeps_nothing(subject: ProviderSubject) -> None:
    """A request depends on nothing that was asked before, whether or not its epoch's encodings are at hand."""
    messages = conversation()
    fresh = subject.ask(asks(*messages), reply("ok")).body
    with subject.serve() as server, subject.provider(server.url) as made:
        server.play(*[reply("ok")] * 3)
        memo: dict[str, Any] = {}
        for request in (asks(Message.user("Mother")), asks(messages[0], memo=memo), asks(*messages, memo=memo)):
            within(lambda request=request: list(_stream(made, request)), "asking again")  # type: ignore[misc]  # bound here
        body = Asked(bodies=[one.body for one in server.requests]).body
    assert "Mother" not in body, "a request holds what another conversation said"
    assert _said(body) == _said(fresh), (
        "the messages differ when the same epoch was asked before: what is kept in `memo` is stale"
    )


def _said(body: str) -> list[str]:
    """The texts of the messages, in order; where marks for caches stand is the provider's own matter."""
    return [word for word in re.findall(r"M[a-z]+", body) if word in MARKS]


def _stream(made: Provider, request: Any) -> Any:
    if callable(getattr(made, "stream", None)):
        return made.stream(request)  # type: ignore[attr-defined]  # asked for just now

    async def collect() -> list[Any]:
        items = [item async for item in made.astream(request)]  # type: ignore[attr-defined]  # the other way
        await aclose(made)
        return items

    return asyncio.run(collect())


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


CHECKS: Final = tuple(
    Check(rule.__name__, rule)
    for rule in (
        is_a_provider,
        sends_the_whole_request,
        sends_images_as_it_declares,
        reads_replies,
        knows_a_cut_reply,
        yields_deltas_that_add_up,
        ends_with_the_reply,
        counts_tokens,
        is_the_same_in_all_ways,
        keeps_nothing,
        raises_provider_errors,
        raises_when_the_connection_breaks,
        never_takes_half_for_whole,
        tells_no_secrets,
        can_be_left,
        can_be_aborted,
    )
)


def verify(
    check: Check,
    make: Make,
    *,
    serve: Callable[[], Endpoint] = StrictServer,
    transports: Sequence[str] = ("stream", "whole"),
) -> str | None:
    """Run one check, from code that is not async.

    Arguments: `make` gives a provider from a server's URL and one of `transports`; `serve` gives the server. Raises
    `AssertionError` where the provider fails, and `unittest.SkipTest` where there is nothing to look at.
    """
    return check.rule(ProviderSubject(make, serve, transports))


def check_provider(
    make: Make, *, serve: Callable[[], Endpoint] = StrictServer, transports: Sequence[str] = ("stream", "whole")
) -> Report:
    """Run all checks (see `verify`) and report what came of each."""
    subject = ProviderSubject(make, serve, transports)
    return Report(tuple(judged(check.name, lambda check=check: check.rule(subject)) for check in CHECKS))  # type: ignore[misc]  # the default binds it


__all__ = ["CHECKS", "SECRET", "Check", "check_provider", "verify"]
