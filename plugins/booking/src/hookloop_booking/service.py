"""The booking desk: the only writer of the tickets table.

Tools, REST and pages all go through one `BookingService`. A change is one conditional UPDATE, so of several who want
the same ticket at the same moment exactly one gets it, whatever the database and however many processes.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from sqlalchemy import Connection, Row, select, update

from .matching import match, nearest
from .reading import read_route
from .schema import STATE_ROW, open_engine, prepare, state, tickets
from .tickets import Action, BookingError, Change, Code, Status, Ticket

Listener: TypeAlias = Callable[[Change], None]

DEFAULT_URL = "sqlite:///booking.db"

_log = logging.getLogger(__name__)


class BookingService:
    """Lists, books and cancels tickets.

    Arguments: `url`, any SQLAlchemy URL; `clock`, the time in epoch seconds. The tables and three free tickets are made
    when they are missing. All methods may be called from any thread; database errors are SQLAlchemy's.
    """

    def __init__(self, url: str = DEFAULT_URL, *, clock: Callable[[], float] = time.time) -> None:
        self._engine = open_engine(url)
        self._clock = clock
        self._listeners: list[Listener] = []
        self._lock = threading.Lock()
        prepare(self._engine)

    def tickets(self, status: Status | None = None) -> tuple[Ticket, ...]:
        """All tickets, or those with a status, by id."""
        query = select(tickets).order_by(tickets.c.id)
        if status is not None:
            query = query.where(tickets.c.status == status)
        with self._engine.connect() as connection:
            return tuple(_ticket(row) for row in connection.execute(query))

    def available(self) -> tuple[Ticket, ...]:
        """The free tickets, by id."""
        return self.tickets("free")

    def booked(self) -> tuple[Ticket, ...]:
        """The booked tickets, by id."""
        return self.tickets("booked")

    def version(self) -> int:
        """How many changes were ever made in this database, by whatever process. Cheap enough for a page to poll it."""
        with self._engine.connect() as connection:
            return _version(connection)

    def book(self, wanted: str = "") -> Ticket:
        """Book the ticket that `wanted` means; the first free one by id when it leaves the choice open.

        Raises `BookingError`: no_match, ambiguous, taken, nothing_free.
        """
        while True:
            candidates = self._candidates(wanted, "free", "taken", "nothing_free")
            if changed := self._change(candidates[0].id, "booked"):
                return changed
            # Somebody was faster by a moment. Looking again finds the next ticket, or says that it is taken.

    def cancel(self, wanted: str = "") -> Ticket:
        """Free the booked ticket that `wanted` means; a blank `wanted` means the only booked one.

        Raises `BookingError`: no_match, ambiguous, not_booked, nothing_booked.
        """
        while True:
            candidates = self._candidates(wanted, "booked", "not_booked", "nothing_booked")
            if len(candidates) > 1:
                raise BookingError("ambiguous", candidates, wanted)
            if changed := self._change(candidates[0].id, "cancelled"):
                return changed

    def book_id(self, ticket_id: int) -> Ticket:
        """Book exactly this ticket. Raises `BookingError`: no_match, taken."""
        return self._change(ticket_id, "booked") or self._refuse(ticket_id, "taken")

    def cancel_id(self, ticket_id: int) -> Ticket:
        """Free exactly this ticket. Raises `BookingError`: no_match, not_booked."""
        return self._change(ticket_id, "cancelled") or self._refuse(ticket_id, "not_booked")

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` after each change made through this object, in the thread that made it.

        Returns a function that ends it. Changes of other processes are told by `version` alone. A listener that raises
        is logged and changes nothing.
        """
        with self._lock:
            self._listeners.append(listener)
        return lambda: self._unsubscribe(listener)

    def close(self) -> None:
        """Free the database connections."""
        self._engine.dispose()

    def _candidates(self, wanted: str, status: Status, wrong: Code, nothing: Code) -> tuple[Ticket, ...]:
        """The tickets with `status` that `wanted` may mean, at least one: of one route, or all for an open choice."""
        fitting = match(wanted, self.tickets())
        usable = tuple(ticket for ticket in fitting.found if ticket.status == status)
        if fitting.is_open and not usable:
            raise BookingError(nothing)
        if not fitting.found:
            raise BookingError("no_match", fitting.nearest, wanted)
        if not usable:
            raise BookingError(wrong, fitting.found, wanted)
        if not fitting.is_open and len({read_route(ticket.route) for ticket in usable}) > 1:
            raise BookingError("ambiguous", usable, wanted)
        return usable

    def _change(self, ticket_id: int, action: Action) -> Ticket | None:
        """Change one ticket, if it is as it must be; None if not."""
        before, after = ("free", "booked") if action == "booked" else ("booked", "free")
        booked_at = self._clock() if action == "booked" else None
        to_change = update(tickets).where(tickets.c.id == ticket_id, tickets.c.status == before)
        with self._engine.begin() as connection:
            if connection.execute(to_change.values(status=after, booked_at=booked_at)).rowcount != 1:
                return None
            connection.execute(update(state).values(version=state.c.version + 1))
            row = connection.execute(select(tickets).where(tickets.c.id == ticket_id)).one()
            change = Change(_version(connection), action, _ticket(row))
        self._tell(change)
        return change.ticket

    def _refuse(self, ticket_id: int, wrong: Code) -> Ticket:
        everything = self.tickets()
        there = tuple(ticket for ticket in everything if ticket.id == ticket_id)
        if there:
            raise BookingError(wrong, there, str(ticket_id))
        raise BookingError("no_match", nearest(str(ticket_id), everything), str(ticket_id))

    def _tell(self, change: Change) -> None:
        with self._lock:
            listeners: Sequence[Listener] = tuple(self._listeners)
        for listener in listeners:
            try:
                listener(change)
            except Exception:
                _log.exception("a listener failed; the ticket is %s all the same", change.action)

    def _unsubscribe(self, listener: Listener) -> None:
        with self._lock:
            if listener in self._listeners:
                self._listeners.remove(listener)


def _ticket(row: Row[tuple[int, str, str, float | None]]) -> Ticket:
    return Ticket(row.id, row.route, cast("Status", row.status), row.booked_at)


def _version(connection: Connection) -> int:
    return int(connection.execute(select(state.c.version).where(state.c.id == STATE_ROW)).scalar_one())
