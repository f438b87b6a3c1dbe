"""What rendering an answer needs to know beside the reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, cast

from hookloop_hookspecs import Opaque, Reply, Text, Thinking, ToolCall

from .cutting import Cutter
from .record import Recorded

Said: TypeAlias = Text | Thinking | ToolCall | Opaque
"""The parts that a model says."""

CREATED = 1_790_000_000
"""The time that answers carry, in seconds; the server has no clock, so that equal scripts give equal bytes."""


@dataclass(frozen=True, slots=True)
class Context:
    """One answer's surroundings. `new` makes an identifier with the given prefix; `cut` cuts texts into deltas."""

    request: Recorded
    new: Callable[[str], str]
    cut: Cutter
    profile: str | None = None
    created: int = CREATED

    @property
    def model(self) -> str:
        """The model that answers: the one that was asked."""
        return self.request.model


def said(reply: Reply) -> tuple[Said, ...]:
    """The parts of a reply whose parts have been looked at: all of them are what a model says."""
    return cast("tuple[Said, ...]", reply.content)
