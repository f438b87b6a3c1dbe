"""The limit `seconds` counts the turn's own time, by a clock that the test turns on: no human's wait, in every way."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from ways import Expected, Scenario, all_ways

from hookloop import Limits, tool
from hookloop.drivers import base
from hookloop.limits import BREACHES
from hookloop.testing import call, say
from hookloop_hookspecs import Approve, Outcome


class Clock:
    """What turns take for the time. Whoever waits goes by the real one."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        patch.setattr(base, "time", SimpleNamespace(time=lambda: self.now, monotonic=lambda: self.now))

    def tools(self, notes: list[Any]) -> list[Any]:
        """Tools that take their time."""

        @tool
        def work(n: int) -> str:
            """Take ten seconds."""
            self.now += 10.0
            notes.append(n)
            return f"worked {n}"

        @tool(needs_approval=True)
        def pay(n: int) -> str:
            """Take none."""
            notes.append(n)
            return f"paid {n}"

        return [work, pay]

    def approve(self, outcome: Outcome) -> dict[str, Any]:
        """Take hours to approve."""
        assert outcome.status == "suspended"
        self.now += 10_000.0
        return {pending.id: Approve() for pending in outcome.pending}


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """A clock that stands still."""
    return Clock(monkeypatch)


def timed(clock: Clock, limits: Limits, calls: list[str], expected: Expected, **more: Any) -> None:
    """Play these calls and an answer in all ways."""
    script = [call(name, {"n": n}, id=f"c{n}") for n, name in enumerate(calls)] + [say("late")]
    agent = {"limits": limits}
    all_ways(
        Scenario(
            "timed",
            lambda: list(script),
            lambda notes: {"tools": clock.tools(notes), **agent},
            expected=expected,
            **more,
        )
    )


@pytest.mark.parametrize("mode", BREACHES)
def test_a_turn_out_of_time_makes_no_further_request(clock: Clock, mode: Any) -> None:
    more = 1 if mode == "answer" else 0
    expected = Expected("limit", "seconds", 3 + more, 3, "late" if more else "")
    timed(clock, Limits(seconds=25, on_breach=mode), ["work"] * 3, expected)


def test_reaching_the_limit_is_no_breach(clock: Clock) -> None:
    timed(clock, Limits(seconds=20), ["work"] * 2, Expected("done", "end", 3, 2, "late"))


def test_the_time_before_a_wait_counts_and_the_wait_does_not(clock: Clock) -> None:
    expected = Expected("limit", "seconds", 3, 3)
    timed(clock, Limits(seconds=15), ["work", "pay", "work"], expected, resume=[clock.approve])


def test_a_wait_alone_uses_up_no_time(clock: Clock) -> None:
    expected = Expected("done", "end", 4, 3, "late")
    timed(clock, Limits(seconds=20), ["work", "pay", "work"], expected, resume=[clock.approve])
