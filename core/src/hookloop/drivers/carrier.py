"""A worker that ran a call carries the turn on, while the caller's thread watches.

To hand a call to another thread and its result back costs as much as the rest of a round. So the worker that ran the only
call of a reply goes on from there: it stores the result, asks the model, runs the next call, until something comes that is
the caller's (a hook, a store that blocks, calls in parallel, the end of the turn).

Rules for the next editor. One thread at a time has the drive, and it alone touches the run. The worker gives the drive back
between two effects. While it is inside foreign code (a tool, a provider), where it touches nothing of the run, the caller may
take the drive: the worker then finds itself left, and keeps its hands off. So nothing deaf holds a turn up, and what the
caller does from there on is what it does where it drives alone. `_place` is written under the lock.
"""

from __future__ import annotations

import contextvars
import threading
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hookloop.engine.effects import Ask, Done, Effect, Emit, Inbox, Job, Next, NextResult, Now, Start, Store
from hookloop_hookspecs import Provider, Reply

from .base import reference_of
from .jobs import runs_on
from .sync_jobs import pull, shut

if TYPE_CHECKING:
    from .sync import SyncRun
    from .workers import Task

SHORTEST = 0.001
"""Seconds of the caller's shortest wait, however hasty its tools are."""
SOON = 0.25
"""Seconds for the next piece of a provider that cannot be told to end."""
Place: TypeAlias = Literal["engine", "tool", "model", "back", "left"]
"""Where the worker is: at the engine, inside foreign code, at its end, or left behind by the caller."""


