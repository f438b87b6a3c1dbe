"""Stores that are sound but for one fault each, as narrow as one conformance check of a memory can see it."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hookloop.memory import InProcessMemory
from hookloop_hookspecs import (
    Batch,
    Conflict,
    ContractError,
    Entry,
    File,
    Image,
    Loaded,
    LoadQuery,
    MemoryCapabilities,
    Said,
    State,
    Summary,
    Text,
    TurnEnded,
    TurnStarted,
    hookimpl,
)
from hookloop_hookspecs.entries import Body
from hookloop_hookspecs.messages import Part

Faulty = type[InProcessMemory]
Key = tuple[str, str]


class Sound(InProcessMemory):
    """A sound store, to be spoilt: says that it is durable, and lives on when it is reopened."""

    capabilities = MemoryCapabilities(tool_messages=True, versioned=True, durable=True, media=True)

    def held(self, batch: Batch) -> dict[int, Entry]:
        """What is stored of the conversation of a batch, by number."""
        loaded = self.load_memory(batch.conversation, LoadQuery(scope=batch.scope))
        return {entry.number: entry for entry in loaded.entries}


def loading(change: Callable[[Loaded, LoadQuery], Loaded]) -> Faulty:
    """A store that loads something else than it should."""

    class Loads(Sound):
        @hookimpl
        def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
            return change(super().load_memory(conversation, query), query)

    return Loads


def asking(change: Callable[[LoadQuery, Loaded], LoadQuery]) -> Faulty:
    """A store that takes one question for another; it may look at what it would have answered."""

    class Asks(Sound):
        @hookimpl
        def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
            loaded = super().load_memory(conversation, query)
            changed = change(query, loaded)
            return loaded if changed == query else super().load_memory(conversation, changed)

    return Asks


def storing(change: Callable[[Sound, Batch], Batch | None]) -> Faulty:
    """A store that stores something else than it should; None: nothing."""

    class Stores(Sound):
        @hookimpl
        def persist_memory(self, batch: Batch) -> None:
            changed = change(self, batch)
            if changed is not None:
                super().persist_memory(changed)

    return Stores


def naming(change: Callable[[str], str]) -> Faulty:
    """A store that mistakes one id for another."""

    class Names(Sound):
        @hookimpl
        def persist_memory(self, batch: Batch) -> None:
            super().persist_memory(replace(batch, conversation=change(batch.conversation)))

        @hookimpl
        def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
            return super().load_memory(change(conversation), query)

    return Names


def entries(change: Callable[[list[Entry], LoadQuery], list[Entry]]) -> Faulty:
    """A store that gives other entries back."""
    return loading(lambda loaded, query: replace(loaded, entries=tuple(change(list(loaded.entries), query))))


def bodies(change: Callable[[Body], Body]) -> Faulty:
    """A store that changes what it is given."""
    return entries(lambda found, query: [replace(entry, body=change(entry.body)) for entry in found])


def parts(change: Callable[[Part], Part | None]) -> Faulty:
    """A store that changes what messages are made of; None: leaves it out."""

    def changed(body: Body) -> Body:
        if not isinstance(body, Said):
            return body
        content = tuple(new for new in map(change, body.message.content) if new is not None)
        return replace(body, message=replace(body.message, content=content))

    return bodies(changed)


def texts(change: Callable[[str], str]) -> Faulty:
    """A store that changes the texts of messages."""
    return parts(lambda part: replace(part, text=change(part.text)) if isinstance(part, Text) else part)


class Undeclared(Sound):
    capabilities = ("tool_messages",)  # type: ignore[assignment]  # the fault


class Unmarked(Sound):
    """Its method is there, and no hook."""

    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        return super().load_memory(conversation, query)


class ReadingMakes(Sound):
    """Whatever was asked for is there from then on."""

    def __init__(self, url: str = "memory:") -> None:
        super().__init__(url)
        self._asked = set[Key]()

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        self._asked.add((query.scope, conversation))
        return super().load_memory(conversation, query)

    def delete(self, conversation: str, scope: str = "") -> bool:
        asked = (scope, conversation) in self._asked
        self._asked.discard((scope, conversation))
        return super().delete(conversation, scope) or asked


class OneScope(Sound):
    """Looks at ids alone."""

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        super().persist_memory(replace(batch, scope=""))

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        return super().load_memory(conversation, replace(query, scope=""))


class OldestFirst(Sound):
    """Lists conversations the wrong way round."""

    def conversations(self, scope: str = "") -> Any:
        return super().conversations(scope)[::-1]


class AsTheyCome(Sound):
    """Gives entries back in the order in which they were stored."""

    def __init__(self, url: str = "memory:") -> None:
        super().__init__(url)
        self._came: dict[Key, dict[int, int]] = {}

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        super().persist_memory(batch)
        came = self._came.setdefault((batch.scope, batch.conversation), {})
        for entry in batch.entries:
            came.setdefault(entry.number, len(came))

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        loaded = super().load_memory(conversation, query)
        came = self._came.get((query.scope, conversation), {})
        return replace(loaded, entries=tuple(sorted(loaded.entries, key=lambda entry: came[entry.number])))


class Piecemeal(Sound):
    """Finds out half way that an entry cannot be stored."""

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        for at, entry in enumerate(batch.entries):
            try:
                _text(entry).encode()
            except UnicodeEncodeError as error:
                super().persist_memory(replace(batch, entries=batch.entries[:at]))
                raise ContractError(f"entry {entry.number} cannot be stored") from error
        super().persist_memory(batch)


class OneGuest(Sound):
    """Lets other threads than its own write one conversation."""

    def __init__(self, url: str = "memory:") -> None:
        super().__init__(url)
        self._home = threading.get_ident()
        self._guest: dict[str, str] = {}

    @property
    def at_home(self) -> bool:
        """Is this the thread that made it?"""
        return threading.get_ident() == self._home

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        if not self.at_home and self._guest.setdefault("of all", batch.conversation) != batch.conversation:
            raise Conflict("another conversation is being written")
        super().persist_memory(batch)


class LosersAreNotTold(OneGuest):
    """What fails in another thread than its own is lost."""

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        try:
            InProcessMemory.persist_memory(self, batch)
        except Conflict:
            if self.at_home:
                raise


def _text(entry: Entry) -> str:
    return entry.body.message.text if isinstance(entry.body, Said) else ""


def _twice(self: Sound, batch: Batch) -> Batch:
    """Takes a turn that is sent again for a new one."""
    if not batch.final or batch.version < 0:
        return batch
    version = len(self.held(batch))
    moved = tuple(replace(entry, number=version + at) for at, entry in enumerate(batch.entries))
    return replace(batch, entries=moved, version=version)


def _at_any_version(self: Sound, batch: Batch) -> Batch:
    held = self.held(batch)
    return replace(batch, version=len(held) - sum(entry.number in held for entry in batch.entries))


def _first_come(self: Sound, batch: Batch) -> Batch:
    """Where no version is compared, what is there already wins without a word."""
    held = self.held(batch) if batch.version < 0 else {}
    return replace(batch, entries=tuple(entry for entry in batch.entries if entry.number not in held))


def _of_any_turn(self: Sound, batch: Batch) -> Batch:
    """Does not look at whose turn an entry is."""
    held = self.held(batch)
    twins = (held.get(entry.number, entry) for entry in batch.entries)
    return replace(
        batch,
        entries=tuple(
            replace(entry, turn=twin.turn) if twin.body == entry.body else entry
            for entry, twin in zip(batch.entries, twins, strict=True)
        ),
    )


def _whole_repeats_only(self: Sound, batch: Batch) -> Batch:
    """Knows a batch again that is sent again as it was, but not one with more behind it."""
    held = self.held(batch)
    known = sum(entry.number in held for entry in batch.entries)
    if batch.version >= 0 and 0 < known < len(batch.entries):
        raise Conflict("stale")
    return batch


def _unrenewed(self: Sound, batch: Batch) -> Batch | None:
    """Notes a lease with entries, and does not hear that it is renewed."""
    lease = self.load_memory(batch.conversation, LoadQuery(scope=batch.scope)).lease
    holder = lease is not None and lease.owner == batch.owner
    return None if holder and not batch.entries else batch


def _two_digits(entry: Entry) -> str:
    return f"{entry.number:02}"


def _thirty_at_most(found: list[Entry], query: LoadQuery) -> list[Entry]:
    """Cuts the turn that goes on, where it is a long one."""
    whole = query.messages is None or not found or isinstance(found[-1].body, TurnEnded)
    return found if whole else found[-30:]


def _looks_for_marks(query: LoadQuery, loaded: Loaded) -> LoadQuery:
    """Cuts at the start of a turn, and nowhere where none is marked."""
    marked = any(isinstance(entry.body, TurnStarted) for entry in loaded.entries)
    return query if marked else replace(query, messages=None)


def _wider_with_age(query: LoadQuery, loaded: Loaded) -> LoadQuery:
    return query if query.messages is None else replace(query, messages=query.messages + loaded.version // 100)


def _a_page(query: LoadQuery, loaded: Loaded) -> LoadQuery:
    return query if query.messages is None else replace(query, messages=min(query.messages, 24))


def _no_marks(found: list[Entry], query: LoadQuery) -> list[Entry]:
    return [entry for entry in found if query.messages is None or not isinstance(entry.body, State | Summary)]


def _no_turn_before(found: list[Entry], query: LoadQuery) -> list[Entry]:
    return [entry for entry in found if query.messages is None or entry.turn != query.turn_id]


FAULTS: dict[str, Faulty] = {
    "declares_what_it_is": Unmarked,
    "unknown_is_empty": ReadingMakes,
    "texts_come_back": texts(lambda text: re.sub(r"\n +", "\n", text)),
    "version_counts_entries": loading(lambda loaded, query: replace(loaded, version=len(loaded.entries))),
    "poison_is_kept_or_refused": texts(lambda text: text.replace("\0", "\ufffd")),
    "repeated_turn_is_skipped": storing(_twice),
    "scopes_are_apart": OneScope,
    "names_are_apart": naming(str.lower),
    "bad_names_are_refused": naming(lambda name: name[:500]),
    "keeper_lists_and_deletes": OldestFirst,
    "every_kind_comes_back": bodies(lambda body: replace(body, behind=()) if isinstance(body, Said) else body),
    "order_is_the_number": AsTheyCome,
    "large_batch_keeps_order": entries(lambda found, query: sorted(found, key=_two_digits)),
    "window_is_whole_turns": asking(_a_page),
    "window_is_flat": asking(_wider_with_age),
    "window_needs_no_marks": asking(_looks_for_marks),
    "version_below_zero_is_not_compared": storing(_first_come),
    "open_turn_is_whole": entries(_thirty_at_most),
    "marks_come_with_a_window": entries(_no_marks),
    "asked_turn_comes_with_a_window": entries(_no_turn_before),
    "repeat_is_skipped": storing(_whole_repeats_only),
    "other_content_conflicts": storing(_of_any_turn),
    "batch_is_all_or_nothing": Piecemeal,
    "many_conversations_at_once": OneGuest,
    "media_come_back": parts(lambda part: None if isinstance(part, Image | File) else part),
    "stale_version_conflicts": storing(_at_any_version),
    "lease_is_kept": storing(_unrenewed),
    "lease_passes": storing(lambda self, batch: replace(batch, lease=60.0 if 0 < batch.lease < 1 else batch.lease)),
    "one_writer_wins": LosersAreNotTold,
    "reopened_is_the_same": Sound,
}
"""For each check a store that has the fault it is about, and no other. What is wrong with the last is how it is reopened."""


def reopened(name: str) -> Callable[[Any], Any]:
    """How a sound store is opened anew; the one whose fault is to forget comes back empty."""
    return (lambda closed: Sound()) if name == "reopened_is_the_same" else (lambda closed: closed)


__all__ = ["FAULTS", "Faulty", "Sound", "Undeclared", "reopened"]
