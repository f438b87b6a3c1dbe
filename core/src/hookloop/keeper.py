"""The keeper's tools: what a memory holds, looked at and moved from outside a turn."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Iterable, Sequence
from typing import Any

from hookloop_hookspecs import (
    Batch,
    ConfigError,
    ConversationInfo,
    CorruptData,
    Entry,
    Loaded,
    LoadQuery,
    Message,
    TurnEnded,
)
from hookloop_hookspecs.codec import dump_entry, load_entry

from .engine.begin import closings
from .engine.log import Log, flatten
from .engine.past import read

FORMAT = "hookloop-conversation"
"""What the first line of an export says it is."""


class Keeper:
    """A memory that owns histories, asked from outside a turn.

    Arguments: `memory`, the object; `name`, how errors call it; `scope`, the tenant.
    """

    def __init__(self, memory: Any, name: str = "memory", scope: str = "") -> None:
        self.memory = memory
        self.name = name
        self.scope = scope

    def list(self) -> Sequence[ConversationInfo]:
        """All conversations of the tenant, newest first."""
        found: Sequence[ConversationInfo] = self.memory.conversations(self.scope)
        return found

    def entries(self, conversation: str) -> Sequence[Entry]:
        """All entries of a conversation, in order. Raises `ConfigError` where there is none."""
        loaded = self._load(conversation)
        if not loaded.entries:
            raise ConfigError(f"there is no conversation {conversation!r} in {self.name}")
        return loaded.entries

    def messages(self, conversation: str) -> Sequence[Message]:
        """The conversation's messages, flattened. Raises `ConfigError` where there is none."""
        return list(flatten(self.entries(conversation)))

    def exists(self, conversation: str) -> bool:
        """Is anything stored of it?"""
        return self._load(conversation).version > 0

    def delete(self, conversation: str) -> bool:
        """Delete it whole; False when there was none."""
        return bool(self.memory.delete(conversation, self.scope))

    def export(self, conversation: str) -> str:
        """The conversation as JSON lines: a line that names it, then one for each entry. Raises `ConfigError`."""
        return exported(conversation, self.entries(conversation))

    def restore(self, text: str, conversation: str | None = None, source: str = "the text") -> str:
        """Store what `export` wrote, under its own id or another; gives back the id.

        Raises `CorruptData` for text that is no export (with its line), `ConfigError` where the conversation exists.
        """
        name, entries = imported(text, source)
        self._store(conversation or name, entries)
        return conversation or name

    def fork(self, conversation: str, new: str, at: int | None = None) -> None:
        """Copy a conversation up to and with the entry number `at` (None: whole, as it is), to go on differently.

        A turn that the cut leaves open is closed in the copy: its calls answered, its end "forked". Raises `ConfigError` where
        the conversation is missing, has no such entry, or the copy exists.
        """
        entries = self.entries(conversation)
        if at is not None and at not in {entry.number for entry in entries}:
            raise ConfigError(
                f"conversation {conversation!r} has no entry {at}; it has {entries[0].number} to {entries[-1].number}"
            )
        kept = [entry for entry in entries if at is None or entry.number <= at]
        self._store(new, kept if at is None else [*kept, *closed(kept)])

    def _store(self, conversation: str, entries: Sequence[Entry]) -> None:
        if self.exists(conversation):
            raise ConfigError(
                f"conversation {conversation!r} exists in {self.name}; take another id, or delete it first"
            )
        batch = Batch(conversation, tuple(entries), 0, scope=self.scope)
        _asked(self.memory.persist_memory, batch=batch, conversation=conversation)

    def _load(self, conversation: str) -> Loaded:
        loaded: Loaded | None = _asked(
            self.memory.load_memory, conversation=conversation, query=LoadQuery(scope=self.scope)
        )
        return loaded or Loaded()


def closed(entries: Sequence[Entry]) -> list[Entry]:
    """Entries that close the last turn where it is open: each call answered, the turn ended as "forked"."""
    turn = read(entries).last
    if turn is None or turn.started is None or turn.ended is not None:
        return []
    log = Log(turn.id, turn.start, [], set())
    log.replay(turn.entries)
    for place, said in closings(log):
        log.answer(place, said)
    log.append(TurnEnded("stopped", "forked"))
    return log.unsaved


def exported(conversation: str, entries: Iterable[Entry]) -> str:
    """A conversation as text."""
    head = json.dumps({"format": FORMAT, "conversation": conversation}, ensure_ascii=False)
    return "\n".join([head, *map(dump_entry, entries), ""])


def imported(text: str, source: str = "the text") -> tuple[str, Sequence[Entry]]:
    """What `exported` wrote: the conversation's id and its entries. Raises `CorruptData` with the line."""
    head, *lines = text.split("\n")
    try:
        data = json.loads(head)
        if data["format"] != FORMAT:
            raise ValueError(f"format is {data['format']!r}")
        name = str(data["conversation"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(f"{source}, line 1: not an exported conversation: {error}") from error
    entries = []
    for number, line in enumerate(lines, 2):
        if line.strip():
            entries.append(_entry(line, f"{source}, line {number}"))
    return name, entries


def _entry(line: str, place: str) -> Entry:
    try:
        return load_entry(line)
    except CorruptData as error:
        raise CorruptData(f"{place}: {error}") from error


def _asked(hook: Any, **arguments: Any) -> Any:
    """Call a hook with the arguments that it names; wait for it where it is async."""
    names = inspect.signature(hook).parameters
    answer = hook(**{name: value for name, value in arguments.items() if name in names})
    return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer


async def _awaited(answer: Any) -> Any:
    return await answer
