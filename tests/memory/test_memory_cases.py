"""Faults that people met in stores, by their case's name, each on every store that it can happen to."""

from __future__ import annotations

import json
import pickle
import sqlite3
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier
from typing import Any, ClassVar

import pytest
import redis
from sqlalchemy import create_engine, event, text

from hookloop_hookspecs import (
    Batch,
    Conflict,
    ContractError,
    CorruptData,
    Entry,
    HookloopError,
    LoadQuery,
    Message,
    Said,
    Text,
    ToolCall,
    ToolResult,
    TurnEnded,
    TurnStarted,
)
from hookloop_hookspecs.entries import Body
from hookloop_redis import RedisMemory, RedisOptions
from hookloop_sql import SqlMemory
from hookloop_transcript import TranscriptMemory

SQL = pytest.mark.parametrize("shared", ["sqlite", "postgresql", "mariadb"], indirect=True)
INSIDE = pytest.mark.parametrize("store", ["memory", "sqlite", "postgresql", "mariadb", "redis"], indirect=True)
STEPS = ["INSERT hookloop_entries", "UPDATE hookloop_conversations", "COMMIT"]


def texts(memory: Any, conversation: str) -> list[str]:
    """What was said."""
    bodies = [entry.body for entry in memory.load_memory(conversation, LoadQuery()).entries]
    return [body.message.text for body in bodies if isinstance(body, Said)]


def said(words: Sequence[str], turn: str = "t", start: int = 0) -> tuple[Entry, ...]:
    """One message after the other, user and assistant in turn."""
    roles = (Message.user, Message.assistant)
    return tuple(Entry(start + at, turn, Said(roles[at % 2](word))) for at, word in enumerate(words))


@pytest.fixture
def memory(store: Any) -> Any:
    """A memory on each store, closed at the end."""
    made = store.make()
    yield made
    if hasattr(made, "close"):
        made.close()


