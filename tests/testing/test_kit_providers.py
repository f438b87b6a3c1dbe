"""The conformance of providers sees faults: for each check providers that fail it and no other, and good ones."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any
from unittest import SkipTest

import httpx
import pytest
from strangers import ask_parrot, load, made, parrot_server

from hookloop import provider
from hookloop.testing import check_provider, provider_checks, provider_subject, reply
from hookloop.testing.provider_checks import SECRET
from hookloop.testing.server import Fail, StrictServer
from hookloop_hookspecs import CallDelta, ModelRequest, ProviderError, ProviderTraits, Reply, Text, TextDelta, Usage

parrot: Any = load("parrot")


class Sound(parrot.Parrot):  # type: ignore[misc]  # loaded from a file
    """The provider of the example, to be spoilt: what it sends and what it reads pass through here."""

    def sends(self, body: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
        return body

    def reads(self, items: Iterator[Any]) -> Iterator[Any]:
        return items

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        return self.sends(super()._body(request), request)

    def stream(self, request: ModelRequest) -> Iterator[Any]:
        yield from self.reads(super().stream(request))

    async def astream(self, request: ModelRequest) -> AsyncIterator[Any]:
        items = [item async for item in super().astream(request)]
        for item in self.reads(iter(items)):
            yield item


class OnlySync(parrot.Parrot):  # type: ignore[misc]  # loaded from a file
    astream = None


class OnlyAsync(parrot.Parrot):  # type: ignore[misc]  # loaded from a file
    stream = None


class Bare:
    """A provider without a base class, a name or traits; its images are sent in its own way."""

    def __init__(self, model: str, options: Any) -> None:
        self._real = WithImages(model, options)

    def stream(self, request: ModelRequest) -> Iterator[Any]:
        return self._real.stream(request)

    def close(self) -> None:
        self._real.close()


class Nameless(Sound):
    name = ""


class Traitless(Sound):
    traits = {"vision": False}  # noqa: RUF012 - the fault


class Silent(Sound):
    stream = None  # type: ignore[assignment]  # the fault
    astream = None  # type: ignore[assignment]  # the fault


def sending(change: Any) -> type[Sound]:
    """A provider that sends something else."""

    class Sends(Sound):
        def sends(self, body: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
            changed: dict[str, Any] = change(body)
            return changed

    return Sends


def reading(change: Any) -> type[Sound]:
    """A provider that makes other replies of what it reads; deltas as they are."""

    class Reads(Sound):
        def reads(self, items: Iterator[Any]) -> Iterator[Any]:
            return (change(item) if isinstance(item, Reply) else item for item in items)

    return Reads


def without(key: str) -> type[Sound]:
    return sending(lambda body: {**body, "talk": [{**one, key: None} for one in body["talk"]]})


class Untied(Sound):
    def sends(self, body: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
        return {**body, "talk": [{key: one[key] for key in one if key != "for"} for one in body["talk"]]}


class Blind(Sound):
    traits = ProviderTraits(vision=True)


class Seeing(Sound):
    def sends(self, body: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
        pictures = [part.data for m in request.messages for part in m.content if part.type == "image"]
        return {**body, "pictures": pictures} if pictures else body


class WithImages(Seeing):
    traits = ProviderTraits(vision=True)


class Squeamish(Sound):
    def sends(self, body: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
        assert not any(part.type == "image" for m in request.messages for part in m.content), "no images here"
        return body


def texts(change: Any, when: Any = lambda provider: True) -> type[Sound]:
    """A provider that changes texts, in deltas as in replies."""

    class Changes(Sound):
        def reads(self, items: Iterator[Any]) -> Iterator[Any]:
            return map(self.change, items) if when(self) else items

        def change(self, item: Any) -> Any:
            if isinstance(item, TextDelta | Text):
                return replace(item, text=change(item.text))
            return replace(item, content=tuple(map(self.change, item.content))) if isinstance(item, Reply) else item

    return Changes


Strips = texts(lambda text: text.replace("\n", " "))
Shouts = texts(str.upper, lambda provider: provider.options.transport == "whole")


class Anonymous(Sound):
    def reads(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            content = tuple(replace(p, id="") if p.type == "call" else p for p in getattr(item, "content", ()))
            yield replace(item, content=content) if isinstance(item, Reply) else item


class Swaps(Sound):
    """Gives calls in the wrong order; their pieces too."""

    def reads(self, items: Iterator[Any]) -> Iterator[Any]:
        pieces: list[CallDelta] = []
        for item in items:
            if isinstance(item, CallDelta):
                pieces.append(item)
                continue
            if isinstance(item, Reply):
                yield from (replace(piece, index=len(item.calls) - 1 - piece.index) for piece in pieces)
                texts = tuple(part for part in item.content if part.type != "call")
                item = replace(item, content=(*texts, *reversed(item.calls)))
            yield item


class Doubles(Sound):
    def reads(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            yield item
            if isinstance(item, TextDelta):
                yield item


class Whispers(Sound):
    """Streams no arguments."""

    def reads(self, items: Iterator[Any]) -> Iterator[Any]:
        return (item for item in items if not isinstance(item, CallDelta) or len(item.raw) < 7)


class Chatty(Sound):
    def reads(self, items: Iterator[Any]) -> Iterator[Any]:
        yield from items
        yield TextDelta("")


class Echoes(Sound):
    def reads(self, items: Iterator[Any]) -> Iterator[Any]:
        for item in items:
            yield from [item, item] if isinstance(item, Reply) else [item]


class Differs(Sound):
    """Its async requests hold no tools."""

    async def astream(self, request: ModelRequest) -> AsyncIterator[Any]:
        async for item in super().astream(replace(request, tools=())):
            yield item


class Remembers(Sound):
    """Sends what other conversations said."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.told: list[Any] = []

    def sends(self, body: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
        self.told.append(body["talk"][0])
        return {**body, "talk": [*self.told[:-1], *body["talk"]]}


class Stale(Sound):
    """Takes what it encoded first for all that there is."""

    def sends(self, body: dict[str, Any], request: ModelRequest) -> dict[str, Any]:
        return {**body, "talk": request.memo.setdefault("talk", body["talk"])}


def failing(change: Any) -> type[Sound]:
    """A provider whose errors are something else."""

    class Fails(Sound):
        def stream(self, request: ModelRequest) -> Iterator[Any]:
            try:
                yield from super().stream(request)
            except ProviderError as error:
                raise change(error) from error

        async def astream(self, request: ModelRequest) -> AsyncIterator[Any]:
            try:
                async for item in super().astream(request):
                    yield item
            except ProviderError as error:
                raise change(error) from error

    return Fails


def changed(error: ProviderError, **fields: Any) -> ProviderError:
    """The error with other attributes."""
    for name, value in fields.items():
        setattr(error, name, value)
    return error


def foreign_refusal(error: ProviderError) -> Exception:
    return RuntimeError(f"HTTP {error.status}") if error.status else error


def without_retry(error: ProviderError) -> ProviderError:
    return error if error.status else changed(error, retryable=False)


def foreign_break(error: ProviderError) -> Exception:
    cause = error.__cause__
    return cause if isinstance(cause, httpx.HTTPError) else error


class Hopeful(Sound):
    """Takes what came for an answer, whether or not it has an end."""

    def stream(self, request: ModelRequest) -> Iterator[Any]:
        text = ""
        try:
            for item in super().stream(request):
                text += item.text if isinstance(item, TextDelta) else ""
                yield item
        except ProviderError as error:
            if isinstance(error.__cause__, httpx.HTTPError) or error.status:
                raise
            yield Reply((Text(text),))


class Telltale(parrot.Parrot):  # type: ignore[misc]  # loaded from a file
    def stream(self, request: ModelRequest) -> Iterator[Any]:
        try:
            yield from super().stream(request)
        except ProviderError as error:
            raise changed(ProviderError(f"{error} with {SECRET}", provider="parrot"), **vars(error)) from error


class Swallows(Sound):
    """Makes an error of a cancel."""

    async def astream(self, request: ModelRequest) -> AsyncIterator[Any]:
        try:
            async for item in super().astream(request):
                yield item
        except asyncio.CancelledError as gone:
            raise ProviderError("cancelled", provider="parrot") from gone


class Clings(Sound):
    """Cannot be left."""

    def stream(self, request: ModelRequest) -> Iterator[Any]:
        for item in super().stream(request):
            try:
                yield item
            except GeneratorExit:
                yield TextDelta("wait")


class Lingers(Sound):
    """Leaves a thread behind."""

    stop = threading.Event()

    def stream(self, request: ModelRequest) -> Iterator[Any]:
        threading.Thread(target=self.stop.wait, name="lingering", daemon=True).start()
        return super().stream(request)


class Deaf(Sound):
    """Has an `abort` that does nothing."""

    def abort(self, request: ModelRequest) -> None:
        """Do nothing."""


class Aborts(parrot.Parrot):  # type: ignore[misc]  # loaded from a file
    """Ends what it waits for when it is told to."""

    def abort(self, request: ModelRequest) -> None:
        for connection in self._client._transport._pool.connections:
            connection._connection._network_stream._sock.shutdown(2)


FAULTY: list[tuple[str, str, type]] = [
    ("is_a_provider", "name is empty", Nameless),
    ("is_a_provider", "ProviderTraits", Traitless),
    ("sends_the_whole_request", "system text", sending(lambda body: {**body, "brief": ""})),
    ("sends_the_whole_request", "tool's description", sending(lambda body: {**body, "tools": []})),
    ("sends_the_whole_request", "Mgamma", without("uses")),
    ("sends_the_whole_request", "another order", sending(lambda body: {**body, "talk": body["talk"][::-1]})),
    ("sends_the_whole_request", "not tied to its call", Untied),
    ("sends_images_as_it_declares", "did not reach", Blind),
    ("sends_images_as_it_declares", "was sent", Seeing),
    ("sends_images_as_it_declares", "no images here", Squeamish),
    ("reads_replies", "a text: ", Strips),
    ("reads_replies", "ids are missing", Anonymous),
    ("reads_replies", "two calls: ", Swaps),
    ("knows_a_cut_reply", "'end'", reading(lambda got: replace(got, stop="end"))),
    ("knows_a_cut_reply", "whole reply", reading(lambda got: replace(got, stop="length"))),
    ("yields_deltas_that_add_up", "add up to", Doubles),
    ("yields_deltas_that_add_up", "call 0", Whispers),
    ("ends_with_the_reply", "TextDelta came after", Chatty),
    ("ends_with_the_reply", "2 replies", Echoes),
    ("counts_tokens", "usage.total is None", reading(lambda got: replace(got, usage=replace(got.usage, total=None)))),
    ("counts_tokens", "usage.input is 0", reading(lambda got: replace(got, usage=Usage(0, 0, total=0)))),
    ("is_the_same_in_all_ways", "another request", Differs),
    ("is_the_same_in_all_ways", "whole", Shouts),
    ("keeps_nothing", "another conversation", Remembers),
    ("keeps_nothing", "stale", Stale),
    ("raises_provider_errors", "RuntimeError", failing(foreign_refusal)),
    ("raises_provider_errors", "status is None", failing(lambda error: changed(error, status=None))),
    ("raises_provider_errors", "retryable is True", failing(lambda error: changed(error, retryable=True))),
    ("raises_when_the_connection_breaks", "ProviderError alone", failing(foreign_break)),
    ("raises_when_the_connection_breaks", "not retryable", failing(without_retry)),
    ("never_takes_half_for_whole", "no error", Hopeful),
    ("tells_no_secrets", "repeats the key", Telltale),
    ("can_be_left", "CancelledError must pass", Swallows),
    ("can_be_left", "GeneratorExit", Clings),
    ("can_be_left", "lingering", Lingers),
    ("can_be_aborted", "did not come back", Deaf),
]


@pytest.mark.parametrize("kind", [parrot.Parrot, Sound, OnlySync, OnlyAsync, Aborts, WithImages, Bare])
def test_a_good_provider_passes_all(kind: Any) -> None:
    report = check_provider(lambda url, transport: made(kind, url, transport), serve=parrot_server)
    assert report.ok, str(report)
    assert [result.check for result in report.results] == [check.name for check in provider_checks.CHECKS]


@pytest.mark.parametrize(("check", "words", "kind"), FAULTY, ids=[f"{n}-{c[0]}" for n, c in enumerate(FAULTY)])
def test_a_faulty_provider_fails_its_check_and_no_other(
    check: str, words: str, kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_subject, "PATIENCE", 3.0)
    Lingers.stop.clear()
    report = check_provider(lambda url, transport: made(kind, url, transport), serve=parrot_server)
    Lingers.stop.set()
    assert [result.check for result in report.failed] == [check], str(report)
    assert words in report.failed[0].reason


def test_every_check_has_a_faulty_provider() -> None:
    assert {check.name for check in provider_checks.CHECKS} == {case[0] for case in FAULTY}


def test_what_has_no_stream_is_said_to_have_none() -> None:
    by_name = {check.name: check for check in provider_checks.CHECKS}
    with pytest.raises(AssertionError, match="neither stream nor astream"):
        provider_checks.verify(
            by_name["is_a_provider"], lambda url, _: made(Silent, url, "stream"), serve=parrot_server
        )
    with pytest.raises(SkipTest):
        provider_checks.verify(by_name["can_be_aborted"], ask_parrot, serve=parrot_server)


def test_a_local_endpoint_keeps_what_it_was_asked() -> None:
    with parrot_server() as server:
        server.play(reply("one"), Fail(418, "no tea"))
        first = httpx.post(f"{server.url}/talk", json={"live": False}, headers={"X-Who": "me"})
        assert first.json()["said"] == "one"
        assert httpx.post(f"{server.url}/talk", json={"live": True}).text == "no tea"
        assert httpx.post(f"{server.url}/talk", json={}).status_code == 500
        assert [(one.path, one.body) for one in server.requests][:2] == [
            ("/talk", {"live": False}),
            ("/talk", {"live": True}),
        ]
        assert server.requests[0].headers["x-who"] == "me"
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.url


def openai_of(api: str) -> Any:
    return lambda url, transport: provider(
        "openai:gpt-4.1", base_url=f"{url}/v1", api_key=SECRET, transport=transport, retries=0, api=api
    )


def anthropic(url: str, transport: str) -> Any:
    return provider("anthropic:claude-sonnet-4-6", base_url=url, api_key=SECRET, transport=transport, retries=0)


SHIPPED = {"chat": openai_of("chat"), "responses": openai_of("responses"), "messages": anthropic}


@pytest.mark.parametrize("api", SHIPPED)
@pytest.mark.parametrize("check", provider_checks.CHECKS, ids=str)
def test_the_shipped_providers_pass(check: provider_checks.Check, api: str) -> None:
    provider_checks.verify(check, SHIPPED[api], serve=StrictServer)
