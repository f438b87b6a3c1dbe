"""Which tickets does a text mean? Pure functions, over whatever has an id and a route.

Everything said must fit: a wish that names an unknown place matches nothing, rather than something near to it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Generic, Protocol, TypeVar

from .reading import Wish, in_chinese, normal, read_route, read_wish


class Named(Protocol):
    """What can be matched: a thing with an id and a route."""

    @property
    def id(self) -> int:
        """The number of the ticket."""

    @property
    def route(self) -> str:
        """The route, "Beijing-Shanghai G123"."""


N = TypeVar("N", bound=Named)


@dataclass(frozen=True, slots=True)
class Match(Generic[N]):
    """The tickets that fit, by id; where none does, the `nearest` ones. `is_open`: the text leaves the choice open."""

    found: tuple[N, ...]
    nearest: tuple[N, ...] = ()
    is_open: bool = False


def match(text: str, tickets: Sequence[N]) -> Match[N]:
    """The tickets that `text` may mean: all of them when it leaves the choice open. Order is by id."""
    wish = read_wish(text, (ticket.route for ticket in tickets))
    ordered = sorted(tickets, key=lambda ticket: ticket.id)
    found = tuple(ordered) if wish.anything else _fitting(wish, ordered)
    return Match(found, () if found else nearest(text, ordered), wish.anything)


def nearest(text: str, tickets: Sequence[N], count: int = 3) -> tuple[N, ...]:
    """The `count` tickets whose names are most like `text`, the best first; ties by id."""
    ranked = sorted(tickets, key=lambda ticket: (-_likeness(text, ticket.route), ticket.id))
    return tuple(ranked[:count])


def _fitting(wish: Wish, tickets: Sequence[N]) -> tuple[N, ...]:
    if wish.strange or not wish.concrete:
        return ()
    by_id = tuple(ticket for ticket in tickets if _fits(wish, ticket, by_id=True))
    return by_id or tuple(ticket for ticket in tickets if _fits(wish, ticket, by_id=False))


def _fits(wish: Wish, ticket: Named, *, by_id: bool) -> bool:
    """Does all that is wished fit? Numbers are ids, or, where no ticket has them, train numbers without the letter."""
    route = read_route(ticket.route)
    digits = re.sub(r"\D", "", route.train)
    numbers = {ticket.id} if by_id else {int(digits or -1)}
    return (
        (not wish.trains or route.train in wish.trains)
        and (not wish.ids or not numbers.isdisjoint(wish.ids))
        and wish.origin in ("", route.origin)
        and wish.destination in ("", route.destination)
        and wish.place in ("", route.origin, route.destination)
    )


def _likeness(text: str, route: str) -> float:
    wanted = normal(text)
    names = (normal(route), normal(in_chinese(route)), read_route(route).train)
    return max(SequenceMatcher(None, wanted, name, autojunk=False).ratio() for name in names)
