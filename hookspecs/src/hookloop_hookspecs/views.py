"""What `select_context` answers with, and what `before_round` may narrow."""

from __future__ import annotations

from dataclasses import dataclass

from .providers import Settings, ToolChoice


@dataclass(frozen=True, slots=True)
class Window:
    """A view policy: keep whole turns, newest first, within a budget.

    `messages` and `tokens` bound the view (None: no bound); tokens are estimated as characters / 4. With `slack` the cut
    stays where it is until the view passes budget plus slack, and is then made down to the budget, so that provider
    caches keep hitting in between.
    """

    messages: int | None = None
    tokens: int | None = None
    slack: int = 0


@dataclass(frozen=True, slots=True)
class Condense:
    """Let `text` stand for the oldest `turns` closed turns in view, from this turn on (a `Summary` entry in the log).

    The log itself keeps them. `window` is the view policy beside it.
    """

    text: str
    turns: int
    window: Window | None = None


@dataclass(frozen=True, slots=True)
class Narrow:
    """Narrows this round's request; what is None stays as it is.

    `tools` is an allow-list of names (the tools stay in the request, so caches keep; a call to another is refused);
    `tool_choice`, `settings` (fields that are set win) and `model` (a reference) are for this round alone.
    """

    tools: tuple[str, ...] | None = None
    tool_choice: ToolChoice | None = None
    settings: Settings | None = None
    model: str | None = None
