"""The bookings over HTTP. The same service as the tools', so the same rules."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Path, Query
from pydantic import BaseModel

from hookloop_web.api import REFUSALS, Detail

from .service import BookingService
from .tickets import BookingError, Status, Ticket

TicketId = Annotated[int, Path(ge=1, le=2_147_483_647, description="The ticket's number")]

CHANGE: Final[dict[int | str, dict[str, Any]]] = {
    **REFUSALS,
    404: {"model": Detail, "description": "There is no such ticket"},
    409: {"model": Detail, "description": "It is booked already, or not booked"},
}


class TicketOut(BaseModel):
    """A ticket. `booked_at` is in epoch seconds, null while it is free."""

    id: int
    route: str
    status: Status
    booked_at: float | None

    @classmethod
    def of(cls, ticket: Ticket) -> TicketOut:
        """A ticket of the service."""
        return cls(id=ticket.id, route=ticket.route, status=ticket.status, booked_at=ticket.booked_at)


def booking_routes(service: BookingService) -> APIRouter:
    """The routes over this service. They are plain functions, which FastAPI runs in threads: the database may block."""
    router = APIRouter(prefix="/api/bookings", tags=["bookings"])

    @router.get("", responses=REFUSALS)
    def bookings(status: Annotated[Status | None, Query(description="Only these")] = None) -> list[TicketOut]:
        """All tickets by id, or those with a status."""
        return [TicketOut.of(ticket) for ticket in service.tickets(status)]

    @router.post("/{ticket_id}/book", responses=CHANGE)
    def book(ticket_id: TicketId) -> TicketOut:
        """Book exactly this ticket."""
        return _changed(service.book_id, ticket_id)

    @router.post("/{ticket_id}/cancel", responses=CHANGE)
    def cancel(ticket_id: TicketId) -> TicketOut:
        """Free exactly this ticket."""
        return _changed(service.cancel_id, ticket_id)

    return router


def _changed(change: Any, ticket_id: int) -> TicketOut:
    try:
        return TicketOut.of(change(ticket_id))
    except BookingError as error:
        raise HTTPException(404 if error.code == "no_match" else 409, str(error)) from error
