"""Worker threads of an agent: for sync tools (and the turns they carry on) and for stores in async runs. Daemon threads, made
when needed, reused.

A call that runs out of time cannot be killed: its thread is given up, another may take its place, and it is counted until
it ends. Past `GIVEN_UP` such threads no further one is made, so a leak is bounded.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any

GIVEN_UP = 64
"""How many threads may run on after their calls were given up."""


class Task:
    """One call on a worker thread."""

    __slots__ = ("begun", "context", "ended", "given_up", "parent", "run", "what")

    def __init__(self, run: Callable[[], Any], what: str) -> None:
        self.context = contextvars.copy_context()
        self.run = run
        self.what = what
        self.begun = False
        self.ended = False
        self.parent: threading.Thread | None = None  # the thread of this pool that waits for it
        self.given_up = False


class Workers:
    """A pool of at most `limit` threads (plus those whose calls were given up, and those that rest)."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tasks: SimpleQueue[Task | None] = SimpleQueue()
        self._threads: set[threading.Thread] = set()
        self._lock = threading.Lock()
        self._idle = 0
        self._queued = 0
        self._given_up: set[Task] = set()
        self._resting: set[Task] = set()
        self._waiting: dict[threading.Thread, int] = {}  # threads whose calls wait for calls of this pool, and how many
        self._closed = False

    def submit(self, run: Callable[[], Any], what: str, keep: Callable[[Task], None] | None = None) -> Task:
        """Call `run` on a thread, in a copy of the caller's context. It should not raise: nobody here waits for what it does;
        where it does, that is told as any thread's unhandled exception is. `keep` is given the task before anything else is
        done, so that whoever is interrupted here knows of it. Raises `RuntimeError` where there can be no thread.
        """
        task = Task(run, what)
        if keep is not None:
            keep(task)
        with self._lock:
            if self._closed:
                raise RuntimeError("the agent is closed")
            here = threading.current_thread()
            nested = (
                here in self._threads
            )  # a tool that runs an agent waits for this call, and must not wait for itself
            if self._queued >= self._idle and (nested or self._counted < self._limit):
                self._spawn()
            if nested:
                task.parent = here
                self._waiting[here] = self._waiting.get(here, 0) + 1
            self._queued += 1
            self._tasks.put(task)
        return task

    def _over(self, task: Task) -> None:
        """Nobody waits for this call any more. The lock is held."""
        parent, task.parent = task.parent, None
        if parent is not None:
            left = self._waiting[parent] = self._waiting[parent] - 1
            if not left:
                del self._waiting[parent]

    def _spawn(self) -> None:
        """One more thread; counted once it runs. It waits for the lock, which is held here."""
        thread = threading.Thread(target=self._serve, name="hookloop-worker", daemon=True)
        try:
            thread.start()
        finally:
            if thread.ident is not None or thread in threading.enumerate():  # also where Ctrl-C came while it started
                self._threads.add(thread)
                self._idle += 1

    def _serve(self) -> None:
        while True:
            task = self._tasks.get()
            with self._lock:
                self._idle -= 1
                if task is not None:
                    self._queued -= 1
            if task is None:
                break
            if not self._begins(task):
                continue
            _run(task)
            if not self._returned(task):
                break
        with self._lock:
            self._threads.discard(threading.current_thread())

    def _begins(self, task: Task) -> bool:
        """A call is taken up; one that was withdrawn meanwhile is dropped."""
        with self._lock:
            if task.given_up:
                self._over(task)
                self._idle += 1
                return False
            task.begun = True
            return True

    def _returned(self, task: Task) -> bool:
        """A call is over: does its thread serve on? One that was given up was replaced; one too many ends."""
        with self._lock:
            task.ended = True
            self._over(task)
            self._resting.discard(task)
            surplus = self._counted > self._limit  # so there are others, who serve whatever waits
            if task.given_up or surplus:
                self._given_up.discard(task)
                self._threads.discard(threading.current_thread())
                return False
            self._idle += 1
            return True

    def rest(self, task: Task) -> None:
        """This call's thread runs no tool for a while (it carries a turn and asks a model), so another one may."""
        with self._lock:
            self._resting.add(task)
            if self._queued > self._idle and self._counted < self._limit and not self._closed:
                with suppress(RuntimeError):  # where no thread is to be had, what waits goes on waiting
                    self._spawn()

    def resume(self, task: Task) -> bool:
        """It is back. False where others took its place meanwhile, so that its next call must queue."""
        with self._lock:
            self._resting.discard(task)
            return self._counted <= self._limit

    @property
    def _counted(self) -> int:
        """How many threads count against the limit: those that can serve, or run a call of their own."""
        return len(self._threads) - len(self._given_up) - len(self._resting) - len(self._waiting)

    def withdraw(self, task: Task) -> bool:
        """Take back a call that no thread took up yet; False where one did."""
        with self._lock:
            task.given_up = task.given_up or not task.begun
            if not task.begun:
                self._over(task)
            return not task.begun

    def give_up(self, task: Task) -> bool:
        """Wait no longer for this call. True where it runs on in its thread (which is replaced, as long as there are not too
        many of those); a call that never began is withdrawn.
        """
        with self._lock:
            if not task.begun:
                task.given_up = True
                self._over(task)
                return False
            if task.ended:
                return False
            self._over(task)
            self._resting.discard(task)
            if len(self._given_up) < GIVEN_UP:
                if self._queued > self._idle:
                    self._spawn()
                task.given_up = True
                self._given_up.add(task)
            return True

    @property
    def running_on(self) -> list[str]:
        """What still runs though nobody waits for it."""
        with self._lock:
            return sorted(task.what for task in self._given_up)

    def close(self, grace: float) -> list[str]:
        """End all threads; waits `grace` seconds in all for calls that run. Gives back what runs on."""
        with self._lock:
            self._closed = True
            threads = list(self._threads)
        until = monotonic() + grace
        for _ in threads:
            self._tasks.put(None)
        for thread in threads:
            join(thread, until)
        return self.running_on


def join(thread: threading.Thread, until: float) -> None:
    """Wait for a thread's end, also for one that is just starting (Ctrl-C may have come meanwhile); not for the calling one."""
    while thread is not threading.current_thread():
        try:
            thread.join(max(0.0, until - monotonic()))
            return
        except RuntimeError:
            if monotonic() >= until:
                return
            sleep(0.001)


def _run(task: Task) -> None:
    """One call. Whatever it raises is not its thread's end: others may wait for that thread."""
    try:
        task.context.run(task.run)
    except BaseException as error:
        told = (type(error), error, error.__traceback__, threading.current_thread())
        threading.excepthook(threading.ExceptHookArgs(told))
