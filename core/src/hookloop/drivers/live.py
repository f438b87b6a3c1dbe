"""A running turn as others reach it: sending messages in, telling it to end. Safe from any thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hookloop.engine.effects import Post
from hookloop_hookspecs import Message, NoOpenTurn


class Live:
    """The post box and the stop button of one running turn."""

    def __init__(self, conversation: str) -> None:
        self.conversation = conversation
        self.cancelled = False
        self.caller = threading.get_ident()
        self.thread = self.caller  # which drives the turn now
        self.task: object = None  # the task that drives the turn, in an event loop
        self.wake: Callable[[], None] = _nothing
        self._messages: list[Message] = []
        self._leave = False
        self._closed = False
        self._lock = threading.Lock()

    def send(self, message: Message) -> None:
        """Put a user's message into the turn. Raises `NoOpenTurn` once the turn is over."""
        with self._lock:
            if self._closed:
                raise NoOpenTurn(f"no turn runs in conversation {self.conversation!r}")
            self._messages.append(message)

    def take(self, last: bool, now: float) -> Post:
        """What was sent since the last time; with `last` the box is closed if it is empty. `now` is the time, in seconds."""
        if not (last or self._leave or self._messages):
            return Post((), False, now)
        with self._lock:
            post = Post(tuple(self._messages), self._leave, now)
            self._messages.clear()
            if last and not post.messages:
                self._closed = True
            return post

    def close(self) -> None:
        """The turn is over."""
        with self._lock:
            self._closed = True

    def cancel(self, *, after_round: bool = False) -> None:
        """End the turn now, or at the end of the round that runs."""
        if after_round:
            self._leave = True
            return
        self.cancelled = True
        self.wake()


def _nothing() -> None:
    """Nobody waits."""
