"""The memory in this process (`memory:`): entries are kept as they are, and are gone with the object.

What must live here: keeping and finding. What must never be known here: the loop, a codec, another store. Reading never
walks a whole conversation: a window is found from the tail, and what stands before it (states, summary, a turn) is
found by key.
"""

from __future__ import annotations

import threading
import time
from bisect import insort
from collections.abc import Iterable, Sequence
from operator import attrgetter

from hookloop_hookspecs import (
    Batch,
    ConversationInfo,
    Entry,
    Lease,
    Loaded,
    LoadQuery,
    MemoryCapabilities,
    Said,
    State,
    Summary,
    hookimpl,
)
from hookloop_hookspecs.memory import plan_append
from hookloop_hookspecs.storing import check_ids

_number = attrgetter("number")


class InProcessMemory:
    """Histories of this process, for tests, for scripts, and for agents that were given no memory.

    Arguments: `url`, "memory:". Each object keeps its own conversations; agents share them by sharing the object. It
    may be used from any thread. Leases pass by the process's monotonic clock.
    """

    name = "memory"
    blocking = False
    """Never waits, so async runs call it where they are."""
    capabilities = MemoryCapabilities(tool_messages=True, versioned=True, media=True)

    def __init__(self, url: str = "memory:") -> None:
        self.url = url
        self._lock = threading.Lock()
        self._scopes: dict[str, dict[str, _Conversation]] = {}
        self._writes = 0

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        """Store a batch by `Batch`'s rules. Raises `Conflict`, and `ContractError` for an unusable id."""
        with self._lock:
            found = self._find(batch.scope, batch.conversation)
            if found is None and not batch.entries:
                return
            kept = found or _Conversation()
            lease = None if batch.entries else kept.lease()  # which only an empty batch asks for
            plan = plan_append(batch, len(kept.entries), kept.existing(batch.entries), lease)
            kept.append(plan.entries)
            kept.claim(batch, claimed=bool(plan.entries))
            self._writes += 1
            kept.touched = (self._writes, time.time())
            if found is None:
                self._scopes.setdefault(batch.scope, {})[batch.conversation] = kept

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        """What `query` asks for; an empty `Loaded` for a conversation that was never seen."""
        with self._lock:
            kept = self._find(query.scope, conversation)
            return Loaded() if kept is None else kept.load(query)

    def conversations(self, scope: str = "") -> Sequence[ConversationInfo]:
        """All conversations of a tenant, newest first."""
        with self._lock:
            found = sorted(self._scopes.get(scope, {}).items(), key=lambda item: item[1].touched, reverse=True)
            return tuple(ConversationInfo(name, len(kept.entries), kept.touched[1]) for name, kept in found)

    def delete(self, conversation: str, scope: str = "") -> bool:
        """Delete a conversation whole; False when there was none."""
        with self._lock:
            found = self._find(scope, conversation)
            return found is not None and self._scopes[scope].pop(conversation) is found

    def _find(self, scope: str, conversation: str) -> _Conversation | None:
        known = self._scopes.get(scope)
        found = known.get(conversation) if known is not None else None
        if found is None:
            check_ids(conversation, scope)  # those that are here were checked when they came
        return found


class _Conversation:
    """One conversation: its entries by number, and where to find what a window does not hold."""

    __slots__ = ("_lease", "by_number", "entries", "states", "summary", "touched", "turns")

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.by_number: dict[int, Entry] = {}
        self.turns: dict[str, list[Entry]] = {}
        self.states: dict[str, Entry] = {}
        self.summary: Entry | None = None
        self.touched = (0, 0.0)
        self._lease = ("", 0.0)

    def existing(self, entries: Iterable[Entry]) -> list[Entry]:
        here = self.by_number
        return [here[entry.number] for entry in entries if entry.number in here]

    def append(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            self._place(entry)
            self.by_number[entry.number] = entry
            turn = self.turns.get(entry.turn)
            if turn is None:
                turn = self.turns[entry.turn] = []
            turn.append(entry)
            body = entry.body
            if isinstance(body, State):
                self.states[body.plugin] = _newer(entry, self.states.get(body.plugin))
            elif isinstance(body, Summary):
                self.summary = _newer(entry, self.summary)

    def _place(self, entry: Entry) -> None:
        """Results come in as they end, so a number may be lower than the last ones; mostly there is one such."""
        entries, number = self.entries, entry.number
        if not entries or entries[-1].number < number:
            entries.append(entry)
        elif len(entries) == 1 or entries[-2].number < number:
            entries.insert(-1, entry)
        else:
            insort(entries, entry, key=_number)

    def lease(self) -> Lease | None:
        owner, until = self._lease
        if not owner:
            return None
        left = until - time.monotonic()
        return Lease(owner, left) if left > 0 else None

    def claim(self, batch: Batch, *, claimed: bool) -> None:
        """Note or drop the lease. A repeated batch claims nothing from whoever took over since."""
        if not batch.owner:
            return
        owner, until = self._lease
        now = time.monotonic()
        if owner and owner != batch.owner and until > now and not (claimed and batch.lease > 0):
            return
        self._lease = (batch.owner, now + batch.lease) if batch.lease > 0 else ("", 0.0)

    def load(self, query: LoadQuery) -> Loaded:
        start = 0 if query.messages is None or not self.entries else self._cut(query.messages)
        recent = self.entries[start:]
        if start:
            recent = sorted(self._older(query.turn_id, recent[0].number), key=_number) + recent
        return Loaded(tuple(recent), len(self.entries), self.lease())

    def _cut(self, messages: int) -> int:
        """The index of the turn's first entry behind which at least so many messages stand."""
        seen, turn = 0, self.entries[-1].turn
        for index in range(len(self.entries) - 1, -1, -1):
            entry = self.entries[index]
            if entry.turn != turn and seen >= messages:
                return index + 1
            seen, turn = seen + isinstance(entry.body, Said), entry.turn
        return 0

    def _older(self, turn: str, first: int) -> Iterable[Entry]:
        marks = [*self.states.values(), *([self.summary] if self.summary else []), *self.turns.get(turn, ())]
        return {entry.number: entry for entry in marks if entry.number < first}.values()


def _newer(entry: Entry, other: Entry | None) -> Entry:
    return entry if other is None or other.number < entry.number else other


__all__ = ["InProcessMemory"]
