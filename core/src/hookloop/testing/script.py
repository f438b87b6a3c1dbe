"""Scripts: what a model is made to say in a test. One script drives the scripted provider and the local server alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from hookloop_hookspecs import ModelRequest, Part, Reply, Text, Thinking, ToolCall, Usage
from hookloop_hookspecs.entries import StopReason

Item: TypeAlias = "str | Part | Sequence[str | Part] | Reply | BaseException"
"""One reply: text, a part, a list of parts, a whole `Reply`, or an error to raise."""

Step: TypeAlias = "Item | Callable[[ModelRequest], Item]"
"""An item, or a function that makes one from the request."""


USAGE = Usage(10, 5, total=15)
"""What a scripted reply costs, unless it says so itself."""


def say(text: str) -> Text:
    """Text that the model says."""
    return Text(text)


def call(name: str, arguments: Mapping[str, Any] | str | None = None, id: str = "") -> ToolCall:
    """A tool call; a str is taken as the raw arguments text, as it is."""
    return ToolCall(id, name, arguments) if isinstance(arguments, str) else ToolCall.of(name, arguments, id)


def think(text: str, signature: str = "signed") -> Thinking:
    """Thinking, with its signature."""
    return Thinking(text, signature)


def reply(*parts: str | Part, stop: StopReason | None = None, usage: Usage | None = None) -> Reply:
    """A whole reply; `stop` defaults to what the parts say."""
    content = tuple([Text(part) if isinstance(part, str) else part for part in parts])
    natural: StopReason = "calls" if ToolCall in map(type, content) else "end"
    return Reply(content, stop or natural, usage or USAGE, "scripted")


def as_reply(item: Item) -> Reply:
    """The reply that an item stands for. Raises the item itself where it is an error."""
    if isinstance(item, BaseException):
        raise item
    if isinstance(item, Reply):
        return item
    if isinstance(item, str) or not isinstance(item, Iterable):
        return reply(item)
    return reply(*item)


__all__ = ["Item", "Step", "as_reply", "call", "reply", "say", "think"]
