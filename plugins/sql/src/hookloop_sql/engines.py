"""From a URL to an engine, with what each database must be told for the rules of a memory to hold."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, OperationalError
from sqlalchemy.pool import StaticPool
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_random

from hookloop_hookspecs import ConfigError

from .options import SqlOptions

WRITE = "hookloop_write"
LARGEST = "hookloop_largest"
"""Where a connection notes the bytes that its server takes in one statement."""
_DRIVERS = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql"}
_PASSING = {"1020", "1205", "1213", "40001", "40P01"}
"""Codes of MariaDB and PostgreSQL for a transaction that was rolled back because of others."""


def make_engine(url: str, options: SqlOptions) -> Engine:
    """The engine for a memory's URL.

    Raises `ConfigError` for an unusable URL, a database without a driver installed, or a folder that is not there.
    """
    parsed = _parsed(url)
    backend = parsed.get_backend_name()
    try:
        if parsed.get_dialect().is_async:
            raise ConfigError(f"{parsed.drivername} is an async driver; write {backend}:// instead")
        return _sqlite(parsed, options) if backend == "sqlite" else _served(parsed, options)
    except (ArgumentError, ImportError) as error:
        hint = f"pip install 'hookloop-sql[{backend}]'" if backend in _DRIVERS else "leave the driver's name out"
        raise ConfigError(f"the driver of {parsed.drivername} cannot be loaded: {hint}") from error


def in_memory(engine: Engine) -> bool:
    """True when the data lives in this process alone."""
    return isinstance(engine.pool, StaticPool)


def passing(error: BaseException) -> bool:
    """True when the same transaction may succeed if run again: a deadlock with others, or a connection that was lost.

    An append is known by its entries' ids, so running it again never stores anything twice.
    """
    if not isinstance(error, DBAPIError):
        return False
    codes = {str(code) for code in (error.orig.args[:1] if error.orig else ())}
    codes.add(str(getattr(error.orig, "sqlstate", "")))
    return error.connection_invalidated or bool(codes & _PASSING)


def unreachable(error: BaseException) -> bool:
    """True when there was nobody to connect to: a server that comes back, where one was there a moment ago."""
    return isinstance(error, OperationalError) and error.statement is None


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        raise ConfigError("the memory's URL is no database URL such as sqlite:///chat.db") from error
    backend = parsed.get_backend_name()
    if backend != "sqlite" and backend not in _DRIVERS:
        raise ConfigError(f"hookloop-sql knows sqlite and {', '.join(_DRIVERS)}, not {backend!r}")
    if parsed.drivername == backend and backend in _DRIVERS:
        parsed = parsed.set(drivername=f"{backend}+{_DRIVERS[backend]}")
    return parsed


def _served(url: URL, options: SqlOptions) -> Engine:
    """An engine for a database server."""
    pool = {"pool_size": options.pool_size, "max_overflow": options.pool_size}
    if url.get_backend_name() == "postgresql":
        # else a database of encoding SQL_ASCII would give bytes, and one of another could not be told what it lacks
        url = url.update_query_dict({"client_encoding": "utf8"})
    engine = create_engine(url, hide_parameters=True, **pool)
    if engine.dialect.name in ("mysql", "mariadb"):
        event.listen(engine, "connect", _prepare)
    return engine


def _private(url: URL) -> bool:
    """Whether a URL of SQLite names no file."""
    place = str(url.database or ":memory:")
    return place in (":memory:", "file::memory:") or url.query.get("mode") == "memory"


def _sqlite(url: URL, options: SqlOptions) -> Engine:
    private = _private(url)
    if not private and not url.query.get("uri") and not Path(str(url.database)).absolute().parent.is_dir():
        raise ConfigError(f"{url.database!r}: the folder does not exist")
    pool: dict[str, Any] = {"pool_size": options.pool_size, "max_overflow": options.pool_size}
    if private:
        pool = {"poolclass": StaticPool}
    engine = create_engine(url, hide_parameters=True, connect_args={"check_same_thread": False}, **pool)

    def prepare(connection: Any, record: object) -> None:
        connection.isolation_level = None  # transactions begin in `_begin`, not when the driver thinks so
        connection.execute(f"PRAGMA busy_timeout = {int(options.busy_timeout * 1000)}")
        connection.execute(f"PRAGMA synchronous = {options.synchronous}")
        _write_ahead(connection, options.busy_timeout)

    event.listen(engine, "connect", prepare)
    event.listen(engine, "begin", _begin)
    return engine


def _write_ahead(connection: sqlite3.Connection, seconds: float) -> None:
    """Readers go on while one writes. Two processes that switch at once are told "locked" without any waiting."""
    if connection.execute("PRAGMA journal_mode").fetchone()[0] in ("wal", "memory"):
        return
    policy = Retrying(
        retry=retry_if_exception(partial(_is, (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED))),
        stop=stop_after_delay(seconds),
        wait=wait_random(0, 0.05),
        reraise=True,
    )
    try:
        policy(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
    except sqlite3.OperationalError as error:
        if not _is((sqlite3.SQLITE_READONLY,), error):
            raise  # what can only be read is read as it is


def _is(codes: tuple[int, ...], error: BaseException) -> bool:
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in codes


def _begin(connection: Connection) -> None:
    driver: Any = connection.connection.dbapi_connection  # each layer left out here is left out of every batch
    driver.execute("BEGIN IMMEDIATE" if connection.get_execution_options().get(WRITE) else "BEGIN")


def _prepare(connection: Any, record: Any) -> None:
    """MariaDB's clock functions go by the session's time zone, which may repeat an hour."""
    with connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+00:00'")
        cursor.execute("SELECT @@max_allowed_packet")
        record.info[LARGEST] = int(cursor.fetchone()[0])
