"""What the checks of a memory work with: the memory, called as the engine calls it, and entries to store.

Names are made unique for each subject, so the store behind a memory may be shared and need not be empty.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast
from unittest import SkipTest
from uuid import uuid4

import anyio

from hookloop_hookspecs import (
    Batch,
    ConversationInfo,
    Decided,
    Ending,
    Entry,
    File,
    Image,
    Loaded,
    LoadQuery,
    MemoryCapabilities,
    Message,
    Opaque,
    Origin,
    Recut,
    Resumed,
    Said,
    Spent,
    Started,
    State,
    Summary,
    Suspended,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    TurnEnded,
    TurnStarted,
    TurnSuspended,
    Usage,
)
from hookloop_hookspecs.entries import Body

POISON = {
    "NUL": "a\0b",
    "lone surrogate": "a\udc97b",
    "half a pair": "\ud83d",
    "escaped NUL": 'a\\u0000b {"k": "a\\u0000b"}',
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f\x85\u2028\u2029",
    "line ends": "\n\r\n\r a \n\n",
    "quotes": "'\"`;-- %s :name {0} \\",
    "astral": "𝒳 🧑‍🚀 é e\u0301 \ufeff \uffff",
    "a megabyte": "ü" * 500_000,
}
UNSTORABLE = ("NUL", "lone surrogate", "half a pair")
ODD_NAMES = (
    "a", "A", "a ", " a", "á", "a\u0301", "a/b", "a\\b", "..", ".", "../../x", "/etc/x", "CON", "con", "a\nb", "a'b", 'a"b',
    "a%b", "a%2fb", "a_b", "a*b", "a?b", "a:b", "a~b", "{a}", "a}:c:b", "ı", "i", "ß", "ss", "🧑‍🚀", "x" * 500, "x" * 499,
    "é" * 500, "é" * 499 + "e",
)  # fmt: skip


class Subject:
    """A memory under check. Its methods call the hooks with the arguments that they name, sync or async."""

    def __init__(self, make: Callable[[], Any], reopen: Callable[[Any], Any] | None = None) -> None:
        self.memory = make()
        self._reopen = reopen
        self.mark = uuid4().hex[:12]

    @property
    def capabilities(self) -> MemoryCapabilities:
        return cast(MemoryCapabilities, self.memory.capabilities)

    def named(self, name: str = "c") -> str:
        """A conversation's id that no other subject uses; long names stay as long as they are."""
        return self.mark + (name[len(self.mark) :] if len(name) > 400 else name)

    def append(self, entries: Sequence[Entry], version: int, name: str = "c", **fields: Any) -> None:
        """Store a batch of the conversation `name`."""
        conversation = self.named(name)
        batch = Batch(conversation, tuple(entries), version, **fields)
        _call(self.memory.persist_memory, batch=batch, conversation=conversation)

    def load(self, name: str = "c", messages: int | None = None, turn_id: str = "", scope: str = "") -> Loaded:
        """Load the conversation `name`."""
        query = LoadQuery(messages, turn_id, scope)
        loaded = _call(self.memory.load_memory, conversation=self.named(name), query=query)
        return Loaded() if loaded is None else cast(Loaded, loaded)

    def say(self, user: str, answer: str, name: str = "c", scope: str = "") -> None:
        """Store a turn of two texts behind what is there, as the engine does it for this memory's placement."""
        before = self.load(name, scope=scope)
        number = before.entries[-1].number + 1 if before.entries else 0
        bodies: list[Body] = [Said(Message.user(user)), Said(Message.assistant(answer), stop="end")]
        if self.capabilities.tool_messages:
            bodies = [TurnStarted("owner", "nonce"), *bodies, TurnEnded("done", "end")]
        self.append(numbered(bodies, f"t{number}", number), before.version, name, scope=scope, final=True)

    def texts(self, name: str = "c", scope: str = "") -> list[tuple[str, str]]:
        """Role and text of all messages that are stored."""
        bodies = [entry.body for entry in self.load(name, scope=scope).entries]
        return [(body.message.role, body.message.text) for body in bodies if isinstance(body, Said)]

    def listed(self, scope: str = "") -> list[ConversationInfo]:
        """The keeper's list, without what other subjects stored."""
        found: Sequence[ConversationInfo] = self.memory.conversations(scope)
        return [info for info in found if info.conversation.startswith(self.mark)]

    def delete(self, name: str = "c", scope: str = "") -> bool:
        """Delete the conversation `name`."""
        return bool(self.memory.delete(self.named(name), scope))

    def reopen(self) -> None:
        """Close the memory and open the same store anew. Skips the check where that cannot be done."""
        if self._reopen is None:
            raise SkipTest("no `reopen` was given")
        self.close()
        self.memory = self._reopen(self.memory)

    def close(self) -> None:
        """Close the memory, where it can be closed."""
        close = getattr(self.memory, "close", None)
        if close is not None:
            _call(close)


