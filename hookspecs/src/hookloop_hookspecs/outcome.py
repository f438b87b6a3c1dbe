"""What a turn came to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .entries import Status
from .messages import Message, ToolCall, Usage


@dataclass(frozen=True, slots=True)
class Round:
    """One request and what it led to. `size` is the number of messages sent; times are in seconds."""

    number: int
    provider: str
    size: int
    usage: Usage = Usage()
    calls: tuple[ToolCall, ...] = ()
    seconds: float = 0.0
    attempts: int = 1
    stop: str = ""


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A call that waits for a decision. `arguments` is JSON text as judged; `expires` is in epoch seconds."""

    call: ToolCall
    question: str
    arguments: str
    expires: float | None = None

    @property
    def id(self) -> str:
        """The call's id, the key of `resume`'s decisions."""
        return self.call.id

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.call.name


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """The end of a run, whatever happened.

    `status` is done, stopped, limit, cancelled, suspended or failed; `stop_reason` the reply's (end, length, filter,
    refusal), "return_direct", the Stop's reason, the limit's name, or the error's class. `text` is the answer, `output` the
    validated structured output. `new` are this turn's messages; `messages` the loaded log, flattened. `pending` lists
    the calls that wait; `suspension` (JSON text) can be given to `resume` where no durable memory holds the turn.
    `partial` is the text that had been streamed of a reply that never became history.
    """

    status: Status
    stop_reason: str
    text: str = ""
    conversation: str = ""
    turn_id: str = ""
    output: Any = None
    new: tuple[Message, ...] = ()
    usage: Usage = Usage()
    rounds: tuple[Round, ...] = ()
    pending: tuple[PendingCall, ...] = ()
    warnings: tuple[str, ...] = ()
    error: BaseException | None = None
    partial: str = ""
    flatten: Callable[[], Sequence[Message]] = field(default=tuple, repr=False)
    suspend: Callable[[], str] = field(default=str, repr=False)

    @property
    def messages(self) -> Sequence[Message]:
        """The loaded log, flattened: every message with its origin."""
        return self.flatten()

    @property
    def suspension(self) -> str | None:
        """The conversation as JSON text for `resume`, where the turn is suspended; else None."""
        return self.suspend() if self.status == "suspended" else None
