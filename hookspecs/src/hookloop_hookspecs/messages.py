"""Messages and their parts: the only thing that is ever sent to a model.

What must live here: frozen, slotted values, and reading them. What must never be known here: the loop, a provider's
wire format, a store. Everything is immutable down to the last byte (metadata and arguments are JSON text that is
parsed afresh at each access), so no plugin can change history by holding on to a piece of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from .quick import quick, setters

Role: TypeAlias = Literal["system", "user", "assistant", "tool"]
OriginKind: TypeAlias = Literal["user", "model", "tool", "plugin", "engine"]


@quick
@dataclass(frozen=True, slots=True)
class Origin:
    """Where a message came from; survives storage and stands in traces.

    `plugin`, `version` and `hook` name the contributor when `kind` is "plugin" (and the plugin whose verdict answered
    or replaced something otherwise); `model` is the provider's reference ("openai:gpt-4.1") when `kind` is "model".
    `turn` is the turn's id and `round` counts from 1; 0 means before the first round.
    """

    kind: OriginKind = "user"
    plugin: str = ""
    version: str = ""
    hook: str = ""
    turn: str = ""
    round: int = 0
    model: str = ""


USER = Origin()


def json_text(value: object) -> str:
    """Compact JSON text of a plain value, the form in which metadata and arguments are kept."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _parsed(text: str) -> dict[str, Any]:
    """The JSON object in `text`, or an empty one when there is none."""
    if not text:
        return {}
    value = json.loads(text)
    return value if isinstance(value, dict) else {}


@quick
@dataclass(frozen=True, slots=True)
class Text:
    """Plain text. `extra` is the provider's metadata as JSON text (citations, cache hints); empty when there is none."""

    text: str
    extra: str = ""
    type: Literal["text"] = field(default="text", repr=False)


@dataclass(frozen=True, slots=True)
class Image:
    """An image: base64 `data` with its `media_type`, or a `url`."""

    data: str = ""
    media_type: str = "image/png"
    url: str = ""
    extra: str = ""
    type: Literal["image"] = field(default="image", repr=False)

    @classmethod
    def of(cls, data: bytes, media_type: str = "image/png") -> Image:
        """An image from raw bytes."""
        return cls(base64.b64encode(data).decode("ascii"), media_type)


@dataclass(frozen=True, slots=True)
class File:
    """A file other than an image: base64 `data` with its `media_type` and `name`, or a `url`."""

    data: str = ""
    media_type: str = "application/octet-stream"
    name: str = ""
    url: str = ""
    extra: str = ""
    type: Literal["file"] = field(default="file", repr=False)

    @classmethod
    def of(cls, data: bytes, media_type: str, name: str = "") -> File:
        """A file from raw bytes."""
        return cls(base64.b64encode(data).decode("ascii"), media_type, name)


@dataclass(frozen=True, slots=True)
class Thinking:
    """A model's reasoning. `signature` and `extra` are opaque to all but the provider and model family that made it.

    `redacted` holds the provider's encrypted block when the text itself is withheld. `provider` and `family` say who
    may get it back: thinking is sent only to the same provider and model family, byte for byte.
    """

    text: str = ""
    signature: str = ""
    redacted: str = ""
    provider: str = ""
    family: str = ""
    extra: str = ""
    type: Literal["thinking"] = field(default="thinking", repr=False)


@dataclass(frozen=True, slots=True)
class Opaque:
    """A provider's own block, kept as JSON text `data` and sent back only to the same provider and model family."""

    data: str
    provider: str = ""
    family: str = ""
    type: Literal["opaque"] = field(default="opaque", repr=False)

    @property
    def value(self) -> Any:
        """The block, parsed afresh."""
        return json.loads(self.data)


@quick
@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool.

    `raw` is the arguments' JSON text exactly as the model wrote it, also when it is not valid JSON. `id` is unique in
    the conversation as loaded (a repeated or missing one is made unique on arrival).
    """

    id: str
    name: str
    raw: str = "{}"
    extra: str = ""
    type: Literal["call"] = field(default="call", repr=False)

    @classmethod
    def of(cls, name: str, arguments: Mapping[str, Any] | None = None, id: str = "") -> ToolCall:
        """A call from plain arguments."""
        return cls(id, name, json_text(dict(arguments or {})))

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments, parsed afresh at each access; empty where the model wrote no valid JSON object (see `raw`)."""
        try:
            return _parsed(self.raw.strip())
        except ValueError:
            return {}


ResultPart: TypeAlias = Text | Image | File


