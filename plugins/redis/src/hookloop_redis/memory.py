"""The memory: hooks and keeper's methods over one client."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

from redis import Redis
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import ResponseError
from redis.exceptions import TimeoutError as NoAnswer
from redis.retry import Retry

from hookloop_hookspecs import (
    Batch,
    ConfigError,
    Conflict,
    ConversationInfo,
    CorruptData,
    Entry,
    Lease,
    Loaded,
    LoadQuery,
    MemoryCapabilities,
    Said,
    State,
    Summary,
    hookimpl,
)
from hookloop_hookspecs.storing import EntryTexts, check_ids, digest

from .options import RedisOptions
from .scripts import APPEND, HEAD_WIDTH, LIST, LOAD

_PAGE = 500
_FOREIGN = ("WRONGTYPE", "attempt to ", "Expected ")
"""What Redis says where a key is no hash, and where our script stumbles over what a hash holds."""


class RedisMemory:
    """Histories in Redis.

    Arguments: `url`, what redis-py's `from_url` reads ("redis://localhost:6379/0"); `options`, see `RedisOptions`.
    Nothing is opened before the first use. It may be used from any thread, by any number of processes, and after a fork.
    Raises `ConfigError` for an unusable URL.
    """

    name = "redis"
    Options: ClassVar[type[RedisOptions]] = RedisOptions
    capabilities = MemoryCapabilities(tool_messages=True, versioned=True, durable=True, media=True)

    def __init__(self, url: str, options: RedisOptions | None = None) -> None:
        self._options = options or RedisOptions()
        self._client = _client(url, self._options.timeout)
        self._append = self._client.register_script(APPEND)
        self._load = self._client.register_script(LOAD)
        self._list = self._client.register_script(LIST)
        self._texts = EntryTexts()

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        """Store a batch in one step. Raises `Conflict`, and `ContractError` for what is no storable text."""
        check_ids(batch.conversation, batch.scope)
        ttl = math.ceil((self._options.ttl or 0) * 1000)
        arguments: list[Any] = [batch.version, batch.owner, int(batch.lease * 1000), ttl, batch.conversation]
        for entry in batch.entries:
            arguments += [entry.number, self._text(entry), _mark(entry)]
        with _typed(batch.conversation):
            keys = [self._key(batch.scope, batch.conversation), self._index(batch.scope)]
            verdict, what = self._append(keys=keys, args=arguments)
        _judge(batch, verdict.decode(), what.decode())

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        """What `query` asks for. Raises `CorruptData` where the key holds something else than entries."""
        check_ids(conversation, query.scope)
        messages = -1 if query.messages is None else query.messages
        with _typed(conversation):
            answer = self._load(keys=[self._key(query.scope, conversation)], args=[messages, _turn(query.turn_id)])
        if not answer:
            return Loaded()
        version, holder, left, texts = answer
        entries = sorted((self._entry(text) for text in texts), key=lambda entry: entry.number)
        return Loaded(tuple(entries), version, Lease(holder.decode(), left / 1000) if holder else None)

    def conversations(self, scope: str = "") -> Sequence[ConversationInfo]:
        """All conversations of a tenant, newest first. Drops from the list what has expired."""
        check_ids("any", scope)
        index = self._index(scope)
        listed: Any = self._client.zrevrange(index, 0, -1, withscores=True)
        found: list[ConversationInfo] = []
        for start in range(0, len(listed), _PAGE):
            page = [(name.decode(), score) for name, score in listed[start : start + _PAGE]]
            keys = [index, *(self._key(scope, name) for name, _ in page)]
            versions = self._list(keys=keys, args=[name for name, _ in page])
            for (name, score), version in zip(page, versions, strict=True):
                if version >= 0:
                    found.append(ConversationInfo(name, version, score / 1_000_000))
        return found

    def delete(self, conversation: str, scope: str = "") -> bool:
        """Delete a conversation whole; False when there was none."""
        check_ids(conversation, scope)
        with self._client.pipeline(transaction=True) as pipe:
            pipe.delete(self._key(scope, conversation))
            pipe.zrem(self._index(scope), conversation)
            deleted = pipe.execute()
        return bool(deleted[0])

    @hookimpl
    def close(self) -> None:
        """Close all connections."""
        self._client.close()
        self._client.connection_pool.disconnect()

    def _index(self, scope: str) -> str:
        """The tenant's list. The part in braces keeps a tenant's keys on one node behind a proxy."""
        return f"{self._options.prefix}:{{{digest(scope)[:32]}}}:index"

    def _key(self, scope: str, conversation: str) -> str:
        return f"{self._options.prefix}:{{{digest(scope)[:32]}}}:c:{conversation}"

    def _text(self, entry: Entry) -> str:
        return ("m" if isinstance(entry.body, Said) else "-") + _turn(entry.turn) + self._texts.text(entry)

    def _entry(self, stored: bytes) -> Entry:
        try:
            return self._texts.entry(stored[HEAD_WIDTH:].decode("utf-8"))
        except UnicodeDecodeError as error:
            raise CorruptData("a field of the conversation is no text") from error


def _client(url: str, timeout: float) -> Redis:
    """A client that sends again what got no answer: a batch that was stored already is skipped by its entries' ids."""
    retry = Retry(ExponentialBackoff(cap=1.0, base=0.05), 3)
    try:
        client = Redis.from_url(
            url,
            socket_timeout=timeout,
            socket_connect_timeout=timeout,
            retry=retry,
            retry_on_error=[NoConnection, NoAnswer],
        )
    except ValueError as error:
        raise ConfigError("the memory's URL is no Redis URL such as redis://localhost:6379/0") from error
    # the URL of a program that shares the server may say how that one reads its values; these are our own
    client.connection_pool.connection_kwargs.update(decode_responses=False, encoding="utf-8", encoding_errors="strict")
    return client


def _turn(turn: str) -> str:
    return digest(turn)[: HEAD_WIDTH - 1]


def _mark(entry: Entry) -> str:
    if isinstance(entry.body, Summary):
        return "summary"
    return f"state:{entry.body.plugin}" if isinstance(entry.body, State) else ""


def _judge(batch: Batch, verdict: str, what: str) -> None:
    if verdict == "ok":
        return
    reasons = {
        "held": f"is held by {what!r}",
        "other": f"number {what} holds another entry already",
        "version": f"{what} entries stored, the writer knew {batch.version}",
    }
    raise Conflict(f"conversation {batch.conversation!r}: {reasons[verdict]}")


@contextmanager
def _typed(conversation: str) -> Iterator[None]:
    try:
        yield
    except ResponseError as error:
        if not any(sign in str(error) for sign in _FOREIGN):
            raise
        raise CorruptData(
            f"the key of conversation {conversation!r} holds something else than a conversation"
        ) from error
