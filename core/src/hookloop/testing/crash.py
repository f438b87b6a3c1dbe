"""Crash points: stop a turn before or after any of its effects, forget all but the store, and see what a new process does.

The crash is as hard as it can be made in one process: the engine gets no chance to close anything. The agent's claim is in
the name of a process that is dead, so that the next agent takes over at once, as it would after a kill.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from hookloop.agent import Agent
from hookloop.drivers.sync import SyncRun
from hookloop.engine.effects import Effect

When: TypeAlias = Literal["before", "after"]
DEAD = 2**22 + 1
"""A process id that no process has (Linux gives none above 2**22)."""


class Crash(BaseException):
    """The process is gone."""


class _Crashing(SyncRun):
    """A run that crashes at its nth effect."""

    at = 0
    when: When = "before"
    count = 0

    def _failed(self, effect: Effect[Any], error: BaseException) -> None:
        if isinstance(error, Crash):
            raise error  # the engine is told nothing
        super()._failed(effect, error)

    def _perform(self, effect: Effect[Any]) -> Any:
        self.count += 1
        here = self.count == self.at
        if here and self.when == "before":
            raise Crash
        try:
            return super()._perform(effect)
        finally:
            if here:  # also where the effect failed: the process dies before it can be told
                raise Crash


def mortal(agent: Agent) -> Agent:
    """Let the agent claim its turns in the name of a dead process, so that others may take them over."""
    agent._setup = replace(agent._setup, owner=f"{socket.gethostname()}/{DEAD}/0.00")
    return agent


def crash(agent: Agent, start: Callable[[], SyncRun], at: int, when: When) -> bool:
    """Run what `start` begins (`lambda: agent.stream(…)`) and crash at effect number `at`, from 1.

    Tools that run at that moment come to their end unseen. The agent is closed. False when the turn ended before.
    """
    run = start()
    run.__class__ = _Crashing
    assert isinstance(run, _Crashing)
    run.at, run.when = at, when
    run._enter()
    try:
        for _ in run._events():
            pass
    except Crash:
        run._flow.close()  # a generator that is being closed can yield no effect, so nothing more is stored
        run.world.leave(run.live)
        return True
    except Exception:
        return False
    finally:
        agent.close()
    return False


def crash_points(play: Callable[[int, When], bool]) -> Iterator[tuple[int, When]]:
    """Every crash point of a turn: `play(at, when)` runs it anew up to there, and says whether it crashed.

    Yields each point after it was played, so that the caller can look at what is left; ends when a turn came to its end.
    """
    at = 0
    while True:
        at += 1
        for when in ("before", "after"):
            point: When = "before" if when == "before" else "after"
            if not play(at, point):
                return
            yield at, point
