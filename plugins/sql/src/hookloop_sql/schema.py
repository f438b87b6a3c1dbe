"""The schema's versions: brought up to date at the first use, by one process at a time.

An empty database gets the tables of `tables.py` at once. An older one goes through `MIGRATIONS` in order: the first
brings version 1 to 2, and so on. A migration never changes once released, spells its SQL out (tables.py moves on), and
must bear being run again after it stopped half way, since MariaDB commits each change of the schema at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from sqlalchemy import Connection, delete, func, insert, inspect, select, text

from hookloop_hookspecs import ConfigError

from .tables import metadata, versions

Migration = Callable[[Connection], None]
MIGRATIONS: tuple[Migration, ...] = ()
_LOCK = 4701_1201
_LOCK_SECONDS = 60


def is_current(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> bool:
    """Whether nothing is to be done. Raises `ConfigError` when a newer version than this one wrote the database."""
    newest = 1 + len(migrations)
    found = _version(connection) if inspect(connection).has_table(versions.name) else 0
    if found > newest:
        raise ConfigError(
            f"the database has schema {found}, this hookloop-sql knows {newest}; install a newer hookloop-sql"
        )
    return found == newest


def upgrade(connection: Connection, migrations: Sequence[Migration] = MIGRATIONS) -> None:
    """Bring the database to the newest version. Call it inside a write transaction. Raises what `is_current` raises."""
    newest = 1 + len(migrations)
    with _alone(connection):
        if is_current(connection, migrations):
            return
        versions.create(connection, checkfirst=True)
        found = _version(connection)
        if not found:
            metadata.create_all(connection)
            _note(connection, newest)
        for version, migrate in enumerate(migrations[found - 1 :] if found else (), found + 1):
            migrate(connection)
            _note(connection, version)


def _version(connection: Connection) -> int:
    return connection.scalar(select(func.max(versions.c.version))) or 0


def _note(connection: Connection, version: int) -> None:
    connection.execute(delete(versions))
    connection.execute(insert(versions).values(version=version))


@contextmanager
def _alone(connection: Connection) -> Iterator[None]:
    """Keep other processes out. SQLite's write transaction does that by itself."""
    dialect = connection.dialect.name
    if dialect == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _LOCK})
    if dialect not in ("mysql", "mariadb"):
        yield
        return
    name = {"key": f"hookloop_{_LOCK}"}
    if connection.scalar(text("SELECT GET_LOCK(:key, :wait)"), {**name, "wait": _LOCK_SECONDS}) != 1:
        raise ConfigError(f"another process has been changing the schema for {_LOCK_SECONDS} seconds; try again later")
    try:
        yield
        connection.execute(text("COMMIT"))  # before others are let in
    finally:
        connection.scalar(text("SELECT RELEASE_LOCK(:key)"), name)
