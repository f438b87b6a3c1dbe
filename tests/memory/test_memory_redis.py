"""What is particular to Redis: its keys, the list of conversations, scripts that a server forgot."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import redis

from hookloop_hookspecs import Batch, ConfigError, Entry, LoadQuery, Message, Said
from hookloop_redis import RedisMemory, RedisOptions


def one(words: str, number: int = 0) -> tuple[Entry, ...]:
    """A batch's worth of one message."""
    return (Entry(number, "t", Said(Message.user(words))),)


@pytest.fixture
def client(redis_server: str) -> Iterator[redis.Redis]:
    """A client of the server, beside the memory's own."""
    with redis.Redis.from_url(redis_server) as made:
        yield made


@pytest.fixture
def memory(redis_server: str, conversation: str) -> Iterator[RedisMemory]:
    """A memory with keys of its own."""
    made = RedisMemory(redis_server, RedisOptions(prefix=conversation))
    yield made
    made.close()


def test_an_unusable_url_is_told_without_its_password() -> None:
    with pytest.raises(ConfigError, match="no Redis URL") as told:
        RedisMemory("http://:SECRET@localhost")
    assert "SECRET" not in str(told.value)


def test_a_conversation_is_one_key_that_people_can_find(memory: RedisMemory, client: Any, conversation: str) -> None:
    memory.persist_memory(Batch("a/b {x}", one("hello"), 0, "me", 5.0))
    keys = sorted(key.decode() for key in client.scan_iter(f"{conversation}:*"))
    assert len(keys) == 2
    assert keys[0].endswith("}:c:a/b {x}")
    assert keys[1].endswith("}:index")
    tags = {key[key.index("{") : key.index("}") + 1] for key in keys}
    assert len(tags) == 1, "all keys of a tenant must be on one node of a cluster"
    assert memory.delete("a/b {x}")
    assert list(client.scan_iter(f"{conversation}:*")) == []


def test_without_a_ttl_nothing_expires(memory: RedisMemory, redis_server: str, client: Any, conversation: str) -> None:
    brief = RedisMemory(redis_server, RedisOptions(prefix=conversation, ttl=50))
    brief.persist_memory(Batch("c", one("hello"), 0))
    memory.persist_memory(Batch("c", one("again", 1), 1))
    brief.close()
    assert [client.ttl(key) for key in client.scan_iter(f"{conversation}:*")] == [-1, -1]


def test_the_list_outlives_no_conversation_and_dies_with_the_last(
    redis_server: str, client: Any, conversation: str
) -> None:
    memory = RedisMemory(redis_server, RedisOptions(prefix=conversation, ttl=500))
    for name in ("one", "two", "three"):
        memory.persist_memory(Batch(name, one("hello"), 0))
    (index,) = client.scan_iter(f"{conversation}:*:index")
    assert 490 < client.ttl(index) <= 500
    (gone,) = client.scan_iter(f"{conversation}:*:c:two")
    client.delete(gone)  # as its time comes
    assert client.zcard(index) == 3
    assert [info.conversation for info in memory.conversations()] == ["three", "one"]
    assert client.zcard(index) == 2
    memory.close()


def test_long_lists_come_in_pages(memory: RedisMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hookloop_redis.memory._PAGE", 3)
    for at in range(10):
        memory.persist_memory(Batch(f"c{at}", one("hello"), 0))
    assert [info.conversation for info in memory.conversations()] == [f"c{at}" for at in range(9, -1, -1)]


def test_a_server_that_forgot_its_scripts_is_told_them_again(memory: RedisMemory, client: Any) -> None:
    memory.persist_memory(Batch("c", one("first"), 0))
    client.script_flush()
    memory.persist_memory(Batch("c", one("second", 1), 1))
    client.script_flush()
    assert memory.load_memory("c", LoadQuery()).version == 2


def test_a_lost_connection_is_opened_again(memory: RedisMemory, client: Any) -> None:
    memory.persist_memory(Batch("c", one("first"), 0))
    client.client_kill_filter(_type="normal", skipme=True)
    memory.persist_memory(Batch("c", one("second", 1), 1))
    assert memory.load_memory("c", LoadQuery()).version == 2


def test_numbers_with_gaps_are_found(memory: RedisMemory) -> None:
    far = tuple(Entry(number, "t", Said(Message.user(f"{number}"))) for number in (3, 500, 40_000))
    memory.persist_memory(Batch("c", far, 0))
    assert memory.load_memory("c", LoadQuery()).entries == far
    assert memory.load_memory("c", LoadQuery(1)).entries == far
