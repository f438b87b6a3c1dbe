"""A train booking desk for hookloop."""

from .plugin import BookingOptions, BookingPlugin
from .service import BookingService
from .tickets import BookingError, Change, Ticket
from .tools import booking_tools, ticket_json

__all__ = [
    "BookingError",
    "BookingOptions",
    "BookingPlugin",
    "BookingService",
    "Change",
    "Ticket",
    "booking_tools",
    "ticket_json",
]
