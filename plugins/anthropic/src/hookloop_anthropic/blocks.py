"""Content blocks of a reply while they arrive, and the parts they become.

One class per kind of block. A block that is not known is kept whole, as JSON, with whatever its deltas add.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hookloop_hookspecs import (
    CallDelta,
    Delta,
    Opaque,
    Part,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    json_text,
)

from .marks import KEY
from .pieces import Pieces, whole
from .properties import Renames, renamed


@dataclass(frozen=True, slots=True)
class Maker:
    """Who made the reply; how its tools' names read for the caller, and by tool those of its arguments."""

    provider: str
    family: str
    names: Mapping[str, str] = field(default_factory=dict)
    arguments: Mapping[str, Renames] = field(default_factory=dict)

    def extra(self, data: Mapping[str, Any]) -> str:
        """Metadata of a part, marked as this provider's and family's; empty for none."""
        return whole(json_text({KEY: {"family": self.family, **data}})) if data else ""


class Block:
    """A content block. `open` says that its end has not been seen."""

    __slots__ = ("open", "start")

    def __init__(self, start: Mapping[str, Any]) -> None:
        self.start = start
        self.open = True

    def begin(self) -> Delta | None:
        """What the start alone shows."""
        return None

    def add(self, delta: Mapping[str, Any]) -> Delta | None:
        """Take a delta; what it shows, if anything. Deltas of an unknown type are passed over."""
        return None

    def close(self) -> Delta | None:
        """Take the block's end; what only then is shown."""
        self.open = False
        return None

    def part(self, maker: Maker) -> Part:
        """The part that the block has become."""
        return Opaque(whole(json_text(dict(self.start))), maker.provider, maker.family)

    def _rest(self, *known: str) -> dict[str, Any]:
        return {key: value for key, value in self.start.items() if key not in known and value is not None}


class TextBlock(Block):
    """Text, with its citations."""

    __slots__ = ("_cited", "_pieces")

    def __init__(self, start: Mapping[str, Any]) -> None:
        super().__init__(start)
        self._pieces = Pieces(_text(start.get("text")))
        cited = start.get("citations")
        self._cited = list(cited) if isinstance(cited, list) else []

    def begin(self) -> Delta | None:
        return TextDelta(text) if (text := str(self._pieces)) else None

    def add(self, delta: Mapping[str, Any]) -> Delta | None:
        kind = delta.get("type")
        if kind == "text_delta" and (text := self._pieces.add(_text(delta.get("text")))):
            return TextDelta(text)
        if kind == "citations_delta" and delta.get("citation") is not None:
            self._cited.append(delta["citation"])
        return None

    def part(self, maker: Maker) -> Part:
        more = self._rest("type", "text", "citations")
        return Text(str(self._pieces), maker.extra({**more, **({"citations": self._cited} if self._cited else {})}))


class ThinkingBlock(Block):
    """Thinking with its signature, or redacted thinking."""

    __slots__ = ("_pieces", "_signature")

    def __init__(self, start: Mapping[str, Any]) -> None:
        super().__init__(start)
        self._pieces = Pieces(_text(start.get("thinking")))
        self._signature = _text(start.get("signature"))

    def begin(self) -> Delta | None:
        return ThinkingDelta(text) if (text := str(self._pieces)) else None

    def add(self, delta: Mapping[str, Any]) -> Delta | None:
        kind = delta.get("type")
        if kind == "thinking_delta" and (text := self._pieces.add(_text(delta.get("thinking")))):
            return ThinkingDelta(text)
        if kind == "signature_delta":
            self._signature = _text(delta.get("signature"))
        return None

    def part(self, maker: Maker) -> Part:
        rest = self._rest("type", "thinking", "signature", "data")
        return Thinking(
            str(self._pieces),
            self._signature,
            _text(self.start.get("data")),
            maker.provider,
            maker.family,
            json_text(rest) if rest else "",
        )


class InputBlock(Block):
    """What has an input that arrives in pieces: deltas stand for the start's input where any came."""

    __slots__ = ("_pieces",)

    def __init__(self, start: Mapping[str, Any]) -> None:
        super().__init__(start)
        self._pieces = Pieces()

    def add(self, delta: Mapping[str, Any]) -> Delta | None:
        piece = _text(delta.get("partial_json")) if delta.get("type") == "input_json_delta" else ""
        shown = self._pieces.add(piece) if piece else ""
        return self._shown(shown) if shown else None

    def close(self) -> Delta | None:
        self.open = False
        return None if self._pieces else self._shown(self.raw)

    def _shown(self, piece: str) -> Delta | None:
        return None

    @property
    def raw(self) -> str:
        """The input's JSON text as far as it has come."""
        if self._pieces:
            return _sound(str(self._pieces))
        given = self.start.get("input")
        if isinstance(given, str):
            return given or "{}"
        return "{}" if given is None else whole(json_text(given))

    def part(self, maker: Maker) -> Part:
        return Opaque(whole(json_text({**self.start, "input": _loads(self.raw)})), maker.provider, maker.family)


def _sound(raw: str) -> str:
    """JSON text as it came; written anew, as in a whole answer, where an escape in it is half a surrogate pair."""
    value = _loads(raw) if "\\ud" in raw.lower() else None
    text = json_text(value)
    return raw if value is None or whole(text) == text else whole(text)


class ToolUseBlock(InputBlock):
    """A call that the client has to run."""

    __slots__ = ("_id", "_index", "_name")

    def __init__(self, start: Mapping[str, Any], index: int, names: Mapping[str, str]) -> None:
        super().__init__(start)
        self._index = index
        name = whole(_text(start.get("name")))
        self._id = whole(_text(start.get("id")))
        self._name = names.get(name, name)

    def _shown(self, piece: str) -> Delta | None:
        return CallDelta(self._index, self._id, self._name, piece)

    def part(self, maker: Maker) -> Part:
        more = self._rest("type", "id", "name", "input")
        names = maker.arguments.get(self._name)
        return ToolCall(self._id, self._name, renamed(self.raw, names) if names else self.raw, maker.extra(more))


class UnknownBlock(Block):
    """Anything else: the start, with each delta's fields put in: text is appended, all else taken over."""

    __slots__ = ("_value",)

    def __init__(self, start: Mapping[str, Any]) -> None:
        super().__init__(start)
        self._value = dict(start)

    def add(self, delta: Mapping[str, Any]) -> Delta | None:
        for key, value in delta.items():
            old = self._value.get(key)
            if key != "type":
                self._value[key] = old + value if isinstance(old, str) and isinstance(value, str) else value
        return None

    def part(self, maker: Maker) -> Part:
        return Opaque(whole(json_text(self._value)), maker.provider, maker.family)


_KINDS: Final[Mapping[str, Callable[[Mapping[str, Any]], Block]]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "redacted_thinking": ThinkingBlock,
    "server_tool_use": InputBlock,
    "mcp_tool_use": InputBlock,
}


def open_block(start: Mapping[str, Any], calls: int, names: Mapping[str, str]) -> Block:
    """The block that `start` opens; `calls` is how many calls came before it."""
    kind = start.get("type")
    if kind == "tool_use":
        return ToolUseBlock(start, calls, names)
    return _KINDS.get(kind if isinstance(kind, str) else "", UnknownBlock)(start)


def _text(value: object) -> str:
    """The text in a field; empty for anything else."""
    return value if isinstance(value, str) else ""


def _loads(raw: str) -> Any:
    """The input of a server's own call; what was cut off is no input."""
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return {}
