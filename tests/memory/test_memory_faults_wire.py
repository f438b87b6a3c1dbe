"""Connections that break and servers that go away, on each server: what was stored stands once, the rest is told."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from dropping import wired

from hookloop import Agent, tool
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Batch, Conflict, Entry, LoadQuery, Message, Said

SERVERS = pytest.mark.parametrize("shared", ["postgresql", "mariadb", "redis"], indirect=True)
STORED = {"postgresql": b"COMMIT", "mariadb": b"COMMIT", "redis": b"EVALSHA"}
"""What stores a batch; its answer is lost."""
WRITTEN = {"postgresql": b"INSERT INTO hookloop_entries", "mariadb": b"INSERT INTO hookloop_entries"}
"""What is written before that."""


def one(words: str, number: int = 0) -> tuple[Entry, ...]:
    """A batch's worth of one message."""
    return (Entry(number, "t", Said(Message.user(words))),)


def words(memory: Any, conversation: str) -> list[str]:
    """What is stored."""
    return [message.text for message in flatten(memory.load_memory(conversation, LoadQuery()).entries)]


@SERVERS
def test_a_commit_whose_answer_is_lost_is_stored_once(shared: Any, conversation: str) -> None:
    with wired(shared) as (wire, store):
        memory = store.make()
        memory.persist_memory(Batch(conversation, one("first"), 0, "me", 30.0))
        for number in range(1, 4):
            wire.cut_at = STORED[shared.name]
            memory.persist_memory(Batch(conversation, one(f"{number}", number), number, "me", 30.0))
        assert wire.cuts == 3
        loaded = memory.load_memory(conversation, LoadQuery())
        assert (loaded.version, loaded.lease.owner) == (4, "me")
        assert words(memory, conversation) == ["first", "1", "2", "3"]
        memory.close()


@pytest.mark.parametrize("shared", WRITTEN, indirect=True)
def test_a_transaction_that_breaks_off_is_played_again(shared: Any, conversation: str) -> None:
    with wired(shared) as (wire, store):
        memory = store.make()
        memory.persist_memory(Batch(conversation, one("first"), 0))
        wire.cut_at = WRITTEN[shared.name]
        memory.persist_memory(Batch(conversation, one("second", 1), 1))
        assert wire.cuts == 1
        assert words(memory, conversation) == ["first", "second"]
        memory.close()


@SERVERS
def test_a_turn_goes_through_lost_answers(shared: Any, conversation: str) -> None:
    """Each batch of a turn loses its answer once."""
    ran: list[int] = []
    with wired(shared) as (wire, store):

        @tool
        def work(n: int) -> str:
            """Work."""
            ran.append(n)
            wire.cut_at = STORED[shared.name]
            return "worked"

        def answer(request: Any) -> Any:
            wire.cut_at = STORED[shared.name]
            return say("done") if request.messages[-1].role == "tool" else call("work", {"n": 1}, id="c1")

        with Agent(ScriptedProvider([answer, answer]), tools=[work], memory=store.make()) as agent:
            assert agent.run("go", conversation=conversation).text == "done"
        assert wire.cuts >= 3
    assert ran == [1]
    memory = shared.make()
    messages = list(flatten(memory.load_memory(conversation, LoadQuery()).entries))
    memory.close()
    check(messages)
    assert [message.text for message in messages] == ["go", "", "worked", "done"]


@SERVERS
def test_a_server_that_restarts_between_batches_is_waited_for(shared: Any, conversation: str) -> None:
    with wired(shared) as (wire, store):
        memory = store.make()
        memory.persist_memory(Batch(conversation, one("first"), 0))
        wire.down = True
        wire.cut()
        back = threading.Timer(0.2, lambda: setattr(wire, "down", False))
        back.start()
        memory.persist_memory(Batch(conversation, one("second", 1), 1))
        back.join()
        assert words(memory, conversation) == ["first", "second"]
        memory.close()


@SERVERS
def test_a_server_that_is_not_there_is_told(shared: Any, conversation: str) -> None:
    with wired(shared) as (_, store):
        memory = store.make()
    with pytest.raises(Exception, match=r"(?i)refused"):
        memory.persist_memory(Batch(conversation, one("lost"), 0))
    memory.close()


@SERVERS
def test_a_repeated_batch_behind_a_newer_one_changes_nothing(shared: Any, conversation: str) -> None:
    """The answer is lost, somebody goes on, and only then the batch is sent again."""
    memory = shared.make()
    memory.persist_memory(Batch(conversation, one("first"), 0, "old", 30.0))
    memory.persist_memory(Batch(conversation, one("second", 1), 1, "new", 30.0))
    memory.persist_memory(Batch(conversation, one("first"), 0, "old", 30.0))
    loaded = memory.load_memory(conversation, LoadQuery())
    assert (loaded.version, loaded.lease.owner) == (2, "new")
    with pytest.raises(Conflict):
        memory.persist_memory(Batch(conversation, (*one("first"), *one("other", 2)), 0, "old", 30.0))
    memory.close()


@pytest.mark.parametrize("shared", ["sqlite", "postgresql", "mariadb", "redis"], indirect=True)
@pytest.mark.parametrize("hours", [-24, 24])
def test_a_clock_that_goes_wrong_here_changes_no_lease(
    shared: Any, hours: int, conversation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leases pass by the store's clock: two machines need not agree on the time."""
    memory, now = shared.make(), time.time()
    memory.persist_memory(Batch(conversation, one("first"), 0, "me", 30.0))
    monkeypatch.setattr(time, "time", lambda: now + 3600 * hours)
    other = shared.make()
    assert 0 < other.load_memory(conversation, LoadQuery()).lease.left <= 30
    with pytest.raises(Conflict, match="held by 'me'"):
        other.persist_memory(Batch(conversation, (), 1, "other", 30.0))
    other.persist_memory(Batch(conversation, (), 1, "me", 30.0))
    monkeypatch.undo()
    lease = memory.load_memory(conversation, LoadQuery()).lease
    assert (lease.owner, 0 < lease.left <= 30) == ("me", True)
    memory.close()
    other.close()
