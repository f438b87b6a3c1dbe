"""Server-sent events from bytes that are cut anywhere: line ends of every kind, comments, multi-byte characters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"


class Event(NamedTuple):
    """One event: its name (empty where none was sent) and its data."""

    name: str
    data: bytes


class EventReader:
    """Feed it chunks; it gives the events that are complete. `end` gives what a missing last line end held back."""

    def __init__(self) -> None:
        self._rest = b""
        self._name = ""
        self._data: list[bytes] = []
        self._begun = False

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that this chunk completes."""
        lines = (self._rest + chunk).splitlines(keepends=True)
        self._rest = b""
        if lines and not lines[-1].endswith(b"\n"):
            self._rest = lines.pop()  # perhaps half a line, and "\r" perhaps half a line end
        return self._events(lines)

    def end(self) -> Iterator[Event]:
        """The events that end with the stream."""
        lines = [self._rest, b""] if self._rest else [b""]
        self._rest = b""
        return self._events(lines)

    def _events(self, lines: list[bytes]) -> Iterator[Event]:
        for line in lines:
            event = self._line(line.rstrip(b"\r\n"))
            if event is not None:
                yield event

    def _line(self, line: bytes) -> Event | None:
        if not self._begun:
            self._begun, line = True, line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value[1:] if value.startswith(b" ") else value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace").strip()
        return None

    def _dispatch(self) -> Event | None:
        name, data = self._name, self._data
        self._name, self._data = "", []
        return Event(name, b"\n".join(data)) if data else None
