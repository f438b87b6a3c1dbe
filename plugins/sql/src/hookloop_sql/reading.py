"""Reading: a window from the tail, in pages, and by number what stands before it."""

from __future__ import annotations

from sqlalchemy import bindparam, literal_column, select

from hookloop_hookspecs import ConversationInfo, LoadQuery
from hookloop_hookspecs.storing import digest

from .appending import Found, find
from .running import Link, Statement
from .tables import conversations, entries

_LARGEST_PAGE = 1000
_AT_ONCE = 8
_entry = entries.c
_mine = _entry.conversation == bindparam("id")
_ALL = Statement(select(_entry.body).where(_mine).order_by(_entry.number))
_PAGE = Statement(
    select(_entry.number, _entry.turn, _entry.kind, _entry.body)
    .where(_mine, _entry.number <= bindparam("upto"))
    .order_by(_entry.number.desc())
    .limit(bindparam("size"))
    .offset(literal_column("0"))  # SQLite gets one anyway, and a parameter of its own with it
)
_numbers = [f"number_{at}" for at in range(_AT_ONCE)]
_NUMBERED = Statement(
    select(_entry.number, _entry.body).where(_mine, _entry.number.in_([bindparam(name) for name in _numbers]))
)
# Not bounded by a number: a planner would then walk all numbers before the window rather than use the turn's index.
_TURN = Statement(select(_entry.number, _entry.body).where(_mine, _entry.turn == bindparam("turn")))
_row = conversations.c
_LIST = Statement(
    select(_row.conversation, _row.entries, _row.updated)
    .where(_row.scope_digest == bindparam("scope"))
    .order_by(_row.updated.desc(), _row.id.desc())
)


def read(link: Link, key: str, query: LoadQuery) -> tuple[Found | None, list[str]]:
    """The conversation's row, and the texts of the entries that `query` asks for, ordered by number."""
    here = find(link, key)
    if here is None:
        return None, []
    if query.messages is None:
        return here, [body for (body,) in link.rows(_ALL, {"id": here.id})]
    tail = _tail(link, here, query.messages)
    older = _older(link, here, query.turn_id, tail[0][0]) if tail else {}
    return here, [body for _, body in [*sorted(older.items()), *tail]]


def listing(link: Link, scope: str) -> list[ConversationInfo]:
    """All conversations of a tenant, newest first."""
    return [ConversationInfo(*row) for row in link.rows(_LIST, {"scope": digest(scope)})]


def _tail(link: Link, here: Found, messages: int) -> list[tuple[int, str]]:
    """Number and text from the turn's first entry on behind which at least so many messages stand."""
    rows: list[tuple[int, str]] = []
    upto, size, said, current = here.last, min(2 * messages + 16, _LARGEST_PAGE), 0, None
    while True:
        page = link.rows(_PAGE, {"id": here.id, "upto": upto, "size": size})
        for number, turn, kind, body in page:
            if turn != current and current and said >= messages:
                return rows[::-1]
            rows.append((number, body))
            current, said = turn, said + (kind == "said")
        if len(page) < size:
            return rows[::-1]
        upto = rows[-1][0] - 1


def _older(link: Link, here: Found, turn: str, first: int) -> dict[int, str]:
    """By number: the newest summary and states, and the asked turn, as far as they stand before the window."""
    older: dict[int, str] = {}
    numbers = [number for number in here.newest.values() if number < first]
    for start in range(0, len(numbers), _AT_ONCE):
        chosen = [*numbers[start : start + _AT_ONCE], *[-1] * _AT_ONCE]
        for number, body in link.rows(_NUMBERED, {"id": here.id, **dict(zip(_numbers, chosen, strict=False))}):
            older[number] = body
    for number, body in link.rows(_TURN, {"id": here.id, "turn": digest(turn)}) if turn else ():
        if number < first:
            older[number] = body
    return older
