"""A provider that does what the last message tells it, and tools for it: what the page is shown with in tests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from hookloop_hookspecs import (
    CallDelta,
    Delta,
    Message,
    ModelRequest,
    Provider,
    Reply,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    Usage,
    hookimpl,
    tool,
)

EVIL: Final = "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"
PACE: Final = 0.02
"""Seconds between two pieces: a model's pace."""


class Puppet(Provider):
    """`puppet:show`. Words: `say TEXT`, `slow`, `edit FILE`, `hang`, `evil`, `long`, `rounds N PIECES`."""

    name = "puppet"

    def __init__(self, model: str = "show") -> None:
        self.model = model

    async def astream(self, request: ModelRequest) -> AsyncIterator[Delta | Reply]:
        """Pieces at a model's pace, then the reply."""
        reply = _reply(request.messages)
        pace = 0.0 if reply.text.startswith("fast") else PACE
        for at, part in enumerate(reply.content):
            if isinstance(part, Text):
                size = max(1, len(part.text) // 40) if pace else 8
                for start in range(0, len(part.text), size):
                    yield TextDelta(part.text[start : start + size])
                    await asyncio.sleep(pace)
            elif isinstance(part, ToolCall):
                yield CallDelta(at, part.id, part.name, part.raw)
        yield reply


def _reply(messages: Sequence[Message]) -> Reply:
    at = max(index for index, one in enumerate(messages) if one.role == "user" and one.origin.kind == "user")
    word, _, rest = messages[at].text.partition(" ")
    results = [result for one in messages[at:] for result in one.results]
    made = (
        ToolCall.of(*_call(word, rest, len(results)), id=f"c{len(messages)}") if _calls(word, rest, results) else None
    )
    text = _text(word, rest, [result.text for result in results])
    usage = Usage(input=100 + len(messages), output=20, cache_read=60, total=120 + len(messages))
    if made is None:
        return Reply((Text(text),), "end", usage, "show")
    content = (Text(text), made) if word == "rounds" else (made,)
    return Reply(content, "calls", usage, "show")


def _calls(word: str, rest: str, results: Sequence[object]) -> bool:
    if word == "rounds":
        return len(results) < int(rest.split()[0])
    return word in ("edit", "hang", "evil") and not results


def _call(word: str, rest: str, count: int) -> tuple[str, dict[str, object]]:
    if word == "rounds":
        return "tick", {"number": count}
    return word, {"path": rest} if word == "edit" else {}


def _text(word: str, rest: str, results: Sequence[str]) -> str:
    if word == "slow":
        return "This answer takes its time. " * 400
    if word == "rounds":
        return "fast " + "x" * (8 * int(rest.split()[1]) - 5)
    if word == "long":
        return "fast " + "w" * 100_000
    if results:
        return f"The tool said: {results[-1]}"
    return rest or EVIL


class PuppetTools:
    """The tools that the puppet calls."""

    name = "puppet-tools"

    @hookimpl
    def register_tools(self) -> Sequence[Tool]:
        """All of them."""
        return tick, edit, evil, hang


@tool
def tick(number: int) -> str:
    """Count."""
    return f"tick {number}"


@tool(needs_approval=True)
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


@tool
def evil() -> str:
    """Text that would do harm as HTML."""
    return EVIL


@tool
async def hang() -> str:
    """Take long."""
    await asyncio.sleep(600)
    return "at last"
