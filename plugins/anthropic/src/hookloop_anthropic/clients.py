"""The SDK's clients: one for all sync calls, one for each event loop; made when needed, closed with the provider."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary, WeakSet

import httpx2

import anthropic
from hookloop_hookspecs import ProviderError

from .errors import NAME

Settings: TypeAlias = Mapping[str, Any]


@cache
def authorities() -> ssl.SSLContext:
    """Whom to trust, read once: reading the certificates takes longer than all else in making a client."""
    return httpx2.create_ssl_context()


@dataclass(slots=True, eq=False)
class Live:
    """A sync request under way. `aborted` is set from another thread; `response` is there once headers have come."""

    aborted: threading.Event = field(default_factory=threading.Event)
    response: httpx2.Response | None = None

    @property
    def stream(self) -> Any:
        """The connection that the answer comes over, once it is known."""
        return self.response.extensions.get("network_stream") if self.response is not None else None

    def told(self, error: ProviderError) -> ProviderError:
        """The error, or the one that says that somebody broke the request off, which asking again does not mend."""
        if not self.aborted.is_set():
            return error
        return ProviderError("the request was broken off", provider=NAME, kind="connection", partial=error.partial)


_LIVE: ContextVar[Live | None] = ContextVar("hookloop_anthropic_live", default=None)


class SyncClient:
    """One SDK client for all threads, and the requests that are under way in it."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._client: anthropic.Anthropic | None = None
        self._streams: WeakSet[Any] = WeakSet()
        self._live: dict[int, Live] = {}

    def get(self) -> anthropic.Anthropic:
        """The client, made now if there is none."""
        with self._lock:
            if self._client is None:
                http = anthropic.DefaultHttpxClient(verify=authorities(), event_hooks={"request": [self._watch]})
                self._client = anthropic.Anthropic(**self._settings, http_client=http)
            return self._client

    def close(self) -> None:
        """Close the client's connections; a later call makes a new one."""
        with self._lock:
            client, self._client = self._client, None
        if client is not None:
            client.close()

    @contextlib.contextmanager
    def live(self, token: object) -> Iterator[Live]:
        """Register a request under the identity of `token` while it is asked and read."""
        live = Live()
        self._live[id(token)] = live
        try:
            yield live
        finally:
            if self._live.get(id(token)) is live:
                del self._live[id(token)]

    @contextlib.contextmanager
    def sending(self, live: Live) -> Iterator[None]:
        """Mark the connections that are opened in this block as made for `live`. Raises where it was broken off."""
        if live.aborted.is_set():
            raise live.told(ProviderError("", provider=NAME))
        reset = _LIVE.set(live)
        try:
            yield
        finally:
            _LIVE.reset(reset)

    def abort(self, token: object) -> None:
        """Break off the request registered under `token`, if there is one.

        While its headers have not come nobody says which connection it waits on; then all that no other answer comes
        over are broken, and requests that wait on those are asked again.
        """
        live = self._live.get(id(token))
        if live is None:
            return
        live.aborted.set()
        others = [other.stream for other in list(self._live.values()) if other is not live]
        with self._lock:
            waiting = [stream for stream in self._streams if not any(stream is other for other in others)]
        for stream in [live.stream] if live.stream is not None else waiting:
            _break(stream)

    def _watch(self, request: httpx2.Request) -> None:
        request.extensions = {**request.extensions, "trace": _tracer(_LIVE.get(), self._keep)}

    def _keep(self, stream: Any) -> None:
        with self._lock:
            self._streams.add(stream)


def _tracer(live: Live | None, keep: Callable[[Any], None]) -> Callable[[str, Mapping[str, Any]], None]:
    def trace(name: str, info: Mapping[str, Any]) -> None:
        if name.endswith(("connect_tcp.complete", "start_tls.complete")):
            keep(info["return_value"])
            if live is not None and live.aborted.is_set():
                _break(info["return_value"])

    return trace


def _break(stream: Any) -> None:
    """Shut a connection down, which wakes a thread that reads from it; closing alone would not."""
    found = stream.get_extra_info("socket")
    with contextlib.suppress(OSError):  # it may be closed already
        if found is not None:
            found.shutdown(socket.SHUT_RDWR)


class AsyncClients:
    """An SDK client for each event loop: connections belong to the loop that opened them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._kept: WeakKeyDictionary[Any, tuple[AsyncGenerator[Any], anthropic.AsyncAnthropic]] = WeakKeyDictionary()

    async def get(self) -> anthropic.AsyncAnthropic:
        """The running loop's client, made now if there is none."""
        loop = asyncio.get_running_loop()
        found = self._kept.get(loop)
        if found is None:
            http = anthropic.DefaultAsyncHttpxClient(verify=authorities())
            client = anthropic.AsyncAnthropic(**self._settings, http_client=http)
            keeper = _closing(client)
            found = keeper, client
            with self._lock:
                self._kept[loop] = found
            await anext(keeper)
        return found[1]

    async def aclose(self) -> None:
        """Close the running loop's client. Those of other loops are closed when their loop shuts down."""
        with self._lock:
            found = self._kept.pop(asyncio.get_running_loop(), None)
        if found is not None:
            await found[0].aclose()


async def _closing(client: anthropic.AsyncAnthropic) -> AsyncGenerator[None]:
    """Closes the client when the loop shuts its async generators down, so that no connection outlives its loop."""
    try:
        yield
    finally:
        await client.close()
