"""Checks of a provider's mapping: what it sends of a request, what it reads of a reply."""

from __future__ import annotations

import asyncio
import re
from typing import Any, Final
from unittest import SkipTest

from hookloop_hookspecs import CallDelta, Image, Message, ProviderTraits, Reply, Text, TextDelta, Usage

from .provider_subject import MARKS, TEXT, Asked, ProviderSubject, aclose, asks, conversation, pairs, within
from .script import call, reply

REPLIES: Final[tuple[tuple[str, Reply], ...]] = (
    ("a text", reply(TEXT)),
    ("a call", reply(call("edit", {"path": "ä.txt", "n": [1, {"deep": None}]}, id="c1"))),
    ("a call without arguments", reply(call("edit", {}, id="c1"))),
    ("two calls", reply(call("edit", {"path": "a"}, id="c1"), call("edit", {"path": "b"}, id="c2"))),
    ("a text and a call", reply("I shall edit it.", call("edit", {"path": "a"}, id="c1"))),
)
PIXEL: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


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


def _stream(made: Any, request: Any) -> Any:
    if callable(getattr(made, "stream", None)):
        return made.stream(request)

    async def collect() -> list[Any]:
        items = [item async for item in made.astream(request)]
        await aclose(made)
        return items

    return asyncio.run(collect())


RULES: Final = (
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
)

__all__ = ["RULES"]
