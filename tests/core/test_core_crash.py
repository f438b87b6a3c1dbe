"""Stopping before and after every effect, forgetting all but the store, and going on: nothing is lost, doubled or unpaired."""

from __future__ import annotations

import pytest
from crashing import REPLIES, World, approve, assert_superseded, assert_whole, begin, finish, repeat, suspended

from hookloop.testing.crash import When, crash_points


@pytest.mark.parametrize("name", REPLIES)
def test_every_crash_point_is_survived_by_a_resume(name: str) -> None:
    worlds: dict[tuple[int, When], World] = {}

    def play(at: int, when: When) -> bool:
        world = worlds[at, when] = World(REPLIES[name])
        return begin(world, at, when)

    points = 0
    for point in crash_points(play):
        points += 1
        assert finish(worlds[point])
        assert_whole(worlds[point])
    assert points > 20


@pytest.mark.parametrize("name", REPLIES)
def test_every_crash_point_is_survived_by_the_same_turn_id(name: str) -> None:
    worlds: dict[tuple[int, When], World] = {}

    def play(at: int, when: When) -> bool:
        world = worlds[at, when] = World(REPLIES[name])
        return begin(world, at, when)

    for point in crash_points(play):
        text = repeat(worlds[point])
        requests = len(worlds[point].requests)
        assert repeat(worlds[point]) == text
        assert len(worlds[point].requests) == requests
        assert_whole(worlds[point])


@pytest.mark.parametrize("name", REPLIES)
def test_every_crash_point_is_survived_by_a_new_message(name: str) -> None:
    worlds: dict[tuple[int, When], World] = {}

    def play(at: int, when: When) -> bool:
        world = worlds[at, when] = World(REPLIES[name])
        return begin(world, at, when)

    for point in crash_points(play):
        assert_superseded(worlds[point])


def test_a_crash_while_a_suspended_turn_is_resumed_runs_the_approved_call_at_most_once() -> None:
    worlds: dict[tuple[int, When], World] = {}

    def play(at: int, when: When) -> bool:
        world = worlds[at, when] = World(REPLIES["approval"])
        suspended(world)
        return approve(world, at, when)

    for point in crash_points(play):
        finish(worlds[point])
        assert_whole(worlds[point])
