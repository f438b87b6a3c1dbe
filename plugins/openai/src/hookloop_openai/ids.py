"""Call ids as an endpoint takes them: the same id on both sides, never one id for two calls."""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from hookloop_hookspecs import Part, ToolCall

from .values import utf8

_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def short_id(*parts: object, length: int = 24) -> str:
    """Letters and digits that follow from the parts alone."""
    number = int.from_bytes(hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).digest())
    letters = []
    for _ in range(length):
        number, rest = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[rest])
    return "".join(letters)


def distinct(parts: Iterable[Part]) -> tuple[Part, ...]:
    """The parts with no id of a call coming twice: a repeated one gets a number."""
    seen: set[str] = set()
    found: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            id, again = part.id, 1
            while id in seen:
                again += 1
                id = f"{part.id}-{again}"
            seen.add(id)
            part = part if id == part.id else replace(part, id=id)
        found.append(part)
    return tuple(found)


class WireIds:
    """Gives each call of a request its id on the wire, and each result the id of its call.

    An id stays as it is where the endpoint takes it; else, and when it came before, it is replaced by one that follows
    from it alone, so that the next request says the same.
    """

    def __init__(self, pattern: str, length: int) -> None:
        self._fits = re.compile(pattern, re.DOTALL)
        self._length = length
        self._used: set[str] = set()
        self._waiting: dict[str, deque[str]] = {}
        self.open = 0

    def call(self, id: str) -> str:
        """The wire id of a call that comes next in the request."""
        wire = utf8(id) if self._takes(id) else short_id(id, length=min(24, self._length))
        again = 0
        while wire in self._used:
            again += 1
            wire = short_id(id, again, length=min(24, self._length))
        self._used.add(wire)
        self._waiting.setdefault(id, deque()).append(wire)
        self.open += 1
        return wire

    def _takes(self, id: str) -> bool:
        return 0 < len(id) <= self._length and self._fits.fullmatch(id) is not None

    def result(self, id: str) -> str:
        """The wire id of the call that this result answers; the id itself where no call waits for it."""
        waiting = self._waiting.get(id)
        if not waiting:
            return id
        self.open -= 1
        return waiting.popleft()
