"""The sync driver: the caller's thread advances the turn; tools run in worker threads, async parts on the portal.

Where nobody listens to events, a worker that ran a call carries the turn on (see `carrier`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError as FutureCancelled
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from typing import Any, Self

from hookloop.engine.effects import (
    Ask,
    CallHook,
    Effect,
    Emit,
    Inbox,
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

from . import presses
from .base import World, foreign, last_reply, no_abort, whole
from .carrier import Carrier
from .sync_jobs import SyncJobs, pull, shut

IN_ROUND = ("before_round", "after_reply", "before_tool", "after_tool", "next_instructions")
"""Hooks that are asked in every round, on the caller's thread."""


class SyncRun(SyncJobs):
    """A turn as a stream of events: `with agent.stream(…) as events: for event in events: …`.

    Leaving early ends the turn in order; `outcome` is there at the end. `send` and `cancel` may be called from any thread.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._now: Effect[Any] = Emit(TurnBegan("", ""))
        self._stream: Iterator[Any] | None = None
        self._asked: tuple[Any, ModelRequest] | None = None
        self._waiting: Future[Any] | None = None
        self._woken = threading.Event()
        self._kept: BaseException | None = None  # what struck the caller, and comes out when the turn is over
        self._pressed = False  # was Ctrl-C noted, and is not met yet?
        self._hasty = False  # was it pressed again?
        self._lent = False  # does a worker carry the turn?
        self.live.wake = self._wake

    def __enter__(self) -> Self:
        self._require_new()
        try:
            presses.watch(self)
            self._enter()
            if self._leased:
                self.world.heart.watch(self._renew)
        except BaseException:
            self._over(None)
            presses.forget(self)
            raise
        return self

    @property
    def shielded(self) -> bool:
        """Do steps run that belong together, so that Ctrl-C is only noted?"""
        return self._shield or self._lent

    def _again(self) -> bool:
        """Was Ctrl-C pressed once more, so that no grace is waited for?"""
        return self._hasty or (self._pressed and self._kept is not None)

    def press(self) -> None:
        """Ctrl-C was pressed in such a step; it is met at the next effect."""
        self._pressed = True
        self._wakes.put(None)

    def _over(self, outcome: Outcome | None) -> None:
        self.world.heart.forget(self._renew)
        self._drop_stream()  # still open where Ctrl-C struck between two of its pieces
        super()._over(outcome)

    def _renew(self) -> None:
        """Called by the heart, on its thread. A store that fails here is noticed at the turn's next append."""
        waits = self._renewal()
        if waits is not None:
            with suppress(Exception):
                trampoline(waits, lambda step: portal_wait(self.world, step))

    def __exit__(self, _kind: object, error: BaseException | None, _where: object) -> None:
        self._wish = True
        try:
            if self.finished:
                self._come_out()
            for _ in () if self.finished else self._events():
                pass
        finally:
            presses.forget(self)
            if error is not None and self.outcome is not None and not hasattr(error, "outcome"):
                with suppress(AttributeError):  # others' exceptions carry it as far as they let us
                    error.outcome = self.outcome  # type: ignore[attr-defined]  # for whoever catches it

    def __iter__(self) -> Iterator[Event]:
        self._require_entered()
        return self._events()

    def result(self) -> Outcome:
        """Read the stream to its end and give back the outcome. Raises what ended the turn, where that was an error."""
        self.run.heard = self._heard
        with self:
            self._drive()
        assert self.outcome is not None
        return self.outcome

    def _events(self) -> Iterator[Event]:
        while (effect := self._standing or self._advance()) is not None:
            self._settle(effect)
            if isinstance(effect, Emit):
                yield effect.event
        self._come_out()

    def _drive(self) -> None:
        """Play the turn to its end; nobody reads its events."""
        while (effect := self._standing or self._advance()) is not None:
            if isinstance(effect, NextResult) and self._lends:
                self._lend(effect)
            else:
                self._settle(effect)
        self._come_out()

    def _lend(self, effect: NextResult) -> None:
        self._lent = True
        try:
            Carrier(self, effect).lend()
        finally:
            self._lent = False

    def _come_out(self) -> None:
        """The turn is over: what was kept until then, as a Ctrl-C, comes out."""
        if self._pressed:
            self._pressed, self._kept = False, self._kept or KeyboardInterrupt()
        if self._kept is not None:
            kept, self._kept = self._kept, None
            kept.outcome = self.outcome  # type: ignore[attr-defined]  # for whoever catches Ctrl-C
            raise kept

    @property
    def _lends(self) -> bool:
        """May a worker carry the turn on from the result that is waited for?"""
        return self._carried and self._schedule.single and not (self._leaving or self.run.finishing or self._wished)

    @cached_property
    def _carried(self) -> bool:
        """Does nothing in a round belong to the caller's thread? Hooks and stores that block do, and the drive would come back
        at once; so does users' code that the engine runs (validators of arguments and of output), which nobody can leave.
        """
        home, hooks = self.run.home, self.world.hooks
        if self._heard or self.run.request.output is not None or any(map(hooks.has, IN_ROUND)):
            return False
        stores = home is None or not self.run.inside or hooks.store(home.name) is not None
        return stores and all(tool.signature.plain for tool in self.run.tools.values())

    def _settle(self, effect: Effect[Any]) -> None:
        """Perform an effect and keep its answer, or what is to be thrown in its place."""
        try:
            if self._pressed:
                self._pressed, self._kept, self._wish = False, self._kept or KeyboardInterrupt(), True
            self._answered(self._perform(effect))
        except BaseException as error:
            self._failed(effect, error)

    def _failed(self, effect: Effect[Any], error: BaseException) -> None:
        """Throw what happened in place of the answer. Ctrl-C ends the turn in order and comes out once that is done; pressed
        again, it spares the grace.
        """
        self._shield = True
        try:
            if isinstance(error, KeyboardInterrupt):
                self._hasty = self._kept is not None
                self._kept, self._wish = self._kept or error, True
                if not self._may_leave(effect):
                    self._once_more(effect)
                    return
                self._drop_stream()
                self._leaving, error = True, Cancelled()
            if isinstance(effect, NextResult):
                self._given = None  # what was to be given was not taken
            self._error = error
            self._standing = None
        finally:
            self._shield = False

    def _once_more(self, effect: Effect[Any]) -> None:
        """Ctrl-C came in an effect that may not be left: it is performed again, which stores take for a repeated batch. Plugins
        that were asked are not asked twice.
        """
        try:
            if isinstance(effect, CallHook | Emit):
                self._answered([] if isinstance(effect, CallHook) else None)
            else:
                self._answered(self._perform(effect))
        except BaseException as error:
            self._error = error
            self._standing = None

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

    def _sleep(self, effect: Sleep) -> None:
        self._woken.wait(effect.seconds)
        self._check()

    def _store(self, effect: Store) -> Any:
        """A store that never blocks is called where we are, and Ctrl-C does not cut what it writes in two."""
        store = self.world.hooks.store(effect.memory)
        if store is None:
            return self._play(self._stored(effect))
        self._shield = True
        try:
            return store(effect.batch)
        finally:
            self._shield = False

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
        self._wakes.put(None)
        waiting = self._waiting
        if waiting is not None and self._may_leave(self._now):
            waiting.cancel()
        self._abort()

    def _abort(self) -> None:
        """Let the provider that is asked end its answer."""
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
        return self._received(*pull(self._stream))

    def _received(self, piece: Any, error: BaseException | None) -> Any:
        """What came of the provider's stream. Raises `ProviderError`, also for what else a provider raised."""
        assert self._asked is not None
        provider = self._asked[0]
        last = error is not None or piece is None or isinstance(piece, Reply)
        if last:
            self._drop_stream()
        if error is not None and not isinstance(error, Exception):
            raise error
        if self._wish or self.live.cancelled:
            self._check()
        if error is None:
            return whole(provider, piece) if last else piece
        if isinstance(error, ProviderError):
            raise error
        raise foreign(provider, error) from error

    def _drop_stream(self) -> None:
        """Close the stream; one that cannot be closed is told in a warning."""
        trouble = shut(self._stream)
        if trouble is not None:
            self._not_closed(trouble)
        self._stream = self._asked = None

    def _complete(self, request: ModelRequest) -> Reply:
        """Ask the turn's model for a plugin."""
        provider = self._provider(self.run.facts.reference)
        return last_reply(provider, self._pieces(provider, request))

    async def _acomplete(self, request: ModelRequest) -> Reply:
        from .edges import complete

        return await complete(self._provider(self.run.facts.reference), request)


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