class Carrier:
    """The drive of one run, from a call on until it is the caller's again.

    Arguments: `run`, which waits for the answer to `effect`: the result of a single job that may start.
    """

    def __init__(self, run: SyncRun, effect: Effect[Any]) -> None:
        self._run = run
        self._effect: Effect[Any] | None = effect
        self._lock = threading.Lock()
        self._place: Place = "tool"
        self._left_in: Place | None = None
        self._wanted = False
        self._room = True
        self._error: BaseException | None = None
        self._task: Task | None = None
        self._caller = threading.get_ident()
        self._worker = 0
        self._job = run._schedule.begin()
        self._steps = run._body(self._job)

    # The caller's side.

    def lend(self) -> None:
        """Let a worker carry the turn, until it stands at an effect that is the caller's to perform.

        Raises what the engine raises at the end of a turn. Whatever strikes the caller while it waits (Ctrl-C, an alarm) is
        thrown into the turn at the next effect that may be left, or comes out when the turn is over. Nothing leaves this
        while the worker has the drive.
        """
        struck: BaseException | None = None
        until: float | None = None
        while True:
            try:
                if self._task is None and self._place == "tool":
                    self._submit(struck)
                if self._place in ("back", "left"):
                    break
                if self._run._pressed:
                    self._run._pressed = False
                    raise KeyboardInterrupt
                if until is None and (struck is not None or self._run._wished):
                    self._want(struck)
                    until = monotonic() + self._patience(struck)
                if self._taken(until):
                    break
                self._wait(until)
            except BaseException as error:
                struck = struck or error
        self._run.live.thread = self._caller
        if self._left_in == "model":
            self._leave_provider()
        if isinstance(struck, KeyboardInterrupt) and self._place == "back":
            self._run._kept, self._run._wish, struck = self._run._kept or struck, True, None
        if self._error is not None:
            raise self._error
        if self._place == "left":
            self._go_on(struck)
        elif struck is not None:
            self._given_back(struck)

    def _submit(self, struck: BaseException | None) -> None:
        """Begin. A worker that cannot be had is a call that did not begin, as ever; one that was struck before is none either."""
        if struck is not None or not self._run._submit(self._job, self._work, self._keep):
            self._place = "left"

    def _keep(self, task: Task) -> None:
        self._task = self._run._tasks[self._job.place] = task

    def _patience(self, struck: BaseException | None) -> float:
        """Seconds that a provider may take to end, once the drive is wanted. One that cannot be told is left soon by who is
        struck, since Ctrl-C would leave it at once where the caller itself asks it.
        """
        asked = self._run._asked
        can = asked is not None and getattr(type(asked[0]), "abort", Provider.abort) is not Provider.abort
        grace = self._run.world.grace
        return grace if can or struck is None else min(grace, SOON)

    def _want(self, struck: BaseException | None) -> None:
        """Ask for the drive, and end what the worker waits for (where a cancel has not done so)."""
        with self._lock:
            self._wanted = True
        if struck is not None:
            with suppress(Exception):  # a provider that cannot be ended is left
                self._run._abort()

    def _taken(self, until: float | None) -> bool:
        """Take the drive where that is due: from a tool at once where it is wanted, or when it is out of time; from a provider
        that does not let itself be ended at `until`.
        """
        with self._lock:
            due = until is not None and (self._place == "tool" or monotonic() >= until)
            if self._place == "tool" and not due:
                due = self._run._remaining() == 0
            if due and self._place in ("tool", "model"):
                self._left_in, self._place = self._place, "left"
            return self._place == "left"

    def _leave_provider(self) -> None:
        """The provider does not come back: its stream is the worker's from now on, to be closed when it does."""
        run = self._run
        assert run._asked is not None
        assert self._task is not None
        self._task.what = reference_of(run._asked[0])
        run._stream = run._asked = None
        if run.world.workers.give_up(self._task):
            run.run.warnings.append(runs_on(self._task.what))

    def _wait(self, until: float | None) -> None:
        """Wait until something happens: at most until a running call, or the next that may begin meanwhile, is late."""
        with self._lock:
            limits = [self._run._remaining() if self._place == "tool" else None, self._run._shortest]
        if until is not None:
            limits.append(until - monotonic())
        soonest = min((limit for limit in limits if limit is not None), default=None)
        self._run._wait(None if soonest is None else max(SHORTEST, soonest))

    def _given_back(self, struck: BaseException) -> None:
        """Nothing was begun of the effect at which the turn stands. Where that may not be left, what struck is kept."""
        run, effect = self._run, self._effect
        if effect is not None and run._may_leave(effect):
            run._failed(effect, struck)
        else:
            run._kept, run._wish = run._kept or struck, True

    def _go_on(self, struck: BaseException | None) -> None:
        """The worker is left behind in what it runs for an effect; that is the caller's now."""
        run, effect = self._run, self._effect
        assert effect is not None
        if struck is None:
            run._settle(effect)
        else:
            run._failed(effect, struck)

    # The worker's side.

    def _work(self) -> None:
        run, self._worker = self._run, threading.get_ident()
        try:
            if self._called(self._job):
                self._carry()
        except BaseException as error:
            if self._place == "left":
                raise  # the turn is not ours any more
            if run.finished or self._effect is None:
                self._error = error  # what the turn ends with, which is the caller's to raise
            else:
                run._failed(self._effect, error)
        self._entered("back")
        run._wakes.put(None)

    def _carry(self) -> None:
        """Go on, up to an effect that is the caller's, or that the caller wants to perform."""
        run, live, state = self._run, self._run.live, self._run.run
        while True:
            effect = self._effect = run._advance()
            if effect is None or self._wanted or state.finishing or live.cancelled or run._wish:
                self._shut()
                return
            kind = type(effect)
            if kind is Next:
                if not self._piece(effect):
                    return
            elif kind is Inbox or kind is Now:
                run._answered(run._instant(effect))
            elif kind is NextResult:
                if not (self._room and run._lends and self._next_call()):
                    return
            elif isinstance(effect, Ask):
                if not self._asked(effect):
                    return
            elif kind is Emit:  # nobody listens
                run._answered(None)
            elif kind is Start or kind is Store:  # of a store that does not block, else nothing would be lent
                run._settle(effect)
            else:
                return

    def _asked(self, effect: Ask) -> bool:
        """Begin to ask the model; until its reply is whole, other calls may take this thread's place. False for a provider
        that is async alone, which needs the portal.
        """
        run = self._run
        assert self._task is not None
        try:
            provider = run._provider(effect.provider)
        except Exception as error:
            run._failed(effect, error)
            return True
        if not callable(getattr(provider, "stream", None)):
            return False
        run._open_stream(provider, effect.request)
        run._answered(None)
        run.world.workers.rest(self._task)
        return True

    def _shut(self) -> None:
        """Close the stream that is open, here, where it was begun: it may hold something of this context. It is foreign code, in
        which the caller may leave this thread.
        """
        run = self._run
        if run._stream is None:
            return
        with self._lock:
            self._place = "model"
        trouble = shut(run._stream)
        if self._entered("engine"):
            if trouble is not None:
                run._not_closed(trouble)
            run._stream = run._asked = None

    def _entered(self, place: Place) -> bool:
        """Go to another place; False where the caller took the drive, or wants it before foreign code is entered."""
        with self._lock:
            if self._place == "left" or (self._wanted and place == "model"):
                return False
            self._place = place
            return True

    def _next_call(self) -> bool:
        """Run the next call; False where the drive is wanted, or was taken meanwhile."""
        run = self._run
        assert self._task is not None
        with self._lock:
            if self._wanted:
                return False
            job = run._schedule.begin()
            run._tasks[job.place] = self._task
            self._task.what = job.tool.name
            self._steps = run._body(job)
            run.live.thread = self._caller
            self._place = "tool"
        return self._called(job)

    def _called(self, job: Job) -> bool:
        """Run a call, in a context of its own; False where the drive was taken meanwhile."""
        run = self._run
        done: Done = contextvars.copy_context().run(run._played, job, self._steps)
        if not self._entered("engine"):
            run._ends(done)
            return False
        run.live.thread = self._worker
        run._schedule.ended(job.place)
        run._answered(done)
        return True

    def _piece(self, effect: Effect[Any]) -> bool:
        """Take the next piece of a reply; False where the drive was taken, or is wanted."""
        run = self._run
        stream = run._stream
        assert stream is not None
        assert self._task is not None
        if not self._entered("model"):
            self._shut()
            return False
        piece, error = pull(stream)
        last = error is not None or piece is None or isinstance(piece, Reply)
        trouble = shut(stream) if last else None
        if not self._entered("engine"):
            shut(stream)
            return False
        if trouble is not None:
            run._not_closed(trouble)
        if self._wanted:
            self._shut()
            return False
        if last:
            self._room = run.world.workers.resume(self._task)
        run._now = effect
        try:
            run._answered(run._received(piece, error))
        except BaseException as raised:
            run._failed(effect, raised)
        return True
