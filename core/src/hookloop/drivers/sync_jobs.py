"""How the sync driver runs the calls of a reply: in worker threads, async ones on the portal."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import cached_property, partial
from typing import Any

from hookloop.engine.effects import Done, Job
from hookloop_hookspecs.redact import words

from .base import Base
from .jobs import Body, Schedule, failed, play, runs_on
from .workers import Task

LONGEST = 0.5
"""Seconds of one wait: a signal that comes just before it begins does not end it, and is met when it is over."""


class SyncJobs(Base):
    """The calls of one run, from their start to what they come to.

    Not for users: `SyncRun` adds the rest of the turn.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._done: queue.SimpleQueue[Done | None] = queue.SimpleQueue()
        self._schedule = Schedule((), 1)
        self._tasks: dict[int, Task | Future[Any]] = {}
        self._begun: dict[int, float] = {}
        self._stopped: list[Done] = []  # what the stopping of jobs brought so far

    def _check(self) -> None:
        raise AssertionError("the run knows how it is left")

    def _start_ready(self) -> None:
        for job in self._schedule.ready():
            steps = self._body(job)
            if job.tool.is_async:
                self._tasks[job.place] = self._on_portal(job, steps)
            else:
                self._submit(job, partial(self._on_thread, job, steps), partial(self._tasks.__setitem__, job.place))

    def _submit(self, job: Job, work: Callable[[], None], keep: Callable[[Task], None]) -> bool:
        """Let a worker begin; False where there can be none, which is told as the job's end."""
        try:
            self.world.workers.submit(work, job.tool.name, keep)
        except Exception as error:
            self._done.put(
                Done(job.place, began=False, warning=f"{job.tool.name} could not be started: {words(error)}")
            )
            return False
        return True

    def _on_thread(self, job: Job, steps: Body) -> None:
        self._done.put(self._played(job, steps))

    def _played(self, job: Job, steps: Body) -> Done:
        """Run a call on this thread."""
        return play(steps, partial(self._begins, job), self._cancels.get(job.place, self._end).wait)

    def _begins(self, job: Job) -> None:
        self._begun[job.place] = time.monotonic()

    def _on_portal(self, job: Job, steps: Body) -> Future[Any]:
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
        """Wait for a job's end, or until something else happened, at most so many seconds."""
        try:
            return self._done.get(timeout=LONGEST if seconds is None else min(seconds, LONGEST))
        except queue.Empty:
            return None

    def _remaining(self) -> float | None:
        """Seconds until the next running job is out of time."""
        limited = [
            (place, timeout)
            for place, job in self._schedule.running.items()
            if not job.tool.is_async
            and (timeout := self._timeout(job.tool)) is not None  # async ones: the portal's edge
        ]
        if not limited:
            return None
        now = time.monotonic()
        return min(max(0.0, self._begun.get(place, now) + timeout - now) for place, timeout in limited)

    @cached_property
    def _shortest(self) -> float | None:
        """Seconds that the hastiest tool may take."""
        limits = (self._timeout(tool) for tool in self.run.tools.values() if not tool.is_async)
        return min((limit for limit in limits if limit is not None), default=None)

    def _late(self) -> Done | None:
        """A job in a thread that ran out of time: it is given up, its thread runs on."""
        now = time.monotonic()
        for place, job in list(self._schedule.running.items()):
            timeout, began = self._timeout(job.tool), self._begun.get(place)  # noted for calls in threads alone
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


def _least(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def pull(stream: Iterator[Any]) -> tuple[Any, BaseException | None]:
    """The next piece of a provider's stream (None at its end), or what was raised there."""
    try:
        return next(stream, None), None
    except BaseException as error:
        return None, error


def closed(stream: object) -> None:
    """Close a stream that is not read on."""
    close = getattr(stream, "close", None)
    if close is not None:
        close()
