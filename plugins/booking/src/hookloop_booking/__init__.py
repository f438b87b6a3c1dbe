"""A train booking desk for hookloop."""

from .plugin import BookingPlugin, Options
from .service import BookingService
from .tickets import BookingError, Change, Ticket
from .tools import booking_tools, ticket_json

__all__ = ["BookingError", "BookingPlugin", "BookingService", "Change", "Options", "Ticket", "booking_tools", "ticket_json"]
