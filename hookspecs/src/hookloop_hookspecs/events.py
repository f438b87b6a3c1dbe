"""Typed events: what a stream yields and what `on_event` sees. They tell; nothing that happens to them changes a turn."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias

from .entries import Status
from .messages import Message, ToolCall, ToolResult, Usage
from .providers import ModelRequest, Reply

if TYPE_CHECKING:
    from .outcome import Outcome


@dataclass(frozen=True, slots=True)
class TurnBegan:
    """A turn started, or was taken up again (`resumed`). Its question is `message` (None on a resume)."""

    conversation: str
    turn: str
    message: Message | None = None
    resumed: bool = False
    kind: Literal["turn_began"] = field(default="turn_began", repr=False)


@dataclass(frozen=True, slots=True)
class RequestSent:
    """The exact request of a round, just before it goes out. `fresh` counts the messages that were not in the one before."""

    round: int
    request: ModelRequest
    provider: str
    fresh: int = 0
    attempt: int = 1
    kind: Literal["request_sent"] = field(default="request_sent", repr=False)


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A piece of the reply's text, as it comes."""

    text: str
    round: int = 0
    kind: Literal["text_piece"] = field(default="text_piece", repr=False)


@dataclass(frozen=True, slots=True)
class ThinkingPiece:
    """A piece of the model's reasoning, as it comes."""

    text: str
    round: int = 0
    kind: Literal["thinking_piece"] = field(default="thinking_piece", repr=False)


@dataclass(frozen=True, slots=True)
class CallPiece:
    """A piece of a call's arguments, as it comes. The call is not complete before `ReplyReceived`."""

    index: int
    id: str
    name: str
    raw: str
    round: int = 0
    kind: Literal["call_piece"] = field(default="call_piece", repr=False)


@dataclass(frozen=True, slots=True)
class ReplyReceived:
    """A whole reply became history. `answered_by` names the plugin when no model was asked."""

    round: int
    reply: Reply
    message: Message
    seconds: float = 0.0
    answered_by: str = ""
    kind: Literal["reply_received"] = field(default="reply_received", repr=False)


@dataclass(frozen=True, slots=True)
class ReplyDiscarded:
    """What was streamed of this round does not count: the model is asked again, or a plugin stopped the turn."""

    round: int
    why: str
    kind: Literal["reply_discarded"] = field(default="reply_discarded", repr=False)


@dataclass(frozen=True, slots=True)
class ModelFailed:
    """An attempt to ask the model failed; `usage` is what it cost, as far as known."""

    round: int
    provider: str
    error: str
    error_kind: str
    attempt: int
    usage: Usage | None = None
    kind: Literal["model_failed"] = field(default="model_failed", repr=False)


@dataclass(frozen=True, slots=True)
class ToolStarted:
    """A tool begins to run with `arguments` (JSON text)."""

    round: int
    call: ToolCall
    arguments: str
    kind: Literal["tool_started"] = field(default="tool_started", repr=False)


@dataclass(frozen=True, slots=True)
class ToolEnded:
    """A call has its result. `ran` is False when the tool was not called; `seconds` is the tool's time."""

    round: int
    call: ToolCall
    result: ToolResult
    ran: bool
    seconds: float = 0.0
    kind: Literal["tool_ended"] = field(default="tool_ended", repr=False)


@dataclass(frozen=True, slots=True)
class CallSuspended:
    """A call waits for a decision."""

    round: int
    call: ToolCall
    question: str
    expires: float | None = None
    kind: Literal["call_suspended"] = field(default="call_suspended", repr=False)


@dataclass(frozen=True, slots=True)
class Contributed:
    """A hook's message entered history; its origin names plugin and hook."""

    message: Message
    kind: Literal["contributed"] = field(default="contributed", repr=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """A hook's verdict took effect: which plugin, in which hook, what."""

    plugin: str
    hook: str
    verdict: str
    detail: str = ""
    kind: Literal["decision"] = field(default="decision", repr=False)


@dataclass(frozen=True, slots=True)
class MessageSent:
    """A user's message, sent into the running turn, entered history."""

    message: Message
    kind: Literal["message_sent"] = field(default="message_sent", repr=False)


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit was passed; `action` is the breach mode that applies."""

    limit: str
    action: str
    kind: Literal["limit_reached"] = field(default="limit_reached", repr=False)


@dataclass(frozen=True, slots=True)
class ViewCut:
    """The view was cut: `before` and `after` are numbers of messages."""

    before: int
    after: int
    why: str
    kind: Literal["view_cut"] = field(default="view_cut", repr=False)


@dataclass(frozen=True, slots=True)
class Stored:
    """A batch was written to a memory."""

    memory: str
    entries: int
    version: int
    kind: Literal["stored"] = field(default="stored", repr=False)


@dataclass(frozen=True, slots=True)
class Warned:
    """Something is wrong that does not end the turn: a plugin that was skipped, a placeholder that was stored."""

    text: str
    plugin: str = ""
    hook: str = ""
    kind: Literal["warned"] = field(default="warned", repr=False)


@dataclass(frozen=True, slots=True)
class TurnFinished:
    """The run is over; always the last event of a stream."""

    status: Status
    stop_reason: str
    text: str
    outcome: Outcome = field(repr=False, compare=False)
    kind: Literal["turn_finished"] = field(default="turn_finished", repr=False)


Event: TypeAlias = (
    TurnBegan
    | RequestSent
    | TextPiece
    | ThinkingPiece
    | CallPiece
    | ReplyReceived
    | ReplyDiscarded
    | ModelFailed
    | ToolStarted
    | ToolEnded
    | CallSuspended
    | Contributed
    | Decision
    | MessageSent
    | LimitReached
    | ViewCut
    | Stored
    | Warned
    | TurnFinished
)