def _call(method: Callable[..., Any], **arguments: Any) -> Any:
    wanted = inspect.signature(method).parameters
    answer = method(**{name: value for name, value in arguments.items() if name in wanted})
    if not inspect.isawaitable(answer):
        return answer
    return anyio.run(_awaited, answer)


async def _awaited(answer: Awaitable[Any]) -> Any:
    return await answer


def numbered(bodies: Sequence[Body], turn: str, start: int = 0) -> list[Entry]:
    """Entries of one turn, numbered from `start`."""
    return [Entry(number, turn, body) for number, body in enumerate(bodies, start)]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """Closed turns of four messages each (user, call, result, answer), nine numbers a turn, for windows."""

    turns: int
    size: int = 7
    messages: int = 4

    def entries(self, first: int = 0) -> Iterator[list[Entry]]:
        """The entries, turn by turn, from turn `first` on."""
        for turn in range(first, self.turns):
            yield numbered(_tool_turn(turn), f"turn {turn}", turn * self.size)


def _tool_turn(turn: int) -> list[Body]:
    call = ToolCall.of("edit", {"path": f"{turn}"}, f"c{turn}")
    return [
        TurnStarted("host:1", f"nonce {turn}"),
        Said(Message.user(f"question {turn}")),
        Said(Message.assistant(call), stop="calls"),
        Said(Message.tool(ToolResult(call.id, "edit", (Text("ok"),)))),
        Started((turn * 7 + 3,), (call.raw,)),
        Said(Message.assistant(f"answer {turn}"), stop="end"),
        TurnEnded("done", "end", f"answer {turn}"),
    ]


def every_kind() -> list[Body]:
    """A body of every kind, with no field left at its default and text of many scripts."""
    usage = Usage(1, 2, 3, 4, 5, 15, 0.25)
    origin = Origin("plugin", "Größe", "1.0", "before_turn", "turn", 3, "openai:gpt-4.1")
    parts = (
        Thinking("hm 思考", "sig", "blob", "anthropic", "opus", '{"a":1}'),
        Text("Grüße, 世界 🌍", '{"cite":[1]}'),
        Opaque('{"type":"server_tool_use"}', "anthropic", "opus"),
        ToolCall("c1", "edit", '{"path": "ä", oops', '{"thought_signature":"xyz"}'),
    )
    result = ToolResult("c1", "edit", (Text("fertig ✓"),), True, '{"path":"ä"}', '{"secret":1}')
    note = Message("user", "note", origin, "lint", True)
    return [
        TurnStarted("host:1:2", "nonce", "You are…", (ToolSpec("edit", "Edits", '{"type":"object"}', True),), 0, 12.5),
        State("plüg", '{"n": 1}'),
        Said(note, usage=usage),
        Said(Message("assistant", parts, origin), (note, Message.user("behind")), "calls", usage, 1.5),
        Said(Message("tool", result, Origin("tool")), (note,)),
        Started((4,), ('{"path":"ä"}',)),
        Suspended(4, "Sure?", '{"path":"ä"}', 99.5, True),
        Decided(4, "answer", '{"path":"b"}', "because", ToolResult("", "", (Text("42"),))),
        TurnSuspended(),
        Resumed("host:2:3", "nonce 2", 13.5),
        Recut(3),
        Ending("limit", "tool_calls", "text", True),
        Spent(usage, "retry", "summary"),
        Summary(Message("user", "so far: …", origin), 2),
        TurnEnded("limit", "tool_calls", "text", '{"a":1}', "LimitError: …"),
    ]


def media() -> list[Body]:
    """Messages with images and files."""
    picture = Image.of(bytes(range(256)), "image/png")
    paper = File.of(b"%PDF", "application/pdf", "Größe.pdf")
    linked = Image("", "image/jpeg", "https://example.org/a.jpg", '{"detail":"low"}')
    return [
        Said(Message.user([Text("look"), picture, paper, linked])),
        Said(Message.tool(ToolResult("c1", "shot", (Text("here"), picture)))),
    ]
