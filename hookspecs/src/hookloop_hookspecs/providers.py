"""What a provider is: it turns a frozen `ModelRequest` into deltas and one `Reply`.

A provider is a class with `stream(request)` or `astream(request)` (or both); the one that is missing is bridged by the
engine. The last thing that either yields is the `Reply`; everything before is a delta. It raises `ProviderError` and
nothing else. It never runs tools, never retries after its first visible delta (text or call), and never keeps conversation
state. `Usage.total` is what limits count, so a provider fills it wherever it can.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from .entries import StopReason, ToolSpec
from .messages import NO_USAGE, Message, Part, Text, ToolCall, Usage
from .quick import quick

ToolChoice: TypeAlias = str
"""`"auto"`, `"none"`, `"required"`, or the name of one tool."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is asked of a model beside the messages; None leaves the provider's default.

    `max_tokens` bounds the reply; `effort` is the reasoning effort by the vendor's word ("none", "low", "high", …);
    `parallel` allows several calls in one reply; `extra` is put into the request body as it is.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    effort: str | None = None
    parallel: bool | None = None
    extra: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@quick
@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, whole and frozen.

    `messages` is a bounded view into one shared, growing list: within an epoch each request's messages extend the
    ones before. `system` and `tools` are equal in all requests of an epoch. `allowed` narrows the tools for this round
    (None: all). `memo` is a place where the provider keeps what it encoded of this epoch; it is emptied when a new epoch
    begins, and nothing else reads it. A request of epoch 0 stands outside history (a plugin's
    own, by `turn.complete`). `recut` says that what stood before the open turn's thinking is not sent any more, so that
    thinking that is bound to it may not fit. `output` is a JSON Schema text for structured output, with `output_name`.
    """

    model: str
    system: str
    messages: Sequence[Message]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    allowed: frozenset[str] | None = None
    settings: Settings = field(default_factory=Settings)
    output: str = ""
    output_name: str = ""
    conversation: str = ""
    turn: str = ""
    round: int = 1
    epoch: int = 1
    recut: bool = False
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@quick
@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of visible text."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of reasoning text."""

    text: str


@quick
@dataclass(frozen=True, slots=True)
class CallDelta:
    """A piece of a tool call's arguments. `index` counts the calls of the reply; `id` and `name` as far as known."""

    index: int
    id: str
    name: str
    raw: str


Delta: TypeAlias = TextDelta | ThinkingDelta | CallDelta


@quick
@dataclass(frozen=True, slots=True)
class Reply:
    """A model's whole answer to one request.

    `content` is in the model's order. `stop` says why it ended: "calls" and "end" are complete; "length", "filter",
    "refusal" and "context" are cut, so none of its calls runs; "pause" asks to be sent back as it is. Whether the loop
    runs calls depends on their presence, not on "calls" versus "end". `raw_stop` is the vendor's word. `model` is the
    model that answered.
    """

    content: tuple[Part, ...] = ()
    stop: StopReason = "end"
    usage: Usage = NO_USAGE
    model: str = ""
    raw_stop: str = ""
    request_id: str = ""

    @property
    def text(self) -> str:
        """All text parts, joined with nothing between."""
        return "".join(part.text for part in self.content if isinstance(part, Text))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The tool calls, in order."""
        if len(self.content) == 1:
            part = self.content[0]
            return (part,) if isinstance(part, ToolCall) else ()
        return tuple([part for part in self.content if isinstance(part, ToolCall)])

    @property
    def cut(self) -> bool:
        """True when the reply did not come to its own end, so its calls must not run."""
        return self.stop in ("length", "filter", "refusal", "context")


@dataclass(frozen=True, slots=True)
class ProviderTraits:
    """What a provider can do, as far as the engine must know.

    `structured`: has a mode of its own for structured output; else the engine uses an output tool. `vision`: takes
    images; else a placeholder is sent. `bound_thinking`: thinking is bound to all that came before it, so that of
    closed turns is left out in a new epoch.
    """

    structured: bool = False
    vision: bool = True
    bound_thinking: bool = False


class Provider:
    """Base for providers; carries names and defaults, no logic.

    `name` tags thinking and opaque blocks ("openai"); `model` is the model's id; `family` groups models that read each
    other's opaque blocks (defaults to the model). A subclass implements `stream` or `astream`, or both. `abort(token)`
    is optional: called from another thread with the request that is being streamed, it makes a blocked `stream` return
    or raise soon. `close` and `aclose` free connections; they are called once, when the agent closes.
    """

    name: str = ""
    model: str = ""
    family: str = ""
    traits: ProviderTraits = ProviderTraits()
    Options: ClassVar[type | None] = None

    @property
    def reference(self) -> str:
        """How the provider is named in config and events, `"openai:gpt-4.1"`."""
        return f"{self.name}:{self.model}" if self.model else self.name

    def abort(self, request: ModelRequest) -> None:
        """Make a `stream` that is blocked on this request return soon; does nothing by default."""

    def close(self) -> None:
        """Free what sync calls hold."""

    async def aclose(self) -> None:
        """Free what async calls hold."""


@runtime_checkable
class Streams(Protocol):
    """A provider with a sync stream."""

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        """Ask the model; yields deltas, then the reply. Raises `ProviderError`."""
        ...


@runtime_checkable
class AsyncStreams(Protocol):
    """A provider with an async stream."""

    def astream(self, request: ModelRequest) -> AsyncIterator[Delta | Reply]:
        """Ask the model; yields deltas, then the reply. Raises `ProviderError`."""
        ...
