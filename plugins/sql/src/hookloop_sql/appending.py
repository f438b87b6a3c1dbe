"""Writing: one transaction that locks the conversation's row, then decides, then writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Insert, bindparam, delete, insert, select, update
from sqlalchemy.dialects import mysql, postgresql, sqlite

from hookloop_hookspecs import Batch, Entry, Lease, State, Summary
from hookloop_hookspecs.memory import plan_append
from hookloop_hookspecs.storing import EntryTexts, digest

from .running import Statement
from .tables import clock, conversations, entries

_SUMMARY = "summary"
_STATE = "state:"

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


@dataclass(slots=True)
class Found:
    """A conversation's row. `newest` names the number of the newest summary and of each plugin's newest state."""

    id: int
    entries: int
    last: int
    newest: dict[str, int] = field(default_factory=dict)
    lease: Lease | None = None


def find(connection: Connection, key: str, *, lock: bool = False) -> Found | None:
    """The row of a conversation; None for one that was never seen."""
    rows = (_LOCK if lock else _FIND).rows(connection, {"digest": key})
    if not rows:
        return None
    id_, count, last, newest, owner, left = rows[0]
    return Found(id_, count, last, json.loads(newest), Lease(owner, left) if owner and left > 0 else None)


def append(connection: Connection, batch: Batch, texts: EntryTexts) -> None:
    """Store a batch inside the caller's write transaction. Raises `Conflict`; the caller then rolls back."""
    here = _locked(connection, batch)
    if here is None:
        return
    plan = plan_append(batch, here.entries, _existing(connection, here, batch, texts), here.lease)
    if plan.entries:
        _APPEND.run_all(connection, [_values(here.id, entry, texts) for entry in plan.entries])
    _touch(connection, here, batch, plan.entries)


def remove(connection: Connection, key: str) -> bool:
    """Delete a conversation inside the caller's write transaction; False when there was none."""
    here = find(connection, key, lock=True)
    if here is None:
        return False
    connection.execute(delete(entries).where(entries.c.conversation == here.id))
    connection.execute(delete(conversations).where(_row.id == here.id))
    return True


def _locked(connection: Connection, batch: Batch) -> Found | None:
    """The row, held until the transaction ends; made where a first batch needs it."""
    key = digest(batch.scope, batch.conversation)
    here = find(connection, key, lock=True)
    if here is not None or not batch.entries:
        return here
    connection.execute(_new_row(connection.dialect.name), _fresh(batch, key))
    return find(connection, key, lock=True)


def _new_row(dialect: str) -> Insert:
    """An insert that waits for another writer's, and then leaves that one's row in peace."""
    if dialect == "postgresql":
        return postgresql.insert(conversations).on_conflict_do_nothing()
    if dialect == "sqlite":
        return sqlite.insert(conversations).on_conflict_do_nothing()
    made = mysql.insert(conversations)
    return made.on_duplicate_key_update(digest=made.inserted.digest)


def _fresh(batch: Batch, key: str) -> dict[str, Any]:
    names = {"digest": key, "scope_digest": digest(batch.scope), "scope": batch.scope}
    empty = {"entries": 0, "last": -1, "newest": "{}", "updated": 0.0, "lease_owner": "", "lease_until": 0.0}
    return {**names, "conversation": batch.conversation, **empty}


def _existing(connection: Connection, here: Found, batch: Batch, texts: EntryTexts) -> list[Entry]:
    """The stored entries whose numbers occur in the batch. New ones stand behind the last: nothing to look up."""
    numbers = {entry.number for entry in batch.entries}
    if not numbers or min(numbers) > here.last:
        return []
    rows = _EXISTING.rows(connection, {"id": here.id, "low": min(numbers), "high": max(numbers)})
    return [entry for entry in (texts.entry(body) for (body,) in rows) if entry.number in numbers]


def _values(conversation: int, entry: Entry, texts: EntryTexts) -> dict[str, Any]:
    return {
        "conversation": conversation,
        "number": entry.number,
        "turn": digest(entry.turn),
        "kind": entry.body.kind,
        "body": texts.text(entry),
    }


def _touch(connection: Connection, here: Found, batch: Batch, fresh: tuple[Entry, ...]) -> None:
    changes = {
        "key": here.id,
        "count": here.entries + len(fresh),
        "highest": max([here.last, *(entry.number for entry in fresh)]),
        "marks": json.dumps(_marks(here.newest, fresh), ensure_ascii=True),
    }
    if _claims(batch, here.lease, bool(fresh)):
        _CLAIM.run(connection, {**changes, "owner": batch.owner if batch.lease > 0 else "", "seconds": batch.lease})
    else:
        _TOUCH.run(connection, changes)


def _claims(batch: Batch, lease: Lease | None, fresh: bool) -> bool:
    """Whether the lease is the batch's to change. A repeated batch claims nothing from whoever took over since."""
    held = lease is not None and lease.owner != batch.owner
    return bool(batch.owner) and (not held or (fresh and batch.lease > 0))


def _marks(newest: dict[str, int], fresh: tuple[Entry, ...]) -> dict[str, int]:
    marks = dict(newest)
    for entry in fresh:
        if isinstance(entry.body, State | Summary):
            name = _SUMMARY if isinstance(entry.body, Summary) else _STATE + entry.body.plugin
            marks[name] = max(entry.number, marks.get(name, -1))
    return marks
