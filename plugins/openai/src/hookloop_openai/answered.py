"""Items of a response that want an answer which no tool gives, and the answers to them.

A server refuses such an item without its answer, and an answer without its item. So an item is sent once somebody has
answered it (an opaque part of a later user message, or of the reply itself where the server did the work), and an answer
only where its item was sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hookloop_hookspecs import Message, Opaque

from .identity import Identity
from .values import Json, mapping, string

_ASKING: Final = frozenset(
    {"local_shell_call", "shell_call", "apply_patch_call", "computer_call", "mcp_approval_request", "tool_search_call"}
)
_ANSWERS: Final = frozenset(
    {
        "local_shell_call_output",
        "shell_call_output",
        "apply_patch_call_output",
        "computer_call_output",
        "mcp_approval_response",
        "tool_search_output",
    }
)
_KEYS: Final = ("call_id", "id", "approval_request_id")


class Answered:
    """Which items of one history are answered, and which of those were sent."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._answered: set[str] = set()
        self._sent: set[str] = set()

    def look(self, messages: Iterable[Message]) -> None:
        """Take note of the answers in these messages, before any of them is encoded."""
        parts = (part for message in messages for part in message.content)
        items = [mapping(p.value) for p in parts if isinstance(p, Opaque) and self._identity.owns(p)]
        self._answered |= {key for item in items if item.get("type") in _ANSWERS for key in _keys(item)}

    def sends(self, item: Json) -> bool:
        """True where the server takes the item; it counts as sent then."""
        kind, keys = item.get("type"), _keys(item)
        if item.get("execution") == "server":
            return True
        if kind in _ANSWERS:
            return not keys.isdisjoint(self._sent)
        if kind not in _ASKING:
            return bool(kind)
        if keys.isdisjoint(self._answered):
            return False
        self._sent |= keys
        return True


def _keys(item: Json) -> set[str]:
    return {key for name in _KEYS if (key := string(item.get(name)))}