def test_d01_order_is_the_order_stored_with_a_clock_that_stands_still(
    memory: Any, conversation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    memory.persist_memory(Batch(conversation, said(["U1", "A1", "U2", "A2"], "t1"), 0, final=True))
    for _ in range(20):
        assert texts(memory, conversation) == ["U1", "A1", "U2", "A2"]
    version = memory.load_memory(conversation, LoadQuery()).version
    memory.persist_memory(Batch(conversation, said(["U3", "A3"], "t2", version), version, final=True))
    for _ in range(20):
        assert texts(memory, conversation) == ["U1", "A1", "U2", "A2", "U3", "A3"]


def test_d03_a_coarse_clock_that_steps_back_changes_no_order(
    memory: Any, conversation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [f"m{at}" for at in range(200)]
    monkeypatch.setattr(time, "time", iter([1000.0 + 0.015 * (at // 10) for at in range(100_000)]).__next__)
    memory.persist_memory(Batch(conversation, said(words, "t1"), 0, final=True))
    monkeypatch.setattr(time, "time", lambda: 999.0)
    version = memory.load_memory(conversation, LoadQuery()).version
    memory.persist_memory(Batch(conversation, said(["last"], "t2", version), version, final=True))
    assert texts(memory, conversation) == [*words, "last"]


@INSIDE
def test_d10_nul_in_results_and_arguments_is_kept_and_in_an_id_refused(memory: Any, conversation: str) -> None:
    result = ToolResult("c1", "read", (Text("a\0b"), Text(json.dumps({"k": "a\0b"}))), ran='{"p":"a\\u0000b"}')
    call = ToolCall("c1", "read", '{"p":"a\0b\\u0000"}')
    bodies: tuple[Body, ...] = (
        TurnStarted("o", "n"),
        Said(Message.assistant(call), stop="calls"),
        Said(Message.tool(result)),
    )
    entries = tuple(Entry(at, "t", body) for at, body in enumerate(bodies))
    memory.persist_memory(Batch(conversation, entries, 0))
    assert memory.load_memory(conversation, LoadQuery()).entries == entries
    with pytest.raises(ContractError, match="NUL"):
        memory.persist_memory(Batch("a\0b", entries, 0))
    with pytest.raises(ContractError, match="NUL"):
        memory.load_memory("a\0b", LoadQuery())
    with pytest.raises(ContractError, match="NUL"):
        memory.load_memory("a", LoadQuery(scope="a\0b"))


def test_d12_a_lone_surrogate_leaves_the_conversation_usable(memory: Any, conversation: str) -> None:
    memory.persist_memory(Batch(conversation, said(["U1", "A1"], "t1"), 0, final=True))
    version = memory.load_memory(conversation, LoadQuery()).version
    poison = said(["U2", "\udc97"], "t2", version)
    try:
        memory.persist_memory(Batch(conversation, poison, version, final=True))
    except HookloopError:
        assert texts(memory, conversation) == ["U1", "A1"]
        memory.persist_memory(Batch(conversation, said(["U2", "A2"], "t2", version), version, final=True))
    assert texts(memory, conversation)[:3] == ["U1", "A1", "U2"]
    with pytest.raises(HookloopError):
        memory.persist_memory(Batch("id \udc97", said(["U"]), 0, final=True))


def test_d13_all_keys_of_a_conversation_slide_together_and_go_together(redis_server: str, conversation: str) -> None:
    memory = RedisMemory(redis_server, RedisOptions(ttl=10, prefix=conversation))
    with redis.Redis.from_url(redis_server) as client:
        memory.persist_memory(Batch("c", said(["U1", "A1"]), 0, "me", 5.0))
        for key in client.scan_iter(f"{conversation}:*"):
            client.pexpire(key, 2000)  # as eight seconds later
        for batch in (Batch("c", said(["U2"], "t2", 2), 2), Batch("c", (), 3, "me", 5.0)):
            memory.persist_memory(batch)
            left = {key: client.pttl(key) for key in client.scan_iter(f"{conversation}:*")}
            assert len(left) == 2
            assert all(9000 < milliseconds <= 10_000 for milliseconds in left.values()), left
            for key in left:
                client.pexpire(key, 2000)
        for key in left:
            client.pexpire(key, 1)
        while client.exists(*left):
            pass
    loaded = memory.load_memory("c", LoadQuery())
    assert (loaded.entries, loaded.version, loaded.lease) == ((), 0, None)
    assert memory.conversations() == []
    memory.close()


@SQL
@pytest.mark.parametrize("step", STEPS)
def test_d16_a_write_that_fails_half_way_leaves_the_old_history(step: str, shared: Any, conversation: str) -> None:
    memory = shared.make()
    memory.persist_memory(Batch(conversation, said(["U1", "A1"]), 0))
    with failing(step, memory), pytest.raises(Exception, match=r"the disk is full|not authorized"):
        memory.persist_memory(Batch(conversation, said(["U2", "A2"], "t2", 2), 2))
    assert texts(memory, conversation) == ["U1", "A1"]
    memory.persist_memory(Batch(conversation, said(["U2", "A2"], "t2", 2), 2))
    assert texts(memory, conversation) == ["U1", "A1", "U2", "A2"]
    memory.close()


@SQL
def test_d16_a_delete_that_fails_half_way_deletes_nothing(shared: Any, conversation: str) -> None:
    memory = shared.make()
    memory.persist_memory(Batch(conversation, said(["U1", "A1"]), 0))
    with failing("DELETE hookloop_conversations", memory), pytest.raises(Exception, match="the disk is full"):
        memory.delete(conversation)
    assert texts(memory, conversation) == ["U1", "A1"]
    assert memory.delete(conversation)
    memory.close()


@contextmanager
def _no_commit(memory: SqlMemory) -> Iterator[None]:
    """Connections to SQLite that commit nothing."""

    def refuse(action: int, what: str | None, *more: Any) -> int:
        no = action == sqlite3.SQLITE_TRANSACTION and what == "COMMIT" and refusing
        return sqlite3.SQLITE_DENY if no else sqlite3.SQLITE_OK

    def guard(driver: Any, *more: Any) -> None:
        driver.set_authorizer(refuse)

    memory.close()  # the next use opens new ones
    event.listen(memory._engine, "checkout", guard)
    refusing = False
    memory.conversations()
    refusing = True
    yield
    refusing = False
    event.remove(memory._engine, "checkout", guard)


@contextmanager
def failing(step: str, memory: SqlMemory) -> Iterator[None]:
    """A disk that is full when this step of a transaction comes."""
    what, *table = step.split()
    if table and memory.name == "sqlite":
        fails = f"CREATE TRIGGER full BEFORE {what} ON {table[0]} BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"
        _define(memory, fails)
        yield
        _define(memory, "DROP TRIGGER full")
        return
    if memory.name == "sqlite":
        with _no_commit(memory):
            yield
        return

    def full(*event: Any) -> None:
        if not table or (event[2].startswith(what) and table[0] in event[2]):
            raise OSError("the disk is full")

    name = "before_cursor_execute" if table else "commit"
    event.listen(memory._engine, name, full)
    yield
    event.remove(memory._engine, name, full)


def _define(memory: SqlMemory, ddl: str) -> None:
    with memory._write.begin() as connection:
        connection.exec_driver_sql(ddl)


@INSIDE
def test_k04_of_two_turns_on_one_conversation_one_conflicts(memory: Any, conversation: str) -> None:
    barrier = Barrier(2)

    def turn(who: str) -> str | None:
        version = memory.load_memory(conversation, LoadQuery(40)).version
        barrier.wait(20)  # both have read the same base
        claim = (Entry(version, who, TurnStarted(who, who)), Entry(version + 1, who, Said(Message.user(who))))
        try:
            memory.persist_memory(Batch(conversation, claim, version, who, 30.0))
        except Conflict:
            return None
        answer = (
            Entry(version + 2, who, Said(Message.assistant(who))),
            Entry(version + 3, who, TurnEnded("done", "end")),
        )
        memory.persist_memory(Batch(conversation, answer, version + 2, who, final=True))
        return who

    with ThreadPoolExecutor(2) as pool:
        winners = [who for who in pool.map(turn, ["one", "two"]) if who]
    assert len(winners) == 1
    assert texts(memory, conversation) == winners * 2


class Marker:
    """What a pickle would run."""

    ran: ClassVar[list[str]] = []

    def __reduce__(self) -> Any:
        return Marker.ran.append, ("ran",)


PAYLOADS = {
    "pickle": pickle.dumps(Marker()),
    "type tag": json.dumps(
        {"py/object": "tests.Marker", "lc": 1, "type": "constructor", "id": ["os", "system"]}
    ).encode(),
    "class to import": b'{"v":1,"number":0,"turn":"t","body":{"kind":"os.system"}}',
    "newer schema": b'{"v":2,"number":0,"turn":"t","body":{"kind":"turn_suspended"}}',
    "no JSON": b"{",
    "a list": b"[1]",
}


@pytest.mark.parametrize("payload", PAYLOADS)
def test_l01_what_is_no_entry_in_redis_is_corrupt_and_never_run(
    payload: str, redis_server: str, conversation: str
) -> None:
    memory = RedisMemory(redis_server, RedisOptions(prefix=conversation))
    memory.persist_memory(Batch("c", said(["U1"]), 0))
    with redis.Redis.from_url(redis_server) as client:
        (key,) = client.scan_iter(f"{conversation}:*:c:*")
        head = client.hget(key, "0")[:17]
        client.hset(key, "0", head + PAYLOADS[payload])
        with pytest.raises(CorruptData):
            memory.load_memory("c", LoadQuery())
        client.set(key, PAYLOADS[payload])
        with pytest.raises(CorruptData, match="something else"):
            memory.load_memory("c", LoadQuery())
        with pytest.raises(CorruptData, match="something else"):
            memory.persist_memory(Batch("c", said(["U1"]), 0))
    memory.close()
    assert Marker.ran == []


@pytest.mark.parametrize("payload", PAYLOADS)
def test_l01_what_is_no_entry_in_a_table_is_corrupt_and_never_run(payload: str, tmp_path: Path) -> None:
    memory = SqlMemory(f"sqlite:///{tmp_path}/chat.db")
    memory.persist_memory(Batch("c", said(["U1"]), 0))
    engine = create_engine(f"sqlite:///{tmp_path}/chat.db")
    with engine.begin() as connection:
        connection.execute(text("UPDATE hookloop_entries SET body = :body"), {"body": PAYLOADS[payload]})
    engine.dispose()
    with pytest.raises(CorruptData):
        memory.load_memory("c", LoadQuery())
    memory.close()
    assert Marker.ran == []


@pytest.mark.parametrize("payload", PAYLOADS)
def test_l01_what_is_no_transcript_is_corrupt_and_left_alone(payload: str, tmp_path: Path) -> None:
    file = tmp_path / "chat-c.txt"
    file.write_bytes(PAYLOADS[payload])
    memory = TranscriptMemory(f"transcript://{tmp_path}")
    with pytest.raises(CorruptData):
        memory.load_memory("c", LoadQuery())
    with pytest.raises(CorruptData):
        memory.persist_memory(Batch("c", said(["U", "A"]), 0))
    assert file.read_bytes() == PAYLOADS[payload]
    assert Marker.ran == []


L02_NAMES = [
    "../../x",
    "/etc/x",
    "a/b",
    "a_b",
    "a%2fb",
    "..",
    ".",
    "CON",
    "con",
    "COM1.txt",
    "A",
    "a",
    "x" * 500,
    "~",
    "-",
]


def test_l02_ids_make_file_names_that_are_apart_and_stay_inside(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "er" / "chats"
    memory = TranscriptMemory(f"transcript://{folder}")
    for name in L02_NAMES:
        memory.persist_memory(Batch(name, said([name, "answer"]), 0, final=True))
        memory.persist_memory(Batch("c", said([name, "answer"]), 0, scope=name, final=True))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix == ".txt"]
    assert len(files) == 2 * len(L02_NAMES)
    assert len({str(path).casefold() for path in files}) == len(files)
    assert all(path.resolve().is_relative_to(folder) and len(path.name) < 200 for path in files)
    for name in L02_NAMES:
        assert texts(memory, name) == [name, "answer"]
    assert {info.conversation for info in memory.conversations()} == set(L02_NAMES)


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "\udc97", ""])
def test_l02_ids_that_cannot_be_kept_are_refused(name: str, memory: Any) -> None:
    with pytest.raises(ContractError):
        memory.persist_memory(Batch(name, said(["U", "A"]), 0, final=True))
    with pytest.raises(ContractError):
        memory.load_memory(name, LoadQuery())
    with pytest.raises(ContractError):
        memory.delete(name)


def test_l02_a_link_in_the_folder_is_never_followed(tmp_path: Path) -> None:
    secret, chats = tmp_path / "secret.txt", tmp_path / "chats"
    secret.write_text("secret")
    chats.mkdir()
    (chats / "chat-c.txt").symlink_to(secret)
    (chats / "scope-s").symlink_to(tmp_path)
    memory = TranscriptMemory(f"transcript://{chats}")
    for scope in ("", "s"):
        with pytest.raises(CorruptData):
            memory.persist_memory(Batch("c", said(["U", "A"]), 0, scope=scope, final=True))
        with pytest.raises(CorruptData):
            memory.load_memory("c", LoadQuery(scope=scope))
    assert memory.conversations() == []
    assert secret.read_text() == "secret"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chats", "secret.txt"]
