"""The sync driver: the caller's thread advances the turn; tools run in worker threads, async parts on the portal."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, Self

from hookloop.engine.effects import (
    Ask,
    CallHook,
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
    Store,
)
from hookloop.hooks import Awaiting, Waits
from hookloop_hookspecs import ModelRequest, Outcome, ProviderError, Reply
from hookloop_hookspecs.errors import Cancelled
from hookloop_hookspecs.events import Event, TurnBegan
from hookloop_hookspecs.redact import words

from .base import Base, World, foreign, last_reply, no_abort, whole
from .jobs import Schedule, failed, play, runs_on
from .workers import Task


class SyncRun(Base):
    """A turn as a stream of events: `with agent.stream(…) as events: for event in events: …`.

    Leaving early ends the turn in order; `outcome` is there at the end. `send` and `cancel` may be called from any thread.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._now: Effect[Any] = Emit(TurnBegan("", ""))
        self._done: queue.SimpleQueue[Done | None] = queue.SimpleQueue()
        self._schedule = Schedule((), 1)
        self._tasks: dict[int, Task | Future[Any]] = {}
        self._begun: dict[int, float] = {}
        self._stopped: list[Done] = []  # what the stopping of jobs brought so far
        self._stream: Iterator[Any] | None = None
        self._asked: tuple[Any, ModelRequest] | None = None
        self._waiting: Future[Any] | None = None
        self._woken = threading.Event()
        self._interrupt: KeyboardInterrupt | None = None
        self.live.wake = self._wake

    def __enter__(self) -> Self:
        self._enter()
        if self._leased:
            self.world.heart.watch(self._renew)
        return self

    def _over(self, outcome: Outcome | None) -> None:
        self.world.heart.forget(self._renew)
        super()._over(outcome)

    def _renew(self) -> None:
        """Called by the heart, on its thread. A store that fails here is noticed at the turn's next append."""
        waits = self._renewal()
        if waits is not None:
            with suppress(Exception):
                trampoline(waits, lambda step: portal_wait(self.world, step))

    def __exit__(self, *_exc: object) -> None:
        self._wish = True
        if not self.finished or self._interrupt is not None:
            for _ in self._drained():
                pass

    def _drained(self) -> Iterator[Event]:
        """What is left of the turn; nothing but a kept Ctrl-C where it is over."""
        if not self.finished:
            yield from self._events()
        elif self._interrupt is not None:
            interrupt, self._interrupt = self._interrupt, None
            raise interrupt

    def __iter__(self) -> Iterator[Event]:
        self._require_entered()
        return self._events()

    def result(self) -> Outcome:
        """Read the stream to its end and give back the outcome. Raises what ended the turn, where that was an error."""
        self.run.heard = self._heard
        with self:
            for _ in self._events():
                pass
        assert self.outcome is not None
        return self.outcome

    def _events(self) -> Iterator[Event]:
        while True:
            effect = self._advance()
            if effect is None:
                break
            try:
                self._answer = self._perform(effect)
            except BaseException as error:
                self._failed(effect, error)
            if isinstance(effect, Emit):
                yield effect.event
        if self._interrupt is not None:
            interrupt, self._interrupt = self._interrupt, None
            interrupt.outcome = self.outcome  # type: ignore[attr-defined]  # for whoever catches Ctrl-C
            raise interrupt

    def _failed(self, effect: Effect[Any], error: BaseException) -> None:
        """Throw what happened in place of the answer. Ctrl-C ends the turn in order and comes out once that is done."""
        if isinstance(error, KeyboardInterrupt) and self._interrupt is None:
            self._interrupt, self._wish = error, True
            if not self._may_leave(effect):
                self._once_more(effect)
                return
            self._leaving, error = True, Cancelled()
        self._error = error

    def _once_more(self, effect: Effect[Any]) -> None:
        """Ctrl-C came in an effect that may not be left: it is performed again, which stores take for a repeated batch. Plugins
        that were asked are not asked twice.
        """
        try:
            if isinstance(effect, CallHook | Emit):
                self._answer = [] if isinstance(effect, CallHook) else None
            else:
                self._answer = self._perform(effect)
        except BaseException as error:
            self._error = error

    def _perform(self, effect: Effect[Any]) -> Any:
        self._now = effect
        if self._wish or self.live.cancelled:
            self._check()
        act = _ACTS.get(type(effect))
        if act is not None:
            return act(self, effect)
        waits = self._waits(effect)
        return self._play(waits) if waits is not None else self._instant(effect)

    def _ask(self, effect: Ask) -> None:
        self._open_stream(self._provider(effect.provider), effect.request)

    def _start(self, effect: Start) -> None:
        self._schedule = Schedule(effect.jobs, self.world.parallel)

    def _sleep(self, effect: Sleep) -> None:
        self._woken.wait(effect.seconds)
        self._check()

    def _store(self, effect: Store) -> Any:
        """A store that never blocks is called where we are."""
        plain = self.world.hooks.plain(effect.memory, "persist_memory")
        if plain is None:
            return self._play(self._stored(effect))
        return plain({"batch": effect.batch, "conversation": effect.batch.conversation})

    def _emit(self, effect: Emit) -> None:
        if self._heard:
            self._play(self._tell(effect.event))

    def _check(self) -> None:
        """Leave here where somebody wished so and the effect at hand may be left."""
        if self._wished and self._may_leave(self._now):
            self._drop_stream()
            self._leave()

    def _wake(self) -> None:
        """Somebody cancelled from another thread: let go of whatever this thread waits for."""
        self._woken.set()
        self._done.put(None)
        waiting = self._waiting
        if waiting is not None and self._may_leave(self._now):
            waiting.cancel()
        asked = self._asked
        if asked is not None:
            getattr(asked[0], "abort", no_abort)(asked[1])

    def _play(self, waits: Waits) -> Any:
        return trampoline(waits, self._await)

    def _await(self, step: Awaiting) -> Any:
        """Wait for a plugin's coroutine on the portal. Where the turn is cancelled meanwhile, leave."""
        from .edges import awaited

        ended = threading.Event()

        async def work() -> Any:
            try:
                return await awaited(step)
            finally:
                ended.set()

        self._waiting = future = self.world.portal.start(work)
        if self._wished and self._may_leave(self._now):
            future.cancel()
        try:
            return future.result()
        except FutureCancelled:
            ended.wait(self.world.grace)
            self._check()
            raise RuntimeError("it was cancelled") from None
        except KeyboardInterrupt:
            future.cancel()
            ended.wait(self.world.grace)
            raise
        finally:
            self._waiting = None

    def _open_stream(self, provider: Any, request: ModelRequest) -> None:
        self._drop_stream()
        self._asked = (provider, request)
        self._stream = self._pieces(provider, request)

    def _pieces(self, provider: Any, request: ModelRequest) -> Iterator[Any]:
        """The provider's own sync stream, or its async one over the portal."""
        if callable(getattr(provider, "stream", None)):
            yield from provider.stream(request)
            return
        source = provider.astream(request)
        try:
            while True:
                try:
                    yield self._await(Awaiting(source.__anext__()))
                except StopAsyncIteration:
                    return
        finally:
            self._await(Awaiting(source.aclose()))

    def _next(self) -> Any:
        assert self._stream is not None
        assert self._asked is not None
        provider = self._asked[0]
        try:
            piece = next(self._stream, None)
        except ProviderError:
            self._drop_stream()
            self._check()
            raise
        except Exception as error:
            self._drop_stream()
            self._check()
            raise foreign(provider, error) from error
        self._check()
        if piece is None or isinstance(piece, Reply):
            self._drop_stream()
            return whole(provider, piece)
        return piece

    def _drop_stream(self) -> None:
        stream, self._stream, self._asked = self._stream, None, None
        close = getattr(stream, "close", None)
        if close is not None:
            close()

    def _complete(self, request: ModelRequest) -> Reply:
        """Ask the turn's model for a plugin."""
        provider = self._provider(self.run.facts.reference)
        return last_reply(provider, self._pieces(provider, request))

    async def _acomplete(self, request: ModelRequest) -> Reply:
        from .edges import complete

        return await complete(self._provider(self.run.facts.reference), request)

    def _start_ready(self) -> None:
        for job in self._schedule.ready():
            steps = self._body(job)
            if job.tool.is_async:
                self._tasks[job.place] = self._on_portal(job, steps)
            else:
                self._submit(job, partial(self._on_thread, job, steps))

    def _submit(self, job: Job, work: Callable[[], None]) -> None:
        try:
            self.world.workers.submit(work, job.tool.name, partial(self._tasks.__setitem__, job.place))
        except Exception as error:
            self._done.put(
                Done(job.place, began=False, warning=f"{job.tool.name} could not be started: {words(error)}")
            )

    def _on_thread(self, job: Job, steps: Any) -> None:
        def begin() -> None:
            self._begun[job.place] = time.monotonic()

        self._done.put(play(steps, begin, self._cancels.get(job.place, self._end).wait))

    def _on_portal(self, job: Job, steps: Any) -> Future[Any]:
        from .edges import aplay, call_async, sleep_async

        async def work() -> None:
            done = Done(job.place, interrupted=True)
            try:
                done = await aplay(steps, partial(call_async, grace=self.world.grace), sleep_async)
            finally:
                self._done.put(done)

        return self.world.portal.start(work)

    def _next_result(self) -> Done:
        """The next job that is over, or has run out of time. Jobs that may start now do so first: not before the engine has
        judged the result it was given last.
        """
        self._start_ready()
        while True:
            self._check()
            done = self._wait_done(self._remaining())
            if done is not None and self._schedule.ended(done.place):
                return done
            late = self._late()
            if late is not None:
                return late

    def _wait_done(self, seconds: float | None) -> Done | None:
        try:
            return self._done.get(timeout=seconds)
        except queue.Empty:
            return None

    def _remaining(self) -> float | None:
        """Seconds until the next running job is out of time."""
        limited = [
            (place, timeout)
            for place, job in self._schedule.running.items()
            if not job.tool.is_async and (timeout := self._timeout(job)) is not None  # async ones: the portal's edge
        ]
        if not limited:
            return None
        now = time.monotonic()
        return min(max(0.0, self._begun.get(place, now) + timeout - now) for place, timeout in limited)

    def _late(self) -> Done | None:
        """A job in a thread that ran out of time: it is given up, its thread runs on."""
        now = time.monotonic()
        for place, job in list(self._schedule.running.items()):
            timeout, began = self._timeout(job), self._begun.get(place)  # noted for calls in threads alone
            if timeout is not None and began is not None and now >= began + timeout:
                return self._give_up(job, timeout)
        return None

    def _give_up(self, job: Job, timeout: float) -> Done:
        """A job ran out of time; its thread is told, and left."""
        self._schedule.ended(job.place)
        warning = self._abandon(job)
        text = f"{job.tool.name} ran longer than {timeout:g} s and was left; its effect is unknown"
        return failed(job, text, timeout, warning)

    def _abandon(self, job: Job) -> str:
        """Wait no longer for a job; gives back a warning where it runs on in its thread."""
        self._tell_late(job.place)
        task = self._tasks[job.place]
        if isinstance(task, Task) and self.world.workers.give_up(task):
            return runs_on(job.tool.name)
        return ""

    def _stop_jobs(self, cancel: bool) -> list[Done]:
        """Start no further job; wait for those that run, or (also once somebody wishes so) cancel them and wait for the
        grace.
        """
        self._stopped += self._schedule.halt()
        until: float | None = None
        while self._schedule.running:
            if until is None and (cancel or self._wished):
                until = time.monotonic() + self.world.grace
                self._cancel_jobs()
                continue
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                break
            done = self._wait_done(_least(left, self._remaining()))
            if done is not None and self._schedule.ended(done.place):
                self._stopped.append(done)
            elif (late := self._late()) is not None:
                self._stopped.append(late)
        self._stopped += [self._left(job) for job in list(self._schedule.running.values())]
        dones, self._stopped = self._stopped, []
        return dones

    def _cancel_jobs(self) -> None:
        """Tell all tools, and take back what no thread took up."""
        self._stop_tools()
        for place in list(self._schedule.running):
            task = self._tasks.get(place)
            if isinstance(task, Future):
                task.cancel()
            elif task is None or self.world.workers.withdraw(task):
                self._schedule.ended(place)
                self._stopped.append(Done(place, began=False))

    def _left(self, job: Job) -> Done:
        """A job that did not end within the grace."""
        self._schedule.ended(job.place)
        return Done(job.place, interrupted=True, warning=self._abandon(job))


