"""A memory in one SQLite file, `drawer:PATH`: shared by processes, all or nothing."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import hookloop_hookspecs as hl
from hookloop_hookspecs import hookimpl, plan_append
from hookloop_hookspecs.codec import dump_entry, load_entry

TABLES = """
CREATE TABLE IF NOT EXISTS entries (scope TEXT, chat TEXT, number INTEGER, body TEXT, PRIMARY KEY (scope, chat, number));
CREATE TABLE IF NOT EXISTS chats (scope TEXT, chat TEXT, owner TEXT, until REAL, at REAL, PRIMARY KEY (scope, chat));
"""
LIST = "SELECT chat, (SELECT count(*) FROM entries e WHERE e.scope = c.scope AND e.chat = c.chat), at FROM chats c"


class Drawer:
    """Keeps every entry; the file may be shared by any number of processes and threads."""

    capabilities = hl.MemoryCapabilities(tool_messages=True, versioned=True, durable=True, media=True)

    def __init__(self, url: str) -> None:
        self.path = url.partition(":")[2]
        if not self.path:
            raise hl.ConfigError("a drawer's URL names its file: drawer:chats.db")
        with self._open() as file:
            file.executescript(TABLES)

    @hookimpl
    def persist_memory(self, batch: hl.Batch) -> None:
        """Store a batch by the rules of `Batch`. Raises `Conflict`."""
        key = names(batch.scope, batch.conversation)
        with self._open() as file:
            file.execute("BEGIN IMMEDIATE")
            held = self._load(file, *key)
            numbers = {entry.number for entry in batch.entries}
            here = [entry for entry in held.entries if entry.number in numbers]
            plan = plan_append(batch, held.version, here, held.lease)
            rows = [(*key, entry.number, text_of(entry)) for entry in plan.entries]
            file.executemany("INSERT INTO entries VALUES (?, ?, ?, ?)", rows)
            lease = held.lease
            if batch.owner and (lease is None or lease.owner == batch.owner or (rows and batch.lease > 0)):
                lease = hl.Lease(batch.owner, batch.lease)
            row = (*key, lease.owner, time.time() + lease.left) if lease else (*key, "", 0.0)
            if plan.version:
                file.execute("INSERT OR REPLACE INTO chats VALUES (?, ?, ?, ?, ?)", (*row, time.time()))

    @hookimpl
    def load_memory(self, conversation: str, query: hl.LoadQuery) -> hl.Loaded:
        """What `query` asks for. Raises `CorruptData`."""
        with self._open() as file:
            held = self._load(file, *names(query.scope, conversation))
        return hl.Loaded(window(held.entries, query), held.version, held.lease)

    def _load(self, file: sqlite3.Connection, *key: str) -> hl.Loaded:
        rows = file.execute("SELECT body FROM entries WHERE scope = ? AND chat = ? ORDER BY number", key).fetchall()
        held = file.execute("SELECT owner, until FROM chats WHERE scope = ? AND chat = ?", key).fetchone()
        left = held[1] - time.time() if held else 0.0
        return hl.Loaded(
            tuple(load_entry(row[0]) for row in rows), len(rows), hl.Lease(held[0], left) if left > 0 else None
        )

    def conversations(self, scope: str = "") -> Sequence[hl.ConversationInfo]:
        """All conversations of a tenant, newest first."""
        with self._open() as file:
            rows = file.execute(f"{LIST} WHERE scope = ? ORDER BY at DESC", (scope,))
            return [hl.ConversationInfo(*row) for row in rows]

    def delete(self, conversation: str, scope: str = "") -> bool:
        """Delete a conversation whole; False when there was none."""
        key = names(scope, conversation)
        with self._open() as file:
            file.execute("DELETE FROM chats WHERE scope = ? AND chat = ?", key)
            return file.execute("DELETE FROM entries WHERE scope = ? AND chat = ?", key).rowcount > 0

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """One transaction on a connection of its own. Raises `CorruptData` for a file that is no database."""
        with closing(sqlite3.connect(self.path, timeout=30.0)) as file:
            try:
                with file:
                    yield file
            except sqlite3.DatabaseError as error:
                raise hl.CorruptData(f"{self.path}: {error}") from error


def window(entries: Sequence[hl.Entry], query: hl.LoadQuery) -> Sequence[hl.Entry]:
    """Whole turns from the end that hold so many messages, and what else a turn needs of those before them."""
    seen, start, newest = 0, len(entries), dict[object, int]()
    for at in range(len(entries) - 1, -1, -1):
        if query.messages is not None and seen >= max(1, query.messages) and entries[at].turn != entries[start].turn:
            break
        start = at
        seen += isinstance(entries[at].body, hl.Said)
    for entry in entries:
        if isinstance(entry.body, hl.State | hl.Summary):
            newest[getattr(entry.body, "plugin", hl.Summary)] = entry.number
    older = [one for one in entries[:start] if one.number in newest.values() or one.turn == query.turn_id]
    return (*older, *entries[start:])


def text_of(entry: hl.Entry) -> str:
    """An entry as text. Raises `ContractError` for one that no file can hold."""
    try:
        return dump_entry(entry)
    except ValueError as error:
        raise hl.ContractError(f"entry {entry.number} cannot be stored: {error}") from error


def names(scope: str, chat: str) -> tuple[str, str]:
    """The key of a conversation. Raises `ContractError` for what is no name."""
    surrogate = any("\ud800" <= char <= "\udfff" for char in scope + chat)
    if not chat or surrogate or "\0" in scope + chat or max(len(scope), len(chat)) > 500:
        raise hl.ContractError(f"an id is text of 1 to 500 characters, without NUL and surrogates, not {chat[:80]!r}")
    return scope, chat
