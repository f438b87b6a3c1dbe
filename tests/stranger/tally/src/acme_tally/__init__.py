"""Counts tool calls over a conversation, tells the model, and refuses tools that nobody may call."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict

from hookloop_hookspecs import Deny, ToolCall, ToolResult, Turn, hookimpl


class TallyOptions(BaseModel):
    """`word` begins each message; `forbidden` are tools that are refused."""

    model_config = ConfigDict(extra="forbid")

    word: str = "tally"
    forbidden: tuple[str, ...] = ()


class Tally:
    """The plugin."""

    Options = TallyOptions

    def __init__(self, options: TallyOptions | None = None) -> None:
        self.options = options or TallyOptions()

    @hookimpl
    def before_tool(self, call: ToolCall) -> Deny | None:
        """Refuse what is forbidden."""
        return Deny(f"{call.name} is forbidden") if call.name in self.options.forbidden else None

    @hookimpl
    def next_instructions(self, turn: Turn, results: Sequence[ToolResult]) -> str:
        """Say how many calls there were in this conversation."""
        turn.state["calls"] = turn.state.get("calls", 0) + len(results)
        return f"{self.options.word}: {turn.state['calls']} calls"
