"""The edge: the SDK's clients, made when first needed, one for sync calls and one for each event loop.

Requests go through the SDK's `post` as JSON text that is written already: its typed methods rebuild and write the
whole history in every round. Answers are read as raw bytes; the SDK's own retries are off, its models are never built.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, TypeVar

import httpx2
from anyio.lowlevel import current_token

import openai
from hookloop_hookspecs import Delta, Reply

from .exchange import Exchange
from .watched import opening, watch

RAW: Final[openai.RequestOptions] = {"headers": {"X-Stainless-Raw-Response": "stream"}}
"""Asks the SDK to hand the response over unread."""

Client = TypeVar("Client", openai.OpenAI, openai.AsyncOpenAI)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where requests go and what they carry. Times are in seconds.

    `ambient` says that the SDK's own variables (organization, project, headers) are meant for this endpoint.
    """

    base_url: str
    api_key: str = field(repr=False)
    organization: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    request_timeout: float = 600.0
    connect_timeout: float = 10.0
    ambient: bool = True

    def arguments(self) -> dict[str, Any]:
        """What both clients of the SDK are made with."""
        return {
            "api_key": self.api_key or "none",
            "base_url": self.base_url,
            "organization": self.organization,
            "default_headers": self._unwanted() | dict(self.headers),
            "max_retries": 0,
            "timeout": httpx2.Timeout(self.request_timeout, connect=self.connect_timeout),
        }

    def trust(self) -> ssl.SSLContext:
        """What the client trusts. Reading the authorities takes longer than a request, and a plain address has none."""
        return authorities() if self.base_url.startswith("https:") else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    def settled(self, client: Client) -> Client:
        """The client without what the SDK took from the environment for OpenAI alone."""
        if not self.ambient:
            client.organization = self.organization
            client.project = None
        return client

    def _unwanted(self) -> dict[str, Any]:
        """Headers that the environment adds for OpenAI, taken out."""
        lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").split("\n") if not self.ambient else []
        return {line.partition(":")[0].strip(): openai.Omit() for line in lines if ":" in line}


@cache
def authorities() -> ssl.SSLContext:
    """The HTTP library's own choice of trusted authorities, read once."""
    return httpx2.create_ssl_context()


class SyncTransport:
    """Sends from plain threads; one client for all of them."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._lock = threading.Lock()
        self._client: openai.OpenAI | None = None

    def attempt(self, exchange: Exchange) -> Iterator[Delta | Reply]:
        """Send once; deltas, then the reply. Raises `ProviderError`."""
        exchange.begin()
        with exchange.guarded(), closing(self._post(exchange)) as response:
            reader = exchange.opened(response)
            for chunk in response.iter_bytes():
                yield from exchange.shown(reader.feed(chunk))
        with exchange.guarded():
            yield from exchange.shown(exchange.opened_reader().end())

    def _post(self, exchange: Exchange) -> httpx2.Response:
        with opening(exchange):
            client = self.client()
            return client.post(exchange.path, content=exchange.body, cast_to=httpx2.Response, options=RAW)

    def client(self) -> openai.OpenAI:
        """The client, made now if there is none."""
        with self._lock:
            if self._client is None:
                http = openai.DefaultHttpxClient(verify=self._endpoint.trust())
                watch(http)
                self._client = self._endpoint.settled(openai.OpenAI(http_client=http, **self._endpoint.arguments()))
            return self._client

    def close(self) -> None:
        """Close the client's connections; a later call makes new ones."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()


class AsyncTransport:
    """Sends from event loops; connections belong to the loop that made them, so each loop has its own client."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._open: dict[object, tuple[openai.AsyncOpenAI, AsyncGenerator[openai.AsyncOpenAI, None]]] = {}

    async def attempt(self, exchange: Exchange) -> AsyncGenerator[Delta | Reply, None]:
        """Send once; deltas, then the reply. Raises `ProviderError`."""
        exchange.begin()
        with exchange.guarded():
            response = await self._post(exchange)
            try:
                reader = exchange.opened(response)
                async for chunk in response.aiter_bytes():
                    for delta in exchange.shown(reader.feed(chunk)):
                        yield delta
            finally:
                await response.aclose()
        with exchange.guarded():
            for delta in exchange.shown(exchange.opened_reader().end()):
                yield delta

    async def _post(self, exchange: Exchange) -> httpx2.Response:
        client = await self.client()
        return await client.post(exchange.path, content=exchange.body, cast_to=httpx2.Response, options=RAW)

    async def client(self) -> openai.AsyncOpenAI:
        """The running loop's client. A loop that ends finishes its async generators, and with them this client."""
        loop = current_token().native_token
        if loop not in self._open:
            keeper = self._keep(loop)
            self._open[loop] = (await anext(keeper), keeper)
        return self._open[loop][0]

    async def _keep(self, loop: object) -> AsyncGenerator[openai.AsyncOpenAI, None]:
        http = openai.DefaultAsyncHttpxClient(verify=self._endpoint.trust())
        client = self._endpoint.settled(openai.AsyncOpenAI(http_client=http, **self._endpoint.arguments()))
        try:
            yield client
        finally:
            self._open.pop(loop, None)
            await client.close()

    async def aclose(self) -> None:
        """Close the running loop's client; a later call makes a new one."""
        _, keeper = self._open.get(current_token().native_token, (None, None))
        if keeper is not None:
            await keeper.aclose()
