"""The memory: hooks and keeper's methods over one engine."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import ClassVar, TypeVar

from sqlalchemy import Connection, Engine
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from hookloop_hookspecs import Batch, ConversationInfo, Loaded, LoadQuery, MemoryCapabilities, hookimpl
from hookloop_hookspecs.storing import EntryTexts, check_ids, digest

from .appending import append, remove
from .engines import WRITE, in_memory, make_engine, passing, unreachable
from .options import SqlOptions
from .reading import listing, read
from .schema import is_current, upgrade
from .transactions import FileTransactions, ServerTransactions, Transactions, Work

T = TypeVar("T")
_SECONDS = 10.0


class SqlMemory:
    """Histories in SQLite, PostgreSQL, MariaDB or MySQL.

    Arguments: `url`, a database URL ("sqlite:///chat.db", "postgresql://user@host/name"); `options`, see `SqlOptions`.
    Nothing is opened before the first use, which also brings the schema up to date. It may be used from any thread, by
    any number of processes, and after a fork. "sqlite://" keeps everything in this process and is not `durable`.
    Raises `ConfigError` for an unusable URL, a missing driver or folder, or a schema that is newer than this version.
    """

    Options: ClassVar[type[SqlOptions]] = SqlOptions

    def __init__(self, url: str, options: SqlOptions | None = None) -> None:
        self._options = options or SqlOptions()
        self._engine = make_engine(url, self._options)
        self._private = in_memory(self._engine)
        self.name = self._engine.dialect.name
        self.capabilities = MemoryCapabilities(
            tool_messages=True, versioned=True, durable=not self._private, media=True
        )
        reads = {"isolation_level": "REPEATABLE READ"} if self.name == "postgresql" else {}
        self._read = self._engine.execution_options(**reads)
        self._write = self._engine.execution_options(**{WRITE: True})
        self._texts = EntryTexts()
        self._start()

    def _start(self) -> None:
        """What belongs to one process: locks must not be inherited by a fork while somebody holds them."""
        self._pid = os.getpid()
        self._ready = False
        self._first = threading.Lock()
        self._transactions: Transactions = ServerTransactions(self._read, self._write)
        if self.name == "sqlite":
            options = self._options
            self._transactions = FileTransactions(
                self._engine, options.pool_size, options.busy_timeout, private=self._private
            )

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        """Store a batch in one transaction. Raises `Conflict`, and `ContractError` for what is no storable text."""
        check_ids(batch.conversation, batch.scope)
        self._writing(lambda link: append(link, batch, self._texts))

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        """What `query` asks for. Raises `CorruptData` where the table holds something else than entries."""
        check_ids(conversation, query.scope)
        key = digest(query.scope, conversation)
        here, texts = self._reading(lambda link: read(link, key, query))
        entries = tuple(self._texts.entry(text) for text in texts)
        return Loaded(entries, here.entries, here.lease) if here else Loaded()

    def conversations(self, scope: str = "") -> Sequence[ConversationInfo]:
        """All conversations of a tenant, newest first."""
        check_ids("any", scope)
        return self._reading(lambda link: listing(link, scope))

    def delete(self, conversation: str, scope: str = "") -> bool:
        """Delete a conversation whole; False when there was none."""
        check_ids(conversation, scope)
        key = digest(scope, conversation)
        return self._writing(lambda link: remove(link, key))

    @hookimpl
    def close(self) -> None:
        """Close all connections. A later use opens new ones (and finds a private database empty)."""
        self._transactions.close()
        self._engine.dispose()
        self._ready = False

    def _prepare(self) -> None:
        """Bring the schema up to date once; leave the connections of another process alone."""
        if self._pid != os.getpid():
            if not self._private:
                self._engine.dispose(close=False)
            self._start()
        if self._ready:
            return
        with self._first:
            if not self._ready:
                if not _again(lambda: _prepared(self._read, is_current)):
                    _again(lambda: _prepared(self._write, upgrade))
                self._ready = True

    def _reading(self, work: Work[T]) -> T:
        self._prepare()
        return _again(lambda: self._transactions.read(work))

    def _writing(self, work: Work[T]) -> T:
        self._prepare()
        return _again(lambda: self._transactions.write(work))


def _prepared(engine: Engine, work: Callable[[Connection], T]) -> T:
    with engine.begin() as connection:
        return work(connection)


def _again(transaction: Callable[[], T]) -> T:
    """Run a transaction; again where only others, or a lost connection, were the reason that it failed.

    A server that is away from the start is told at once; one that goes away is given the time of a restart.
    """
    try:
        return transaction()
    except Exception as error:
        if not passing(error):
            raise
    policy = Retrying(
        retry=retry_if_exception(lambda error: passing(error) or unreachable(error)),
        stop=stop_after_delay(_SECONDS),
        wait=wait_random(0, 0.05),
        reraise=True,
    )
    return policy(transaction)
