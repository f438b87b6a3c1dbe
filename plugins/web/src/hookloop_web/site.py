"""One web application: the guard, the chat API, the page, and what another distribution adds to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from fastapi import FastAPI, Request
from nicegui import ui

from .api import chat_routes
from .console import Console, ConsoleOptions
from .guard import Guard, GuardOptions, session_of
from .rooms import Rooms

CSS: Final = Path(__file__).with_name("static") / "page.css"

Aside: TypeAlias = Callable[[], Any]
"""Puts further elements beside the console, when a page is built."""


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """How the page looks. `title` and `subtitle` stand above it; `css` is further style."""

    title: str = "hookloop"
    subtitle: str = ""
    console: ConsoleOptions = field(default_factory=ConsoleOptions)
    guard: GuardOptions = field(default_factory=GuardOptions)
    css: str = ""
    chat_api: bool = True


class Site:
    """The application of one agent's page; one in a process, since NiceGUI's pages are the process's.

    Arguments: `rooms`; `options`; `aside`, puts elements beside the console; `begin`, called in the event loop at the start;
    `close`, awaited at the end, after all turns have ended. `app` is a FastAPI application, to which routes may be added.
    """

    def __init__(
        self,
        rooms: Rooms,
        options: SiteOptions,
        *,
        aside: Aside | None = None,
        begin: Callable[[], None] | None = None,
        close: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        self.rooms = rooms
        self.options = options
        self._aside = aside
        self._begin = begin
        self._close = close
        self.app = FastAPI(title=options.title, version="0.1.0", lifespan=self._life, docs_url=None, redoc_url=None)
        self.app.add_middleware(Guard, options=options.guard)
        if options.chat_api:
            self.app.include_router(chat_routes(rooms))
        ui.page("/", title=options.title)(self._page)

    def finish(self) -> FastAPI:
        """Put the page behind all routes that were added; the application is whole then."""
        ui.run_with(
            self.app,
            title=self.options.title,
            dark=None,
            language="en-US",
            tailwind=False,
            show_welcome_message=False,
            reconnect_timeout=10.0,
            binding_refresh_interval=None,
        )
        return self.app

    @asynccontextmanager
    async def _life(self, _: FastAPI) -> AsyncIterator[None]:
        if self._begin is not None:
            self._begin()
        try:
            yield
        finally:
            await self.rooms.close()
            if self._close is not None:
                await self._close()

    async def _page(self, request: Request, c: str = "") -> None:
        session = session_of(request.scope)
        known = self.rooms.may_open(session, c)
        conversation = c if known else await self.rooms.newest(session)
        ui.add_css(CSS.read_text("utf-8") + self.options.css)
        with ui.element("div").classes("hl-page"):
            with ui.element("header").classes("hl-title"):
                with ui.element("h1"):
                    ui.label(self.options.title)
                if self.options.subtitle:
                    ui.label(self.options.subtitle)
            with ui.element("div").classes("hl-main"):
                if self._aside is not None:
                    self._aside()
                Console(self.rooms, session, conversation, self.options.console)
