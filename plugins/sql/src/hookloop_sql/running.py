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

from hookloop_hookspecs import ContractError, CorruptData

from .engines import LARGEST

Values = Mapping[str, Any]
_ESCAPED = "\\'\"\n\r\x1a"
_STATEMENT = 1000
"""Bytes of a statement beside its one long value."""
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
        """Run a statement for each of many values. Raises `ContractError` for one that is larger than the server takes."""
        largest = self._connection.info.get(LARGEST)
        if largest is not None:
            for values in many:
                _check_size(values, largest)
        self._connection.execute(statement.clause, many)


def _check_size(values: Values, largest: int) -> None:
    """A server that is sent more hangs up without a word. Quotes and the like are sent with one more byte each."""
    for value in values.values():
        if isinstance(value, str) and 4 * len(value) > largest // 2:
            size = len(value.encode("utf-8")) + sum(value.count(char) for char in _ESCAPED)
            if size > largest - _STATEMENT:
                raise ContractError(f"an entry of {size} bytes: the server takes {largest} (its max_allowed_packet)")


class FileLink:
    """A connection to SQLite, as its driver has it."""

    dialect = "sqlite"

    def __init__(self, driver: sqlite3.Connection) -> None:
        self._driver = driver

    def rows(self, statement: Statement, values: Values) -> Sequence[Sequence[Any]]:
        """All rows, as tuples."""
        try:
            return self._driver.execute(statement.text, values).fetchall()
        except sqlite3.OperationalError as error:
            if "decode to UTF-8" not in str(error):
                raise
            raise CorruptData("a row of the database is no text") from error

    def run(self, statement: Statement, values: Values) -> None:
        """Run a statement that gives nothing back."""
        self._driver.execute(statement.text, values)

    def run_all(self, statement: Statement, many: Sequence[Values]) -> None:
        """Run a statement for each of many values."""
        self._driver.executemany(statement.text, many)
