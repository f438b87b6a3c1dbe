"""Connections that know who reads from them, so that a read that waits for headers can be ended from another thread.

The HTTP library shows a connection only with the response's headers, which may come minutes after the request; its
connections are made through a network backend, and that is where they are seen earlier.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

from .exchange import Exchange


class _Opening(threading.local):
    exchange: Exchange | None = None


_opening = _Opening()


@contextmanager
def opening(exchange: Exchange) -> Iterator[None]:
    """Within this block the thread's reads belong to the exchange."""
    _opening.exchange = exchange
    try:
        yield
    finally:
        _opening.exchange = None


class WatchedStream(httpcore2.NetworkStream):
    """A connection that tells the waiting exchange of itself before each read."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        exchange = _opening.exchange
        if exchange is not None:
            exchange.watch(self._stream)
        return self._stream.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, timeout)

    def close(self) -> None:
        self._stream.close()

    def start_tls(self, *args: Any, **kwargs: Any) -> httpcore2.NetworkStream:
        return WatchedStream(self._stream.start_tls(*args, **kwargs))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class WatchedBackend(httpcore2.NetworkBackend):
    """Makes watched connections."""

    def __init__(self, backend: httpcore2.NetworkBackend) -> None:
        self._backend = backend

    def connect_tcp(self, *args: Any, **kwargs: Any) -> httpcore2.NetworkStream:
        return WatchedStream(self._backend.connect_tcp(*args, **kwargs))

    def connect_unix_socket(self, *args: Any, **kwargs: Any) -> httpcore2.NetworkStream:
        return WatchedStream(self._backend.connect_unix_socket(*args, **kwargs))

    def sleep(self, seconds: float) -> None:
        self._backend.sleep(seconds)


def watch(client: httpx2.Client) -> None:
    """Make the client's connections watched ones.

    The library has no public way to give a client a network backend and keep its handling of proxies; where its inside
    is not as expected the client is left alone, and only reads after the headers can be ended early.
    """
    transports: Iterable[Any] = (client._transport, *client._mounts.values())
    for transport in transports:
        pool: Any = getattr(transport, "_pool", None)
        backend = getattr(pool, "_network_backend", None)
        if isinstance(backend, httpcore2.NetworkBackend):
            pool._network_backend = WatchedBackend(backend)
