"""How the sync driver runs the calls of a reply: in worker threads, async ones on the portal."""

from __future__ import annotations

import queue
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property, partial
from typing import Any

from hookloop.engine.effects import Done, Job, Start
from hookloop_hookspecs.redact import words

from .base import Base
from .jobs import Body, Schedule, failed, play, runs_on
from .workers import Task

LONGEST = 0.5
"""Seconds of one wait: a signal that comes just before it begins does not end it, and is met when it is over."""


class SyncJobs(Base):
    """The calls of one run, from their start to what they come to.

    Not for users: `SyncRun` adds the rest of the turn. What a job came to stands in `_dones` until the engine has taken it: a
    Ctrl-C between the two loses nothing.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._schedule = Schedule((), 1)
        self._tasks: dict[int, Task | Future[Any]] = {}
        self._begun: dict[int, float] = {}
        self._dones: dict[int, Done] = {}  # by place, in the order in which they came
        self._given: int | None = None  # the place whose result was given to the engine last
        self._unbegun: list[Done] = []
        self._stopped: list[Done] | None = None  # what the stopping of jobs brought

    def _again(self) -> bool:
        raise AssertionError("the run knows whether Ctrl-C was pressed again")

    def _check(self) -> None:
        raise AssertionError("the run knows how it is left")

    def _start(self, effect: Start) -> None:
        self._schedule = Schedule(effect.jobs, self.world.parallel)
        self._stopped, self._unbegun = None, []

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
            self._ends(Done(job.place, began=False, warning=f"{job.tool.name} could not be started: {words(error)}"))
            return False
        return True

    def _on_thread(self, job: Job, steps: Body) -> None:
        self._ends(self._played(job, steps))

    def _ends(self, done: Done) -> None:
        """A job is over; told on any thread. The first word counts."""
        self._dones.setdefault(done.place, done)
        self._wakes.put(None)

    def _played(self, job: Job, steps: Body) -> Done:
        """Run a call on this thread. Whatever happens, it is over with a `Done`: others wait for it."""
        try:
            return play(steps, partial(self._begins, job), partial(self._pauses, job))
        except BaseException as error:  # beside the tool itself: its wait for another attempt, its exception's words
            return failed(job, f"{job.tool.name} failed: {type(error).__name__}", 0.0)

    def _begins(self, job: Job) -> None:
        self._begun[job.place] = time.monotonic()

    def _pauses(self, job: Job, seconds: float) -> None:
        """Wait for the next attempt, whose time counts from its own beginning."""
        self._begun.pop(job.place, None)
        self._cancels.get(job.place, self._end).wait(seconds)

    def _on_portal(self, job: Job, steps: Body) -> Future[Any]:
        from .edges import aplay, call_async, sleep_async

        async def work() -> None:
            done = Done(job.place, interrupted=True)
            try:
                done = await aplay(steps, partial(call_async, grace=self.world.grace), sleep_async)
            finally:
                self._ends(done)

        return self.world.portal.start(work)

    def _next_result(self) -> Done:
        """The next job that is over, or has run out of time. Jobs that may start now do so first: not before the engine has
        judged the result it was given last.
        """
        self._took()
        self._start_ready()
        while True:
            self._check()
            place = next((place for place in list(self._dones) if place in self._schedule.running), None)
            if place is not None:
                while not self._wakes.empty():
                    self._wakes.get()
                self._given = place
                return self._dones[place]
            self._wait(self._remaining())
            self._leave_late()

    def _took(self) -> None:
        """The engine asks on, so it has the result that it was given last."""
        if self._given is not None:
            self._schedule.ended(self._given)
            self._dones.pop(self._given, None)
            self._given = None

    def _wait(self, seconds: float | None) -> None:
        """Wait until a job is over or something else happened, at most so many seconds."""
        with suppress(queue.Empty):
            self._wakes.get(timeout=LONGEST if seconds is None else min(seconds, LONGEST))

    def _under_way(self) -> list[Job]:
        """The jobs that run."""
        return [job for place, job in list(self._schedule.running.items()) if place not in self._dones]

    def _remaining(self) -> float | None:
        """Seconds until the next running job is out of time."""
        limited = [
            (job.place, timeout)
            for job in self._under_way()
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

    def _leave_late(self) -> None:
        """Jobs in threads that ran out of time are over: they are told, and left; their threads run on."""
        now = time.monotonic()
        for job in self._under_way():
            timeout, began = self._timeout(job.tool), self._begun.get(job.place)  # noted for calls in threads alone
            if timeout is not None and began is not None and now >= began + timeout:
                text = f"{job.tool.name} ran longer than {timeout:g} s and was left; its effect is unknown"
                self._dones.setdefault(job.place, failed(job, text, timeout, self._abandon(job)))

    def _abandon(self, job: Job) -> str:
        """Wait no longer for a job; gives back a warning where it runs on in its thread."""
        self._tell_late(job.place)
        task = self._tasks[job.place]
        if isinstance(task, Task) and self.world.workers.give_up(task):
            return runs_on(job.tool.name)
        return ""

    def _stop_jobs(self, cancel: bool) -> list[Done]:
        """Start no further job; wait for those that run, or (also once somebody wishes so) cancel them and wait for the
        grace. May be performed again where Ctrl-C came meanwhile. What was given last may be among what it gives back.
        """
        if self._stopped is not None:
            return self._stopped
        self._unbegun += self._schedule.halt()
        until: float | None = None
        while self._under_way():
            if until is None and (cancel or self._wished):
                until = time.monotonic() + self.world.grace
                self._cancel_jobs()
                continue
            left = None if until is None else until - time.monotonic()
            if left is not None and (left <= 0 or self._again()):
                break
            self._wait(_least(left, self._remaining()))
            self._leave_late()
        for job in self._under_way():
            self._dones.setdefault(job.place, Done(job.place, interrupted=True, warning=self._abandon(job)))
        over = [done for place, done in list(self._dones.items()) if place in self._schedule.running]
        self._stopped = [*self._unbegun, *over]
        return self._stopped

    def _cancel_jobs(self) -> None:
        """Tell all tools, and take back what no thread took up."""
        self._stop_tools()
        for job in self._under_way():
            task = self._tasks.get(job.place)
            if isinstance(task, Future):
                task.cancel()
            elif task is None and job.tool.is_async:  # struck while it was started: perhaps it runs
                self._dones.setdefault(job.place, Done(job.place, interrupted=True))
            elif task is None or self.world.workers.withdraw(task):
                self._dones.setdefault(job.place, Done(job.place, began=False))


def _least(a: float | None, b: float | None) -> float | None:
    return b if a is None else a if b is None else min(a, b)


def pull(stream: Iterator[Any]) -> tuple[Any, BaseException | None]:
    """The next piece of a provider's stream (None at its end), or what was raised there."""
    try:
        return next(stream, None), None
    except BaseException as error:
        return None, error


def shut(stream: object) -> Exception | None:
    """Close a stream that is not read on; gives back why it could not be closed."""
    close = getattr(stream, "close", None)
    try:
        if close is not None:
            close()
    except Exception as error:
        return error
    return None
