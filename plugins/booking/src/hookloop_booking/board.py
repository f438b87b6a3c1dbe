"""The two columns of the page, and what keeps them fresh."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final

from nicegui.element import Element
from nicegui.events import GenericEventArguments
from sqlalchemy.exc import SQLAlchemyError

from .service import BookingService
from .tickets import BookingError
from .tools import ticket_json

POLL: Final = 1.0
"""Seconds between two looks at the version, which tells of changes by other processes."""

_log = logging.getLogger(__name__)


class Watch:
    """Tells listeners when a ticket changed, whoever changed it. Used in one event loop, from `start` to `stop`."""

    def __init__(self, service: BookingService) -> None:
        self.service = service
        self._listeners: list[Callable[[list[dict[str, Any]]], None]] = []
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._unsubscribe: Callable[[], None] | None = None

    def start(self) -> None:
        """Begin to look."""
        loop = asyncio.get_running_loop()
        self._unsubscribe = self.service.subscribe(lambda _: self._wake(loop))
        self._task = loop.create_task(self._look())

    async def stop(self) -> None:
        """Look no longer."""
        if self._unsubscribe is not None:
            self._unsubscribe()
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})

    def listen(self, listener: Callable[[list[dict[str, Any]]], None]) -> Callable[[], None]:
        """Tell `listener` all tickets after each change; gives back a function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    async def tickets(self) -> list[dict[str, Any]]:
        """All tickets as plain data."""
        return [ticket_json(ticket) for ticket in await asyncio.to_thread(self.service.tickets)]

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """A tool changed something, in its thread."""
        if not loop.is_closed():
            loop.call_soon_threadsafe(self._changed.set)

    async def _look(self) -> None:
        seen = -1
        while True:
            try:
                version = await asyncio.to_thread(self.service.version) if self._listeners else seen
                if version != seen:
                    seen = version
                    await self._tell()
            except SQLAlchemyError:
                _log.exception("the bookings cannot be read; trying again")
            await self._wait()

    async def _tell(self) -> None:
        tickets = await self.tickets()
        for listener in tuple(self._listeners):
            listener(tickets)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(POLL):
                await self._changed.wait()
        except TimeoutError:
            return
        self._changed.clear()


class Board(Element, component="static/tickets.js"):
    """Available tickets left, booked ones right."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self._watch = watch
        self.on("ask", self._ask)
        self.client.on_delete(watch.listen(self._show))

    def _show(self, tickets: list[dict[str, Any]]) -> None:
        with self.client:
            self.run_method("show", tickets)

    async def _ask(self, event: GenericEventArguments) -> None:
        wish = event.args if isinstance(event.args, dict) else {}
        ticket = wish.get("id")
        change = {"book": self._watch.service.book_id, "cancel": self._watch.service.cancel_id}.get(str(wish.get("do")))
        if change is not None and isinstance(ticket, int) and 0 < ticket < 2**31:
            try:
                await asyncio.to_thread(change, ticket)
            except BookingError as error:
                self.run_method("tell", str(error))
        self._show(await self._watch.tickets())
