"""The tables as this version knows them, and the database's clock.

Names and ids of any width are found by a digest in ASCII: no collation, padding rule or index limit touches them.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Double, Index, Integer, MetaData, String, Table, Text
from sqlalchemy.dialects.mysql import LONGTEXT
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

metadata = MetaData()

_BIG = BigInteger().with_variant(Integer(), "sqlite")  # only INTEGER numbers rows by itself in SQLite
_TEXT = Text().with_variant(LONGTEXT(), "mysql", "mariadb")
_MYSQL: dict[str, Any] = {
    f"{dialect}_{key}": value
    for dialect in ("mysql", "mariadb")
    for key, value in (("engine", "InnoDB"), ("charset", "utf8mb4"), ("collate", "utf8mb4_bin"))
}

versions = Table(
    "hookloop_schema",
    metadata,
    Column("version", Integer, primary_key=True, autoincrement=False),
    **_MYSQL,
)

conversations = Table(
    "hookloop_conversations",
    metadata,
    Column("id", _BIG, primary_key=True, autoincrement=True),
    Column("digest", String(64), nullable=False, unique=True),
    Column("scope_digest", String(64), nullable=False),
    Column("scope", _TEXT, nullable=False),
    Column("conversation", _TEXT, nullable=False),
    Column("entries", BigInteger, nullable=False),
    Column("last", BigInteger, nullable=False),
    Column("newest", _TEXT, nullable=False),
    Column("updated", Double, nullable=False),
    Column("lease_owner", _TEXT, nullable=False),
    Column("lease_until", Double, nullable=False),
    Index("hookloop_conversations_by_scope", "scope_digest", "updated"),
    **_MYSQL,
)

entries = Table(
    "hookloop_entries",
    metadata,
    Column("conversation", _BIG, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("turn", String(64), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("body", _TEXT, nullable=False),
    Index("hookloop_entries_by_turn", "conversation", "turn"),
    **_MYSQL,
)


class clock(FunctionElement[float]):  # noqa: N801 - reads as a function of SQL
    """The database's own clock, in epoch seconds."""

    type = Double()
    inherit_cache = True


@compiles(clock, "sqlite")
def _sqlite(element: clock, compiler: SQLCompiler, **kw: Any) -> str:
    return "((julianday('now') - 2440587.5) * 86400.0)"


@compiles(clock, "postgresql")
def _postgresql(element: clock, compiler: SQLCompiler, **kw: Any) -> str:
    return "CAST(EXTRACT(EPOCH FROM clock_timestamp()) AS DOUBLE PRECISION)"


@compiles(clock, "mysql")
@compiles(clock, "mariadb")
def _mysql(element: clock, compiler: SQLCompiler, **kw: Any) -> str:
    return "(UNIX_TIMESTAMP(NOW(6)) + 0.0e0)"
