"""Bytes to server-sent events, whatever the network does to their lines.

Cuts may fall anywhere, also between the two bytes of a line end or inside a character; comments, unknown fields and a
missing last line end are normal.
"""

from __future__ import annotations

from typing import NamedTuple


class Event(NamedTuple):
    """One event: its name (empty for most) and its data, undecoded."""

    name: str
    data: bytes


class EventLines:
    """Turns chunks of bytes into events."""

    __slots__ = ("_data", "_first", "_name", "_open", "_return")

    def __init__(self) -> None:
        self._open: list[bytes] = []
        self._data: list[bytes] = []
        self._name = ""
        self._return = False
        self._first = True

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that this chunk completes."""
        chunk = self._line_feeds(chunk)
        if b"\n" not in chunk:
            self._open.append(chunk)
            return []
        head, *lines = chunk.split(b"\n")
        lines.insert(0, b"".join((*self._open, head)))
        self._open = [lines.pop()]
        return self._events(lines)

    def end(self) -> list[Event]:
        """The event that was open when the stream ended, if there was one."""
        lines, self._open = [b"".join(self._open), b""], []
        return self._events(lines)

    def _line_feeds(self, chunk: bytes) -> bytes:
        if self._return:
            chunk = b"\r" + chunk
            self._return = False
        if b"\r" not in chunk:
            return chunk
        if chunk.endswith(b"\r"):
            self._return = True
            chunk = chunk[:-1]
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

    def _events(self, lines: list[bytes]) -> list[Event]:
        if self._first and lines:
            self._first = False
            lines[0] = lines[0].removeprefix(b"\xef\xbb\xbf")
        found: list[Event] = []
        for line in lines:
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line:
                self._dispatch(found)
            elif line.startswith(b"event:"):
                self._name = line[6:].strip().decode("utf-8", "replace")
        return found

    def _dispatch(self, found: list[Event]) -> None:
        if self._data:
            found.append(Event(self._name, self._data[0] if len(self._data) == 1 else b"\n".join(self._data)))
            self._data = []
        self._name = ""
