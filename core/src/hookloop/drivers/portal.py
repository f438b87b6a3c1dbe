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
    """Lazily started; safe from any thread. Where somebody's own task ended the event loop, the next call gets another one."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._closed = False

    def start(self, function: Callable[[], Awaitable[Any]]) -> Future[Any]:
        """Run a coroutine function on the portal's loop, in a copy of the caller's context.

        The future raises what the coroutine raises; what is no `Exception` comes as a `RuntimeError` with its cause.
        """
        from .edges import contained

        with self._lock:
            if self._closed:
                raise RuntimeError("the agent is closed")
            if self._portal is None or self._thread is None or not self._thread.is_alive():
                self._portal, self._thread = self._begin()
            portal = self._portal
        return portal.start_task_soon(lambda: contained(function()))

    def _begin(self) -> tuple[BlockingPortal, threading.Thread]:
        from anyio.from_thread import start_blocking_portal  # here, so that a sync program loads no event loop

        portal = self._stack.enter_context(start_blocking_portal("asyncio"))
        return portal, portal.call(threading.current_thread)

    @property
    def started(self) -> bool:
        """Has anything async been run?"""
        return self._portal is not None

    def close(self, grace: float) -> list[str]:
        """End the thread; waits at most `grace` seconds for what runs on it. Gives back what does not end, in words."""
        with self._lock:
            self._closed = True
        if self._portal is None:
            return []
        closing = threading.Thread(target=self._stack.close, name="hookloop-closing", daemon=True)
        closing.start()
        closing.join(grace)
        return ["something async does not end, though the agent is closed"] if closing.is_alive() else []
