"""Transactions: on a server through SQLAlchemy, on SQLite through connections of its pool that stay in hand."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeAlias, TypeVar

from sqlalchemy import Engine, PoolProxiedConnection

from .running import FileLink, Link, ServerLink

T = TypeVar("T")
Work: TypeAlias = Callable[[Link], T]


class Transactions(Protocol):
    """Runs work in a transaction: all of it happens, or nothing. One object belongs to one process."""

    def read(self, work: Work[T]) -> T:
        """Everything that `work` reads is of one moment."""
        ...

    def write(self, work: Work[T]) -> T:
        """What `work` writes is stored once this returns; where it raises, nothing is."""
        ...

    def close(self) -> None:
        """Close what is not in use."""
        ...


class ServerTransactions:
    """Transactions on a database server."""

    def __init__(self, readers: Engine, writers: Engine) -> None:
        self._readers = readers
        self._writers = writers

    def read(self, work: Work[T]) -> T:
        """See `Transactions`."""
        with self._readers.begin() as connection:
            return work(ServerLink(connection))

    def write(self, work: Work[T]) -> T:
        """See `Transactions`."""
        with self._writers.begin() as connection:
            return work(ServerLink(connection))

    def close(self) -> None:
        """See `Transactions`. The pool is the engine's."""


class FileTransactions:
    """Transactions on SQLite. To take a connection from its pool and to give it back would cost more than a statement.

    Arguments: `size`, connections that stay open; as many again may be opened for a while; `seconds` to wait for one where
    all are in use; `private`, whether there is only one, which readers and writers share.
    """

    def __init__(self, engine: Engine, size: int, seconds: float, *, private: bool) -> None:
        self._engine = engine
        self._size = size
        self._seconds = seconds
        self._idle: list[PoolProxiedConnection] = []
        self._places: SimpleQueue[None] = SimpleQueue()
        for _ in range(2 * size):
            self._places.put(None)
        self._gate = threading.Lock()  # SQLite has one writer at a time, and lets others wait less fairly than this
        self._private = private

    def read(self, work: Work[T]) -> T:
        """See `Transactions`."""
        if self._private:
            with self._gate:
                return self._transaction("BEGIN", work)
        return self._transaction("BEGIN", work)

    def write(self, work: Work[T]) -> T:
        """See `Transactions`."""
        with self._gate:
            return self._transaction("BEGIN IMMEDIATE", work)

    def close(self) -> None:
        """See `Transactions`."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _transaction(self, begin: str, work: Work[T]) -> T:
        try:
            self._places.get(timeout=self._seconds)
        except Empty:
            raise TimeoutError(f"no connection to SQLite became free in {self._seconds} seconds") from None
        try:
            return self._with_connection(begin, work)
        finally:
            self._places.put(None)

    def _with_connection(self, begin: str, work: Work[T]) -> T:
        idle = self._idle
        try:
            connection = idle.pop()
        except IndexError:
            connection = self._engine.raw_connection()
        try:
            return _run(connection, begin, work)
        finally:
            self._keep(connection, idle)

    def _keep(self, connection: PoolProxiedConnection, idle: list[PoolProxiedConnection]) -> None:
        """For the next transaction; what comes back after a close, or is one too many, is closed."""
        if idle is self._idle and len(idle) < self._size:
            idle.append(connection)
            return
        if idle is not self._idle and not self._private:
            connection.detach()  # its pool is gone, and would keep it open
        connection.close()


def _run(connection: PoolProxiedConnection, begin: str, work: Work[T]) -> T:
    driver: Any = connection.driver_connection
    try:
        driver.execute(begin)
        done = work(FileLink(driver))
        driver.commit()
    except BaseException:
        driver.rollback()
        raise
    return done
