"""Tells the model something after a tool was called."""

from collections.abc import Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict

from hookloop_hookspecs import ToolResult, hookimpl


class FeedbackOptions(BaseModel):
    """`tool` is watched; `when` it ends in success, error or always, `text` is said ({tool} and {result} filled in)."""

    model_config = ConfigDict(extra="forbid")

    tool: str = "edit"
    when: Literal["success", "error", "always"] = "success"
    text: str = "You used {tool}. Check what it changed before you go on."


class Feedback:
    """Adds a text once behind the results of each round in which the watched tool was called."""

    name = "feedback"
    Options = FeedbackOptions

    def __init__(self, options: FeedbackOptions | None = None) -> None:
        self.options = options or FeedbackOptions()

    @hookimpl
    def next_instructions(self, results: Sequence[ToolResult]) -> str | None:
        """The text, or None when the tool was not called as `when` wants it."""
        outcomes = {"success": [False], "error": [True], "always": [False, True]}[self.options.when]
        for result in results:
            if result.name == self.options.tool and result.is_error in outcomes:
                return self.options.text.replace("{tool}", result.name).replace("{result}", result.text)
        return None
