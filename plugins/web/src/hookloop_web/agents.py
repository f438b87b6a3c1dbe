"""What the page needs of an agent, and the one form in which it is told what happens.

What must live here: the seam to the engine, as protocols. What must never be known here: pages, HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

from hookloop_hookspecs import ModelRequest, Outcome
from hookloop_hookspecs.events import Event
from hookloop_hookspecs.verdicts import Decision


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that happened in a turn, as plain data: a line of a trace.

    `at` is the wall clock in seconds (0: unknown); `kind` and `data` are the event's; `request` is the exact request,
    where one went out just now.
    """

    at: float
    turn: str
    kind: str
    data: Mapping[str, Any]
    request: ModelRequest | None = None


Describe: TypeAlias = Callable[[Event, str, str], Told]
"""An event with its conversation and turn, as plain data without secrets."""


class Running(Protocol):
    """A turn as a stream of events, entered and left in one task."""

    outcome: Outcome | None

    @property
    def turn_id(self) -> str:
        """The turn's id."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def __aiter__(self) -> AsyncIterator[Event]: ...


class Talks(Protocol):
    """The part of an agent that the page uses."""

    @property
    def memories(self) -> Sequence[Any]:
        """Its memories; the first that loads owns the history."""

    def astream(self, prompt: Any, *, conversation: str) -> Running:
        """A new turn."""

    def aresume_stream(self, conversation: str, decisions: Mapping[str, Decision] | None = None) -> Running:
        """A turn that waits or was left open."""

    def send(self, conversation: str, text: str) -> None:
        """A message into the running turn. Raises `NoOpenTurn`."""

    def cancel(self, conversation: str) -> None:
        """End the running turn. Raises `NoOpenTurn`."""
