"""Reading: a window from the tail, in pages, and by number what stands before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from sqlalchemy import Connection, Row, bindparam, select

from hookloop_hookspecs import ConversationInfo, LoadQuery
from hookloop_hookspecs.storing import digest

from .appending import Found, find
from .running import Statement
from .tables import conversations, entries

Record: TypeAlias = Row[*tuple[Any, ...]]
_LARGEST_PAGE = 1000
_entry = entries.c
_mine = _entry.conversation == bindparam("id")
_ALL = Statement(select(_entry.body).where(_mine).order_by(_entry.number))
_PAGE = Statement(
    select(_entry.number, _entry.turn, _entry.kind, _entry.body)
    .where(_mine, _entry.number <= bindparam("upto"))
    .order_by(_entry.number.desc())
    .limit(bindparam("size"))
)
_NUMBERED = select(_entry.number, _entry.body).where(_mine, _entry.number.in_(bindparam("numbers", expanding=True)))
# Not bounded by a number: a planner would then walk all numbers before the window rather than use the turn's index.
_TURN = select(_entry.number, _entry.body).where(_mine, _entry.turn == bindparam("turn"))
_row = conversations.c
_LIST = (
    select(_row.conversation, _row.entries, _row.updated)
    .where(_row.scope_digest == bindparam("scope"))
    .order_by(_row.updated.desc(), _row.id.desc())
)


def read(connection: Connection, key: str, query: LoadQuery) -> tuple[Found | None, list[str]]:
    """The conversation's row, and the texts of the entries that `query` asks for, ordered by number."""
    here = find(connection, key)
    if here is None:
        return None, []
    if query.messages is None:
        return here, [body for (body,) in _ALL.rows(connection, {"id": here.id})]
    tail = _tail(connection, here, query.messages)
    older = _older(connection, here, query.turn_id, tail[0][0]) if tail else {}
    return here, [body for _, body in [*sorted(older.items()), *tail]]


def listing(connection: Connection, scope: str) -> list[ConversationInfo]:
    """All conversations of a tenant, newest first."""
    rows = connection.execute(_LIST, {"scope": digest(scope)})
    return [ConversationInfo(row.conversation, row.entries, row.updated) for row in rows]


def _tail(connection: Connection, here: Found, messages: int) -> list[tuple[int, str]]:
    """Number and text from the turn's first entry on behind which at least so many messages stand."""
    rows: list[tuple[int, str]] = []
    upto, size, said, current = here.last, min(2 * messages + 16, _LARGEST_PAGE), 0, None
    while True:
        page = _PAGE.rows(connection, {"id": here.id, "upto": upto, "size": size})
        for number, turn, kind, body in page:
            if turn != current and current and said >= messages:
                return rows[::-1]
            rows.append((number, body))
            current, said = turn, said + (kind == "said")
        if len(page) < size:
            return rows[::-1]
        upto = rows[-1][0] - 1


def _older(connection: Connection, here: Found, turn: str, first: int) -> dict[int, str]:
    """By number: the newest summary and states, and the asked turn, as far as they stand before the window."""
    numbers = [number for number in here.newest.values() if number < first]
    rows: Iterable[Record] = ()
    if numbers:
        rows = connection.execute(_NUMBERED, {"id": here.id, "numbers": numbers}).all()
    if turn:
        rows = [*rows, *connection.execute(_TURN, {"id": here.id, "turn": digest(turn)})]
    return {row.number: row.body for row in rows if row.number < first}
