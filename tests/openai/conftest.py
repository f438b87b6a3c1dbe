"""How the tests of this room ask: one provider, one request, in each way, everything closed behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from hookloop.testing.server import StrictServer
from hookloop_hookspecs import CallDelta, Delta, Message, ModelRequest, Reply, TextDelta, ThinkingDelta
from hookloop_openai import OpenAIProvider, factories

WAYS = [f"{mode}-{transport}" for mode in ("sync", "async") for transport in ("stream", "whole")]


@dataclass
class Answer:
    """What came of one request."""

    outputs: list[Delta | Reply] = field(default_factory=list)

    @property
    def reply(self) -> Reply:
        last = self.outputs[-1]
        assert isinstance(last, Reply)
        return last

    @property
    def deltas(self) -> list[Delta]:
        return [output for output in self.outputs if not isinstance(output, Reply)]

    @property
    def text(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, TextDelta))

    @property
    def thinking(self) -> str:
        return "".join(delta.text for delta in self.deltas if isinstance(delta, ThinkingDelta))

    @property
    def arguments(self) -> list[str]:
        pieces: dict[int, str] = {}
        for delta in self.deltas:
            if isinstance(delta, CallDelta):
                pieces[delta.index] = pieces.get(delta.index, "") + delta.raw
        return [pieces[index] for index in sorted(pieces)]


def request_of(messages: Sequence[Message] | str = "hi", **fields: Any) -> ModelRequest:
    """A request with these messages; a text is one user message."""
    listed = [Message.user(messages)] if isinstance(messages, str) else messages
    return ModelRequest(**{"model": "m", "system": "", "messages": listed, **fields})


@dataclass
class Way:
    """One of the four ways to ask."""

    name: str

    @property
    def transport(self) -> str:
        return self.name.partition("-")[2]

    @property
    def is_async(self) -> bool:
        return self.name.startswith("async")

    def provider(
        self, server: StrictServer, profile: str = "openai", model: str = "gpt-4.1", **options: Any
    ) -> OpenAIProvider:
        """A provider of this way that asks the server."""
        factory = getattr(factories, profile)
        given = {"base_url": f"{server.url}/v1", "api_key": "test-key-1", "transport": self.transport, "retries": 0}
        made = factory(model, factory.Options(**{**given, **options}))
        assert isinstance(made, OpenAIProvider)
        return made

    def ask(self, server: StrictServer, request: ModelRequest | None = None, **options: Any) -> Answer:
        """Ask once with a provider of its own."""
        return self.run(self.provider(server, **options), [request or request_of()])[-1]

    def run(self, provider: OpenAIProvider, requests: Sequence[ModelRequest]) -> list[Answer]:
        """Ask one after another, then close the provider."""
        return asyncio.run(_arun(provider, requests)) if self.is_async else _run(provider, requests)


def _run(provider: OpenAIProvider, requests: Sequence[ModelRequest]) -> list[Answer]:
    try:
        return [Answer(list(provider.stream(request))) for request in requests]
    finally:
        provider.close()


async def _arun(provider: OpenAIProvider, requests: Sequence[ModelRequest]) -> list[Answer]:
    try:
        return [Answer([output async for output in provider.astream(request)]) for request in requests]
    finally:
        await provider.aclose()


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    """Each of the four ways."""
    return Way(request.param)


@pytest.fixture(params=["sync-stream", "async-stream"])
def streaming(request: pytest.FixtureRequest) -> Way:
    """The two ways that stream, for what only a stream can do."""
    return Way(request.param)


@pytest.fixture
def asking() -> Callable[..., ModelRequest]:
    """Makes requests."""
    return request_of


@pytest.fixture
def ways() -> Callable[[str], Way]:
    """Makes a way from its name."""
    return Way


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retries without waiting."""
    monkeypatch.setattr("hookloop_openai.retry._backoff", lambda state: 0.0)
