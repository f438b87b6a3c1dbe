"""The portal: one thread with an event loop per agent, made when a sync run meets something async, ended with the agent."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal


class Portal:
    """Lazily started; safe from any thread."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._lock = threading.Lock()
        self._closed = False

    def start(self, function: Callable[[], Awaitable[Any]]) -> Future[Any]:
        """Run a coroutine function on the portal's loop, in a copy of the caller's context."""
        from anyio.from_thread import start_blocking_portal  # here, so that a sync program loads no event loop

        with self._lock:
            if self._closed:
                raise RuntimeError("the agent is closed")
            if self._portal is None:
                self._portal = self._stack.enter_context(start_blocking_portal("asyncio"))
        return self._portal.start_task_soon(function)

    @property
    def started(self) -> bool:
        """Has anything async been run?"""
        return self._portal is not None

    def close(self) -> None:
        """End the thread."""
        with self._lock:
            self._closed = True
        self._stack.close()
