"""A readable log of each round for hookloop."""

from .format import format_event
from .plugin import PromptLog, PromptLogOptions

__all__ = ["PromptLog", "PromptLogOptions", "format_event"]
