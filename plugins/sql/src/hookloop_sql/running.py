"""Running the statements of every batch and every window.

They are written once, with SQLAlchemy. For a server its trip through the network decides what they cost, and SQLAlchemy
runs them; SQLite answers faster than that, so there the compiled text goes straight to the driver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Executable

Values = Mapping[str, Any]


class Statement:
    """A statement, with the text and the places of its values for SQLite."""

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        self._text = ""
        self._places: list[tuple[str, Any]] = []

    def rows(self, connection: Connection, values: Values) -> Sequence[Sequence[Any]]:
        """All rows, as tuples."""
        if connection.dialect.name != "sqlite":
            return connection.execute(self._statement, values).all()
        found: list[tuple[Any, ...]] = self._cursor(connection, values).fetchall()
        return found

    def run(self, connection: Connection, values: Values) -> None:
        """Run a statement that gives nothing back."""
        if connection.dialect.name == "sqlite":
            self._cursor(connection, values)
        else:
            connection.execute(self._statement, values)

    def run_all(self, connection: Connection, many: Sequence[Values]) -> None:
        """Run a statement for each of many values."""
        if connection.dialect.name == "sqlite":
            self._compile(connection)
            _driver(connection).executemany(self._text, [self._placed(values) for values in many])
        else:
            connection.execute(self._statement, many)

    def _cursor(self, connection: Connection, values: Values) -> Any:
        self._compile(connection)
        return _driver(connection).execute(self._text, self._placed(values))

    def _placed(self, values: Values) -> list[Any]:
        return [values.get(name, default) for name, default in self._places]

    def _compile(self, connection: Connection) -> None:
        if self._text:
            return
        statement: Any = self._statement
        compiled = statement.compile(dialect=connection.dialect)
        self._places = [(name, compiled.params[name]) for name in compiled.positiontup]
        self._text = str(compiled)


def _driver(connection: Connection) -> Any:
    return connection.connection.dbapi_connection
