"""The hook plugin: gives each turn the four tools and tells the model how to use them."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import BaseModel, ConfigDict

from hookloop_hookspecs import Message, Suspend, Tool, ToolCall, hookimpl
from hookloop_hookspecs.verdicts import Decision

from .service import DEFAULT_URL, BookingService
from .tools import booking_tools

INSTRUCTIONS: Final = (
    "You are the booking desk of a railway. Use the tools for everything about tickets; never invent a ticket, and say "
    "that something is booked or cancelled only after a tool said so. When the user wants a ticket and names none, "
    "call book with no ticket. When a tool says that several tickets fit, ask which one is meant. Answer briefly, in "
    "the user's language."
)


class BookingOptions(BaseModel):
    """`url`: where the tickets are, any SQLAlchemy URL. `approve`: tools that wait for a person's approval."""

    model_config = ConfigDict(extra="forbid")

    url: str = DEFAULT_URL
    approve: list[Literal["book", "cancel", "list_available", "list_booked"]] = []


class BookingPlugin:
    """Booking tools for any agent.

    Arguments: `options`, as config gives them; `service`, an open one to share with a page, which then stays the
    caller's to close.
    """

    name = "booking"
    Options = BookingOptions

    def __init__(self, options: BookingOptions | None = None, *, service: BookingService | None = None) -> None:
        self._options = options or BookingOptions()
        self._owned = service is None
        self.service = service or BookingService(self._options.url)
        self._tools = booking_tools(self.service)

    @hookimpl
    def register_tools(self) -> tuple[Tool, ...]:
        """The four tools."""
        return self._tools

    @hookimpl
    def before_turn(self) -> Message:
        """How to use them, as system text."""
        return Message.system(INSTRUCTIONS)

    @hookimpl
    def before_tool(self, call: ToolCall, decision: Decision | None) -> Suspend | None:
        """Let the tools named in `approve` wait for a person."""
        if decision is not None or call.name not in self._options.approve:
            return None
        return Suspend(f"May the desk {call.name} a ticket?")

    @hookimpl
    def close(self) -> None:
        """Free the database, unless it is the caller's."""
        if self._owned:
            self.service.close()
