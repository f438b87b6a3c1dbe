"""Raw stream events into deltas and one `Reply`. The one way in: a whole JSON body is played as events too.

No input and no output here, and no SDK. Tolerant of what servers add, strict about what they leave out: a stream
without its end, or a call whose own end did not come, is an error and never a reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hookloop_hookspecs import Delta, ProviderError, Reply
from hookloop_hookspecs.entries import StopReason

from .blocks import Block, InputBlock, Maker, ToolUseBlock, open_block
from .container import carrying, container_id
from .errors import said_error, stream_error
from .options import Prices
from .usage import Meter

_STOPS: Final[Mapping[str, StopReason]] = {
    "max_tokens": "length",
    "pause_turn": "pause",
    "compaction": "pause",
    "refusal": "refusal",
    "model_context_window_exceeded": "context",
}
_IMPLIED: Final = {"text_delta": "text", "thinking_delta": "thinking"}


class Assembler:
    """One reply in the making: `feed` each event, then ask for the `reply`."""

    def __init__(self, maker: Maker, *, prices: Prices | None = None, request_id: str = "") -> None:
        self._maker = maker
        self._meter = Meter(prices)
        self._request_id = request_id
        self._model = ""
        self._stop = ""
        self._container = ""
        self._blocks: list[Block] = []
        self._at: dict[int | None, Block] = {}
        self._calls = 0
        self.done = False

    def feed(self, event: object, name: str = "") -> Delta | None:
        """Take one event; the delta it shows, if any. Unknown events are passed over.

        Arguments: `event`, the parsed data; `name`, the event's name, for servers that leave the type out of the data.
        Raises `ProviderError` for an error event.
        """
        if not isinstance(event, Mapping) or self.done:
            return None
        kind = event.get("type") or name
        if kind == "content_block_delta":
            return self._delta(event)
        if kind == "content_block_start":
            return self._start(event)
        if kind == "content_block_stop":
            block = self._at.get(_index(event))
            return block.close() if block is not None and block.open else None
        self._outer(kind, event)
        return None

    def _outer(self, kind: object, event: Mapping[str, Any]) -> None:
        if kind == "message_start":
            self._message(event.get("message"))
        elif kind == "message_delta":
            self._ending(event)
        elif kind == "message_stop":
            self.done = True
        elif kind == "error":
            raise said_error(event, partial=self.partial(), request_id=self._request_id or None)

    def _message(self, message: object) -> None:
        if not isinstance(message, Mapping):
            return
        self._model = _word(message.get("model")) or self._model
        self._stop = _word(message.get("stop_reason")) or self._stop
        self._container = container_id(message.get("container")) or self._container
        self._meter.read(message.get("usage"))

    def _ending(self, event: Mapping[str, Any]) -> None:
        delta = event.get("delta")
        if isinstance(delta, Mapping):
            self._stop = _word(delta.get("stop_reason")) or self._stop
            self._container = container_id(delta.get("container")) or self._container
        self._meter.read(event.get("usage"))

    def _start(self, event: Mapping[str, Any]) -> Delta | None:
        start = event.get("content_block")
        if not isinstance(start, Mapping):
            return None
        return self._open(_index(event), start).begin()

    def _open(self, index: int | None, start: Mapping[str, Any]) -> Block:
        block = open_block(start, self._calls, self._maker.names)
        self._calls += isinstance(block, ToolUseBlock)
        self._blocks.append(block)
        self._at[index] = block
        return block

    def _delta(self, event: Mapping[str, Any]) -> Delta | None:
        delta, index = event.get("delta"), _index(event)
        if not isinstance(delta, Mapping):
            return None
        block = self._at.get(index)
        if block is None and (implied := _IMPLIED.get(_word(delta.get("type")))):
            block = self._open(index, {"type": implied})
        return block.add(delta) if block is not None and block.open else None

    def partial(self) -> Reply:
        """What has come so far; never for history."""
        content = tuple(block.part(self._maker) for block in self._blocks)
        if self._container:
            content = carrying(content, self._container, self._maker.family)
        return Reply(content, self._reason(), self._meter.usage, self._model, self._stop, self._request_id)

    def _reason(self) -> StopReason:
        if known := _STOPS.get(self._stop):
            return known
        if self._calls:
            return "calls"
        return "pause" if self._stop == "tool_use" and self._pending else "end"

    @property
    def _pending(self) -> bool:
        """True where a call of the vendor's own waits for its result, which only going on will bring."""
        answered = [block.start.get("tool_use_id") for block in self._blocks]
        return any(type(block) is InputBlock and block.start.get("id") not in answered for block in self._blocks)

    def reply(self) -> Reply:
        """The whole reply. Raises `ProviderError` with the partial one where the server did not complete it."""
        reply = self.partial()
        missing = self._missing(reply)
        if missing:
            raise self.broken(missing)
        return reply

    def _missing(self, reply: Reply) -> str:
        if not self.done:
            return "the stream ended before its message_stop"
        if reply.cut or not self._calls:
            return ""
        if not self._stop:
            return "the stream gave calls and no stop_reason"
        half = any(block.open for block in self._blocks if isinstance(block, ToolUseBlock))
        return "the stream ended inside a call" if half else ""

    def broken(self, why: str) -> ProviderError:
        """The error for a stream that broke here."""
        return stream_error(why, partial=self.partial(), request_id=self._request_id or None)


def as_events(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The events that a streaming server would have sent for this whole answer."""
    if body.get("type") == "error" or "content" not in body:
        yield {"type": "error", "error": body.get("error", body)}
    yield {"type": "message_start", "message": body}
    content = body.get("content")
    for index, block in enumerate(content if isinstance(content, list) else []):
        yield {"type": "content_block_start", "index": index, "content_block": block}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_stop"}


def _word(value: object) -> str:
    return value if isinstance(value, str) else ""


def _index(event: Mapping[str, Any]) -> int | None:
    index = event.get("index")
    return index if isinstance(index, int) else None
