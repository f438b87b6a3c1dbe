"""Which call a piece of a tool call belongs to, for every way in which servers number them.

A new id opens a call, and so does a name without an id where the open call's arguments are complete; for another name
than the open call's, none at all are complete too. Else the index decides, else the last open call. Ids and names may
come once, repeated, late, empty, in pieces or never.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hookloop_hookspecs import CallDelta, ToolCall, json_text

from .ids import short_id
from .values import Json, is_json, is_object, mapping, parsed, string, utf8, whole


@dataclass(slots=True)
class Slot:
    """One call as far as it has come."""

    position: int
    index: int | None
    id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    extra: Json = field(default_factory=dict)

    @property
    def raw(self) -> str:
        """The arguments so far."""
        if len(self.pieces) > 1:
            self.pieces = ["".join(self.pieces)]
        return self.pieces[0] if self.pieces else ""

    def custom(self) -> bool:
        """True for a call of a custom tool, whose input is any text."""
        return self.extra.get("type") == "custom"

    def complete(self) -> bool:
        """True where the arguments are an object that has been closed, be it inside a JSON string."""
        if not self.pieces or not self.pieces[-1].rstrip().endswith(("}", '"')):
            return False
        return is_object(unwrapped(self.raw))

    def ended(self) -> bool:
        """True where no arguments have come, or a whole JSON value of any kind."""
        return not self.raw.strip() or is_json(self.raw)

    def continues_name(self, id: str, piece: str) -> bool:
        """True where a name that differs is a piece of this call's: its id says so, or it alone has one so far."""
        return bool(self.id) and not self.raw.strip() and (id == self.id or not piece.strip())

    def repeats(self, id: str, piece: str) -> bool:
        """True where the server says the whole call again."""
        return bool(id) and id == self.id and self.complete() and piece.strip() == self.raw.strip()

    def empty(self) -> bool:
        """True for a slot of which nothing was said: filler that some servers send."""
        return not (self.id or self.name or self.raw.strip())


class Slots:
    """The calls of one reply, in the order in which they were opened."""

    def __init__(self, extras: tuple[str, ...] = (), seed: object = "") -> None:
        self._extras = extras
        self._seed = seed
        self._all: list[Slot] = []
        self._by_index: dict[int, Slot] = {}

    def take(self, entry: Json) -> CallDelta:
        """Add one entry of `tool_calls` to the call it belongs to."""
        function = mapping(entry.get("function"))
        custom = {} if function else mapping(entry.get("custom"))
        function = function or custom
        id, name, piece = string(entry.get("id")), string(function.get("name")), _piece(function)
        slot = self._find(whole(entry.get("index")), id, name, piece)
        slot.id = slot.id or id
        slot.name = slot.name or name
        if piece and not slot.repeats(id, piece):
            slot.pieces.append(piece)
        slot.extra |= {"type": "custom"} if custom else {}
        slot.extra |= {key: entry[key] for key in self._extras if entry.get(key) is not None}
        return CallDelta(slot.position, utf8(slot.id), utf8(slot.name), utf8(piece))

    def _find(self, index: int | None, id: str, name: str, piece: str) -> Slot:
        slot = self._by_index.get(index) if index is not None else None
        if slot is None and index is not None and (name or id):
            return self._open(index)
        slot = slot or (self._all[-1] if self._all else None)
        if slot is not None and id and slot.id != id:
            slot = self._begun(id) or slot
        if slot is None or _is_another(slot, id, name, piece):
            return self._open(index)
        return slot

    def _begun(self, id: str) -> Slot | None:
        return next((slot for slot in reversed(self._all) if slot.id == id), None)

    def _open(self, index: int | None) -> Slot:
        slot = Slot(len(self._all), index)
        self._all.append(slot)
        if index is not None:
            self._by_index[index] = slot
        return slot

    def calls(self) -> list[tuple[ToolCall, Json]]:
        """The calls, each with the metadata that must return on it. Ids are given where there were none."""
        return [(self._call(slot), slot.extra) for slot in self._all if not slot.empty()]

    def _call(self, slot: Slot) -> ToolCall:
        id = utf8(slot.id) or f"call_{short_id(self._seed, slot.position, length=20)}"
        raw = utf8(slot.raw)
        return ToolCall(id, utf8(slot.name), raw if slot.custom() else unwrapped(raw))


def _is_another(slot: Slot, id: str, name: str, piece: str) -> bool:
    """True where an entry for this slot's place begins another call."""
    if id and slot.id and id != slot.id:
        return bool(name) or not slot.pieces or slot.complete()
    if not name:
        return False
    begins = piece.lstrip().startswith(("{", '"'))
    if slot.name not in ("", name):
        return not slot.continues_name(id, piece) and (begins or slot.ended())
    return begins and slot.complete() and not slot.repeats(id, piece)


def _piece(function: Json) -> str:
    value: Any = function.get("arguments")
    if value is None:
        value = function.get("input")
    if isinstance(value, dict | list):
        return json_text(value)
    return string(value)


def unwrapped(raw: str) -> str:
    """The arguments, taken out of the JSON string that some servers put them into; "{}" for none."""
    text = raw.strip()
    if not text:
        return "{}"
    if text[0] != '"':
        return raw
    try:
        inner = parsed(text)
    except ValueError:
        return raw
    return inner if isinstance(inner, str) and is_object(inner) else raw
