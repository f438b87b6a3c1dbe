"""Keeping claims alive: while a turn waits for a model or a tool, its lease on the conversation is renewed.

Sync turns of an agent share one thread for it, made with the first turn and ended with the agent; async turns use a timer of
their event loop and no thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from .workers import join


class Heart:
    """Calls `renew` of every watched turn, every `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._turns: set[Callable[[], None]] = set()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def watch(self, renew: Callable[[], None]) -> None:
        """A turn runs: renew its lease from now on."""
        with self._lock:
            self._turns.add(renew)
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._beat, name="hookloop-heart", daemon=True)
                try:
                    self._thread.start()
                except RuntimeError:
                    self._thread = None  # there can be none now; the next turn tries again
                    raise

    def forget(self, renew: Callable[[], None]) -> None:
        """The turn is over."""
        with self._lock:
            self._turns.discard(renew)

    def _beat(self) -> None:
        while not self._stop.wait(self._seconds):
            with self._lock:
                turns = list(self._turns)
            for renew in turns:
                renew()

    def close(self) -> None:
        """End the thread."""
        self._stop.set()
        if self._thread is not None:
            join(self._thread, time.monotonic() + self._seconds)
