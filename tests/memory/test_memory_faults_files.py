"""SQLite's files as they are met: odd names, locked, readable only, full, spoiled; and many threads on few connections."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from hookloop import Agent
from hookloop.testing import ScriptedProvider, say
from hookloop_hookspecs import Batch, CorruptData, Entry, LoadQuery, Message, Said, State
from hookloop_sql import SqlMemory, SqlOptions


def one(words: str, number: int = 0) -> tuple[Entry, ...]:
    """A batch's worth of one message."""
    return (Entry(number, "t", Said(Message.user(words))),)


@contextmanager
def opened(url: str, **options: Any) -> Iterator[SqlMemory]:
    """A memory, closed at the end."""
    memory = SqlMemory(url, SqlOptions(**options))
    try:
        yield memory
    finally:
        memory.close()


@contextmanager
def locked(file: Path, how: str) -> Iterator[None]:
    """Another program that is writing."""
    with closing(sqlite3.connect(file, isolation_level=None)) as other:
        other.execute(f"BEGIN {how}")
        yield


@pytest.mark.parametrize(
    "name", ["a b.db", "Ünï\U0001f600.db", "a#b.db", "a&b=c.db", "+.db", "x:memory:y.db", "mode=memory.db"]
)
def test_a_file_may_have_any_name(name: str, tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/{name}") as memory:
        assert memory.capabilities.durable
        memory.persist_memory(Batch("c", one("kept"), 0))
    assert (tmp_path / name).is_file()
    with opened(f"sqlite:///{tmp_path}/{name}") as memory:
        assert memory.load_memory("c", LoadQuery()).entries == one("kept")


def test_a_url_escapes_what_it_cannot_hold(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/a%20b%3f%25.db") as memory:
        memory.persist_memory(Batch("c", one("kept"), 0))
    assert (tmp_path / "a b?%.db").is_file()


@pytest.mark.parametrize("url", ["sqlite:///:memory:", "sqlite:///file::memory:?uri=true", "sqlite://"])
def test_a_private_database_serves_many_threads(url: str) -> None:
    with opened(url) as memory:
        assert not memory.capabilities.durable
        play_in_threads(memory, 16)


def test_more_threads_than_connections_take_turns(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/chat.db", pool_size=1) as memory:
        play_in_threads(memory, 24)


def play_in_threads(memory: SqlMemory, threads: int) -> None:
    """Each thread writes and reads a conversation of its own, all at once."""
    start = threading.Barrier(threads)

    def play(at: int) -> int:
        start.wait()
        for number in range(20):
            memory.persist_memory(Batch(f"c{at}", one(f"{number}", number), number))
            memory.load_memory(f"c{at}", LoadQuery(5))
        return memory.load_memory(f"c{at}", LoadQuery()).version

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(play, range(threads))) == [20] * threads


def test_connections_are_given_back_by_whatever_fails(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/chat.db", pool_size=1) as memory:
        memory.persist_memory(Batch("c", one("kept"), 0))
        for _ in range(5):
            with pytest.raises(Exception, match="another entry"):
                memory.persist_memory(Batch("c", one("other"), 0))
        with ThreadPoolExecutor(4) as pool:
            assert {
                loaded.version for loaded in pool.map(lambda _: memory.load_memory("c", LoadQuery()), range(8))
            } == {1}


def test_a_file_that_somebody_else_writes_is_waited_for_and_read_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    with opened(f"sqlite:///{file}", busy_timeout=0.05) as memory:
        memory.persist_memory(Batch("c", one("kept"), 0))
        with locked(file, "IMMEDIATE"):
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                memory.persist_memory(Batch("c", one("more", 1), 1))
            assert memory.load_memory("c", LoadQuery()).entries == one("kept")
        memory.persist_memory(Batch("c", one("more", 1), 1))
    with opened(f"sqlite:///{file}", busy_timeout=60.0) as memory, ThreadPoolExecutor(1) as pool:
        with locked(file, "IMMEDIATE"):
            waiting = pool.submit(memory.persist_memory, Batch("c", one("last", 2), 2))
            assert memory.load_memory("c", LoadQuery()).version == 2
        waiting.result(60)
        assert memory.load_memory("c", LoadQuery()).version == 3


def test_a_new_file_that_somebody_else_holds_is_told_as_locked(tmp_path: Path) -> None:
    """It cannot even be switched to write-ahead logging."""
    file = tmp_path / "chat.db"
    with closing(sqlite3.connect(file)) as made:
        made.execute("CREATE TABLE others (x)")
    with opened(f"sqlite:///{file}", busy_timeout=0.05) as memory:
        with locked(file, "EXCLUSIVE"), pytest.raises(Exception, match="database is locked"):
            memory.load_memory("c", LoadQuery())
        memory.persist_memory(Batch("c", one("kept"), 0))


def test_a_switch_to_write_ahead_logging_that_meets_another_is_tried_again(tmp_path: Path) -> None:
    """Two programs that switch at once are told "locked" without any waiting: the one that comes second tries again."""
    file = tmp_path / "chat.db"
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("CREATE TABLE others (x)")
        other.execute("BEGIN")
        other.execute("SELECT * FROM others").fetchall()  # a reader keeps the switch from being made
        with opened(f"sqlite:///{file}", busy_timeout=60.0) as memory:
            waits = threading.Timer(0.1, other.execute, ("COMMIT",))
            waits.start()
            memory.persist_memory(Batch("c", one("kept"), 0))
            waits.join()
            with memory._engine.connect() as connection:
                assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_a_locked_file_fails_a_turn_before_its_model_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    with opened(f"sqlite:///{file}", busy_timeout=0.05) as memory:
        memory.load_memory("c", LoadQuery())
        model = ScriptedProvider([say("unused"), say("fine")])
        with Agent(model, memory=memory) as agent:
            with locked(file, "IMMEDIATE"), pytest.raises(Exception, match="locked"):
                agent.run("go", conversation="c")
            assert model.requests == []
            agent.run("go", conversation="c")
        assert len(model.requests) == 1


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_file_that_is_readable_only_is_read_and_not_written(journal: str, tmp_path: Path) -> None:
    file = tmp_path / "chat.db"
    with opened(f"sqlite:///{file}") as memory:
        memory.persist_memory(Batch("c", one("kept"), 0))
    with closing(sqlite3.connect(file)) as database:
        database.execute(f"PRAGMA journal_mode = {journal}")
    with opened(f"sqlite:///file:{file}?mode=ro&uri=true") as memory:
        assert memory.load_memory("c", LoadQuery()).entries == one("kept")
        assert [info.conversation for info in memory.conversations()] == ["c"]
        with pytest.raises(Exception, match="readonly"):
            memory.persist_memory(Batch("c", one("more", 1), 1))
        assert memory.load_memory("c", LoadQuery()).version == 1


def test_a_full_disk_stores_nothing_of_a_batch(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/chat.db") as memory:
        memory.persist_memory(Batch("c", one("kept"), 0))
        memory.close()

        def fill(driver: Any, *more: Any) -> None:
            pages = driver.execute("PRAGMA page_count").fetchone()[0]
            driver.execute(f"PRAGMA max_page_count = {pages}")

        event.listen(memory._engine, "checkout", fill)
        large = (*one("small", 1), *one("x" * 200_000, 2))
        with pytest.raises(sqlite3.OperationalError, match="full"):
            memory.persist_memory(Batch("c", large, 1))
        assert memory.load_memory("c", LoadQuery()).entries == one("kept")
        event.remove(memory._engine, "checkout", fill)
        memory.close()
        memory.persist_memory(Batch("c", large, 1))
        assert memory.load_memory("c", LoadQuery()).version == 3


def test_what_is_no_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "text.db").write_text("no database\n" * 99)
    (tmp_path / "folder.db").mkdir()
    for name, why in (("text.db", "not a database"), ("folder.db", "unable to open")):
        with opened(f"sqlite:///{tmp_path}/{name}") as memory, pytest.raises(Exception, match=why):
            memory.load_memory("c", LoadQuery())
    assert (tmp_path / "text.db").read_text() == "no database\n" * 99


SPOILED = {
    "marks": "UPDATE hookloop_conversations SET newest = 'no json'",
    "marks of another kind": "UPDATE hookloop_conversations SET newest = '[1]'",
    "text": "UPDATE hookloop_entries SET body = 'no json'",
    "bytes": "UPDATE hookloop_entries SET body = x'ff00'",
    "no utf-8": "UPDATE hookloop_entries SET body = CAST(x'ff41' AS TEXT)",
    "a number": "UPDATE hookloop_entries SET body = 17",
}


@pytest.mark.parametrize("statement", SPOILED.values(), ids=SPOILED)
def test_rows_that_somebody_spoiled_are_told(statement: str, tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/chat.db") as memory:
        memory.persist_memory(Batch("c", (Entry(0, "t", State("p", "1")), Entry(1, "t2", Said(Message.user("x")))), 0))
    with closing(sqlite3.connect(tmp_path / "chat.db")) as database:
        database.execute(statement)
        database.commit()
    with opened(f"sqlite:///{tmp_path}/chat.db") as memory:
        with pytest.raises(CorruptData):
            memory.load_memory("c", LoadQuery(1))
        assert memory.delete("c")
        memory.persist_memory(Batch("c", one("anew"), 0))


def looked(memory: SqlMemory) -> Callable[[], int]:
    """How many connections were opened so far."""
    opened_: list[object] = []
    event.listen(memory._engine, "connect", lambda *more: opened_.append(more))
    return lambda: len(opened_)


def test_one_thread_needs_one_connection_and_close_gives_it_up(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/chat.db") as memory:
        count = looked(memory)
        for number in range(9):
            memory.persist_memory(Batch("c", one(f"{number}", number), number))
            memory.load_memory("c", LoadQuery(4))
        assert count() <= 2
        memory.close()
        assert not list(tmp_path.glob("*-wal")), "a connection is still open"
        assert memory.load_memory("c", LoadQuery()).version == 9


def test_a_transaction_that_a_close_meets_ends_and_leaves_nothing_open(tmp_path: Path) -> None:
    with opened(f"sqlite:///{tmp_path}/chat.db") as memory, ThreadPoolExecutor(1) as pool:
        memory.persist_memory(Batch("c", one("first"), 0))
        entered, leave = threading.Event(), threading.Event()

        def slow(link: object) -> int:
            entered.set()
            leave.wait(60)
            return 7

        running = pool.submit(memory._transactions.read, slow)
        entered.wait(60)
        memory.close()
        assert list(tmp_path.glob("*-wal"))
        leave.set()
        assert running.result(60) == 7
        assert not list(tmp_path.glob("*-wal"))
        assert memory.load_memory("c", LoadQuery()).version == 1
