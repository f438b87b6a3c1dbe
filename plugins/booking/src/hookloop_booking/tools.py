"""The four tools, made over one service. Results are plain JSON values that a model and a page both read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from hookloop_hookspecs import Tool, ToolError, tool

from .service import BookingService
from .tickets import BookingError, Ticket

_WHICH = (
    "Which ticket: a train number (G123), a route (Beijing to Shanghai, 北京到上海), or the ticket's id number. "
    "Leave it empty when the user named none."
)

Which = Annotated[str, Field(description=_WHICH, coerce_numbers_to_str=True, max_length=200)]


def ticket_json(ticket: Ticket) -> dict[str, Any]:
    """A ticket as tools and REST say it."""
    return {"id": ticket.id, "route": ticket.route, "status": ticket.status, "booked_at": ticket.booked_at}


def booking_tools(service: BookingService) -> tuple[Tool, ...]:
    """`list_available`, `list_booked`, `book` and `cancel` over `service`."""

    @tool(idempotent=True)
    def list_available() -> dict[str, Any]:
        """List the train tickets that are free."""
        return {"available": _all(service.available())}

    @tool(idempotent=True)
    def list_booked() -> dict[str, Any]:
        """List the train tickets that are booked."""
        return {"booked": _all(service.booked())}

    @tool
    def book(ticket: Which = "") -> dict[str, Any]:
        """Book one train ticket. With no ticket named, the first free one by id is taken."""
        try:
            return {"done": "booked", "ticket": ticket_json(service.book(ticket))}
        except BookingError as error:
            raise _for_the_model(error) from error

    @tool
    def cancel(ticket: Which = "") -> dict[str, Any]:
        """Cancel one booked train ticket. None need be named when exactly one is booked."""
        try:
            return {"done": "cancelled", "ticket": ticket_json(service.cancel(ticket))}
        except BookingError as error:
            raise _for_the_model(error) from error

    return list_available, list_booked, book, cancel


def _all(tickets: Sequence[Ticket]) -> list[dict[str, Any]]:
    return [ticket_json(ticket) for ticket in tickets]


def _for_the_model(error: BookingError) -> ToolError:
    told = {"error": error.code, "message": str(error), "wanted": error.wanted, "tickets": _all(error.tickets)}
    return ToolError(json.dumps(told, ensure_ascii=False))
