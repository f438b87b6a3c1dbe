"""What is asked beside the messages: limits, thinking, sampling, tool choice, form. Pure, by the model's data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hookloop_hookspecs import ConfigError, ModelRequest, json_text

from .encode import Encoded
from .models import Generation
from .options import Options
from .tools import output_format

BINDING_BETA: Final = "thinking-binding-controls-2026-08-01"
LEAST_BUDGET: Final = 1024
USUAL: Final = 32_000


@dataclass(frozen=True, slots=True)
class Asker:
    """Options and a model's data, checked against each other once."""

    model: str
    generation: Generation
    options: Options

    def check(self) -> None:
        """Raises `ConfigError` where the options ask for what the model refuses."""
        thinking, facts = self.options.thinking, self.generation
        if thinking == "off" and facts.off == "never":
            raise ConfigError(f"{self.model} always thinks; leave the option thinking out and use a lower effort")
        if thinking == "adaptive" and not facts.adaptive:
            hint = f"give a budget of at least {LEAST_BUDGET} tokens" if facts.budget else "leave it out"
            raise ConfigError(f"{self.model} does not know thinking = 'adaptive'; {hint}")
        if isinstance(thinking, int) and not facts.budget:
            hint = "use 'adaptive' and an effort" if facts.adaptive else "leave it out"
            raise ConfigError(f"{self.model} takes no thinking budget; {hint}")
        if isinstance(thinking, int) and thinking < LEAST_BUDGET:
            raise ConfigError(f"thinking = {thinking}: a budget has at least {LEAST_BUDGET} tokens")

    @property
    def betas(self) -> tuple[str, ...]:
        """The beta names that the options need."""
        return (BINDING_BETA,) if self._drops else ()

    @property
    def _drops(self) -> bool:
        return self.generation.bound and self.options.binding == "drop_block" and self.options.thinking != "off"

    def body(self, request: ModelRequest, encoded: Encoded) -> bytes:
        """The body of the request as UTF-8 JSON. `Settings.extra` stands over ours; its tools are added to ours."""
        extra = dict(request.settings.extra)
        lists = dict(encoded.render(self.options.cache))
        added = extra.pop("tools", None)
        if isinstance(added, list) and added:
            lists["tools"] = f"{lists.get('tools', '[]')[:-1]}{',' if encoded.tools else ''}{json_text(added)[1:]}"
        head = {**self.head(request, encoded, tools="tools" in lists), **extra}
        texts = [f'"{key}":{text}' for key, text in lists.items() if key not in head]
        return ",".join([json_text(head)[:-1], *texts]).encode("utf-8", "replace") + b"}"

    def head(self, request: ModelRequest, encoded: Encoded, *, tools: bool) -> dict[str, Any]:
        """All but the lists."""
        thinking, limit = self._thinking(request, encoded)
        on = self._on(thinking)
        return {
            "model": request.model or self.model,
            "max_tokens": limit,
            "stream": self.options.transport == "stream",
            **({"thinking": thinking} if thinking else {}),
            **self._sampling(request, on),
            **self._output(request),
            **(self._choice(request, encoded, on) if tools else {}),
        }

    def _limit(self, request: ModelRequest) -> tuple[int, bool]:
        """The bound on the reply, and whether somebody chose it."""
        chosen = request.settings.max_tokens
        if chosen is None:
            chosen = self.options.max_tokens
        return (min(USUAL, self.generation.max_output), False) if chosen is None else (chosen, True)

    def _thinking(self, request: ModelRequest, encoded: Encoded) -> tuple[dict[str, Any] | None, int]:
        """The thinking configuration and the bound on the reply, which holds the budget."""
        limit, chosen = self._limit(request)
        asked, facts = self.options.thinking, self.generation
        if asked == "off" or (asked is None and request.settings.effort == "none"):
            return self._off(), limit
        if isinstance(asked, int):
            return self._budget(asked, limit, chosen, encoded)
        if asked == "adaptive" or (self._drops and facts.adaptive):
            return {"type": "adaptive", **self._binding()}, limit
        return None, limit

    def _off(self) -> dict[str, Any] | None:
        off = self.generation.off
        return {"type": off} if off in ("disabled", "between_tools") else None

    def _budget(self, asked: int, limit: int, chosen: bool, encoded: Encoded) -> tuple[dict[str, Any] | None, int]:
        """A budget must leave room in the reply, and thinking cannot begin in the middle of a turn."""
        if not chosen:
            limit = max(limit, min(asked + limit, self.generation.max_output))
        budget = min(asked, limit - 1)
        if budget < LEAST_BUDGET or not encoded.begins_with_thinking:
            return None, limit
        return {"type": "enabled", "budget_tokens": budget, **self._binding()}, limit

    def _binding(self) -> dict[str, Any]:
        return {"block_binding": {"prefix_mismatch_behavior": "drop_block"}} if self._drops else {}

    def _on(self, thinking: dict[str, Any] | None) -> bool:
        if thinking is None:
            return self.generation.thinks
        return thinking["type"] in ("enabled", "adaptive")

    def _sampling(self, request: ModelRequest, on: bool) -> dict[str, Any]:
        """Temperature or top_p, not both, where the model takes them; stop sequences that are not blank."""
        settings, chosen = request.settings, {}
        if self.generation.sampling and not on:
            if settings.temperature is not None:
                chosen["temperature"] = settings.temperature
            elif settings.top_p is not None:
                chosen["top_p"] = settings.top_p
        stops = [stop for stop in settings.stop if stop.strip()]
        return {**chosen, **({"stop_sequences": stops} if stops else {})}

    def _output(self, request: ModelRequest) -> dict[str, Any]:
        config: dict[str, Any] = {}
        effort = self._effort(request.settings.effort)
        if effort:
            config["effort"] = effort
        if request.output and self.generation.structured:
            config["format"] = output_format(request.output)
        return {"output_config": config} if config else {}

    def _effort(self, word: str | None) -> str | None:
        """The asked effort in the model's words; the nearest where it has fewer, None where it has none."""
        known = self.generation.efforts
        if word is None or not known or (word == "none" and self.generation.off != "never"):
            return None
        if self.options.thinking == "off" and word in ("xhigh", "max"):
            return "high"
        lowest, highest = known[0], "high" if word == "xhigh" else known[-1]
        nearest = {"none": lowest, "minimal": lowest, "xhigh": highest, "max": highest}
        return word if word in known else nearest.get(word)

    def _choice(self, request: ModelRequest, encoded: Encoded, on: bool) -> dict[str, Any]:
        choice = request.tool_choice
        forced = self.generation.forced and not on
        if choice == "none":
            return {"tool_choice": {"type": "none"}}
        single = {"disable_parallel_tool_use": True} if request.settings.parallel is False else {}
        if choice in ("auto", "") or not forced:
            return {"tool_choice": {"type": "auto", **single}} if single else {}
        if choice == "required":
            return {"tool_choice": {"type": "any", **single}}
        return {"tool_choice": {"type": "tool", "name": encoded.names.wire(choice), **single}}
