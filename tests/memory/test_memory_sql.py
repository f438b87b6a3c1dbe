"""What is particular to SQL: URLs, options, the schema's versions, what a statement costs and tells."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, text

from hookloop.testing.memory_subject import Dialogue
from hookloop_hookspecs import Batch, ConfigError, Entry, LoadQuery, Message, Said
from hookloop_sql import SqlMemory, SqlOptions
from hookloop_sql.schema import is_current, upgrade


def one(words: str, number: int = 0) -> tuple[Entry, ...]:
    """A batch's worth of one message."""
    return (Entry(number, "t", Said(Message.user(words))),)


@pytest.fixture
def opened() -> Iterator[Callable[..., SqlMemory]]:
    """A function that makes memories; they are closed at the end."""
    made: list[SqlMemory] = []

    def make(url: str, **options: Any) -> SqlMemory:
        made.append(SqlMemory(url, SqlOptions(**options)))
        return made[-1]

    yield make
    for memory in made:
        memory.close()


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("no url", "no database URL"),
        ("oracle://host/db", "knows sqlite"),
        ("sqlite:///nowhere/at/all.db", "folder does not exist"),
        ("sqlite+nosuch:///chat.db", "leave the driver's name out"),
        ("postgresql+asyncpg://host/db", "is an async driver; write postgresql://"),
    ],
)
def test_an_unusable_url_is_told_at_once(url: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        SqlMemory(url)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(ConfigError, match=r"pip install 'hookloop-sql\[postgresql\]'") as told:
        SqlMemory("postgresql://user:SECRET@host/db")
    assert "SECRET" not in str(told.value)


def test_nothing_is_opened_before_the_first_use(tmp_path: Path, opened: Callable[..., SqlMemory]) -> None:
    memory = opened(f"sqlite:///{tmp_path}/chat.db")
    assert list(tmp_path.iterdir()) == []
    memory.load_memory("c", LoadQuery())
    assert (tmp_path / "chat.db").exists()


@pytest.mark.parametrize(("synchronous", "number"), [("full", 2), ("normal", 1)])
def test_options_reach_every_connection(
    synchronous: str, number: int, tmp_path: Path, opened: Callable[..., SqlMemory]
) -> None:
    memory = opened(f"sqlite:///{tmp_path}/chat.db", synchronous=synchronous, busy_timeout=1.5)
    pragmas = ("synchronous", "busy_timeout", "journal_mode")
    with memory._engine.connect() as first, memory._engine.connect() as second:
        for connection in (first, second):
            found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
            assert found == [number, 1500, "wal"]


def test_a_private_database_is_not_durable_and_serves_all_threads(opened: Callable[..., SqlMemory]) -> None:
    memory = opened("sqlite://")
    assert not memory.capabilities.durable
    assert opened("sqlite:///:memory:").capabilities == memory.capabilities


def test_the_older_schema_is_brought_up_and_the_newer_refused(tmp_path: Path, opened: Callable[..., SqlMemory]) -> None:
    memory = opened(f"sqlite:///{tmp_path}/chat.db")
    memory.persist_memory(Batch("c", one("kept"), 0))
    ran: list[str] = []

    def add_title(connection: Connection) -> None:
        ran.append("title")
        connection.execute(text("ALTER TABLE hookloop_conversations ADD COLUMN title TEXT NOT NULL DEFAULT ''"))

    def add_tags(connection: Connection) -> None:
        ran.append("tags")
        connection.execute(text("CREATE TABLE hookloop_tags (tag TEXT)"))

    for _ in range(2):
        with memory._write.begin() as connection:
            upgrade(connection, [add_title, add_tags])
            assert is_current(connection, [add_title, add_tags])
    assert ran == ["title", "tags"]
    assert memory.load_memory("c", LoadQuery()).entries == one("kept")
    older = opened(f"sqlite:///{tmp_path}/chat.db")
    with pytest.raises(ConfigError, match="has schema 3, this hookloop-sql knows 1; install a newer"):
        older.load_memory("c", LoadQuery())


def test_a_migration_that_fails_changes_nothing(tmp_path: Path, opened: Callable[..., SqlMemory]) -> None:
    memory = opened(f"sqlite:///{tmp_path}/chat.db")
    memory.persist_memory(Batch("c", one("kept"), 0))

    def broken(connection: Connection) -> None:
        connection.execute(text("DROP TABLE hookloop_entries"))
        raise OSError("no power")

    with pytest.raises(OSError, match="no power"), memory._write.begin() as connection:
        upgrade(connection, [broken])
    assert memory.load_memory("c", LoadQuery()).entries == one("kept")


def test_errors_never_quote_what_was_said(tmp_path: Path, opened: Callable[..., SqlMemory]) -> None:
    memory = opened(f"sqlite:///{tmp_path}/chat.db")
    memory.load_memory("c", LoadQuery())
    with memory._engine.begin() as connection:
        connection.exec_driver_sql("DROP TABLE hookloop_entries")
    with pytest.raises(Exception, match="no such table") as told:
        memory.persist_memory(Batch("c", one("my SECRET"), 0))
    assert "SECRET" not in str(told.value)
    assert "SECRET" not in repr(told.value)


class Traced:
    """Notes the statements that reach the database, with their values filled in where it is SQLite."""

    def __init__(self, memory: SqlMemory) -> None:
        self._seen: list[str] = []
        if memory.name == "sqlite":
            memory.close()  # what is open already is not looked at
            event.listen(memory._engine, "checkout", lambda driver, *more: driver.set_trace_callback(self._seen.append))
            memory.conversations()
        else:
            event.listen(memory._engine, "before_cursor_execute", lambda c, cursor, sql, *more: self._seen.append(sql))

    def of(self, work: Callable[[], object]) -> list[str]:
        """The statements that `work` came to."""
        self._seen.clear()
        work()
        return list(self._seen)


@pytest.mark.parametrize("shared", ["sqlite", "postgresql", "mariadb"], indirect=True)
def test_a_window_and_an_append_cost_the_same_in_a_long_conversation(shared: Any, conversation: str) -> None:
    memory = shared.make()
    turns = list(Dialogue(501).entries())
    for turn in turns[:10]:
        memory.persist_memory(Batch(conversation, tuple(turn), turn[0].number))
    traced = Traced(memory)
    query = LoadQuery(messages=8, turn_id="turn 8")

    def kinds(turn: list[Entry]) -> list[str]:
        seen = traced.of(lambda: memory.load_memory(conversation, query))
        seen += traced.of(lambda: memory.persist_memory(Batch(conversation, tuple(turn), turn[0].number)))
        return [statement.split()[0] for statement in seen]

    early = kinds(turns[10])
    rest = tuple(entry for turn in turns[11:500] for entry in turn)
    memory.persist_memory(Batch(conversation, rest, rest[0].number))
    late = kinds(turns[500])
    memory.close()
    assert early == late
    assert late.count("UPDATE") == 1
    assert set(late) <= {"BEGIN", "SELECT", "INSERT", "UPDATE", "COMMIT"}


def test_reading_a_window_walks_no_table(tmp_path: Path, opened: Callable[..., SqlMemory]) -> None:
    memory = opened(f"sqlite:///{tmp_path}/chat.db")
    memory.persist_memory(Batch("c", tuple(entry for turn in Dialogue(40).entries() for entry in turn), 0))
    traced = Traced(memory)
    seen = traced.of(lambda: memory.load_memory("c", LoadQuery(messages=4, turn_id="turn 2")))
    seen += traced.of(lambda: memory.persist_memory(Batch("c", (), 280, "me", 5.0)))
    seen += traced.of(lambda: memory.persist_memory(Batch("c", one("x", 280), 280)))
    looked = [sql for sql in seen if sql.split()[0] in ("SELECT", "UPDATE")]
    with sqlite3.connect(tmp_path / "chat.db") as database:
        plans = [" ".join(row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}")) for sql in looked]
    database.close()
    assert len(plans) >= 6
    assert not [plan for plan in plans if "SCAN" in plan]


def test_readers_go_on_while_one_writes(tmp_path: Path, opened: Callable[..., SqlMemory]) -> None:
    memory = opened(f"sqlite:///{tmp_path}/chat.db")
    memory.persist_memory(Batch("c", one("stored"), 0))
    other = opened(f"sqlite:///{tmp_path}/chat.db")
    with memory._write.begin() as connection:
        connection.execute(text("UPDATE hookloop_conversations SET entries = 99"))
        loaded = other.load_memory("c", LoadQuery())
        connection.rollback()
    assert (loaded.version, loaded.entries) == (1, one("stored"))


def test_a_lost_connection_is_opened_again(postgres: str, opened: Callable[..., SqlMemory], conversation: str) -> None:
    memory = opened(postgres, pool_size=1)
    memory.persist_memory(Batch(conversation, one("first"), 0))
    killer = opened(postgres)
    everybody = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
    with killer._engine.connect() as connection:
        connection.execute(everybody)
        memory.persist_memory(Batch(conversation, one("second", 1), 1))
        connection.execute(everybody)
        assert memory.load_memory(conversation, LoadQuery()).version == 2
