"""One request on its way: what is sent, what was shown already, and whether somebody gave it up."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio

from hookloop_hookspecs import Delta, ProviderError, Reply, ThinkingDelta

from .assembly import Assembly
from .errors import Failing
from .reader import Reader
from .retry import LONGEST, policy


@dataclass(slots=True)
class Exchange:
    """Everything about one request that both ways of waiting share."""

    path: str
    body: bytes
    failing: Failing
    assembly: Callable[[str], Assembly]
    retries: int
    idle_timeout: float
    visible: bool = False
    attempt: int = 0
    thought_in: int = 0
    reader: Reader | None = None
    given_up: threading.Event = field(default_factory=threading.Event)
    _stream: Any = None

    def policy(self) -> dict[str, Any]:
        """When to try again."""
        return policy(self.retries, self._may_retry)

    def _may_retry(self, error: ProviderError) -> bool:
        asked = error.retry_after or 0.0
        return error.retryable and not self.visible and not self.given_up.is_set() and asked <= LONGEST

    def begin(self) -> None:
        """A new attempt. Raises `ProviderError` where the request was given up."""
        if self.given_up.is_set():
            raise self._aborted()
        self.attempt += 1
        self.reader = None

    def opened(self, response: Any) -> Reader:
        """The headers are there: from here on the idle timeout counts between chunks."""
        response.request.extensions["timeout"]["read"] = self.idle_timeout
        self.watch(response.extensions.get("network_stream"))
        self.reader = Reader(self.assembly, self.failing, response.headers)
        return self.reader

    def opened_reader(self) -> Reader:
        """The reader of this attempt. Only after `opened`."""
        if self.reader is None:
            raise self.failing.stream("no answer was read")
        return self.reader

    def shown(self, deltas: Iterable[Delta | Reply]) -> Iterator[Delta | Reply]:
        """What the caller sees of these. Thinking of a repeated attempt is not shown: it was, up to the failure."""
        for delta in deltas:
            if not isinstance(delta, ThinkingDelta):
                self.visible = True
            elif self.thought_in not in (0, self.attempt):
                continue
            else:
                self.thought_in = self.attempt
            yield delta

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Let nothing but `ProviderError` out; what comes after the answer's end is no failure."""
        try:
            yield
        except Exception as error:
            if self.reader is not None and self.reader.finished and not isinstance(error, ProviderError):
                return
            if self.given_up.is_set():
                raise self._aborted() from None
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> ProviderError:
        partial = self.reader.partial() if self.reader is not None else None
        return self.failing.raised(error, partial)

    def _aborted(self) -> ProviderError:
        return self.failing.error("the request was given up", "connection")

    def sleep(self, seconds: float) -> None:
        """Wait before the next attempt, in a sync run; giving up ends it."""
        self.given_up.wait(seconds)

    async def asleep(self, seconds: float) -> None:
        """Wait before the next attempt, in an async run; cancelling the task ends it."""
        await anyio.sleep(seconds)

    def watch(self, stream: Any) -> None:
        """Remember the connection that is being read, so that giving up can end a blocked read."""
        self._stream = stream
        if self.given_up.is_set():
            self._shut()

    def give_up(self) -> None:
        """End the request, from any thread."""
        self.given_up.set()
        self._shut()

    def _shut(self) -> None:
        connection = self._stream.get_extra_info("socket") if self._stream is not None else None
        if isinstance(connection, socket.socket):
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)