@quick
@dataclass(frozen=True, slots=True)
class ToolResult:
    """What came of one call. It is the single part of a message with the role "tool".

    `ran` is the JSON text of the arguments that the tool was called with, empty when it was not called. `private` is
    JSON text for programs (never sent to a model).
    """

    call_id: str
    name: str = ""
    content: tuple[ResultPart, ...] = ()
    is_error: bool = False
    ran: str = ""
    private: str = ""
    type: Literal["result"] = field(default="result", repr=False)

    @property
    def text(self) -> str:
        """All text parts, joined with nothing between."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def metadata(self) -> dict[str, Any]:
        """The private metadata, parsed afresh."""
        return _parsed(self.private)

    def with_text(self, text: str, *, is_error: bool | None = None) -> ToolResult:
        """The same result with other content."""
        error = self.is_error if is_error is None else is_error
        return replace(self, content=(Text(text),), is_error=error)


Part: TypeAlias = Text | Image | File | Thinking | Opaque | ToolCall | ToolResult
Content: TypeAlias = "str | Part | Iterable[Part]"


@dataclass(frozen=True, slots=True, init=False)
class Message:
    """One message: a role, ordered parts, and where it came from.

    Arguments: `content` is text, one part, or parts. `origin` is set by the engine on everything that enters history.
    `key` makes it sticky: a plugin's newest message of a key stands, its older ones leave views when their turn ends.
    `ephemeral` messages are stored with their turn and leave views when it ends.
    """

    role: Role
    content: tuple[Part, ...]
    origin: Origin
    key: str
    ephemeral: bool

    def __init__(
        self,
        role: Role,
        content: Content = (),
        origin: Origin = USER,
        key: str = "",
        ephemeral: bool = False,
    ) -> None:
        parts: tuple[Part, ...]
        if isinstance(content, str):
            parts = (Text(content),)
        elif isinstance(content, tuple):
            parts = content
        elif isinstance(content, Iterable):
            parts = tuple(content)
        else:
            parts = (content,)
        _set_role(self, role)
        _set_content(self, parts)
        _set_origin(self, origin)
        _set_key(self, key)
        _set_ephemeral(self, ephemeral)

    @classmethod
    def user(cls, content: Content, *, key: str = "", ephemeral: bool = False) -> Message:
        """A user-role message, what plugins contribute."""
        return cls("user", content, USER, key, ephemeral)

    @classmethod
    def system(cls, text: str) -> Message:
        """System text; only `before_turn` may contribute it."""
        return cls("system", text)

    @classmethod
    def assistant(cls, content: Content) -> Message:
        """A model's message."""
        return cls("assistant", content)

    @classmethod
    def tool(cls, result: ToolResult) -> Message:
        """A tool result as a message."""
        return cls("tool", (result,))

    @property
    def text(self) -> str:
        """All text of the message (for a tool message: of its result), joined with nothing between."""
        return "".join(p.text for p in self.content if isinstance(p, Text | ToolResult))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        if len(self.content) == 1:
            part = self.content[0]
            return (part,) if isinstance(part, ToolCall) else ()
        return tuple([p for p in self.content if isinstance(p, ToolCall)])

    @property
    def results(self) -> tuple[ToolResult, ...]:
        """The tool results (one for a tool message, else none)."""
        if len(self.content) == 1:
            part = self.content[0]
            return (part,) if isinstance(part, ToolResult) else ()
        return tuple([p for p in self.content if isinstance(p, ToolResult)])

    @property
    def blank(self) -> bool:
        """True for no call, result, image, file or opaque part, and no text but white space."""
        return not any(
            p.text.strip() if isinstance(p, Text) else not isinstance(p, Thinking | Opaque) for p in self.content
        )


_set_role, _set_content, _set_origin, _set_key, _set_ephemeral = setters(Message)


@quick
@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as the provider reported them; None is unknown, never zero.

    `input` and `output` are the vendor's own numbers (Anthropic's `input` leaves cached tokens out, OpenAI's holds
    them). `total` is all tokens that were read and written, cached ones too: it is what token limits count.
    `cost` is in the currency of the configured prices.
    """

    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    reasoning: int | None = None
    total: int | None = None
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        if other is NO_USAGE:
            return self
        return Usage(
            _plus(self.input, other.input),
            _plus(self.output, other.output),
            _plus(self.cache_read, other.cache_read),
            _plus(self.cache_write, other.cache_write),
            _plus(self.reasoning, other.reasoning),
            _plus(self.total, other.total),
            self.cost if other.cost is None else (self.cost or 0.0) + other.cost,
        )


NO_USAGE = Usage()
"""Nothing is known."""


def _plus(a: int | None, b: int | None) -> int | None:
    if a is None:
        return b
    return a if b is None else a + b
