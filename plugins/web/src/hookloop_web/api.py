"""`/api/chat`, `/api/chat/stream` and `/health`: the same conversations as the page's, for programs."""

from __future__ import annotations

import asyncio
import json
import uuid
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from hookloop_hookspecs.redact import redact

from .agents import Told
from .guard import session_of
from .room import Busy, Room
from .rooms import Rooms
from .story import Op

SHARED: Final = "api-"
"""Conversations that programs began: whoever knows the id, which cannot be guessed, goes on with it."""


class Detail(BaseModel):
    """Why a request was refused."""

    detail: str


REFUSALS: Final[dict[int | str, dict[str, Any]]] = {
    400: {"model": Detail, "description": "Not a request that can be read, or under a wrong host name"},
    401: {"model": Detail, "description": "A token is needed"},
    403: {"model": Detail, "description": "From another origin, or not your conversation"},
    413: {"model": Detail, "description": "Too long"},
    429: {"model": Detail, "description": "Too many requests, or too many turns at once"},
}
"""What every route may answer with."""

CONFLICT: Final[dict[int | str, dict[str, Any]]] = {409: {"model": Detail, "description": "A turn runs already"}}


class ChatIn(BaseModel):
    """A message. `conversation` goes on with one; left out, a new one begins."""

    model_config = ConfigDict(extra="forbid")

    message: Annotated[str, Field(min_length=1, max_length=200_000)]
    conversation: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]{0,119}$")] = None


class Waiting(BaseModel):
    """A call that waits for a decision."""

    id: str
    name: str
    question: str
    arguments: str


class ChatOut(BaseModel):
    """What a turn came to. `status` is done, stopped, limit, cancelled, suspended or failed."""

    conversation: str
    turn: str
    status: str
    stop_reason: str
    text: str
    error: str = ""
    pending: list[Waiting] = []


class Health(BaseModel):
    """The server answers."""

    status: str = "ok"


def chat_routes(rooms: Rooms) -> APIRouter:
    """The routes over these rooms."""
    router = APIRouter()

    @router.get("/health", responses=REFUSALS, tags=["health"])
    async def health() -> Health:
        """Whether the server answers."""
        return Health()

    @router.post("/api/chat", responses={**REFUSALS, **CONFLICT}, tags=["chat"])
    async def chat(body: ChatIn, request: Request) -> ChatOut:
        """Say something and wait for the answer."""
        room = await _room(rooms, body, session_of(request.scope))
        await asyncio.shield(_begin(rooms, room, body.message))
        return _out(room)

    @router.post("/api/chat/stream", responses={**REFUSALS, **CONFLICT, 200: _EVENTS}, tags=["chat"])
    async def stream(body: ChatIn, request: Request) -> StreamingResponse:
        """Say something and read what happens, as server-sent events; the last one is `outcome`.

        The turn goes on when the reader leaves.
        """
        room = await _room(rooms, body, session_of(request.scope))
        queue: asyncio.Queue[Told | None] = asyncio.Queue()
        stop = room.listen(lambda told, ops: _put(queue, room, told, ops))
        try:
            _begin(rooms, room, body.message)
        except HTTPException:
            stop()
            raise
        return StreamingResponse(_events(room, queue, stop), media_type="text/event-stream")

    return router


_EVENTS: Final[dict[str, Any]] = {
    "description": "Server-sent events: what happens in the turn, each as its kind and its fields as JSON text",
    "content": {
        "text/event-stream": {
            "schema": {
                "type": "object",
                "properties": {
                    "event": {"type": "string"},
                    "data": {"type": "string", "contentMediaType": "application/json"},
                },
                "required": ["event", "data"],
            }
        }
    },
}


async def _room(rooms: Rooms, body: ChatIn, session: str) -> Room:
    id = body.conversation or f"{SHARED}{uuid.uuid4().hex}"
    if not id.startswith(SHARED) and not rooms.may_open(session, id):
        raise HTTPException(403, "that conversation is not yours")
    return await rooms.open(id)


def _begin(rooms: Rooms, room: Room, text: str) -> asyncio.Task[None]:
    try:
        if room.running:
            raise HTTPException(409, "a turn runs in this conversation already")
        rooms.check_room()
        return room.begin(text)
    except Busy as error:
        raise HTTPException(429, str(error)) from error


def _out(room: Room) -> ChatOut:
    outcome = room.outcome
    if outcome is None:
        text = room.trouble or "the turn could not begin"
        return ChatOut(conversation=room.id, turn="", status="failed", stop_reason="", text="", error=text)
    return ChatOut(
        conversation=room.id,
        turn=outcome.turn_id,
        status=outcome.status,
        stop_reason=outcome.stop_reason,
        text=outcome.text,
        error=redact(f"{type(outcome.error).__name__}: {outcome.error}") if outcome.error else "",
        pending=[
            Waiting(id=one.id, name=one.name, question=one.question, arguments=one.arguments) for one in outcome.pending
        ],
    )


def _put(queue: asyncio.Queue[Told | None], room: Room, told: Told | None, _: list[Op]) -> None:
    if told is not None:
        queue.put_nowait(told)
    elif not room.running:
        queue.put_nowait(None)


async def _events(room: Room, queue: asyncio.Queue[Told | None], stop: Any) -> AsyncIterator[str]:
    try:
        while (told := await queue.get()) is not None:
            yield _event(told.kind, {"turn": told.turn, **told.data})
        yield _event("outcome", _out(room).model_dump())
    finally:
        stop()


def _event(name: str, data: Any) -> str:
    return f"event: {name}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n"
