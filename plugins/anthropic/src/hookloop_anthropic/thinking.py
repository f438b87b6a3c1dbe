"""Whether and how a request asks the model to think. Pure; by the model's data, the options and the turn in progress."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from hookloop_hookspecs import ConfigError, ModelRequest

from .encode import Encoded
from .models import Generation
from .options import Options

Config: TypeAlias = "Mapping[str, Any] | None"

BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
LEAST_BUDGET: Final = 1024
RESUMED: Final = 4096
"""The budget for going on with thinking that the options do not mention, where the model needs one."""


@dataclass(frozen=True, slots=True)
class Thinker:
    """Options and a model's data, as far as they are about thinking."""

    model: str
    facts: Generation
    options: Options

    def check(self) -> None:
        """Raises `ConfigError` where the options ask for what the model refuses."""
        fault = self._fault(self.options.thinking)
        if fault:
            raise ConfigError(f"{self.model}, thinking = {self.options.thinking!r}: {fault}")

    def _fault(self, asked: object) -> str:
        facts = self.facts
        if asked == "off":
            return "it always thinks; leave the option out and use a lower effort" if facts.off == "never" else ""
        if asked == "adaptive" and not facts.adaptive:
            return f"it takes a budget of at least {LEAST_BUDGET} tokens" if facts.budget else "it does not think"
        if isinstance(asked, int) and not facts.budget:
            return "it takes no budget; use 'adaptive' and an effort" if facts.adaptive else "it does not think"
        too_small = isinstance(asked, int) and asked < LEAST_BUDGET
        return f"a budget has at least {LEAST_BUDGET} tokens" if too_small else ""

    @property
    def binds(self) -> bool:
        """True where thinking is sent and is bound to what was said before it."""
        return self.facts.bound and self.options.thinking != "off"

    def drops(self, request: ModelRequest) -> bool:
        """True where the server is asked to drop thinking that is bound to another conversation: by option, and where the
        engine had to cut what stood before it.
        """
        return self.binds and (self.options.binding == "drop_block" or request.recut)

    def config(self, request: ModelRequest, encoded: Encoded, limit: int) -> Config:
        """The thinking configuration; None leaves it to the model.

        A conversation that was thinking goes on with it, also where the options do not say so: the API refuses the
        latest reply's thinking once it is off. A budget must leave room in the reply of `limit` tokens.
        """
        asked, facts = self.options.thinking, self.facts
        begun = asked is None and facts.thinks is False and encoded.thinks
        if asked == "off" or (asked is None and request.settings.effort == "none" and not encoded.thinks):
            return {"type": facts.off} if facts.off in ("disabled", "between_tools") else None
        if isinstance(asked, int):
            return self._budget(asked, limit, encoded, request)
        if asked == "adaptive" or (facts.adaptive and (begun or self.drops(request))):
            return {"type": "adaptive", **self._binding(request)}
        return self._budget(RESUMED, limit, encoded, request) if begun else None

    def _budget(self, asked: int, limit: int, encoded: Encoded, request: ModelRequest) -> Config:
        """Thinking with a budget; None where it does not fit, or would begin in the middle of a turn."""
        budget = min(asked, limit - 1)
        if budget < LEAST_BUDGET or not encoded.begins_with_thinking:
            return None
        return {"type": "enabled", "budget_tokens": budget, **self._binding(request)}

    def _binding(self, request: ModelRequest) -> dict[str, Any]:
        return {"block_binding": {"prefix_mismatch_behavior": "drop_block"}} if self.drops(request) else {}

    def keeps(self, config: Config, encoded: Encoded) -> bool:
        """Whether earlier thinking is sent: not where thinking is off because its budget leaves no room."""
        squeezed = isinstance(self.options.thinking, int) and encoded.begins_with_thinking
        return self.on(config) or not squeezed

    def on(self, config: Config) -> bool:
        """Whether the model will think with this configuration."""
        if config is None:
            return bool(self.facts.thinks)
        return config.get("type") in ("enabled", "adaptive")
