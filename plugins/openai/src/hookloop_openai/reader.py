"""One answer, from its headers and bytes to deltas and the reply: the whole way that needs no waiting.

Events or one JSON body: the answer decides, not what was asked for, since servers do ignore it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hookloop_hookspecs import Delta, Reply

from .assembly import Assembly, Broken, Refused
from .errors import Failing, has_error, request_id
from .sse import Event, EventLines
from .values import mapping, parsed


class Reader:
    """Reads one answer. Feed it every chunk, then end it; both give what may be shown, and raise `ProviderError`."""

    def __init__(self, assembly: Callable[[str], Assembly], failing: Failing, headers: Mapping[str, str]) -> None:
        self._assembly = assembly(request_id(headers) or "")
        self._failing = failing
        self._headers = headers
        self._lines = EventLines()
        self._body: list[bytes] | None = None
        self._events = "event-stream" in headers.get("content-type", "")
        self._ended = False

    def feed(self, chunk: bytes) -> list[Delta]:
        """What a chunk of bytes adds."""
        if self._body is None and not self._events:
            self._sniff(chunk)
        if self._body is not None:
            self._body.append(chunk)
            return []
        deltas: list[Delta] = []
        for event in self._lines.feed(chunk):
            self._take(event, deltas)
        return deltas

    def end(self) -> list[Delta | Reply]:
        """What the end of the bytes adds, and the reply."""
        deltas: list[Delta] = []
        if self._body is not None:
            deltas += self._whole(b"".join(self._body))
        for event in self._lines.end():
            self._take(event, deltas)
        try:
            return [*deltas, self._assembly.reply()]
        except Broken as error:
            raise self._failing.stream(str(error), partial=self.partial(), headers=self._headers) from None

    @property
    def finished(self) -> bool:
        """True once the answer is complete, though bytes may follow."""
        return self._assembly.finished

    def partial(self) -> Reply:
        """What had arrived."""
        return self._assembly.partial()

    def _sniff(self, chunk: bytes) -> None:
        """Without a content type the first byte that is no white space tells."""
        start = chunk.lstrip(b" \t\r\n\xef\xbb\xbf")
        if "json" in self._headers.get("content-type", "") or start[:1] in (b"{", b"["):
            self._body = []
        elif start:
            self._events = True

    def _take(self, event: Event, deltas: list[Delta]) -> None:
        data = event.data.strip()
        if self._ended or not data:
            return
        if data == b"[DONE]":
            self._ended = True
            self._assembly.done()
            return
        try:
            value = parsed(data)
        except ValueError:
            if self.finished:
                return  # the reply is whole; only its usage may be lost
            raise self._failing.stream("an event is not JSON", partial=self.partial(), headers=self._headers) from None
        if has_error(value) or event.name == "error":
            raise self._failing.answered(value, None, self._headers, self.partial())
        deltas += self._guarded(lambda: self._assembly.take(mapping(value), event.name))

    def _whole(self, data: bytes) -> list[Delta]:
        try:
            value = parsed(data.strip())
        except ValueError:
            raise self._failing.stream("the answer is not JSON", headers=self._headers) from None
        if has_error(value):
            raise self._failing.answered(value, None, self._headers)
        return self._guarded(lambda: self._assembly.take_whole(mapping(value)))

    def _guarded(self, take: Callable[[], list[Delta]]) -> list[Delta]:
        try:
            return take()
        except Broken as error:
            raise self._failing.stream(str(error), partial=self.partial(), headers=self._headers) from None
        except Refused as error:
            raise self._failing.answered(error.body, None, self._headers, self.partial()) from None
