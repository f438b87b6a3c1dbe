"""What a turn may use, and what happens when it would use more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Literal, TypeAlias

from hookloop_hookspecs import ConfigError

from .names import spelled_fields

Breach: TypeAlias = Literal["stop", "error_result", "answer", "raise"]
BREACHES: tuple[Breach, ...] = ("stop", "error_result", "answer", "raise")


@spelled_fields
@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one turn; None is no limit. Denied and failed calls count; injected messages change nothing.

    `rounds`: model requests. `tool_calls`: calls in all; `per_tool`: of one tool, with `per_tool_overrides` by name;
    `calls_per_reply`: in one reply. `repeated`: identical calls (name and arguments) in a row. `errors`: error results in
    a row. `truncated`: replies in a row that were cut by the output limit. `tokens`, `cost`: what replies used, as far as
    providers report it. `seconds`: the turn's own time, a human's wait not counted.

    Reaching a limit is no breach; the call or request that would pass it is. `on_breach`: "stop" ends the turn; with
    "error_result" the model reads that the call did not fit and goes on (limits that are not about calls then stop);
    "answer" allows exactly one more request without tool calls; "raise" ends the turn and raises `LimitError`.
    """

    rounds: int | None = 100
    tool_calls: int | None = 150
    per_tool: int | None = 40
    per_tool_overrides: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    calls_per_reply: int | None = None
    repeated: int | None = None
    errors: int | None = None
    truncated: int | None = 3
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None
    on_breach: Breach = "stop"

    def __post_init__(self) -> None:
        if self.on_breach not in BREACHES:
            raise ConfigError(f"on_breach is {self.on_breach!r}; it is one of {', '.join(BREACHES)}")
        for spec in fields(self):
            value = getattr(self, spec.name)
            if spec.name not in ("on_breach", "per_tool_overrides") and value is not None and not _a_limit(value):
                raise ConfigError(f"limit {spec.name} is {value!r}; it is a number from 0, or None for no limit")
        if not isinstance(self.per_tool_overrides, Mapping):
            raise ConfigError(f"limit per_tool_overrides is {self.per_tool_overrides!r:.60}; give numbers by tool name")
        for name, value in self.per_tool_overrides.items():
            if not _a_limit(value):
                raise ConfigError(f"limit per_tool_overrides[{name!r}] is {value!r}; it is a number from 0")

    def of_tool(self, name: str) -> int | None:
        """The limit for calls of one tool."""
        return self.per_tool_overrides.get(name, self.per_tool)


def _a_limit(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
