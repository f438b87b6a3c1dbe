"""A small HTTP/1.1 server on threads: keep-alive, chunked answers, endings that no well-behaved server makes."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus

from .plan import Ending, Plan, Wait, writes

_TICK = 0.02
"""Seconds between two looks at a client while an answer is held back."""


class ClientLeft(Exception):
    """The client closed its connection in the middle of its answer; `sent` bytes had been written."""

    def __init__(self, sent: int) -> None:
        super().__init__(f"the client left after {sent} bytes")
        self.sent = sent


class BrokenRequestError(Exception):
    """What came is not HTTP, or ended in the middle of a request."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request as it came; header names are lower-case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Leave = Callable[[int, bool], None]
"""Called when a client leaves too early: with the bytes sent until then, and whether they were the whole answer."""

Handler = Callable[[HttpRequest], "tuple[Plan, Leave]"]
"""Answers a request with a plan, and with what to call when the client leaves too early."""


class Connection:
    """One client. `serve` answers its requests, one after the other, until it goes or an answer ends badly."""

    def __init__(self, sock: socket.socket, handler: Handler, closing: threading.Event) -> None:
        self._sock = sock
        self._handler = handler
        self._closing = closing
        self._buffer = b""
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def serve(self) -> None:
        """Run until the connection ends; the socket is closed then."""
        left: Leave = _ignore
        sent = 0
        try:
            while (request := self._read()) is not None:
                plan, left = self._handler(request)
                sent = self._write(plan)
                if plan.ending in ("reset", "close"):
                    break
        except ClientLeft as gone:
            left(gone.sent, False)
        except ConnectionResetError:
            left(sent, True)  # while idle: the client closed with a part of its answer unread
        except BrokenRequestError:
            return
        finally:
            self._sock.close()

    def shut(self) -> None:
        """Wake up whoever reads or writes; called from another thread."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # closed already, which is what is wanted

    def _read(self) -> HttpRequest | None:
        head = self._until(b"\r\n\r\n")
        if head is None:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        path, _, version = rest.partition(" ")
        if not version.startswith("HTTP/1."):
            raise BrokenRequestError(first)
        pairs = (line.partition(":") for line in lines)
        headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return HttpRequest(method, path, headers, self._chunked())
        return HttpRequest(method, path, headers, self._exactly(_number(headers.get("content-length", "0"), 10)))

    def _chunked(self) -> bytes:
        parts: list[bytes] = []
        while size := _number((self._until(b"\r\n") or b"").split(b";")[0].decode("latin-1"), 16):
            parts.append(self._exactly(size + 2)[:-2])
        self._until(b"\r\n")
        return b"".join(parts)

    def _until(self, mark: bytes) -> bytes | None:
        while (at := self._buffer.find(mark)) < 0:
            if not self._more():
                return None
        found, self._buffer = self._buffer[:at], self._buffer[at + len(mark) :]
        return found

    def _exactly(self, size: int) -> bytes:
        if len(self._buffer) < size:
            parts = [self._buffer]
            missing = size - len(self._buffer)
            while missing > 0:
                data = self._sock.recv(max(65536, missing))
                if not data:
                    raise BrokenRequestError("the client left in the middle of its request")
                parts.append(data)
                missing -= len(data)
            self._buffer = b"".join(parts)
        found, self._buffer = self._buffer[:size], self._buffer[size:]
        return found

    def _more(self) -> bool:
        data = self._sock.recv(65536)
        self._buffer += data
        return bool(data)

    def _write(self, plan: Plan) -> int:
        frames = list(writes(plan))
        while frames and not isinstance(first := frames[0], bytes):
            self._wait(first, 0)
            del frames[0]
        sent, pending = 0, [_head(plan)]
        for frame in frames:
            if isinstance(frame, bytes):
                pending.append(_framed(frame, plan))
            else:
                sent += self._send(pending, sent)
                pending.clear()
                self._wait(frame, sent)
        if plan.chunked and plan.ending in ("end", "eof"):
            pending.append(b"0\r\n\r\n")
        sent += self._send(pending, sent)
        self._end(plan.ending)
        return sent

    def _send(self, parts: list[bytes], before: int) -> int:
        data = b"".join(parts)
        try:
            self._sock.sendall(data)
        except OSError as error:
            raise ClientLeft(before) from error
        return len(data)

    def _wait(self, until: Wait, sent: int) -> None:
        deadline = time.monotonic() + (until if isinstance(until, int | float) else 0)
        while not self._closing.is_set():
            if isinstance(until, threading.Event):
                if until.wait(_TICK):
                    return
            elif (remaining := deadline - time.monotonic()) <= 0 or self._closing.wait(min(_TICK, remaining)):
                return
            self._look(sent)

    def _look(self, sent: int) -> None:
        try:
            self._sock.setblocking(False)
            gone = self._sock.recv(1, socket.MSG_PEEK) == b""
        except BlockingIOError:
            gone = False
        except OSError as error:
            raise ClientLeft(sent) from error
        finally:
            self._sock.setblocking(True)
        if gone:
            raise ClientLeft(sent)

    def _end(self, ending: Ending) -> None:
        if ending == "reset":
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _number(text: str, base: int) -> int:
    try:
        return int(text, base)
    except ValueError as error:
        raise BrokenRequestError(f"not a length: {text!r}") from error


def _framed(data: bytes, plan: Plan) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if plan.chunked and data else data


def _head(plan: Plan) -> bytes:
    if not plan.status:
        return b""
    try:
        reason = HTTPStatus(plan.status).phrase
    except ValueError:
        reason = "Unknown"
    lines = [f"HTTP/1.1 {plan.status} {reason}", *(f"{name}: {value}" for name, value in plan.headers.items())]
    if plan.chunked:
        lines.append("transfer-encoding: chunked")
    else:
        lines.append(f"content-length: {len(plan.body) + (plan.ending in ('reset', 'close'))}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")


def _ignore(sent: int, written: bool) -> None:
    """Nobody to tell: no answer was under way."""


class Listener:
    """Accepts connections on a free port of 127.0.0.1, each served by a daemon thread of its own."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self._live: dict[Connection, threading.Thread] = {}
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="strict-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End every connection and every thread."""
        self._closing.set()
        try:
            self._socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            self._poke()
        self._thread.join()
        self._socket.close()
        with self._lock:
            live = list(self._live.items())
        for connection, _ in live:
            connection.shut()
        for _, thread in live:
            thread.join(5)

    def _poke(self) -> None:
        socket.create_connection(("127.0.0.1", self.port)).close()

    def _accept(self) -> None:
        while not self._closing.is_set():
            try:
                sock, _ = self._socket.accept()
            except OSError:
                return
            self._start(sock)

    def _start(self, sock: socket.socket) -> None:
        connection = Connection(sock, self._handler, self._closing)
        thread = threading.Thread(target=self._serve, args=(connection,), name="strict-server-client", daemon=True)
        with self._lock:
            self._live[connection] = thread
        thread.start()

    def _serve(self, connection: Connection) -> None:
        try:
            connection.serve()
        finally:
            with self._lock:
                self._live.pop(connection, None)
