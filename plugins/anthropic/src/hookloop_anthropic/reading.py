"""From the bytes of one answer to deltas and the reply: the part that sync and async, whole and streamed share."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hookloop_hookspecs import Delta, ProviderError, Reply

from .assemble import Assembler, as_events
from .blocks import Maker
from .errors import clean, stream_error, timeout_error, translate
from .options import Options
from .sse import Event, EventReader

_DONE = b"[DONE]"


@dataclass(frozen=True, slots=True)
class Call:
    """One request, encoded, with what is needed to read its answer."""

    body: bytes
    headers: Mapping[str, str]
    maker: Maker
    options: Options


class Reading:
    """One answer. `feed` it bytes as they come, then `finish`; on a failure ask for the `failure`.

    Raises `ProviderError` from `feed` and `finish` for what the server says or leaves out, and when the answer takes
    longer than the request timeout.
    """

    def __init__(self, call: Call, headers: Mapping[str, str], *, began: float) -> None:
        self._deadline = began + call.options.request_timeout
        self._request_id = headers.get("request-id") or ""
        self._assembler = Assembler(call.maker, prices=call.options.prices, request_id=self._request_id)
        self._events = EventReader()
        self._whole: list[bytes] | None = [] if _is_whole(headers, call.options) else None

    @property
    def done(self) -> bool:
        """True when the server has said all; what breaks after that does not matter."""
        return self._assembler.done

    def feed(self, chunk: bytes) -> Iterator[Delta]:
        """The deltas that these bytes show."""
        if time.monotonic() > self._deadline:
            raise self._late()
        if self._whole is None:
            yield from self._read(self._events.feed(chunk))
        else:
            self._whole.append(chunk)

    def finish(self) -> Iterator[Delta | Reply]:
        """What the end shows, and the reply."""
        if self._whole is None:
            yield from self._read(self._events.end(), last=True)
        else:
            yield from self._play(b"".join(self._whole))
        yield self._assembler.reply()

    def failure(self, error: Exception) -> ProviderError:
        """The error for what broke this answer."""
        return translate(error, partial=self._assembler.partial(), request_id=self._request_id or None)

    def _read(self, events: Iterator[Event], *, last: bool = False) -> Iterator[Delta]:
        for event in events:
            if event.data == _DONE:
                continue
            try:
                value = json.loads(event.data.decode("utf-8", "replace"))
            except (ValueError, RecursionError):
                if last:
                    return  # cut in the middle of an event; the missing end is told by the assembler
                raise self._assembler.broken("an event was not JSON") from None
            delta = self._assembler.feed(value, event.name)
            if delta is not None:
                yield delta

    def _play(self, body: bytes) -> Iterator[Delta]:
        for event in as_events(_parsed(body, self._request_id)):
            delta = self._assembler.feed(event)
            if delta is not None:
                yield delta

    def _late(self) -> ProviderError:
        text = "the answer took longer than the request timeout"
        return timeout_error(text, partial=self._assembler.partial(), request_id=self._request_id or None)


def _parsed(body: bytes, request_id: str) -> Mapping[str, object]:
    try:
        value = json.loads(body.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        start = clean(body[:200].decode("utf-8", "replace"))
        raise stream_error(f"the answer was not JSON: {start!r}", request_id=request_id or None) from None
    if not isinstance(value, Mapping):
        raise stream_error("the answer was no JSON object", request_id=request_id or None)
    return value


def _is_whole(headers: Mapping[str, str], options: Options) -> bool:
    kind = headers.get("content-type", "")
    if "event-stream" in kind:
        return False
    return "json" in kind or options.transport == "whole"
