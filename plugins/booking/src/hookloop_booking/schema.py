"""The tables, and how an engine for them is made and first filled.

`bookings_state` holds one row: its `version` counts all changes ever made, by whatever process, and its presence says
that the first tickets were put in. So they are put in once, also when several processes start at the same moment, and
never again when somebody deletes them.
"""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import Column, Engine, Float, Integer, MetaData, String, Table, create_engine, insert, inspect, select
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.pool import NullPool, QueuePool

from .tickets import FIRST_TICKETS

metadata: Final = MetaData()

tickets: Final = Table(
    "tickets",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("route", String(200), nullable=False),
    Column("status", String(10), nullable=False),
    Column("booked_at", Float(53), nullable=True),
)

state: Final = Table(
    "bookings_state",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("version", Integer, nullable=False),
)

STATE_ROW: Final = 1
_BUSY_SECONDS: Final = 30


def open_engine(url: str) -> Engine:
    """An engine for any SQLAlchemy URL; raises `sqlalchemy.exc.ArgumentError` for what is none.

    SQLite files are opened anew for each transaction, so nothing stays open; a database in memory lives on one
    connection, which transactions take in turn.
    """
    parsed = make_url(url)
    if parsed.get_backend_name() != "sqlite":
        return create_engine(parsed, pool_pre_ping=True)
    if parsed.database and parsed.database != ":memory:":
        return create_engine(parsed, poolclass=NullPool, connect_args={"timeout": _BUSY_SECONDS})
    single: dict[str, Any] = {"poolclass": QueuePool, "pool_size": 1, "max_overflow": 0}
    return create_engine(parsed, connect_args={"check_same_thread": False}, **single)


def prepare(engine: Engine) -> None:
    """Create the tables and the first tickets where they are missing. Safe to call from several processes at once."""
    for table in metadata.sorted_tables:
        _create(engine, table)
    if not _is_filled(engine):
        _fill(engine)


def _create(engine: Engine, table: Table) -> None:
    try:
        table.create(engine, checkfirst=True)
    except DBAPIError:
        # Another process may have created it between the look and the CREATE; databases report that in various ways.
        if not inspect(engine).has_table(table.name):
            raise


def _is_filled(engine: Engine) -> bool:
    with engine.connect() as connection:
        return connection.execute(select(state.c.id)).first() is not None


def _fill(engine: Engine) -> None:
    rows = [{"id": at, "route": route, "status": "free"} for at, route in enumerate(FIRST_TICKETS, start=1)]
    try:
        with engine.begin() as connection:
            connection.execute(insert(state).values(id=STATE_ROW, version=0))
            connection.execute(insert(tickets), rows)
    except IntegrityError:
        if not _is_filled(engine):
            raise
