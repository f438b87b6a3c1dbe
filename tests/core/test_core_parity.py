"""Every scenario in four ways and two transports: the same requests, the same events, the same history."""

from __future__ import annotations

import pytest
from scenarios import PARALLEL, SCENARIOS
from scenarios_leaving import LEAVING
from scenarios_limits import LIMITED
from scenarios_verdicts import VERDICTS
from ways import TRANSPORTS, WAYS, Scenario, all_ways, play


@pytest.mark.parametrize("scenario", [*SCENARIOS, *LIMITED, *VERDICTS, *LEAVING], ids=lambda scenario: scenario.name)
def test_all_ways_show_the_same(scenario: Scenario) -> None:
    all_ways(scenario)


@pytest.mark.parametrize("scenario", PARALLEL, ids=lambda scenario: scenario.name)
def test_parallel_calls_show_the_same_but_for_the_order_in_time(scenario: Scenario) -> None:
    first = play(scenario, "run")
    for way in WAYS:
        for transport in TRANSPORTS:
            seen = play(scenario, way, transport)
            assert seen.requests == first.requests
            assert seen.stored == first.stored
            assert sorted(map(repr, seen.events)) == sorted(map(repr, first.events))
            assert sorted(map(repr, seen.notes)) == sorted(map(repr, first.notes))
