"""The configured memory that owns the conversations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from hookloop.config import Config
from hookloop.discovery import configured_memories
from hookloop.hiding import hidden_url
from hookloop.keeper import Keeper
from hookloop_hookspecs import ConfigError

NONE = 'no memory keeps conversations; write for example memory = "sqlite:///chat.db" in hookloop.toml'


@contextmanager
def open_keeper(config: Config, scope: str = "") -> Iterator[Keeper]:
    """The first configured memory that loads histories; all are closed afterwards. Raises `ConfigError`."""
    opened = configured_memories(config)
    try:
        for table, memory in opened:
            if hasattr(memory, "load_memory") and hasattr(memory, "conversations"):
                yield Keeper(memory, hidden_url(table.url), scope)
                return
        raise ConfigError(NONE)
    finally:
        for _, memory in opened:
            if hasattr(memory, "close"):
                memory.close()
