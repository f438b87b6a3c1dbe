"""The booking page: the site of `hookloop-web`, with the two columns beside it and the bookings' routes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from hookloop_web import GuardOptions, Rooms, Site, SiteOptions
from hookloop_web.console import ConsoleOptions

from .board import Board, Watch
from .rest import booking_routes
from .service import BookingService

CSS: Final = Path(__file__).with_name("static") / "tickets.css"

EXAMPLES: Final = ("I want to book a ticket", "还有什么票？", "List my bookings", "What can you do?")


def booking_site(
    rooms: Rooms,
    service: BookingService,
    console: ConsoleOptions,
    guard: GuardOptions,
    close: Callable[[], Awaitable[None]],
) -> Site:
    """The whole page over an agent's rooms and a booking service. `close` is awaited at the end, before the service closes."""
    watch = Watch(service)

    async def end() -> None:
        await watch.stop()
        await close()
        service.close()

    options = SiteOptions("hookloop booking desk", _subtitle(console.model), console, guard, CSS.read_text("utf-8"))
    site = Site(rooms, options, aside=lambda: Board(watch), begin=watch.start, close=end)
    site.app.include_router(booking_routes(service))
    return site


def _subtitle(model: str) -> str:
    return f"Model: {model}" + (" (no API key is set, so simple rules answer)" if model.startswith("offline") else "")
