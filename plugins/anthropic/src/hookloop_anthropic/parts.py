"""Parts into content blocks, as JSON text that is made once and never again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from hookloop_hookspecs import File, Image, Opaque, Part, Text, Thinking, ToolCall, ToolResult, json_text

from .container import CARRIED
from .marks import own
from .media import file_block, image_block, placeholder
from .names import Ids, Names
from .properties import Renames, renamed

ERROR: Final = "error"


class Sent(NamedTuple):
    """A block on the wire: its JSON text and its type."""

    json: str
    kind: str


@dataclass(frozen=True, slots=True)
class Reader:
    """For whom parts are encoded: only its own opaque parts travel. `thinking` False leaves thinking at home."""

    provider: str
    family: str
    thinking: bool = True

    def reads(self, part: Thinking | Opaque) -> bool:
        """True for a part that this provider and model family made."""
        return part.provider == self.provider and part.family == self.family


class Encoder:
    """Parts of one request's messages. Ids and names are remembered, so that calls and results agree.

    `container` is the id of the newest container in which the vendor ran code, empty for none.
    """

    def __init__(self, reader: Reader, names: Names, renames: Mapping[str, Renames]) -> None:
        self._reader = reader
        self._names = names
        self._renames = renames
        self._ids = Ids()
        self._toolsets: dict[str, dict[str, Any]] = {}
        self.container = ""

    def assistant(self, parts: Iterable[Part]) -> list[Sent]:
        """The blocks of a model's message, in order; what may not be sent is left out."""
        return [sent for part in parts if (sent := self._said(part)) is not None]

    def user(self, parts: Iterable[Part]) -> list[Sent]:
        """The blocks of a user's message, without blank text."""
        return [sent for part in parts if (sent := self._told(part)) is not None]

    def result(self, result: ToolResult) -> Sent:
        """A result. Errors hold text only, and never none."""
        id = self._ids.result(result.call_id)
        block = {"type": "tool_result", "tool_use_id": id, **self._toolsets.get(id, {})}
        content = _error_text(result) if result.is_error else _content(result)
        return _sent({**block, "content": content, **({"is_error": True} if result.is_error else {})})

    def _said(self, part: Part) -> Sent | None:
        if isinstance(part, ToolCall):
            return self._call(part)
        if isinstance(part, Thinking):
            return self._thought(part)
        if isinstance(part, Opaque):
            return Sent(self._opaque(part), "opaque") if self._reader.reads(part) else None
        if isinstance(part, Image | File):
            return _sent(placeholder(part, "it stands in a reply"))
        block = _block(part)
        return None if block is None else _sent({**block, **self._own(part)})

    def _told(self, part: Part) -> Sent | None:
        if isinstance(part, Opaque):
            return Sent(part.data, "opaque") if self._reader.reads(part) else None
        block = _block(part)
        return None if block is None else _sent(block)

    def _opaque(self, part: Opaque) -> str:
        if CARRIED not in part.data:
            return part.data
        value = part.value
        self.container = value.pop(CARRIED, self.container)
        return json_text(value)

    def _own(self, part: Part) -> dict[str, Any]:
        kept = own(part.extra, self._reader.family) if isinstance(part, Text | ToolCall) else {}
        self.container = kept.pop(CARRIED, self.container)
        return kept

    def _thought(self, part: Thinking) -> Sent | None:
        if not self._reader.thinking or not self._reader.reads(part):
            return None
        if part.redacted:
            return _sent({"type": "redacted_thinking", "data": part.redacted})
        if not part.signature:
            return None  # unsigned thinking is refused
        more = json.loads(part.extra) if part.extra else {}
        return _sent({"type": "thinking", "thinking": part.text, "signature": part.signature, **more})

    def _call(self, call: ToolCall) -> Sent:
        id, more = self._ids.call(call.id), self._own(call)
        if "toolset_name" in more:
            self._toolsets[id] = {"toolset_name": more["toolset_name"]}
        head = json_text({"type": "tool_use", "id": id, "name": self._names.wire(call.name), **more})
        text = input_text(call.raw)
        if call.name in self._renames:
            text = renamed(text, self._renames[call.name])
        return Sent(f'{head[:-1]},"input":{text}}}', "tool_use")


def input_text(raw: str) -> str:
    """The JSON text of an object: the model's own where it is one, unwrapped once from a string, else empty."""
    value = _object(raw)
    if isinstance(value, str):
        raw = value
        value = _object(raw)
    if not isinstance(value, dict):
        return "{}"
    return json_text(value) if "\\u" in raw else raw  # escapes may hide half a surrogate pair


def _object(raw: str) -> Any:
    try:
        return json.loads(raw, parse_constant=_refused)
    except (ValueError, RecursionError):
        return None


def _refused(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


def _block(part: Part) -> dict[str, Any] | None:
    if isinstance(part, Text):
        return {"type": "text", "text": part.text} if part.text.strip() else None
    if isinstance(part, Image):
        return image_block(part)
    return file_block(part) if isinstance(part, File) else None


def _sent(block: Mapping[str, Any]) -> Sent:
    return Sent(json_text(dict(block)), block["type"])


def _content(result: ToolResult) -> str | list[dict[str, Any]]:
    blocks = [block for part in result.content if (block := _block(part)) is not None]
    if all(block["type"] == "text" for block in blocks) and len(blocks) < 2:
        return blocks[0]["text"] if blocks else ""
    return blocks


def _error_text(result: ToolResult) -> str:
    texts = [part.text if isinstance(part, Text) else f"[{part.type}]" for part in result.content]
    whole = "".join(texts)
    return whole if whole.strip() else ERROR
