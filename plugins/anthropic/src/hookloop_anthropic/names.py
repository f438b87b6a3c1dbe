"""Ids and tool names that the API accepts, from ones that it may not; never two alike for two that differ."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from typing import Final

LONGEST: Final = 64

_BAD: Final = re.compile(r"[^a-zA-Z0-9_-]")
_GOOD: Final = re.compile(r"[a-zA-Z0-9_-]+")


def safe(text: str, taken: set[str], longest: int | None = None, turn: int = 0) -> str:
    """A form of `text` of letters, digits, `_` and `-` that is not in `taken`, to which it is added.

    A good one stays as it is. The others keep what is readable and get a piece of their hash; the same text and the
    same taken ones give the same form. `turn` says how often the text was given before.
    """
    fits = _GOOD.fullmatch(text) and (longest is None or len(text) <= longest) and not turn
    form = text if fits else _hashed(text, turn)
    while form in taken:
        turn += 1
        form = _hashed(text, turn)
    taken.add(form)
    return form


def _hashed(text: str, turn: int) -> str:
    digest = hashlib.sha256(f"{turn}:{text}".encode("utf-8", "surrogatepass")).hexdigest()[:12]
    return f"{_BAD.sub('_', text)[: LONGEST - 13]}-{digest}"


class Names:
    """Tool names on the wire. Those of the tools at hand come first, so that a good name is never rewritten."""

    def __init__(self, tools: list[str]) -> None:
        self._wire: dict[str, str] = {}
        self._taken: set[str] = set()
        for name in sorted(tools, key=lambda name: _GOOD.fullmatch(name) is None):
            self.wire(name)

    def wire(self, name: str) -> str:
        """The name as it is sent."""
        if name not in self._wire:
            self._wire[name] = safe(name, self._taken, LONGEST)
        return self._wire[name]

    @property
    def back(self) -> dict[str, str]:
        """From a name on the wire to the name that the caller knows, where they differ."""
        return {wire: name for name, wire in self._wire.items() if wire != name}


class Ids:
    """Call ids on the wire, unique in a request: a call opens one, its result closes it under the same one."""

    def __init__(self) -> None:
        self._taken: set[str] = set()
        self._now: dict[str, str] = {}
        self._uses: Counter[str] = Counter()

    def call(self, id: str) -> str:
        """The id of a call; an id that was used before gets another form."""
        self._now[id] = safe(id, self._taken, turn=self._uses[id])
        self._uses[id] += 1
        return self._now[id]

    def result(self, id: str) -> str:
        """The id that the newest call of this name has on the wire."""
        return self._now[id] if id in self._now else self.call(id)
