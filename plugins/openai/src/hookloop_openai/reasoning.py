"""`reasoning_details`: pieces of structured reasoning that some gateways send, put together by their index.

They are kept to be sent back, not read: the text for people comes beside them.
"""

from __future__ import annotations

from typing import Any, Final

from .values import Json, string, whole

_GROWING: Final = ("text", "summary", "data")


class Details:
    """The details of one reply as they grow."""

    def __init__(self) -> None:
        self._all: list[Json] = []
        self._places: dict[tuple[int | None, str], Json] = {}

    def take(self, details: list[Any]) -> None:
        """Add the pieces of one event."""
        for detail in details:
            if isinstance(detail, dict) and detail:
                self._grow(detail)

    def _grow(self, detail: Json) -> None:
        key = (whole(detail.get("index")), string(detail.get("type")))
        known = self._places.get(key)
        if known is None:
            self._places[key] = known = {}
            self._all.append(known)
        for name, value in detail.items():
            if name in _GROWING and isinstance(value, str):
                known[name] = string(known.get(name)) + value
            elif value or name not in known:
                known[name] = value

    def merged(self) -> list[Json]:
        """All details, each once."""
        return self._all
