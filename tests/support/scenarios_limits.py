"""The scenarios of limits: each limit in each breach mode, with what it must come to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scenarios import prolific, scenario
from ways import Expected, Scenario

from hookloop import Limits
from hookloop.limits import BREACHES
from hookloop.testing import call, reply, say
from hookloop_hookspecs import Usage

PRICED = Usage(10, 5, total=15, cost=0.5)


def stubborn(n: int) -> list[Any]:
    """A model that makes the same call n times, then answers."""
    return [call("edit", {"path": "same"}, id=f"c{i}") for i in range(n)] + [say("done")]


def unlucky(n: int) -> list[Any]:
    """A model whose calls fail n times, then answers."""
    return [call("boom", id=f"c{i}") for i in range(n)] + [say("done")]


def costly(n: int) -> list[Any]:
    """A model whose n calls cost something, then answers."""
    return [reply(call("edit", {"path": str(i)}, id=f"c{i}"), usage=PRICED) for i in range(n)] + [say("done")]


def cut(n: int) -> list[Any]:
    """A model whose replies are cut within their call n times, then answers."""
    calls = [call("edit", {"path": str(i)}, id=f"c{i}") for i in range(n)]
    return [*(reply(one, stop="length") for one in calls), say("done")]


def many(n: int) -> list[Any]:
    """A model that makes n calls in one reply, one after the other, then answers."""
    return [[call("alone", {"n": i}, id=f"c{i}") for i in range(n)], say("done")]


@dataclass(frozen=True)
class Limited:
    """A limit, and what it lets through: `ran` calls and `requests`, where the breach ends the turn.

    `model` makes the script, of `length` replies with calls. `of_calls` says that the limit is about calls, so that with
    "error_result" the turn goes on: then it comes to `went_on` requests. The one more reply of the mode "answer" is the
    next of the script, as it stands; its calls do not run.
    """

    name: str
    values: dict[str, Any]
    ran: int
    requests: int
    model: Callable[[int], list[Any]] = prolific
    length: int = 6
    reason: str = ""
    of_calls: bool = True
    went_on: int = 7

    def expected(self, mode: str) -> Expected:
        """What must come of it in this breach mode."""
        reason = self.reason or self.name
        if mode == "error_result" and self.of_calls:
            return Expected("done", "end", self.went_on, self.ran, "done")
        more = 1 if mode == "answer" else 0
        return Expected("limit", reason, self.requests + more, self.ran)

    def scenario(self, mode: str) -> Scenario:
        """The scenario of this limit in this breach mode."""
        limits = Limits(on_breach=mode, **self.values)  # type: ignore[arg-type]  # modes from the table
        return scenario(
            f"limit {self.name} {mode}", self.model(self.length), limits=limits, expected=self.expected(mode)
        )


LIMITS = [
    Limited("rounds", {"rounds": 3}, ran=3, requests=3, of_calls=False),
    Limited("tool_calls", {"tool_calls": 3}, ran=3, requests=4),
    Limited("per_tool", {"per_tool": 3}, ran=3, requests=4),
    Limited(
        "per_tool_overrides",
        {"per_tool": 1, "per_tool_overrides": {"edit": 2}},
        ran=2,
        requests=3,
        reason="per_tool",
    ),
    Limited("calls_per_reply", {"calls_per_reply": 2}, ran=2, requests=1, model=many, length=4, went_on=2),
    Limited("repeated", {"repeated": 2}, ran=2, requests=3, model=stubborn),
    Limited("errors", {"errors": 2}, ran=2, requests=3, model=unlucky),
    Limited("tokens", {"tokens": 40}, ran=3, requests=3, of_calls=False),
    Limited("cost", {"cost": 1.0}, ran=3, requests=3, model=costly, of_calls=False),
    Limited("seconds", {"seconds": 0}, ran=0, requests=0, of_calls=False),
    Limited("truncated", {"truncated": 2}, ran=0, requests=2, model=cut, of_calls=False),
]


def polite() -> list[Any]:
    """A model that calls for ever, and answers where it may not."""
    return [_civil] * 8


def _civil(request: Any) -> Any:
    if request.tool_choice == "none":
        return say("all I know")
    return call("edit", {"path": str(request.round)}, id=f"c{request.round}")


NEVER_REACHED = [
    scenario("limit per_tool_overrides lifts", prolific(3), limits=Limits(per_tool=1, per_tool_overrides={"edit": 3}),
             expected=Expected("done", "end", 4, 3, "done")),
    scenario("limit cost of unknown prices", prolific(3), limits=Limits(cost=0.0),
             expected=Expected("done", "end", 4, 3, "done")),
    scenario("limit cost just met", costly(2), limits=Limits(cost=1.0), expected=Expected("done", "end", 3, 2, "done")),
    scenario("limit truncated of answers", [reply(say("so far"), stop="length")], limits=Limits(truncated=1),
             expected=Expected("done", "length", 1, 0, "so far")),
]  # fmt: skip

LIMITED = [
    *(limited.scenario(mode) for limited in LIMITS for mode in BREACHES),
    *(
        scenario(
            f"limit {name} answered",
            polite,
            limits=Limits(on_breach="answer", **{name: value}),  # type: ignore[arg-type]  # names from the table
            expected=Expected("limit", name, requests, ran, "all I know"),
        )
        for name, value, requests, ran in (("tool_calls", 2, 4, 2), ("rounds", 2, 3, 2), ("seconds", 0, 1, 0))
    ),
    *NEVER_REACHED,
]
"""Every limit in every breach mode, and limits that are not passed."""