_ACTS: dict[type, Callable[[SyncRun, Any], Any]] = {
    Ask: SyncRun._ask,
    Emit: SyncRun._emit,
    Inbox: SyncRun._instant,
    Now: SyncRun._instant,
    Next: lambda run, effect: run._next(),
    NextResult: lambda run, effect: run._next_result(),
    Sleep: SyncRun._sleep,
    Start: SyncRun._start,
    StopJobs: lambda run, effect: run._stop_jobs(effect.cancel),
    Store: SyncRun._store,
}


def _least(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def trampoline(waits: Waits, wait: Callable[[Awaiting], Any]) -> Any:
    """Play a dispatcher on this thread; `wait` waits for a coroutine."""
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            step = waits.throw(error) if error is not None else waits.send(answer)
        except StopIteration as stop:
            return stop.value
        answer = error = None
        try:
            answer = wait(step) if isinstance(step, Awaiting) else step.function()
        except Exception as raised:
            error = raised
        except BaseException:  # the turn is left: what was entered is left as well, now
            waits.close()
            raise


def portal_wait(world: World, step: Awaiting) -> Any:
    """Wait for a coroutine on the portal."""
    from .edges import awaited

    return world.portal.start(lambda: awaited(step)).result()


def close_plugins(world: World) -> list[str]:
    """Call the `close` hook of every plugin; gives back what went wrong, in words."""

    returned = trampoline(world.hooks.ask("close", {}, lambda _: None), lambda step: portal_wait(world, step))
    return [f"{got.plugin}.close: {got.error}" for got in returned if got.error is not None]
