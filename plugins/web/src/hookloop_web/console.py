"""The page's console: one NiceGUI element that shows a room and passes on what a person wants.

What must live here: the seam between the room and the browser, batched. What must never be known here: what is drawn
(`static/`), how a turn runs (`room`).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from nicegui import background_tasks
from nicegui.element import Element
from nicegui.events import GenericEventArguments
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hookloop_hookspecs import HookloopError

from .agents import Told
from .guard import Buckets
from .room import Busy, Room, decision_of
from .rooms import Rooms
from .story import Op

FLUSH: Final = 0.05
"""Seconds for which changes are gathered before they go to the browser."""

LONGEST_DETAIL: Final = 400_000


class Wish(BaseModel):
    """What the browser asks for."""

    model_config = ConfigDict(extra="forbid")

    do: Literal["ready", "say", "cancel", "decide", "detail", "open", "fresh", "go_on"]
    text: str = Field(default="", max_length=200_000)
    conversation: str = ""
    call: str = ""
    verdict: str = ""
    reason: str = Field(default="", max_length=10_000)
    arguments: str | None = Field(default=None, max_length=200_000)
    turn: str = ""
    what: int | str = ""


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """What the console says beside the conversation.

    `model`, its name; `limits`, by name, None where there is none; `examples`, first questions; `readonly`, a recorded trace.
    """

    model: str = ""
    limits: Mapping[str, float | None] | None = None
    examples: Sequence[str] = ()
    readonly: bool = False


class Console(Element, component="static/console.js", esm={"hookloop-web": "static"}):
    """Chat and timeline of one conversation at a time.

    Arguments: `rooms`; `session`, whose browser it is; `conversation`, which one is opened; `options`.
    """

    def __init__(self, rooms: Rooms, session: str, conversation: str, options: ConsoleOptions) -> None:
        super().__init__()
        self._rooms = rooms
        self._session = session
        self._conversation = conversation
        self._options = options
        self._room: Room | None = None
        self._stop: Callable[[], None] = _nothing
        self._ops: list[Op] = []
        self._flushing: asyncio.TimerHandle | None = None
        self._bucket = Buckets(5.0, 30, time.monotonic)
        self._does: dict[str, Callable[[Wish], Awaitable[None]]] = {
            "ready": self._ready,
            "say": self._say,
            "cancel": self._cancel,
            "decide": self._decide,
            "detail": self._detail,
            "open": self._open,
            "fresh": self._fresh,
            "go_on": self._go_on,
        }
        self.on("ask", self._ask)
        self.client.on_delete(self._leave)

    async def _ask(self, event: GenericEventArguments) -> None:
        """Do what the browser asks; what is wrong with it is said on the page."""
        try:
            wish = Wish.model_validate(event.args)
            if self._bucket.take("") > 0:
                raise Busy("that was too much at once; wait a moment")
            if self._options.readonly and wish.do in ("say", "decide", "go_on", "fresh"):
                raise Busy("a recorded trace can only be looked at")
            await self._does[wish.do](wish)
        except ValidationError as error:
            self.run_method("tell", f"that cannot be sent: {error.errors()[0]['msg']}")
        except (Busy, ValueError, HookloopError) as error:
            self.run_method("tell", str(error))

    async def _ready(self, _: Wish) -> None:
        await self._enter(self._conversation)

    async def _open(self, wish: Wish) -> None:
        if not self._rooms.may_open(self._session, wish.conversation):
            raise Busy("that conversation is not yours")
        await self._enter(wish.conversation)

    async def _fresh(self, _: Wish) -> None:
        await self._enter(self._rooms.new_id(self._session))

    async def _say(self, wish: Wish) -> None:
        if wish.text.strip():
            room = self._entered()
            if not room.running:
                self._rooms.check_room()
            room.say(wish.text)

    async def _cancel(self, _: Wish) -> None:
        self._entered().cancel()

    async def _go_on(self, _: Wish) -> None:
        self._entered().go_on()

    async def _decide(self, wish: Wish) -> None:
        room = self._entered()
        waiting = room.story.waiting
        if wish.call not in waiting:
            raise Busy("that call waits no longer")
        room.decide(wish.call, decision_of(wish.verdict, wish.reason, wish.arguments, waiting[wish.call]))

    async def _detail(self, wish: Wish) -> None:
        parts = self._entered().story.detail(wish.turn, wish.what)
        title = f"Round {wish.what}" if isinstance(wish.what, int) else "Details"
        if parts:
            shown = [(name, _bounded(text)) for name, text in parts]
            self.run_method("show", {"title": title, "parts": shown})

    def _entered(self) -> Room:
        if self._room is None:
            raise Busy("the page is still opening")
        return self._room

    async def _enter(self, conversation: str) -> None:
        room = await self._rooms.open(conversation)
        listing = await self._rooms.listing(self._session)
        self._leave()
        self._room, self._conversation = room, conversation
        self._ops.clear()
        self._stop = room.listen(self._changed)
        whole = {"turns": room.story.state(), "conversation": conversation, "list": listing, "room": self._state()}
        options = {"limits": dict(self._options.limits or {}), "model": self._options.model}
        self.run_method("reset", {**whole, **options, "examples": list(self._options.examples)})

    def _leave(self) -> None:
        self._stop()
        self._stop = _nothing
        if self._flushing is not None:
            self._flushing.cancel()
            self._flushing = None

    def _state(self) -> dict[str, Any]:
        room = self._entered()
        state = {"running": room.running, "interrupted": room.interrupted, "trouble": self._trouble(room)}
        return {**state, "readonly": self._options.readonly}

    def _trouble(self, room: Room) -> str:
        """What went wrong, where no turn shows it."""
        last = room.story.last
        return "" if last is not None and last["error"] and last["error"] in room.trouble else room.trouble

    def _changed(self, told: Told | None, ops: list[Op]) -> None:
        if told is None:
            self._ops.append({"op": "room", "room": self._state()})
            background_tasks.create(self._relist(), name="conversation list")
        for op in ops:
            last = self._ops[-1] if self._ops else None
            if op["op"] == "text" and last is not None and last["op"] == "text" and last["key"] == op["key"]:
                last["text"] += op["text"]
            else:
                self._ops.append(op)
        self._flush_soon()

    async def _relist(self) -> None:
        listing = await self._rooms.listing(self._session)
        if self._stop is not _nothing:
            self._ops.append({"op": "list", "list": listing})
            self._flush_soon()

    def _flush_soon(self) -> None:
        if self._flushing is None and self._ops:
            self._flushing = asyncio.get_running_loop().call_later(FLUSH, self._flush)

    def _flush(self) -> None:
        self._flushing = None
        ops, self._ops = self._ops, []
        with self.client:
            self.run_method("apply", ops)


def _bounded(text: str) -> str:
    return (
        text
        if len(text) <= LONGEST_DETAIL
        else f"{text[:LONGEST_DETAIL]}\n… {len(text) - LONGEST_DETAIL} more characters"
    )


def _nothing() -> None:
    """Nobody listens."""
