"""Asks other providers when a model cannot be asked."""

from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hookloop_hookspecs import ProviderError, Retry, Turn, hookimpl


class FallbackOptions(BaseModel):
    """`providers`: references or provider objects, in this order; `when`: which errors; `wait`: seconds before each."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    providers: list[Any] = Field(min_length=1)
    when: Literal["retryable", "any"] = "retryable"
    wait: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)


@dataclass(slots=True)
class _Course:
    """How far a turn has come: in its newest round that failed, who is left to ask, and who was told to go on."""

    round: int
    left: list[Any]
    current: Any


class Fallback:
    """In a round that fails, asks the listed providers one after the other; each round may use the whole list again."""

    name = "fallback"
    Options = FallbackOptions

    def __init__(self, options: FallbackOptions) -> None:
        self._options = options
        self._courses: dict[str, _Course] = {}

    @hookimpl
    def on_model_error(self, turn: Turn, error: ProviderError) -> Retry | None:
        """The next provider of the list; None when all were asked in this round, or the error is of another kind."""
        if self._options.when == "retryable" and not error.retryable:
            return None
        course = self._course(turn)
        if not course.left:
            return None
        course.current = course.left.pop(0)
        return Retry(self._options.wait, course.current)

    @hookimpl
    def after_turn(self, turn: Turn) -> None:
        """Forget the turn."""
        self._courses.pop(turn.id, None)

    def _course(self, turn: Turn) -> _Course:
        """The turn's course in this round. Kept by turn, because one plugin serves many turns at once."""
        course = self._courses.get(turn.id)
        if course is None or course.round != turn.round:
            current = course.current if course else None
            others = [provider for provider in self._options.providers if provider is not current]
            course = self._courses[turn.id] = _Course(turn.round, others, current)
        return course
