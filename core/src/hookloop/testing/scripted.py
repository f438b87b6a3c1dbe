"""A provider that says what a script tells it, and remembers what it was asked."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from typing import Any

from hookloop_hookspecs import (
    CallDelta,
    Delta,
    ModelRequest,
    Part,
    Provider,
    ProviderTraits,
    Reply,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
)

from .script import Step, as_reply


class ScriptedProvider(Provider):
    """Plays a script: each step is one reply; a list is one reply of several parts.

    Arguments: `script`, the steps, as one list or one by one; a step may be a function of the request, and an exception
    is raised. `transport`: "stream" cuts text and arguments into pieces, "whole" gives one delta per part.
    Attributes: `requests`, the frozen requests in the order they came; `left`, the number of streams that were not read to
    their end. Raises `AssertionError` when it is asked more often than the script is long.
    """

    name = "scripted"

    def __init__(
        self,
        *script: Any,
        transport: str = "stream",
        model: str = "scripted",
        family: str = "",
        traits: ProviderTraits | None = None,
    ) -> None:
        steps = script[0] if len(script) == 1 and isinstance(script[0], list) else script
        self.steps: list[Step] = list(steps)
        self.transport = transport
        self.model = model
        self.family = family or model
        self.traits = traits or ProviderTraits()
        self.requests: list[ModelRequest] = []
        self.left = 0
        self._lock = threading.Lock()

    def _next(self, request: ModelRequest) -> Reply:
        with self._lock:
            at = len(self.requests)
            self.requests.append(request)
        if at >= len(self.steps):
            raise AssertionError(f"the script has {len(self.steps)} replies, and was asked for one more")
        step = self.steps[at]
        reply = as_reply(step(request) if callable(step) else step)
        if Thinking not in map(type, reply.content):
            return reply
        return replace(reply, content=tuple(self._tagged(part) for part in reply.content))

    def _tagged(self, part: Part) -> Part:
        if isinstance(part, Thinking) and not part.provider:
            return replace(part, provider=self.name, family=self.family)
        return part

    def _pieces(self, reply: Reply) -> list[Delta]:
        size = 7 if self.transport == "stream" else 1 << 30
        pieces: list[Delta] = []
        index = 0
        for part in reply.content:
            if isinstance(part, Text):
                pieces += [TextDelta(piece) for piece in _cut(part.text, size)]
            elif isinstance(part, Thinking):
                pieces += [ThinkingDelta(piece) for piece in _cut(part.text, size)]
            elif isinstance(part, ToolCall):
                pieces += [CallDelta(index, part.id, part.name, piece) for piece in _cut(part.raw, size)]
                index += 1
        return pieces

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        """The next reply of the script."""
        reply = self._next(request)
        self.left += 1
        yield from self._pieces(reply)
        self.left -= 1
        yield reply

    async def astream(self, request: ModelRequest) -> AsyncIterator[Delta | Reply]:
        """The next reply of the script."""
        for item in self.stream(request):
            yield item


def _cut(text: str, size: int) -> list[str]:
    if 0 < len(text) <= size:
        return [text]
    return [text[i : i + size] for i in range(0, len(text), size)]
