"""The scenarios of the parity table, stopped before and after every effect: nothing is lost, doubled or unpaired."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import pytest
from crashing_scenarios import World, points, survive, uncrashed
from scenarios import PARALLEL, SCENARIOS, Notes
from scenarios_leaving import LEAVING
from scenarios_limits import LIMITED
from scenarios_verdicts import VERDICTS
from ways import Scenario

STEP = 5
"""In the short run every nth point alone is played."""
FEWEST = 8
"""Points of the shortest turns: those that never begin."""
OTHERWISE = {
    "sent while a tool runs": "what is sent in is with the process until it is stored",
    "another model is asked for the rest of the turn": "a new process asks the agent's own model again",
    **{one.name: "the wish to leave dies with its process" for one in LEAVING},
}
"""Turns that may come to another end than without a crash, and why. They too lose, double and unpair nothing."""
WAITING = ("stop while a sibling runs", "cancel in the tool leave", "cancel in the tool leave_async")
"""Their tools wait for what a dead process never does."""


def table() -> list[Any]:
    """Every scenario that can be crashed; a stream that is left is not, since the crash is what leaves it."""
    every = [*SCENARIOS, *PARALLEL, *LIMITED, *VERDICTS, *LEAVING]
    played = [one for one in every if not one.leave and one.name not in WAITING]
    return [pytest.param(one, id=one.name) for one in played]


def crashed(scenario: Scenario, step: int = 1, first: int = 0) -> int:
    """Play the crash points of a scenario, those of its resumes too; gives back their number."""
    notes = Notes()
    whole = uncrashed(scenario, notes)
    count = 0
    for leg in range(len(scenario.resume) + 1):
        for world in points(partial(World, scenario, notes), leg, step, first):
            survive(world, whole, same=scenario.name not in OTHERWISE, again=count % 4 > 1)  # both before and after
            count += 1
    return count


@pytest.mark.parametrize("scenario", table())
def test_a_sample_of_crash_points_is_survived(scenario: Scenario) -> None:
    assert crashed(scenario, STEP, random.Random(scenario.name).randrange(STEP)) >= FEWEST // STEP


@pytest.mark.soak
@pytest.mark.parametrize("scenario", table())
def test_every_crash_point_is_survived(scenario: Scenario) -> None:
    assert crashed(scenario) >= FEWEST
