"""Asks other providers when a model cannot be asked."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from hookloop_hookspecs import ProviderError, Retry, Turn, hookimpl


class FallbackOptions(BaseModel):
    """`providers`: references or provider objects, in this order; `when`: which errors; `wait`: seconds before each."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    providers: list[Any] = Field(min_length=1)
    when: Literal["retryable", "any"] = "retryable"
    wait: float = Field(default=0.0, ge=0.0, allow_inf_nan=False)


class Fallback:
    """In a round that fails, tries the listed providers one after the other; each round begins with the first again."""

    name = "fallback"
    Options = FallbackOptions

    def __init__(self, options: FallbackOptions) -> None:
        self._options = options
        self._tried: dict[str, tuple[int, int]] = {}

    @hookimpl
    def on_model_error(self, turn: Turn, error: ProviderError) -> Retry | None:
        """The next provider of the list; None when all were tried in this round, or the error is of another kind."""
        if self._options.when == "retryable" and not error.retryable:
            return None
        at = self._next(turn)
        if at >= len(self._options.providers):
            return None
        self._tried[turn.id] = (turn.round, at + 1)
        return Retry(self._options.wait, self._options.providers[at])

    @hookimpl
    def after_turn(self, turn: Turn) -> None:
        """Forget the turn."""
        self._tried.pop(turn.id, None)

    def _next(self, turn: Turn) -> int:
        """How many were tried in this round. Kept by turn, because one plugin serves many turns at once."""
        number, tried = self._tried.get(turn.id, (0, 0))
        return tried if number == turn.round else 0
