"""Ids and texts that databases take for one another, on every store; and what servers do to values on their own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
import redis
from sqlalchemy.engine import make_url

from hookloop_hookspecs import (
    Batch,
    Conflict,
    ContractError,
    CorruptData,
    Entry,
    LoadQuery,
    Message,
    Said,
    TurnEnded,
)
from hookloop_hookspecs.entries import Body
from hookloop_redis import RedisMemory, RedisOptions
from hookloop_sql import SqlMemory

ALIKE = [
    *("a", "A", "a ", "a  ", " a", "a\t", "a\n", "ä", "a\u0308", "Ä", "à", "ａ", "ª"),
    *("ß", "ss", "SS", "ẞ", "ſs", "i", "I", "ı", "İ", "œ", "oe", "ﬁ", "fi"),
    *(
        "\U0001f600",
        "\U0001f601",
        "\U0001f468\u200d\U0001f469",
        "\U0001f468\U0001f469",
        "a\u200b",
        "a\u00ad",
        "\ufeffa",
    ),
    *("%", "_", "a%", "a_", "*", "?", "a:b", "a::b", "a{b}", "{a}b", "a/b", "a\\b", "'", "''", '"', "\x7f", "0", "00"),
]
"""Names of which some collation, padding or normalisation takes two for one."""
LONG = ["x" * 500, "x" * 499 + "y", "x" * 499 + "X", "é" * 500, "\U0001f600" * 500, "\U0001f600" * 499 + "\U0001f601"]
"""Names that share what an index of 191, 255, 767 or 3072 bytes would hold of them."""
EVERYWHERE = pytest.mark.parametrize(
    "store", ["memory", "sqlite", "postgresql", "mariadb", "redis", "redis-debian", "transcript"], indirect=True
)


def said(words: str, turn: str = "t", number: int = 0) -> tuple[Entry, ...]:
    """A turn of two messages."""
    bodies: tuple[Body, ...] = (
        Said(Message.user(words)),
        Said(Message.assistant(f"answer to {words}")),
        TurnEnded("done", "end"),
    )
    return tuple(Entry(number + at, turn, body) for at, body in enumerate(bodies))


@pytest.fixture
def memory(store: Any) -> Iterator[Any]:
    """A memory on each store, closed at the end."""
    made = store.make()
    yield made
    if hasattr(made, "close"):
        made.close()


def asked(memory: Any, conversation: str, scope: str = "") -> list[str]:
    """What was asked in a conversation."""
    entries = memory.load_memory(conversation, LoadQuery(scope=scope)).entries
    said = [entry.body.message for entry in entries if isinstance(entry.body, Said)]
    return [message.text for message in said if message.role == "user"]


@pytest.mark.parametrize("names", [ALIKE, LONG], ids=["alike", "long"])
@EVERYWHERE
def test_no_two_conversations_are_taken_for_one(memory: Any, names: list[str], conversation: str) -> None:
    for at, name in enumerate(names):
        memory.persist_memory(Batch(name, said(f"go {at}"), 0, scope=conversation))
    assert [asked(memory, name, conversation) for name in names] == [[f"go {at}"] for at in range(len(names))]
    assert {info.conversation for info in memory.conversations(conversation)} == set(names)
    assert memory.delete(names[0], conversation)
    assert {info.conversation for info in memory.conversations(conversation)} == set(names[1:])


@EVERYWHERE
def test_no_two_tenants_are_taken_for_one(memory: Any, conversation: str) -> None:
    scopes = [f"{conversation[:200]}{name}" for name in [*ALIKE, *(name[250:] for name in LONG)]]
    for at, scope in enumerate(scopes):
        memory.persist_memory(Batch("c", said(f"go {at}"), 0, scope=scope))
    assert [asked(memory, "c", scope) for scope in scopes] == [[f"go {at}"] for at in range(len(scopes))]
    assert all([info.conversation for info in memory.conversations(scope)] == ["c"] for scope in scopes)


@EVERYWHERE
def test_a_tenant_and_an_id_are_not_read_across_their_border(memory: Any, conversation: str) -> None:
    pairs = [
        (f"{conversation}{scope}", name) for scope, name in (("a", "b:c"), ("a:b", "c"), ("a/b", "c"), ("a", "b/c"))
    ]
    for at, (scope, name) in enumerate(pairs):
        memory.persist_memory(Batch(name, said(f"go {at}"), 0, scope=scope))
    assert [asked(memory, name, scope) for scope, name in pairs] == [[f"go {at}"] for at in range(len(pairs))]


@pytest.mark.parametrize("store", ["sqlite", "postgresql", "mariadb", "redis"], indirect=True)
def test_no_two_turns_are_taken_for_one(memory: Any, conversation: str) -> None:
    names = [*ALIKE, *LONG]
    for at, name in enumerate(names):
        memory.persist_memory(Batch(conversation, said(f"go {at}", name, 3 * at), 3 * at))
    for at, name in enumerate(names):
        loaded = memory.load_memory(conversation, LoadQuery(messages=1, turn_id=name))
        mine = [entry for entry in loaded.entries if entry.turn == name]
        assert [entry.number for entry in mine] == [3 * at, 3 * at + 1, 3 * at + 2]
        others = {entry.turn for entry in loaded.entries} - {name}
        assert others <= {names[-1]}


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_another_encoding_keeps_what_it_can(encoding: str, postgres: str, conversation: str) -> None:
    name = f"of_{encoding.lower()}"
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LOCALE 'C'")
    memory = SqlMemory(make_url(postgres).set(database=name).render_as_string(hide_password=False))
    memory.persist_memory(Batch("Ünï", said("grüß"), 0))
    assert asked(memory, "Ünï") == ["grüß"]
    more = said("\U0001f600", "t2", 3)
    if encoding == "LATIN1":
        with pytest.raises(Exception, match="no equivalent in encoding"):
            memory.persist_memory(Batch("Ünï", more, 3))
        assert asked(memory, "Ünï") == ["grüß"]
    else:
        memory.persist_memory(Batch("Ünï", more, 3))
        assert asked(memory, "Ünï") == ["grüß", "\U0001f600"]
    memory.close()


def test_an_entry_that_is_larger_than_mariadb_takes_is_told(mariadb: str, conversation: str) -> None:
    memory = SqlMemory(mariadb)
    for words in ("x" * 20_000_000, '"' * 6_000_000, "é" * 9_000_000):
        with pytest.raises(ContractError, match="max_allowed_packet"):
            memory.persist_memory(Batch(conversation, said(words), 0))
    assert memory.load_memory(conversation, LoadQuery()).version == 0
    near = said("x" * 16_770_000)[:1]
    memory.persist_memory(Batch(conversation, near, 0))
    assert memory.load_memory(conversation, LoadQuery()).entries == near
    memory.close()


@pytest.mark.parametrize("query", ["decode_responses=true", "encoding=latin-1", "protocol=3", "protocol=2"])
def test_a_url_that_says_how_others_read_redis_changes_nothing(
    query: str, redis_server: str, conversation: str
) -> None:
    memory = RedisMemory(f"{redis_server}?{query}", RedisOptions(prefix=conversation))
    memory.persist_memory(Batch("ß", said("grüß \U0001f600"), 0, "ö", 30.0))
    loaded = memory.load_memory("ß", LoadQuery())
    assert asked(memory, "ß") == ["grüß \U0001f600"]
    assert loaded.lease is not None
    assert loaded.lease.owner == "ö"
    assert [info.conversation for info in memory.conversations()] == ["ß"]
    memory.close()


@pytest.fixture(params=["redis_server", "redis_debian"])
def server(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A client of each Redis, and its URL."""
    url = request.getfixturevalue(request.param)
    with redis.Redis.from_url(url) as client:
        yield client, url


