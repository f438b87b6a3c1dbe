"""The async driver (asyncio): the caller's task advances the turn; async tools are tasks, sync tools run in worker threads.

Storing and telling are shielded: a cancel that comes meanwhile is kept and thrown where the turn next waits for something.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

import anyio

from hookloop.engine.effects import (
    Ask,
    Done,
    Effect,
    Emit,
    Inbox,
    Job,
    Next,
    NextResult,
    Now,
    Sleep,
    Start,
    StopJobs,
)
from hookloop.hooks import Awaiting, Blocking, Waits
from hookloop_hookspecs import ModelRequest, Outcome, ProviderError, Reply
from hookloop_hookspecs.errors import Cancelled
from hookloop_hookspecs.events import Event

from .base import WAITS, Base, foreign, last_reply, no_abort, reference_of, whole
from .edges import Stopped, aplay, awaited, call_async, complete, sleep_async
from .jobs import Invoke, Schedule, TimedOut, runs_on
from .workers import Task, Workers


class AsyncRun(Base):
    """A turn as a stream of events: `async with agent.astream(…) as events: async for event in events: …`.

    Enter and leave it in one task. `outcome` is there at the end, also when the task was cancelled. `send` and `cancel` may
    be called from any thread or task.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._done: asyncio.Queue[Done] = asyncio.Queue()
        self._schedule = Schedule((), 1)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._threads: dict[int, Task] = {}
        self._stream: Any = None
        self._provider_now: Any = None
        self._scope: anyio.CancelScope | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gone: BaseException | None = None
        self._woken = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._renewing: asyncio.Future[None] | None = None
        self.live.wake = self._wake

    async def __aenter__(self) -> Self:
        self._require_new()
        self._enter()
        self._loop = asyncio.get_running_loop()
        self.live.task = asyncio.current_task()
        self._schedule_renewal()
        return self

    def _schedule_renewal(self) -> None:
        if self._leased and self._loop is not None:
            self._timer = self._loop.call_later(self.run.setup.lease / 3, self._renew)

    def _renew(self) -> None:
        """Renew the lease beside the turn. A store that fails here is noticed at the turn's next append."""
        waits = self._renewal()
        if waits is not None:
            self._renewing = asyncio.ensure_future(self._renewed(waits))
        self._schedule_renewal()

    async def _renewed(self, waits: Waits) -> None:
        step, over = _first(waits)
        if not over:
            with suppress(Exception):
                await self._play(waits, step)

    def _over(self, outcome: Outcome | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super()._over(outcome)

    async def __aexit__(self, *_exc: object) -> None:
        if not self.finished:
            self._wish = True
            while await self._step() is not None:
                pass

    def __aiter__(self) -> AsyncIterator[Event]:
        self._require_entered()
        return self

    async def __anext__(self) -> Event:
        event = await self._step()
        if event is None:
            raise StopAsyncIteration
        return event

    async def result(self) -> Outcome:
        """Read the stream to its end and give back the outcome. Raises what ended the turn, where that was an error."""
        self.run.heard = self._heard
        async with self:
            while await self._step() is not None:
                pass
        assert self.outcome is not None
        return self.outcome

    async def _step(self) -> Event | None:
        """Advance to the next event; None at the end. A task's own cancel is raised again, bare, once all is stored."""
        if self.finished:
            return None
        while True:
            effect = self._advance()
            if effect is None:
                await self._drop_stream()
                if self._renewing is not None:
                    await asyncio.wait({self._renewing})
                if self._gone is not None:
                    gone, self._gone = self._gone, None
                    raise gone
                return None
            await self._settle(effect)
            if isinstance(effect, Emit):
                return effect.event

    async def _settle(self, effect: Effect[Any]) -> None:
        """Perform one effect and keep its answer, or what is to be thrown in its place."""
        try:
            if self._may_leave(effect):
                self._answer = await self._cancellable(effect)
            else:
                self._answer = await self._shielded(effect)
        except asyncio.CancelledError as gone:
            self._gone = gone
            self._leaving, self._error = True, Cancelled()
            await self._drop_stream()
        except BaseException as error:
            self._error = error

    async def _cancellable(self, effect: Effect[Any]) -> Any:
        if self._wished or self._gone is not None:
            await self._drop_stream()
            self._leave()
        if isinstance(effect, Ask | Start):  # what they begin is waited for later, so there is nothing to leave
            return await self._perform(effect)
        with anyio.CancelScope() as self._scope:
            return await self._perform(effect)
        await self._drop_stream()
        return self._leave()

    async def _shielded(self, effect: Effect[Any]) -> Any:
        """Perform an effect that a cancel may not interrupt; the cancel is kept for later."""
        if isinstance(effect, Now | Inbox):
            return self._instant(effect)
        if isinstance(effect, Emit):
            if not self._heard:
                return None
            waits: Waits | None = self._tell(effect.event)
        else:
            waits = self._waits(effect)
        if waits is not None:
            step, over = _first(waits)
            return step if over else await self._to_end(self._play(waits, step))
        return (
            await self._to_end(self._perform(effect))
            if isinstance(effect, (*WAITS, StopJobs))
            else self._instant(effect)
        )

    async def _to_end(self, work: Any) -> Any:
        """Wait for this whatever happens to the task."""
        task = asyncio.ensure_future(work)
        with anyio.CancelScope(shield=True):
            while not task.done():
                try:
                    await asyncio.wait({task})
                except asyncio.CancelledError as gone:
                    self._gone = gone
                    self._woken.set()
        return task.result()

    def _wake(self) -> None:
        """Somebody cancelled, from any thread: leave what the turn waits for."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._leave_scope)

    def _leave_scope(self) -> None:
        self._woken.set()
        if self._scope is not None and not self._leaving:
            self._scope.cancel()

    async def _perform(self, effect: Effect[Any]) -> Any:
        if isinstance(effect, Next):
            return await self._next()
        if isinstance(effect, NextResult):
            return await self._next_result()
        waits = self._waits(effect)
        if waits is not None:
            step, over = _first(waits)
            return step if over else await self._play(waits, step)
        match effect:
            case Ask(request, provider):
                if self._stream is not None:
                    await self._drop_stream()
                self._provider_now = self._provider(provider)
                self._stream = self._pieces(self._provider_now, request)
                return None
            case Start(jobs):
                self._schedule = Schedule(jobs, self.world.parallel)
                return self._start_ready()
            case StopJobs(cancel):
                return await self._stop_jobs(cancel)
            case Sleep(seconds):
                return await anyio.sleep(seconds)
        return self._instant(effect)

    async def _play(self, waits: Waits, step: Any) -> Any:
        """The async trampoline, from its first step on."""
        while True:
            answer: Any = None
            error: BaseException | None = None
            try:
                answer = await self._await(step)
            except Exception as raised:
                error = raised
            except BaseException:  # the turn is left: what was entered is left as well, now
                waits.close()
                raise
            try:
                step = waits.throw(error) if error is not None else waits.send(answer)
            except StopIteration as stop:
                return stop.value

    async def _await(self, step: Awaiting | Blocking) -> Any:
        if isinstance(step, Blocking):
            return await self._in_thread(self.world.stores, step.function, "store")
        return await awaited(step)

    async def _in_thread(
        self,
        pool: Workers,
        function: Callable[[], Any],
        what: str,
        keep: Callable[[Task], None] | None = None,
        begin: Callable[[], None] | None = None,
    ) -> Any:
        """Call a blocking function on a worker thread and wait for it. `begin` is called here once it runs there."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(value: Any, error: BaseException | None) -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)

        def run() -> None:
            value, error = None, None
            if begin is not None:
                loop.call_soon_threadsafe(begin)
            try:
                value = function()
            except BaseException as raised:  # whatever it is belongs to the task that waits
                error = Stopped(raised) if isinstance(raised, Stopped.KINDS) else raised
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, value, error)

        pool.submit(run, what, keep)
        return await future

    async def _pieces(self, provider: Any, request: ModelRequest) -> AsyncIterator[Any]:
        """The provider's own async stream, or its sync one in a thread."""
        if callable(getattr(provider, "astream", None)):
            source = provider.astream(request)
            try:
                async for piece in source:
                    yield piece
            finally:
                await source.aclose()
            return
        source, lock = provider.stream(request), threading.Lock()

        def step() -> Any:
            with lock:
                return next(source, None)

        def close() -> None:
            with lock:  # a step that runs on in its thread ends first: generators cannot be closed while they run
                source.close()

        try:
            while (piece := await self._in_thread(self.world.stores, step, "stream")) is not None:
                yield piece
        finally:
            getattr(provider, "abort", no_abort)(request)
            with anyio.move_on_after(self.world.grace, shield=True):
                await self._in_thread(self.world.stores, close, "stream")

    async def _next(self) -> Any:
        try:
            piece = await anext(self._stream, None)
        except ProviderError:
            await self._drop_stream()
            raise
        except Exception as error:
            await self._drop_stream()
            raise foreign(self._provider_now, error) from error
        if piece is None or isinstance(piece, Reply):
            await self._drop_stream()
            return whole(self._provider_now, piece)
        return piece

    async def _drop_stream(self) -> None:
        """Close the stream; one that cannot be closed is told in a warning."""
        stream, self._stream = self._stream, None
        if stream is None:
            return
        try:
            with anyio.CancelScope(shield=True):
                await stream.aclose()
        except Exception as error:
            self._not_closed(error)

    def _complete(self, request: ModelRequest) -> Reply:
        """For sync hooks in an async run: blocks the event loop, as a sync hook does."""
        provider = self._provider(self.run.facts.reference)
        if not callable(getattr(provider, "stream", None)):
            name = reference_of(provider)
            raise ProviderError("this provider is async only; use turn.acomplete", provider=name, kind="invalid")
        return last_reply(provider, provider.stream(request))

    async def _acomplete(self, request: ModelRequest) -> Reply:
        return await complete(self._provider(self.run.facts.reference), request)

    def _start_ready(self) -> None:
        for job in self._schedule.ready():
            self._tasks[job.place] = asyncio.ensure_future(self._work(job, self._body(job)))

    async def _work(self, job: Job, steps: Any) -> None:
        """One call as a task; whatever happens to it, it is over with a `Done`."""
        done = Done(job.place, interrupted=True)
        try:
            done = await aplay(steps, self._invoke, sleep_async)
        finally:
            warning = self._abandon(job.place)
            self._done.put_nowait(replace(done, warning=warning) if warning else done)

    async def _invoke(self, step: Invoke) -> Any:
        if step.job.tool.is_async:
            return await call_async(step, self.world.grace)
        place = step.job.place
        limit = asyncio.timeout(None)

        def begin() -> None:
            if step.timeout is not None and not limit.expired() and place in self._threads:
                limit.reschedule(asyncio.get_running_loop().time() + step.timeout)

        def keep(task: Task) -> None:
            self._threads[place] = task

        try:
            async with limit:
                value = await self._in_thread(self.world.workers, step.call, step.job.tool.name, keep, begin)
        except TimeoutError:
            if limit.expired():
                raise TimedOut from None
            self._threads.pop(place, None)
            raise
        except asyncio.CancelledError:
            raise  # the thread runs on; `_work` abandons it
        except BaseException:
            self._threads.pop(place, None)
            raise
        self._threads.pop(place, None)
        return value

    def _abandon(self, place: int) -> str:
        """Wait no longer for a tool in a thread; gives back a warning where it runs on."""
        task = self._threads.pop(place, None)
        if task is None:
            return ""
        self._tell_late(place)
        if self.world.workers.give_up(task):
            return runs_on(task.what)
        return ""

    async def _next_result(self) -> Done:
        """The next job that is over. Jobs that may start now do so first: not before the engine has judged the last result."""
        self._start_ready()
        done = await self._done.get()
        try:
            await asyncio.wait({self._tasks[done.place]})
        except BaseException:  # the turn is left here: what is over must not be lost
            self._done.put_nowait(done)
            raise
        self._schedule.ended(done.place)
        del self._tasks[done.place]
        return done

    async def _stop_jobs(self, cancel: bool) -> list[Done]:
        """Start no further job; wait for those that run, or (also once somebody wishes so) cancel them and wait for the
        grace.
        """
        dones = self._schedule.halt()
        running = {place: self._tasks[place] for place in self._schedule.running}
        if running and not cancel:
            await self._until_over(running)
        if any(not task.done() for task in running.values()):
            await self._cancel_jobs(running)
        while not self._done.empty():
            done = self._done.get_nowait()
            if self._schedule.ended(done.place):
                dones.append(done)
        left = [self._left(job) for job in self._schedule.running.values()]
        self._schedule.running.clear()
        return dones + left

    def _left(self, job: Job) -> Done:
        """A job that did not end within the grace."""
        warning = self._abandon(job.place)
        if job.tool.is_async and not self._tasks[job.place].done():
            warning = runs_on(job.tool.name)
        return Done(job.place, interrupted=True, warning=warning)

    async def _until_over(self, running: dict[int, asyncio.Task[None]]) -> None:
        """Wait for tasks, or until somebody wishes the turn to end."""
        wish: asyncio.Future[Any] = asyncio.ensure_future(self._woken.wait())
        pending: set[asyncio.Future[Any]] = {task for task in running.values() if not task.done()}
        while pending and not (self._wished or self._gone):
            _, waiting = await asyncio.wait({*pending, wish}, return_when=asyncio.FIRST_COMPLETED)
            pending = waiting - {wish}
        wish.cancel()

    async def _cancel_jobs(self, running: dict[int, asyncio.Task[None]]) -> None:
        """Tell all tools; async ones are cancelled at once, threads have the grace."""
        self._stop_tools()
        for place, task in running.items():
            if place not in self._threads:
                task.cancel()
        _, stuck = await asyncio.wait(running.values(), timeout=self.world.grace)
        for task in stuck:
            task.cancel()
        if stuck:
            await asyncio.wait(stuck, timeout=0.05)


def _first(waits: Waits) -> tuple[Any, bool]:
    """The first thing a dispatcher waits for, or its value where it waits for nothing."""
    try:
        return next(waits), False
    except StopIteration as stop:
        return stop.value, True
