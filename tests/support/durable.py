"""Crash points on stores that outlive the process: one table for a quick sample and for the whole."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from crashing import (
    REPLIES,
    Hands,
    World,
    approve,
    assert_superseded,
    assert_whole,
    begin,
    finish,
    repeat,
    sampled,
    suspended,
)

from hookloop.testing import say
from hookloop.testing.crash import When
from hookloop_hookspecs import Entry, LoadQuery, hookimpl
from hookloop_hookspecs.storing import EntryTexts

DURABLE = ("sqlite", "postgresql", "redis", "mariadb")
WINDOW = {"window": {"messages": 8}}


@dataclass(frozen=True)
class Plan:
    """How a turn crashes and how it goes on.

    `replies` names what the model says; `before` prepares the conversation; `crash` plays up to a point; `after` goes on and
    looks at what is left.
    """

    name: str
    replies: str
    after: Callable[[World], None]
    crash: Callable[[World, int, When], bool] = begin
    before: Callable[[World], None] = lambda world: None
    config: dict[str, Any] | None = None

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    def survive(self, store: Any, conversation: str, step: int, first: int = 0) -> int:
        """Crash at every nth point on a store, each in a conversation of its own, and go on; the number of points."""
        worlds: dict[tuple[int, When], World] = {}
        hands = Hands()

        def play(at: int, when: When) -> bool:
            world = worlds[at, when] = World(
                REPLIES[self.replies], store.make, f"{conversation}-{at}{when}", self.config, hands
            )
            self.before(world)
            return self.crash(world, at, when)

        points = 0
        for point in sampled(play, step, first):
            points += 1
            self.after(worlds.pop(point))
        return points


@contextmanager
def warm(store: Any) -> Iterator[Any]:
    """The same store, whose processes find a connection open: they forget all else. To connect costs more than to play."""
    kept = store.make()
    kept.load_memory("any", LoadQuery())

    def make() -> Any:
        memory = copy.copy(kept)
        memory._texts = EntryTexts()
        memory.close = hookimpl(lambda: None)
        return memory

    yield replace(store, make=make)
    kept.close()


def resumed(world: World) -> None:
    """A new process resumes, or begins where nothing was stored."""
    assert finish(world)
    assert_whole(world)


def repeated(world: World) -> None:
    """A new process is given the same turn id."""
    text = repeat(world)
    requests = len(world.requests)
    assert repeat(world) == text
    assert len(world.requests) == requests
    assert_whole(world)


def earlier(world: World) -> None:
    """Closed turns that the window partly holds."""
    world.put(_earlier())


@functools.cache
def _earlier() -> tuple[Entry, ...]:
    world = World([say("earlier")])
    with world.agent() as agent:
        for at in range(3):
            agent.run(f"before {at}", conversation=world.conversation)
    return tuple(world.stored())


PLANS = [
    *(Plan(f"{name} resumed", name, resumed) for name in REPLIES),
    *(Plan(f"{name} repeated", name, repeated) for name in ("three rounds", "direct", "approval")),
    *(Plan(f"{name} superseded", name, assert_superseded) for name in REPLIES),
    Plan("approved resumed", "approval", resumed, approve, suspended),
    Plan("approved superseded", "approval", assert_superseded, approve, suspended),
    Plan("in a window resumed", "three rounds", resumed, before=earlier, config=WINDOW),
    Plan("in a window superseded", "three rounds", assert_superseded, before=earlier, config=WINDOW),
]