@pytest.mark.parametrize("field", ["marks", "version", "last", "until", "1"])
def test_a_hash_that_somebody_spoiled_is_told_and_can_be_deleted(server: Any, field: str, conversation: str) -> None:
    client, url = server
    memory = RedisMemory(url, RedisOptions(prefix=conversation))
    memory.persist_memory(Batch("c", said("go"), 0, "me", 30.0))
    (key,) = client.scan_iter(f"{conversation}:*:c:c")
    client.hset(key, field, "zz")
    with pytest.raises(CorruptData):
        memory.load_memory("c", LoadQuery(1))
    memory.conversations()
    assert memory.delete("c")
    memory.close()


def test_a_key_that_is_something_else_does_not_hide_the_list(server: Any, conversation: str) -> None:
    client, url = server
    memory = RedisMemory(url, RedisOptions(prefix=conversation))
    for name in ("one", "two"):
        memory.persist_memory(Batch(name, said("go"), 0))
    (key,) = client.scan_iter(f"{conversation}:*:c:one")
    client.delete(key)
    client.set(key, "a string")
    assert [info.conversation for info in memory.conversations()] == ["two"]
    assert client.get(key) == b"a string"
    memory.close()


def test_what_expires_or_is_evicted_in_mid_turn_is_a_conflict(server: Any, conversation: str) -> None:
    client, url = server
    memory = RedisMemory(url, RedisOptions(prefix=conversation))
    memory.persist_memory(Batch("c", said("go"), 0, "me", 30.0))
    client.delete(*client.scan_iter(f"{conversation}:*:c:c"))
    memory.persist_memory(Batch("c", (), 3, "me", 30.0))
    with pytest.raises(Conflict, match="0 entries stored, the writer knew 3"):
        memory.persist_memory(Batch("c", said("more", "t2", 3), 3, "me", 30.0))
    assert memory.load_memory("c", LoadQuery()).version == 0
    memory.close()


def test_the_shortest_ttl_is_no_ttl_of_none(server: Any, conversation: str) -> None:
    client, url = server
    memory = RedisMemory(url, RedisOptions(prefix=conversation, ttl=0.0001))
    memory.persist_memory(Batch("c", said("go"), 0))
    while client.exists(*[f"{conversation}:x", *client.scan_iter(f"{conversation}:*:c:c")]):
        pass
    assert memory.load_memory("c", LoadQuery()).version == 0
    memory.close()


@pytest.mark.parametrize("trouble", ["replica", "memory"])
def test_a_server_that_takes_no_writes_is_told_and_read(server: Any, trouble: str, conversation: str) -> None:
    client, url = server
    memory = RedisMemory(url, RedisOptions(prefix=conversation))
    memory.persist_memory(Batch("c", said("go"), 0))
    try:
        if trouble == "replica":
            client.config_set("replica-serve-stale-data", "yes")
            client.replicaof("127.0.0.1", 1)
        else:
            client.config_set("maxmemory", "1")
        with pytest.raises(redis.exceptions.RedisError, match=r"READONLY|OOM|read only|maxmemory"):
            memory.persist_memory(Batch("c", said("more", "t2", 3), 3))
        assert asked(memory, "c") == ["go"]
    finally:
        client.replicaof("NO", "ONE")
        client.config_set("maxmemory", "0")
    memory.persist_memory(Batch("c", said("more", "t2", 3), 3))
    assert asked(memory, "c") == ["go", "more"]
    memory.close()
