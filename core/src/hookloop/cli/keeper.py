"""The configured memory that owns the conversations, with plain calls in place of hooks."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hookloop.config import Config
from hookloop.discovery import configured_memories, hidden
from hookloop_hookspecs import Batch, ConfigError, ConversationInfo, Entry, Loaded, LoadQuery


class Keeper:
    """A memory, asked from outside a turn. `url` names it without its password; `scope` is the tenant."""

    def __init__(self, memory: Any, url: str, scope: str = "") -> None:
        self.memory = memory
        self.url = url
        self.scope = scope

    def conversations(self) -> Sequence[ConversationInfo]:
        """All conversations, newest first."""
        found: Sequence[ConversationInfo] = self.memory.conversations(self.scope)
        return found

    def entries(self, conversation: str) -> Sequence[Entry]:
        """All entries of a conversation. Raises `ConfigError` where there is none."""
        query = LoadQuery(scope=self.scope)
        loaded: Loaded | None = _asked(self.memory.load_memory, conversation=conversation, query=query)
        if loaded is None or not loaded.entries:
            raise ConfigError(f"there is no conversation {conversation!r} in {self.url}")
        return loaded.entries

    def store(self, conversation: str, entries: Sequence[Entry]) -> None:
        """Store a whole new conversation. Raises `Conflict` where it exists."""
        batch = Batch(conversation, tuple(entries), version=0, scope=self.scope)
        _asked(self.memory.persist_memory, batch=batch, conversation=conversation)

    def exists(self, conversation: str) -> bool:
        """Whether anything is stored of it."""
        query = LoadQuery(messages=0, scope=self.scope)
        loaded: Loaded | None = _asked(self.memory.load_memory, conversation=conversation, query=query)
        return loaded is not None and loaded.version > 0

    def delete(self, conversation: str) -> bool:
        """Delete it whole; False when there was none."""
        return bool(self.memory.delete(conversation, self.scope))


@contextmanager
def open_keeper(config: Config, scope: str = "") -> Iterator[Keeper]:
    """The first configured memory that loads histories; all are closed afterwards. Raises `ConfigError`."""
    opened = configured_memories(config)
    try:
        for table, memory in opened:
            if hasattr(memory, "load_memory") and hasattr(memory, "conversations"):
                yield Keeper(memory, hidden(table.url), scope)
                return
        raise ConfigError(
            'no memory keeps conversations; write for example memory = "sqlite:///chat.db" in hookloop.toml'
        )
    finally:
        for _, memory in opened:
            if hasattr(memory, "close"):
                _asked(memory.close)


def _asked(hook: Any, **arguments: Any) -> Any:
    """Call a hook with the arguments that it names; wait for it where it is async."""
    names = inspect.signature(hook).parameters
    answer = hook(**{name: value for name, value in arguments.items() if name in names})
    return asyncio.run(_awaited(answer)) if inspect.isawaitable(answer) else answer


async def _awaited(answer: Any) -> Any:
    return await answer
