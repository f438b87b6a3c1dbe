"""What the log has shown of each conversation, so that a new turn does not print the old ones again."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from hookloop_hookspecs import Message, ModelRequest, ToolSpec

_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Shown:
    """Of a request: how many of its first messages were shown before, and whether system text and tools were."""

    messages: int
    head: bool


@dataclass(frozen=True, slots=True)
class _Last:
    newest: Message | None
    system: str
    tools: tuple[ToolSpec, ...]


class Memory:
    """Remembers the newest message and the head of the last request of the 1000 conversations that were asked last."""

    def __init__(self) -> None:
        self._last: OrderedDict[str, _Last] = OrderedDict()

    def look(self, conversation: str, request: ModelRequest) -> Shown:
        """What of the request was shown before; it counts as shown from now on."""
        messages = request.messages
        last = self._last.pop(conversation, None)
        self._last[conversation] = _Last(messages[-1] if messages else None, request.system, request.tools)
        if len(self._last) > _MOST:
            self._last.popitem(last=False)
        if last is None:
            return Shown(0, head=False)
        known = next((at for at in range(len(messages), 0, -1) if messages[at - 1] == last.newest), 0)
        return Shown(known, (last.system, last.tools) == (request.system, request.tools))
