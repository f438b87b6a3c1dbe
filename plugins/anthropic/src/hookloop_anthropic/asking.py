"""What is asked beside the messages: limits, sampling, tool choice, output form. Pure; by the model's data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from hookloop_hookspecs import ModelRequest, json_text

from .container import named
from .encode import Encoded
from .errors import NAME
from .models import Generation
from .options import Options
from .thinking import Config, Thinker
from .tools import output_format

USUAL: Final = 32_000
"""The bound on a reply that nobody bounded, in tokens."""


@dataclass(frozen=True, slots=True)
class Asker:
    """Makes bodies of requests for one model with its options."""

    model: str
    generation: Generation
    options: Options
    thinker: Thinker

    def body(self, request: ModelRequest, encoded: Encoded) -> bytes:
        """The body of the request as UTF-8 JSON. `Settings.extra` stands over ours; its tools are added to ours.

        Only they run code in a container, and without one the API takes no container's id.
        """
        extra = dict(request.settings.extra)
        limit = self._limit(request)
        thinking = self._thinking(request, encoded, limit)
        lists = dict(encoded.render(self.options.cache, self.thinker.keeps(thinking, encoded)))
        added = extra.pop("tools", None)
        if isinstance(added, list) and added:
            extra |= _container(extra, encoded)
            lists["tools"] = f"{lists.get('tools', '[]')[:-1]}{',' if encoded.tools else ''}{json_text(added)[1:]}"
        head = {**self._head(request, limit, thinking), **extra}
        if "tools" in lists:
            head = {**self._choice(request, encoded, self.thinker.on(thinking)), **head}
        texts = [f'"{key}":{text}' for key, text in lists.items() if key not in head]
        return ",".join([json_text(head)[:-1], *texts]).encode("utf-8", "replace") + b"}"

    def _head(self, request: ModelRequest, limit: int, thinking: Config) -> dict[str, Any]:
        """All but the lists and the tool choice."""
        return {
            "model": request.model.removeprefix(f"{NAME}:") or self.model,
            "max_tokens": limit,
            "stream": self.options.transport == "stream",
            **({"thinking": thinking} if thinking else {}),
            **self._sampling(request, self.thinker.on(thinking)),
            **self._output(request),
        }

    def _thinking(self, request: ModelRequest, encoded: Encoded, limit: int) -> Config:
        given = request.settings.extra.get("thinking")
        return given if isinstance(given, dict) else self.thinker.config(request, encoded, limit)

    def _limit(self, request: ModelRequest) -> int:
        """The bound on the reply; one that nobody chose leaves room for a budget of thinking."""
        chosen = request.settings.max_tokens
        if chosen is None:
            chosen = self.options.max_tokens
        if chosen is not None:
            return chosen
        budget = self.options.thinking if isinstance(self.options.thinking, int) else 0
        return min(USUAL + budget, self.generation.max_output)

    def _sampling(self, request: ModelRequest, on: bool) -> dict[str, Any]:
        """Temperature or top_p, not both, where the model takes them; stop sequences that are not blank."""
        settings = request.settings
        chosen: dict[str, Any] = {}
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
        """The tool choice in the API's words; a forced call becomes a free one where the model refuses to be forced."""
        choice = request.tool_choice
        if choice == "none":
            return {"tool_choice": {"type": "none"}}
        single = {"disable_parallel_tool_use": True} if request.settings.parallel is False else {}
        if choice in ("auto", "") or on or not self.generation.forced:
            return {"tool_choice": {"type": "auto", **single}} if single else {}
        if choice == "required":
            return {"tool_choice": {"type": "any", **single}}
        return {"tool_choice": {"type": "tool", "name": encoded.names.wire(choice), **single}}


def _container(extra: dict[str, Any], encoded: Encoded) -> dict[str, Any]:
    container = named(extra.get("container"), encoded.container)
    return {"container": container} if container else {}
