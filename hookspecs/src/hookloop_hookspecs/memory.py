"""What a memory is: hooks that store and load entries, and a declaration of what it can do.

A memory is a plugin with `capabilities` that implements `persist_memory` and `load_memory`, or `recall`. The engine
derives from the flags where it stands in the loop; a memory never decides that itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Protocol

from .entries import Entry
from .errors import Conflict
from .quick import quick


@dataclass(frozen=True, slots=True)
class MemoryCapabilities:
    """What the store can do; everything is False unless declared.

    `tool_messages`: keep every entry kind, so it is placed inside the loop (written as the turn goes). Without it, it is
    placed outside: once, at the end, the user's message and the answer. `versioned`: refuse an append at a stale
    version, so several processes may share a conversation. `durable`: survive the process, each batch all or nothing, so
    a turn can be suspended, resumed and recovered elsewhere. `media`: keep images and files; else a placeholder is
    stored, with a warning.
    """

    tool_messages: bool = False
    versioned: bool = False
    durable: bool = False
    media: bool = False

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of the flags that are set."""
        return tuple(f.name for f in fields(self) if getattr(self, f.name))


@quick
@dataclass(frozen=True, slots=True)
class Lease:
    """Who holds a conversation, kept beside its version: `owner`, and `left` seconds by the store's own clock."""

    owner: str
    left: float


@quick
@dataclass(frozen=True, slots=True)
class Batch:
    """What is stored at once, all or nothing.

    `version` is the number of entries that the writer believes are stored; below 0 it is not compared (for a memory that
    does not own the history). Entries already stored equal (same id, same
    content) are skipped before the version is compared; the same id with other content is a `Conflict`, and so is
    another version. `lease` asks the store to note `owner` for that many seconds (0: let go). An empty batch of the
    owner only renews its lease. `scope` is the tenant. `final` marks the batch that ends a run.
    """

    conversation: str
    entries: tuple[Entry, ...]
    version: int
    owner: str = ""
    lease: float = 0.0
    scope: str = ""
    final: bool = False


@dataclass(frozen=True, slots=True)
class LoadQuery:
    """What the engine needs of a conversation.

    `messages`: at least so many messages back from the end, in whole turns (None: all). Always also: all entries from
    the start of the last turn, each plugin's newest `State`, the newest `Summary`, and `TurnStarted` and the last end or
    suspension mark of the turn `turn_id`, with its entries. `scope` is the tenant.
    """

    messages: int | None = None
    turn_id: str = ""
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a store gives back: entries ordered by number, the count of all that are stored, and who holds the lease."""

    entries: Sequence[Entry] = ()
    version: int = 0
    lease: Lease | None = None


@dataclass(frozen=True, slots=True)
class ConversationInfo:
    """A line of a list of conversations. `updated` is in epoch seconds, for people."""

    conversation: str
    entries: int
    updated: float = 0.0


class Memory(Protocol):
    """The keeper's methods, beside the hooks; every store that owns histories has them.

    They are plain sync methods; `scope` is the tenant.
    """

    capabilities: MemoryCapabilities

    def conversations(self, scope: str = "") -> Sequence[ConversationInfo]:
        """All conversations of a tenant, newest first."""
        ...

    def delete(self, conversation: str, scope: str = "") -> bool:
        """Delete a conversation whole; False when there was none."""
        ...


@quick
@dataclass(frozen=True, slots=True)
class Append:
    """What an append comes to, once a store has looked at what it holds: `entries` to write, at `version` afterwards."""

    entries: tuple[Entry, ...] = field(default_factory=tuple)
    version: int = 0


def plan_append(batch: Batch, stored: int, existing: Sequence[Entry], lease: Lease | None = None) -> Append:
    """The rule of `Batch` in one place, for every store: which entries of `batch` have to be written.

    Arguments: `stored` is the number of entries the store holds of the conversation; `existing` those whose number occurs
    in the batch; `lease` who holds it. Raises `Conflict` for another version, an id with other content, or, for an empty
    batch, a lease that somebody else holds. Call it inside the store's transaction.
    """
    fresh = batch.entries
    if existing:
        here = {entry.number: entry for entry in existing}
        fresh = tuple(entry for entry in batch.entries if entry.number not in here)
        for entry in batch.entries:
            if here.get(entry.number, entry) != entry:
                raise Conflict(
                    f"conversation {batch.conversation!r}: number {entry.number} holds another entry already"
                )
    if fresh and batch.version >= 0 and stored - len(existing) != batch.version:
        raise Conflict(f"conversation {batch.conversation!r}: {stored} entries stored, the writer knew {batch.version}")
    if not batch.entries and lease is not None and lease.owner != batch.owner and lease.left > 0:
        raise Conflict(f"conversation {batch.conversation!r} is held by {lease.owner!r}")
    return Append(fresh, stored + len(fresh))
