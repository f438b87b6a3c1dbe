"""The container in which the vendor ran code for a reply: its id returns with the next request.

The API refuses to go on with work that waits in a container when the request does not name it. The id belongs to a reply
as a whole, which has no place for it in history, so the last part that can carry it does; it never reaches a block.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from hookloop_hookspecs import Opaque, Part, Text, ToolCall, json_text

from .marks import KEY, own

CARRIED: Final = "reply_container"


def container_id(value: object) -> str:
    """The id in a `container` field; empty where there is none."""
    id = value.get("id") if isinstance(value, Mapping) else None
    return id if isinstance(id, str) else ""


def carrying(parts: tuple[Part, ...], id: str, family: str) -> tuple[Part, ...]:
    """The parts, the last one that can carry the id with it."""
    places = (at for at in range(len(parts) - 1, -1, -1) if isinstance(parts[at], Text | ToolCall | Opaque))
    at = next(places, None)
    return parts if at is None else (*parts[:at], _with(parts[at], id, family), *parts[at + 1 :])


def _with(part: Part, id: str, family: str) -> Part:
    if isinstance(part, Opaque):
        return replace(part, data=json_text({**part.value, CARRIED: id}))
    if isinstance(part, Text | ToolCall):
        kept = {"family": family, **own(part.extra, family), CARRIED: id}
        return replace(part, extra=json_text({KEY: kept}))
    return part


def named(given: Any, id: str) -> Any:
    """The `container` field of a request: what the caller gave, with the id where it names none; None for neither."""
    if not id or isinstance(given, str):
        return given
    return {"id": id, **given} if isinstance(given, Mapping) else id
