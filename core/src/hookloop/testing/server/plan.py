"""From a step to bytes: what will be written, when, and how it ends. Nothing here touches a socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from .cutting import pieces
from .record import Api

Ending: TypeAlias = Literal["end", "reset", "close", "eof"]
Wait: TypeAlias = "float | threading.Event"
Frame: TypeAlias = "bytes | float | threading.Event"

STREAM_HEADERS = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
JSON_HEADERS = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Plan:
    """An answer: its head (none where the status is 0), frames to write or to wait for, and how it ends.

    `stream` answers are events, one a frame. They, and those that are cut, are written in chunked encoding, others with
    their length. `cuts` are offsets into the body at which a network chunk ends; `size`, where there are none, the
    bytes of each chunk (0: as large as can be).
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    frames: tuple[Frame, ...] = ()
    stream: bool = False
    ending: Ending = "end"
    size: int = 0
    cuts: tuple[int, ...] = ()

    @property
    def chunked(self) -> bool:
        """Whether it is written in chunked encoding."""
        return self.stream or bool(self.size or self.cuts)

    @property
    def body(self) -> bytes:
        """All bytes of the body."""
        return b"".join(frame for frame in self.frames if isinstance(frame, bytes))


def json_bytes(value: object) -> bytes:
    """Compact JSON in UTF-8; what UTF-8 cannot say (lone surrogates) is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode("ascii")


def event_bytes(event: Mapping[str, Any] | str | bytes) -> bytes:
    """One stream event: a mapping as JSON (named by its `type`), anything else as it is."""
    if isinstance(event, bytes):
        return event
    if isinstance(event, str):
        return event.encode("utf-8", "surrogatepass")
    name = f"event: {event['type']}\n".encode() if "type" in event else b""
    return b"%sdata: %s\n\n" % (name, json_bytes(event))


def whole_plan(value: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Plan:
    """A JSON answer; a str or bytes is sent as it is."""
    raw = value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
    body = raw if isinstance(raw, bytes) else json_bytes(raw)
    return Plan(status, {**JSON_HEADERS, **(headers or {})}, (body,))


def stream_plan(events: Iterable[Mapping[str, Any] | str | bytes]) -> Plan:
    """A stream of events."""
    return Plan(200, STREAM_HEADERS, tuple(event_bytes(event) for event in events), stream=True)


def head_of(plan: Plan, events: int) -> tuple[Frame, ...]:
    """The frames up to and with this many events; half the body of an answer that is not streamed."""
    if not plan.stream:
        body = plan.body
        return (body[: len(body) // 2],)
    kept: list[Frame] = []
    for frame in plan.frames:
        if isinstance(frame, bytes):
            if events == 0:
                break
            events -= 1
        kept.append(frame)
    return tuple(kept)


def cut_bytes(plan: Plan, count: int) -> tuple[Frame, ...]:
    """The frames up to this many bytes of the body."""
    kept: list[Frame] = []
    for frame in plan.frames:
        if isinstance(frame, bytes):
            kept.append(frame[:count])
            count -= len(frame)
            if count <= 0:
                break
        else:
            kept.append(frame)
    return tuple(kept)


def held(plan: Plan, until: Wait, after: int) -> Plan:
    """The plan with a wait after this many events."""
    first = head_of(plan, after) if plan.stream and after else ()
    return replace(plan, frames=(*first, until, *plan.frames[len(first) :]))


def writes(plan: Plan) -> Sequence[Frame]:
    """The frames as they are written: neighbours joined, then cut into network chunks; waits between them."""
    joined: list[Frame] = []
    run: list[bytes] = []
    for frame in plan.frames:
        if isinstance(frame, bytes):
            run.append(frame)
        else:
            joined += [b"".join(run), frame] if run else [frame]
            run = []
    joined += [b"".join(run)] if run else []
    return _recut(joined, plan) if plan.size or plan.cuts else joined


def _recut(frames: Sequence[Frame], plan: Plan) -> list[Frame]:
    out: list[Frame] = []
    start = 0
    for frame in frames:
        if isinstance(frame, bytes):
            out += pieces(frame, plan.size or len(frame) or 1, [at - start for at in plan.cuts])
            start += len(frame)
        else:
            out.append(frame)
    return out


def api_error_event(api: Api, kind: str, message: str, code: str | None) -> dict[str, Any]:
    """The error that each API sends inside a stream that began well."""
    if api == "messages":
        return {"type": "error", "error": {"type": kind or "overloaded_error", "message": message}}
    if api == "chat":
        return {"error": {"message": message, "type": kind or "server_error", "param": None, "code": code}}
    return {"type": "error", "code": code or "server_error", "message": message, "param": None}
