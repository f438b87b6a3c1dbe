"""Tools: a Python function, its schema, and what it may be told while it runs."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, overload, runtime_checkable

from .entries import ToolSpec
from .messages import ToolCall
from .schema import ArgumentsError, Signature, describe
from .verdicts import Decision

__all__ = ["ArgumentsError", "SuspendCall", "Tool", "ToolContext", "ToolError", "Toolset", "as_tool", "tool"]

F = TypeVar("F", bound=Callable[..., Any])


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
    decision: Decision | None = None

    def suspend(self, question: str, expires: float | None = None) -> Decision:
        """Wait for a decision. The first time the call is suspended here and later called again from its start; then this
        returns the decision.

        Arguments: `question` for whoever decides; `expires` in seconds from now, after which it counts as denied.
        """
        if self.decision is not None:
            return self.decision
        raise SuspendCall(question, expires)


@dataclass(frozen=True, eq=False, kw_only=True)
class Tool:
    """A function that a model may call.

    `timeout` is in seconds (the effect of a call that ran out of time is unknown); `retries` more attempts are made on
    the exceptions of `retry_on`, `retry_wait` seconds apart; `idempotent` tools may be run again after a crash;
    `return_direct` makes the results the answer (if every call of the reply has it and succeeded); `needs_approval`
    suspends each call until somebody decides; `serial` tools never run beside others; `strict` asks for the provider's
    strict schema mode.
    """

    name: str
    description: str
    signature: Signature
    function: Callable[..., Any]
    is_async: bool
    timeout: float | None = None
    retries: int = 0
    retry_on: tuple[type[Exception], ...] = (Exception,)
    retry_wait: float = 0.0
    idempotent: bool = False
    return_direct: bool = False
    needs_approval: bool = False
    serial: bool = False
    strict: bool = False

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(self.name, self.description, self.signature.schema, self.strict)

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the function, as Python values. Raises `ArgumentsError`, which lists every fault."""
        return self.signature.validate(arguments)

    def call(self, kwargs: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the function with validated arguments; the value, or an awaitable where the tool is async."""
        injected = {name: context for name in self.signature.injected}
        return self.signature.invoke(self.function, {**kwargs, **injected})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The plain function, for use outside a turn."""
        return self.function(*args, **kwargs)
