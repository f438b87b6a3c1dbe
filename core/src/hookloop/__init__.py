"""hookloop: a tool loop that cannot be edited, only hooked."""

from hookloop_hookspecs import Outcome, ToolContext, ToolError, tool

from .agent import Agent
from .discovery import provider
from .limits import Limits

__all__ = ["Agent", "Limits", "Outcome", "ToolContext", "ToolError", "provider", "tool"]
