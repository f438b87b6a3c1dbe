"""Statements, and the two kinds of connection that run them inside a transaction.

They are written once, with SQLAlchemy. For a server its trip through the network decides what they cost, and SQLAlchemy
runs them; SQLite answers faster than that, so there the compiled text goes straight to the driver.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from sqlalchemy import Connection, Executable
from sqlalchemy.dialects import sqlite

Values = Mapping[str, Any]
_DIALECT = sqlite.dialect(paramstyle="named")


class Statement:
    """A statement: for servers as SQLAlchemy has it, for SQLite as text. All its values are named parameters."""

    def __init__(self, statement: Executable) -> None:
        self.clause = statement
        self._text = ""

    @property
    def text(self) -> str:
        """The text for SQLite."""
        if not self._text:
            clause: Any = self.clause
            self._text = str(clause.compile(dialect=_DIALECT))
        return self._text


class Link(Protocol):
    """A connection inside a transaction. `dialect` names the database."""

    dialect: str

    def rows(self, statement: Statement, values: Values) -> Sequence[Sequence[Any]]:
        """All rows, as tuples."""
        ...

    def run(self, statement: Statement, values: Values) -> None:
        """Run a statement that gives nothing back."""
        ...

    def run_all(self, statement: Statement, many: Sequence[Values]) -> None:
        """Run a statement for each of many values."""
        ...


class ServerLink:
    """A connection to a database server."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.dialect = connection.dialect.name

    def rows(self, statement: Statement, values: Values) -> Sequence[Sequence[Any]]:
        """All rows, as tuples."""
        return self._connection.execute(statement.clause, values).all()

    def run(self, statement: Statement, values: Values) -> None:
        """Run a statement that gives nothing back."""
        self._connection.execute(statement.clause, values)

    def run_all(self, statement: Statement, many: Sequence[Values]) -> None:
        """Run a statement for each of many values."""
        self._connection.execute(statement.clause, many)


class FileLink:
    """A connection to SQLite, as its driver has it."""

    dialect = "sqlite"

    def __init__(self, driver: sqlite3.Connection) -> None:
        self._driver = driver

    def rows(self, statement: Statement, values: Values) -> Sequence[Sequence[Any]]:
        """All rows, as tuples."""
        return self._driver.execute(statement.text, values).fetchall()

    def run(self, statement: Statement, values: Values) -> None:
        """Run a statement that gives nothing back."""
        self._driver.execute(statement.text, values)

    def run_all(self, statement: Statement, many: Sequence[Values]) -> None:
        """Run a statement for each of many values."""
        self._driver.executemany(statement.text, many)
