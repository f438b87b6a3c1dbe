"""The keeper's tools: what a memory holds, looked at and moved from outside a turn."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from hookloop_hookspecs import (
    Batch,
    ConfigError,
    ConversationInfo,
    Entry,
    HookloopError,
    Loaded,
    LoadQuery,
    Message,
    Started,
    TurnEnded,
)

from .dispatch import broken, loaded_of
from .engine.begin import closings
from .engine.log import Log, flatten
from .engine.past import read
from .transfer import exported, imported


class Keeper:
    """A memory that owns histories, asked from outside a turn.

    Arguments: `memory`, the object, whose hooks may be async (they are waited for here, also where an event loop runs); `name`,
    how errors call it; `scope`, the tenant. What the memory raises comes as `PluginError`, unless it is of our family.
    """

    def __init__(self, memory: Any, name: str = "memory", scope: str = "") -> None:
        self.memory = memory
        self.name = name
        self.scope = scope

    def list(self) -> Sequence[ConversationInfo]:
        """All conversations of the tenant, newest first."""
        found: Sequence[ConversationInfo] = self._asked("conversations", scope=self.scope)
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
        return bool(self._asked("delete", conversation=conversation, scope=self.scope))

    def export(self, conversation: str) -> str:
        """The conversation as JSON lines: a line that names it, then one for each entry. Raises `ConfigError`."""
        return exported(conversation, self.entries(conversation))

    def restore(self, text: str, conversation: str | None = None, source: str = "the text") -> str:
        """Store what `export` wrote, under its own id or another; gives back the id.

        Raises `CorruptData` for text that is no export or no history (with the line or number), `ConfigError` where the
        conversation exists. Then nothing is stored.
        """
        name, entries = imported(text, source)
        self._store(conversation or name, entries)
        return conversation or name

    def fork(self, conversation: str, new: str, at: int | None = None) -> None:
        """Copy a conversation up to and with the entry number `at` (None: whole, as it is), to go on differently.

        A turn that the cut leaves open is closed in the copy: its calls answered, its end "forked". A call that started behind
        the cut did run, and the copy says so. Raises `ConfigError` where the conversation is missing, has no such entry, or the
        copy exists.
        """
        entries = self.entries(conversation)
        if at is not None and at not in {entry.number for entry in entries}:
            raise ConfigError(
                f"conversation {conversation!r} has no entry {at}; it has {entries[0].number} to {entries[-1].number}"
            )
        if at is None:
            self._store(new, entries)
            return
        kept = [entry for entry in entries if entry.number <= at]
        self._store(new, [*kept, *closed(kept, entries[len(kept) :])])

    def _store(self, conversation: str, entries: Sequence[Entry]) -> None:
        if self.exists(conversation):
            raise ConfigError(
                f"conversation {conversation!r} exists in {self.name}; take another id, or delete it first"
            )
        batch = Batch(conversation, tuple(entries), 0, scope=self.scope)
        self._asked("persist_memory", batch=batch, conversation=conversation)

    def _load(self, conversation: str) -> Loaded:
        return loaded_of(self._asked("load_memory", conversation=conversation, query=LoadQuery(scope=self.scope)))

    def _asked(self, what: str, **arguments: Any) -> Any:
        try:
            return _called(getattr(self.memory, what), arguments)
        except HookloopError:
            raise
        except Exception as error:
            raise broken(self.name, what, error) from error


def closed(entries: Sequence[Entry], behind: Sequence[Entry] = ()) -> list[Entry]:
    """Entries that close the last turn where it is open: each call answered, the turn ended as "forked".

    Arguments: `behind`, what stood behind these, from which calls are known that started later.
    """
    turn = read(entries).last
    if turn is None or turn.started is None or turn.ended is not None:
        return []
    log = Log(turn.id, turn.start, [], set())
    log.replay(turn.entries)
    for entry in behind:
        if entry.turn == turn.id and isinstance(entry.body, Started):
            log.ledger.take(entry)
    for place, said in closings(log):
        log.answer(place, said)
    log.append(TurnEnded("stopped", "forked"))
    return log.unsaved


def _called(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    """Call a function with the arguments that it names; wait for it where it is async."""
    names = inspect.signature(function).parameters
    answer = function(**{name: value for name, value in arguments.items() if name in names})
    return _waited(_awaited(answer)) if inspect.isawaitable(answer) else answer


def _waited(work: Coroutine[Any, Any, Any]) -> Any:
    """Wait for a coroutine: in another thread where this one runs an event loop, which cannot run another one inside."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1, "hookloop-keeper") as pool:
        return pool.submit(contextvars.copy_context().run, asyncio.run, work).result()


async def _awaited(answer: Any) -> Any:
    return await answer
