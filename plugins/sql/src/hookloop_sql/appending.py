"""Writing: one transaction that locks the conversation's row, then decides, then writes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import bindparam, delete, insert, select, update
from sqlalchemy.dialects import mysql, postgresql, sqlite

from hookloop_hookspecs import Batch, CorruptData, Entry, Lease, State, Summary
from hookloop_hookspecs.memory import plan_append
from hookloop_hookspecs.storing import EntryTexts, digest

from .running import Link, Statement
from .tables import clock, conversations, entries

_SUMMARY = "summary"
_STATE = "state:"
_NO_MARKS = "{}"

_row = conversations.c
_find = select(
    _row.id, _row.entries, _row.last, _row.newest, _row.lease_owner, (_row.lease_until - clock()).label("left")
).where(_row.digest == bindparam("digest"))
_FIND = Statement(_find)
_LOCK = Statement(_find.with_for_update())
_EXISTING = Statement(
    select(entries.c.body).where(
        entries.c.conversation == bindparam("id"), entries.c.number.between(bindparam("low"), bindparam("high"))
    )
)
_APPEND = Statement(insert(entries))
_touched = (
    update(conversations)
    .where(_row.id == bindparam("key"))
    .values(entries=bindparam("count"), last=bindparam("highest"), newest=bindparam("marks"), updated=clock())
)
_TOUCH = Statement(_touched)
_CLAIM = Statement(_touched.values(lease_owner=bindparam("owner"), lease_until=clock() + bindparam("seconds")))
_REMOVE = (
    Statement(delete(entries).where(entries.c.conversation == bindparam("id"))),
    Statement(delete(conversations).where(_row.id == bindparam("id"))),
)
_new: dict[str, Any] = {column.name: bindparam(column.name) for column in conversations.columns if column.name != "id"}
_mysql = mysql.insert(conversations)
_own_digest = _mysql.on_duplicate_key_update(digest=_mysql.inserted.digest)
_NEW_ROW = {
    "postgresql": Statement(postgresql.insert(conversations).on_conflict_do_nothing().values(_new)),
    "sqlite": Statement(sqlite.insert(conversations).on_conflict_do_nothing().values(_new)),
    "mysql": Statement(_own_digest.values(_new)),
    "mariadb": Statement(_own_digest.values(_new)),
}
"""By dialect, an insert that waits for another writer's, and then leaves that one's row in peace."""


@dataclass(slots=True)
class Found:
    """A conversation's row. `marks` names the number of the newest summary and of each plugin's newest state, as JSON."""

    id: int
    entries: int
    last: int
    marks: str
    lease: Lease | None = None

    @property
    def newest(self) -> dict[str, int]:
        """What `marks` say. Raises `CorruptData`."""
        if self.marks == _NO_MARKS:
            return {}
        try:
            return {name: int(number) for name, number in json.loads(self.marks).items()}
        except (ValueError, TypeError, AttributeError) as error:
            raise CorruptData("the row of a conversation holds something else than marks") from error


def find(link: Link, key: str, *, lock: bool = False) -> Found | None:
    """The row of a conversation; None for one that was never seen."""
    rows = link.rows(_LOCK if lock else _FIND, {"digest": key})
    if not rows:
        return None
    id_, count, last, marks, owner, left = rows[0]
    return Found(id_, count, last, marks, Lease(owner, left) if owner and left > 0 else None)


def append(link: Link, batch: Batch, texts: EntryTexts) -> None:
    """Store a batch inside the caller's write transaction. Raises `Conflict`; the caller then rolls back."""
    here = _locked(link, batch)
    if here is None:
        return
    plan = plan_append(batch, here.entries, _existing(link, here, batch, texts), here.lease)
    if plan.entries:
        link.run_all(_APPEND, _values(here.id, plan.entries, texts))
    _touch(link, here, batch, plan.entries)


def remove(link: Link, key: str) -> bool:
    """Delete a conversation inside the caller's write transaction; False when there was none."""
    here = find(link, key, lock=True)
    if here is None:
        return False
    for statement in _REMOVE:
        link.run(statement, {"id": here.id})
    return True


def _locked(link: Link, batch: Batch) -> Found | None:
    """The row, held until the transaction ends; made where a first batch needs it."""
    key = digest(batch.scope, batch.conversation)
    here = find(link, key, lock=True)
    if here is not None or not batch.entries:
        return here
    link.run(_NEW_ROW[link.dialect], _fresh(batch, key))
    return find(link, key, lock=True)


def _fresh(batch: Batch, key: str) -> dict[str, Any]:
    names = {"digest": key, "scope_digest": digest(batch.scope), "scope": batch.scope}
    empty = {"entries": 0, "last": -1, "newest": _NO_MARKS, "updated": 0.0, "lease_owner": "", "lease_until": 0.0}
    return {**names, "conversation": batch.conversation, **empty}


def _existing(link: Link, here: Found, batch: Batch, texts: EntryTexts) -> list[Entry]:
    """The stored entries whose numbers occur in the batch. New ones stand behind the last: nothing to look up."""
    numbers = {entry.number for entry in batch.entries}
    if not numbers or min(numbers) > here.last:
        return []
    rows = link.rows(_EXISTING, {"id": here.id, "low": min(numbers), "high": max(numbers)})
    return [entry for entry in (texts.entry(body) for (body,) in rows) if entry.number in numbers]


def _values(conversation: int, fresh: Sequence[Entry], texts: EntryTexts) -> list[dict[str, Any]]:
    turns = {turn: digest(turn) for turn in {entry.turn for entry in fresh}}
    return [
        {
            "conversation": conversation,
            "number": entry.number,
            "turn": turns[entry.turn],
            "kind": entry.body.kind,
            "body": texts.text(entry),
        }
        for entry in fresh
    ]


def _touch(link: Link, here: Found, batch: Batch, fresh: Sequence[Entry]) -> None:
    changes = {
        "key": here.id,
        "count": here.entries + len(fresh),
        "highest": max([here.last, *(entry.number for entry in fresh)]),
        "marks": _marks(here, fresh),
    }
    if _claims(batch, here.lease, bool(fresh)):
        link.run(_CLAIM, {**changes, "owner": batch.owner if batch.lease > 0 else "", "seconds": batch.lease})
    else:
        link.run(_TOUCH, changes)


def _claims(batch: Batch, lease: Lease | None, fresh: bool) -> bool:
    """Whether the lease is the batch's to change. A repeated batch claims nothing from whoever took over since."""
    held = lease is not None and lease.owner != batch.owner
    return bool(batch.owner) and (not held or (fresh and batch.lease > 0))


def _marks(here: Found, fresh: Sequence[Entry]) -> str:
    """The row's marks with those of new entries."""
    changes = [(_mark(entry.body), entry.number) for entry in fresh if isinstance(entry.body, State | Summary)]
    if not changes:
        return here.marks
    marks = here.newest
    for name, number in changes:
        marks[name] = max(number, marks.get(name, -1))
    return json.dumps(marks, ensure_ascii=True)


def _mark(body: State | Summary) -> str:
    return _SUMMARY if isinstance(body, Summary) else _STATE + body.plugin
