"""Raw Responses events to deltas and one reply. A whole body is its items, each as done, and its end.

Items are taken as they stand when they are done, or at the end; what is unknown is ignored, and an item of an unknown
type is kept as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hookloop_hookspecs import (
    CallDelta,
    Delta,
    Opaque,
    Part,
    Reply,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    Usage,
    json_text,
)
from hookloop_hookspecs.entries import StopReason

from .assembly import Assembly, Broken, Context, Refused
from .ids import distinct, short_id
from .items import Item
from .responses_encode import CUSTOM, emptied, item_text
from .slots import unwrapped
from .usage import usage_of
from .values import Json, is_object, mapping, sequence, string, utf8, whole
from .wire_text import tagged

_CALLS: Final = ("function_call", CUSTOM)
_CUT: Final[dict[str, StopReason]] = {"max_output_tokens": "length", "content_filter": "filter"}


class ResponsesAssembly(Assembly):
    """One reply as it grows."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._items: dict[object, Item] = {}
        self._response: Json = {}
        self._status = ""
        self._takes: dict[str, Callable[[Json, list[Delta]], None]] = {
            "response.output_item.added": self._added,
            "response.output_item.done": self._item_done,
            "response.output_text.delta": self._text_delta,
            "response.output_text.done": self._text_done,
            "response.refusal.delta": self._refusal_delta,
            "response.reasoning_summary_part.added": self._summary_part,
            "response.reasoning_summary_text.delta": self._thought_delta,
            "response.reasoning_text.delta": self._thought_delta,
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.function_call_arguments.done": self._arguments_done,
            "response.custom_tool_call_input.delta": self._arguments_delta,
            "response.custom_tool_call_input.done": self._arguments_done,
            "response.completed": self._ended,
            "response.incomplete": self._ended,
            "response.failed": self._failed,
            "response.cancelled": self._failed,
        }

    def take(self, event: Json, name: str = "") -> list[Delta]:
        """What an event adds, as deltas."""
        self._response |= {k: v for k, v in mapping(event.get("response")).items() if v is not None}
        deltas: list[Delta] = []
        take = self._takes.get(string(event.get("type")) or name)
        if take is not None and not self._status:
            take(event, deltas)
        return deltas

    def take_whole(self, body: Json) -> list[Delta]:
        """A whole body, as its last event."""
        status = string(body.get("status")) or ("completed" if isinstance(body.get("output"), list) else "")
        if status not in ("completed", "incomplete", "failed", "cancelled"):
            raise Broken(f"the response is not finished ({status or 'no status'})")
        return self.take({"type": f"response.{status}", "response": body})

    def done(self) -> None:
        """The stream's end mark; the terminal event alone counts."""

    @property
    def finished(self) -> bool:
        """True once the terminal event came."""
        return bool(self._status)

    def _item(self, event: Json) -> Item:
        index, id = whole(event.get("output_index")), event.get("item_id")
        key = index if index is not None else string(id) or len(self._items)
        return self._items.setdefault(key, Item(len(self._items) if index is None else index))

    def _added(self, event: Json, deltas: list[Delta]) -> None:
        sent = mapping(event.get("item"))
        item = self._item({"item_id": sent.get("id"), **event})
        item.sent = sent
        if sent.get("type") in _CALLS:
            self._number(item)
            deltas.append(self._call_delta(item, ""))

    def _item_done(self, event: Json, deltas: list[Delta]) -> None:
        sent = mapping(event.get("item"))
        item = self._item({"item_id": sent.get("id"), **event})
        item.sent = {**item.sent, **sent}
        item.done = True
        self._rest(item, deltas)

    def _rest(self, item: Item, deltas: list[Delta]) -> None:
        """What of a finished item was not shown while it grew."""
        if item.type == "message" and not item.text:
            self._say(item, item_text(item.sent), deltas)
        elif item.type == "reasoning" and not item.thought:
            self._think(item, _thought(item.sent), deltas)
        elif item.type in _CALLS and not item.raw:
            self._number(item)
            self._argue(item, _raw(item.sent), deltas)

    def _text_delta(self, event: Json, deltas: list[Delta]) -> None:
        self._say(self._item(event), string(event.get("delta")), deltas)

    def _text_done(self, event: Json, deltas: list[Delta]) -> None:
        item, place = self._item(event), event.get("content_index")
        if not item.text or (whole(place) and place not in item.places):
            self._say(item, string(event.get("text")), deltas)
        item.places.add(whole(place))

    def _say(self, item: Item, text: str, deltas: list[Delta]) -> None:
        if text and (text := item.text_pairs.join(text)):
            item.text.append(text)
            deltas.append(TextDelta(text))

    def _refusal_delta(self, event: Json, deltas: list[Delta]) -> None:
        self._item(event).refusal.append(string(event.get("delta")))

    def _summary_part(self, event: Json, deltas: list[Delta]) -> None:
        if whole(event.get("summary_index")) and self._item(event).thought:
            self._think(self._item(event), "\n\n", deltas)

    def _thought_delta(self, event: Json, deltas: list[Delta]) -> None:
        self._think(self._item(event), string(event.get("delta")), deltas)

    def _think(self, item: Item, text: str, deltas: list[Delta]) -> None:
        if text and (text := item.thought_pairs.join(text)):
            item.thought.append(text)
            deltas.append(ThinkingDelta(text))

    def _arguments_delta(self, event: Json, deltas: list[Delta]) -> None:
        item = self._item(event)
        self._number(item)
        self._argue(item, string(event.get("delta")), deltas)

    def _arguments_done(self, event: Json, deltas: list[Delta]) -> None:
        item, raw = self._item(event), string(event.get("arguments")) or string(event.get("input"))
        self._number(item)
        if not item.raw:
            self._argue(item, raw, deltas)
        item.complete = True

    def _argue(self, item: Item, piece: str, deltas: list[Delta]) -> None:
        if piece:
            item.raw.append(piece)
            deltas.append(self._call_delta(item, piece))

    def _number(self, item: Item) -> None:
        if item.call is None:
            item.call = sum(other.call is not None for other in self._items.values())

    def _call_delta(self, item: Item, piece: str) -> CallDelta:
        id, name = string(item.sent.get("call_id")), string(item.sent.get("name"))
        return CallDelta(item.call or 0, utf8(id), utf8(name), utf8(piece))

    def _ended(self, event: Json, deltas: list[Delta]) -> None:
        for place, sent in enumerate(sequence(self._response.get("output"))):
            known = self._items.get(place) or self._known(mapping(sent))
            if known is None or not known.done:
                self._item_done({"item": sent, "output_index": known.position if known else place}, deltas)
        self._status = string(event.get("type")).rpartition(".")[2] or "completed"

    def _known(self, sent: Json) -> Item | None:
        id = sent.get("id")
        return next((item for item in self._items.values() if id and item.sent.get("id") == id), None)

    def _failed(self, event: Json, deltas: list[Delta]) -> None:
        raise Refused(self._response.get("error") or {"message": "the response failed", "code": "server_error"})

    def reply(self) -> Reply:
        """The whole reply. Raises `Broken` where the terminal event never came."""
        if not self._status:
            raise Broken("the stream ended without its terminal event")
        items = sorted(self._items.values(), key=lambda item: item.position)
        content = distinct([part for item in items for part in self._parts(item)])
        return self._made(content, self._stop(items, any(isinstance(part, ToolCall) for part in content)))

    def _stop(self, items: list[Item], calls: bool) -> StopReason:
        if self._status == "incomplete":
            reason = mapping(self._response.get("incomplete_details")).get("reason")
            return _CUT.get(string(reason), "length")
        if calls:
            return "calls"
        return "refusal" if any(item.refused() for item in items) else "end"

    def partial(self) -> Reply:
        """What had arrived, without the calls: nobody said that they were complete."""
        items = sorted(self._items.values(), key=lambda item: item.position)
        identity = self._context.identity
        parts: list[Part] = []
        for item in items:
            if thought := "".join(item.thought):
                parts.append(Thinking(thought, provider=identity.tag, family=identity.family))
            if text := "".join(item.text):
                parts.append(Text(text))
        return self._made(tuple(parts), "length")

    def _made(self, content: tuple[Part, ...], stop: StopReason) -> Reply:
        sent = mapping(self._response.get("usage"))
        usage = usage_of(sent, self._context.prices) if sent else Usage()
        model = utf8(string(self._response.get("model"))) or self._context.identity.model
        id = self._context.request_id or utf8(string(self._response.get("id")))
        return Reply(content, stop, usage, model, self._status, id)

    def _parts(self, item: Item) -> list[Part]:
        identity = self._context.identity
        if item.type in _CALLS:
            return [self._call(item)]
        if item.type == "reasoning":
            thought = utf8(_thought(item.sent)) or "".join(item.thought)
            extra = self._kept(item.sent)
            return [Thinking(thought, provider=identity.tag, family=identity.family, extra=extra)]
        if item.type == "message":
            return self._message(item)
        return [Opaque(json_text(item.sent), identity.tag, identity.family)] if item.type else []

    def _message(self, item: Item) -> list[Part]:
        identity = self._context.identity
        text = utf8(item_text(item.sent)) or "".join(item.text)
        if text:
            return [Text(text, self._kept(emptied(item.sent)) if item.done else "")]
        return [Opaque(json_text(item.sent), identity.tag, identity.family)] if item.refused() else []

    def _call(self, item: Item) -> ToolCall:
        id, name = utf8(string(item.sent.get("call_id"))), utf8(string(item.sent.get("name")))
        raw = utf8(_raw(item.sent)) or utf8("".join(item.raw))
        custom = item.type == CUSTOM
        if self._status == "completed":
            self._check(item, name, raw, custom)
        kept = {k: v for k, v in item.sent.items() if k not in ("arguments", "input", "name", "call_id")}
        id = id or f"call_{short_id(self._context.seed, item.position, length=20)}"
        return ToolCall(id, name, raw if custom else unwrapped(raw), self._kept(kept) if item.done else "")

    def _check(self, item: Item, name: str, raw: str, custom: bool) -> None:
        if not name:
            raise Broken("a tool call has no name")
        if not item.done and not item.complete and not (custom or is_object(raw)):
            raise Broken("the stream ended within a tool call")

    def _kept(self, item: Json) -> str:
        identity = self._context.identity
        return tagged(identity.tag, identity.family, item=item)


def _raw(sent: Json) -> str:
    value: Any = sent.get("arguments") if sent.get("type") != CUSTOM else sent.get("input")
    return json_text(value) if isinstance(value, dict) else string(value)


def _thought(sent: Json) -> str:
    parts = [*sequence(sent.get("summary")), *sequence(sent.get("content"))]
    return "\n\n".join(text for part in parts if (text := string(mapping(part).get("text"))))
