"""What a ticket is, and what can go wrong with one: plain values, no database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Status: TypeAlias = Literal["free", "booked"]
Action: TypeAlias = Literal["booked", "cancelled"]
Code: TypeAlias = Literal["no_match", "ambiguous", "taken", "not_booked", "nothing_free", "nothing_booked"]

FIRST_TICKETS: Final = ("Beijing-Shanghai G123", "Shanghai-Hangzhou G456", "Guangzhou-Shenzhen D789")
"""The routes that are free at the first start, with the ids 1, 2 and 3."""

_TEXTS: Final[dict[Code, str]] = {
    "no_match": "no ticket matches {wanted!r}; the nearest: {names}",
    "ambiguous": "more than one ticket fits, say which: {names}",
    "taken": "already booked: {names}",
    "not_booked": "not booked, so there is nothing to cancel: {names}",
    "nothing_free": "no ticket is free",
    "nothing_booked": "no ticket is booked",
}


@dataclass(frozen=True, slots=True)
class Ticket:
    """A ticket. `route` is written "Beijing-Shanghai G123"; `booked_at` is in epoch seconds, None while it is free."""

    id: int
    route: str
    status: Status = "free"
    booked_at: float | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A ticket changed. `version` counts all changes of the database, so a gap tells that others changed it too."""

    version: int
    action: Action
    ticket: Ticket


class BookingError(Exception):
    """A booking or a cancellation that cannot be done. Nothing was changed.

    `code` says why, for programs; `tickets` are those that the text names (the nearest, the candidates, the taken
    ones); `wanted` is what was asked for.
    """

    def __init__(self, code: Code, tickets: tuple[Ticket, ...] = (), wanted: str = "") -> None:
        names = "; ".join(f"{ticket.id}: {ticket.route}" for ticket in tickets) or "none"
        super().__init__(_TEXTS[code].format(wanted=wanted, names=names))
        self.code: Code = code
        self.tickets = tickets
        self.wanted = wanted
