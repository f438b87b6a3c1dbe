"""A stretch of wire between a store and its server, that can be cut at the worst moment."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qs, urlsplit, urlunsplit

SIZE = 65536


@dataclass(frozen=True)
class Address:
    """Where a server listens: host and port, or a socket file."""

    host: str
    port: int

    def connect(self) -> socket.socket:
        """A connection to it."""
        if not self.host.startswith("/"):
            return socket.create_connection((self.host, self.port))
        made = socket.socket(socket.AF_UNIX)
        made.connect(f"{self.host}/.s.PGSQL.{self.port}")
        return made


class Wire:
    """Passes bytes on, both ways.

    Once `cut_at` passes to the server, the server gets it and whatever it answers is lost with the connection. While `down`,
    all connections are cut and nobody gets through.
    """

    def __init__(self, server: Address) -> None:
        self._server = server
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut_at = b""
        self.cuts = 0
        self.down = False
        self._open: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def cut(self) -> None:
        """Cut all connections."""
        for end in self._open:
            _cut(end)

    def close(self) -> None:
        """Cut all, and listen no more."""
        self.down = True
        _cut(self._listener)
        self.cut()
        for thread in self._threads:
            thread.join(10)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                self._listener.close()
                return
            if self.down:
                client.close()
            else:
                self._pair(client)

    def _pair(self, client: socket.socket) -> None:
        server = self._server.connect()
        self._open += [client, server]
        lost = threading.Event()
        for work in (self._there, self._back):
            self._threads.append(threading.Thread(target=work, args=(client, server, lost)))
            self._threads[-1].start()

    def _there(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while data := client.recv(SIZE):
                if self.cut_at and self.cut_at in data:
                    lost.set()
                    self.cut_at, self.cuts = b"", self.cuts + 1
                server.sendall(data)
        _cut(server)
        client.close()

    def _back(self, client: socket.socket, server: socket.socket, lost: threading.Event) -> None:
        with suppress(OSError):
            while (data := server.recv(SIZE)) and not lost.is_set():
                client.sendall(data)
        _cut(client)
        server.close()


def _cut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)


@contextmanager
def wired(store: Any) -> Iterator[tuple[Wire, Any]]:
    """A wire to a store's server, and the store at its other end."""
    parts = urlsplit(store.url)
    query = parse_qs(parts.query)
    host = query.get("host", [parts.hostname or "127.0.0.1"])[0]
    wire = Wire(Address(host, parts.port or int(query.get("port", ["5432"])[0])))
    user = parts.netloc.rpartition("@")[0]
    place = f"{user}@127.0.0.1:{wire.port}" if user else f"127.0.0.1:{wire.port}"
    url = urlunsplit((parts.scheme, place, parts.path, "", ""))
    kind = type(store.make())
    try:
        yield wire, replace(store, url=url, make=lambda: kind(url), reopen=lambda closed: kind(url))
    finally:
        wire.close()
