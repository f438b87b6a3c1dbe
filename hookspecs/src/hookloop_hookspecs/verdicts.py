"""Verdicts: what a hook may decide, and the table that says which hook may return which.

Of several verdicts at one point Stop stands over Deny, over Suspend, over Answer, over Retry; among equals the first in
plugin order. `Replace` is folded or asked again, as the hook's docstring says.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Generic, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Replace(Generic[T]):
    """Put `value` in the place of the thing at hand: the input, a reply, a call's arguments, a result."""

    value: T


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """Use `value` instead of doing the thing: a reply instead of asking, a result instead of running the tool.

    As a decision on a suspended call: `value` is the call's result; the tool is not called.
    """

    value: T


@dataclass(frozen=True, slots=True)
class Deny:
    """Do not run the call; the model reads `reason`. Also a decision on a suspended call."""

    reason: str = "denied"


@dataclass(frozen=True, slots=True)
class Suspend:
    """Let the call wait for a decision on `question`; `expires` is seconds from now, after which it counts as denied."""

    question: str
    expires: float | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """Ask the model again, `after` seconds, with another `provider` (a reference or object) if one is given."""

    after: float = 0.0
    provider: Any = None


@dataclass(frozen=True, slots=True)
class Stop:
    """End the turn with status "stopped". `reason` is the outcome's stop_reason; `text`, where given, its text."""

    reason: str = "stopped"
    text: str = ""


@dataclass(frozen=True, slots=True)
class Approve:
    """A decision on a suspended call: run it, with `arguments` in place of the judged ones if given."""

    arguments: Mapping[str, Any] | None = None


Verdict: TypeAlias = "Replace[Any] | Answer[Any] | Deny | Suspend | Retry | Stop"
Decision: TypeAlias = "Approve | Deny | Answer[Any]"

VERDICTS: Final = (Stop, Deny, Suspend, Answer, Retry, Replace)
"""The six, strongest first."""

ALLOWED: Final[Mapping[str, tuple[type, ...]]] = MappingProxyType(
    {
        "before_turn": (Replace, Stop),
        "before_round": (Answer,),
        "on_model_error": (Retry, Answer, Stop),
        "after_reply": (Replace, Stop),
        "before_tool": (Deny, Suspend, Answer, Replace, Stop),
        "after_tool": (Replace, Stop),
        "next_instructions": (Stop,),
    }
)
"""Which verdicts a hook may return. A hook that is not named may return none; any other verdict is a `PluginError`."""
