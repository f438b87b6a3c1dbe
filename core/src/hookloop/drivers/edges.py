"""The async edges that both drivers use. Apart, so that a sync program loads no event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from hookloop.dispatch import Awaiting
from hookloop.engine.effects import Done
from hookloop_hookspecs import ModelRequest, Reply
from hookloop_hookspecs.redact import words

from .base import last_reply, whole
from .jobs import Body, Invoke, Pause, TimedOut


def cancelled() -> bool:
    """Was this task cancelled from outside? If not, a CancelledError is somebody's own doing, and an error like any other."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


T = TypeVar("T")


async def contained(work: Awaitable[T]) -> T:
    """Wait for somebody else's coroutine, whose failure may not end the event loop that it shares with others.

    Raises its exceptions, and a `RuntimeError` with the cause in place of `SystemExit` and the like: those would end the loop.
    A real cancel passes. So does a Ctrl-C, which arrives in the main thread alone: elsewhere it is the coroutine's own doing.
    """
    task = _current()
    try:
        return await work
    except (Exception, asyncio.CancelledError):
        raise
    except BaseException as error:
        closed = (
            isinstance(error, GeneratorExit) and _current() is not task
        )  # this coroutine itself, by whoever dropped it
        pressed = isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread()
        if closed or pressed:
            raise
        raise RuntimeError(f"it raised {words(error)}") from error


def _current() -> asyncio.Task[Any] | None:
    try:
        return asyncio.current_task()
    except RuntimeError:  # no event loop runs here any more
        return None


class Stopped(RuntimeError):
    """What a thread raised that may not travel through futures as it is: it would end the coroutine that waits."""

    KINDS = (StopIteration, asyncio.CancelledError, GeneratorExit)

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error


async def aplay(
    body: Body, invoke: Callable[[Invoke], Awaitable[Any]], pause: Callable[[float], Awaitable[object]]
) -> Done:
    """The async edge of a tool's body."""
    step = next(body)
    while True:
        try:
            if isinstance(step, Pause):
                await pause(step.seconds)
                step = body.send(None)
                continue
            try:
                value = await invoke(step)
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and cancelled():
                    raise
                step = body.throw(error.error if isinstance(error, Stopped) else error)
            else:
                step = body.send(value)
        except StopIteration as stop:
            done: Done = stop.value
            return done


async def awaited(step: Awaiting) -> Any:
    """Wait for a plugin's coroutine, within its timeout. Raises `TimeoutError` that says how long it was waited for."""
    limit = asyncio.timeout(step.timeout)
    try:
        async with limit:
            return await contained(step.awaitable)
    except TimeoutError:
        if limit.expired():
            raise TimeoutError(f"no answer within {step.timeout:g} s") from None
        raise
    except asyncio.CancelledError as error:
        if cancelled():
            raise
        raise RuntimeError("it cancelled itself") from error


class Held:
    """A toolset with async doors, held by a task of its own: opened and closed in one task, as its task groups need it."""

    def __init__(self, toolset: Any) -> None:
        self.toolset = toolset
        self._leave = asyncio.Event()
        self._opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.ensure_future(self._hold())

    async def _hold(self) -> None:
        try:
            await contained(_called(self.toolset.open))
        except BaseException as error:
            self._opened.set_exception(error)
            return
        self._opened.set_result(None)
        await self._leave.wait()
        await contained(_called(self.toolset.close))

    @classmethod
    async def open(cls, toolset: Any) -> Held:
        """Open a toolset; it is open when this returns. Raises what its `open` raises."""
        held = cls(toolset)
        await held._opened
        return held

    async def close(self) -> None:
        """Close it. Raises what its `close` raises."""
        self._leave.set()
        await self._task


async def _called(door: Callable[[], Any]) -> None:
    """Call a function that may be async; whatever it raises comes out of here."""
    value = door()
    if inspect.isawaitable(value):
        await value


async def complete(provider: Any, request: ModelRequest) -> Reply:
    """Read a provider's async stream to its reply."""
    if not callable(getattr(provider, "astream", None)):
        return await asyncio.to_thread(lambda: last_reply(provider, provider.stream(request)))
    reply = None
    async for piece in provider.astream(request):
        reply = piece
    return whole(provider, reply)


async def call_async(step: Invoke, grace: float) -> Any:
    """Await an async tool, within its timeout. One that does not let itself be cancelled is left after `grace` seconds."""
    if step.timeout is None:
        return await step.call()
    task = asyncio.ensure_future(step.call())
    try:
        await asyncio.wait({task}, timeout=step.timeout)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task}, timeout=grace)
        raise
    if task.done():
        return task.result()
    task.cancel()
    await asyncio.wait({task}, timeout=grace)
    raise TimedOut(runs_on=not task.done())


async def sleep_async(seconds: float) -> None:
    """Wait between attempts."""
    await asyncio.sleep(seconds)
