"""What a tool may be told while it runs, and the two ways in which it may end on purpose."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

from .messages import ToolCall
from .verdicts import Decision, Suspend
from .wellformed import fault


class ToolError(Exception):
    """Raised by a tool to tell the model something. Its text goes to the model as an error result."""


class SuspendCall(BaseException):
    """What `ToolContext.suspend` raises; the engine turns it into a suspended call. Tools let it pass."""

    def __init__(self, question: str, expires: float | None = None) -> None:
        super().__init__(question)
        self.question = question
        self.expires = expires


@dataclass(slots=True, eq=False)
class ToolContext:
    """What a tool may know of its call. A tool asks for it with a parameter annotated `ToolContext`.

    `key` is an idempotency key made of conversation, turn, round and position: the same for a repeated run of the same
    call, never the same for two calls. `cancel` is set when the turn is cancelled; a long tool in a thread looks at it.
    `deps` is what the caller gave to `run(..., deps=…)`.
    """

    conversation: str
    turn: str
    round: int
    call: ToolCall
    key: str
    deps: Any = None
    cancel: threading.Event = field(default_factory=threading.Event)
    decisions: list[Decision] = field(default_factory=list)

    def suspend(self, question: str, expires: float | None = None) -> Decision:
        """Wait for a decision. The first time the call is suspended here, and called again from its start once somebody
        approved; then this returns the decision. A second `suspend` of the same call waits for a second one.

        Arguments: `question` for whoever decides; `expires` in seconds from now, after which it counts as denied.
        Raises `TypeError` for others than text and a number.
        """
        if trouble := fault(Suspend(question, expires)):
            raise TypeError(f"ctx.suspend: {trouble}")
        if self.decisions:
            return self.decisions.pop(0)
        raise SuspendCall(question, expires)
