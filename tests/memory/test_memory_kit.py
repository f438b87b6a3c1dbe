"""The conformance kit sees faults: for each check a store that has the fault it is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

import pytest

from hookloop.memory import InProcessMemory
from hookloop.testing import memory_checks, memory_sharing
from hookloop.testing.memory_subject import every_kind
from hookloop_hookspecs import (
    Batch,
    Conflict,
    Entry,
    Loaded,
    LoadQuery,
    MemoryCapabilities,
    Said,
    State,
    Summary,
    Text,
    TurnStarted,
    hookimpl,
)
from hookloop_hookspecs.codec import dump_entry
from hookloop_hookspecs.entries import Body

Faulty = type[InProcessMemory]
Changed = Callable[["Faults", Loaded, LoadQuery], Loaded]


class Faults(InProcessMemory):
    """A sound store, to be spoilt: says that it is durable, and lives on when it is reopened."""

    capabilities = MemoryCapabilities(tool_messages=True, versioned=True, durable=True, media=True)


def loading(change: Changed) -> Faulty:
    """A store that loads something else than it should."""

    class Loads(Faults):
        @hookimpl
        def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
            return change(self, super().load_memory(conversation, query), query)

    return Loads


def storing(change: Callable[[Faults, Batch], Batch | None]) -> Faulty:
    """A store that stores something else than it should; None: nothing."""

    class Stores(Faults):
        @hookimpl
        def persist_memory(self, batch: Batch) -> None:
            changed = change(self, batch)
            if changed is not None:
                super().persist_memory(changed)

    return Stores


def naming(change: Callable[[str], str]) -> Faulty:
    """A store that mistakes one id for another."""

    class Names(Faults):
        @hookimpl
        def persist_memory(self, batch: Batch) -> None:
            super().persist_memory(replace(batch, conversation=change(batch.conversation)))

        @hookimpl
        def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
            return super().load_memory(change(conversation), query)

    return Names


def entries(change: Callable[[list[Entry], LoadQuery], list[Entry]]) -> Faulty:
    """A store that gives other entries back."""
    return loading(lambda self, loaded, query: replace(loaded, entries=tuple(change(list(loaded.entries), query))))


def bodies(change: Callable[[Body], Body]) -> Faulty:
    """A store that changes what it is given."""
    return entries(lambda found, query: [replace(entry, body=change(entry.body)) for entry in found])


class Undeclared(Faults):
    capabilities = ("tool_messages",)  # type: ignore[assignment]  # the fault


class OneScope(Faults):
    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        super().persist_memory(replace(batch, scope=""))

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        return super().load_memory(conversation, replace(query, scope=""))


class Everything(Faults):
    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        return super().load_memory(conversation, replace(query, messages=None))


class CutsAtMarks(Faults):
    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        loaded = super().load_memory(conversation, query)
        marked = not loaded.entries or isinstance(loaded.entries[0].body, TurnStarted)
        return loaded if marked else super().load_memory(conversation, replace(query, messages=None))


class ComparesAlways(Faults):
    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        if batch.version < 0:
            raise Conflict("stale")
        super().persist_memory(batch)


class OldestFirst(Faults):
    def conversations(self, scope: str = "") -> Any:
        return super().conversations(scope)[::-1]


class Piecemeal(Faults):
    """Stores entry by entry, and finds out half way that one cannot be stored."""

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        for at, entry in enumerate(batch.entries):
            try:
                dump_entry(entry).encode()
            except ValueError as error:
                raise Conflict("not storable") from error
            super().persist_memory(replace(batch, entries=(entry,), version=batch.version + at))


class OneConversation(Faults):
    """Takes every second conversation for a conflict."""

    def _find(self, scope: str, conversation: str) -> Any:
        if conversation not in self._scopes.get(scope, {}) and self._scopes.get(scope):
            raise Conflict("another conversation is being written")
        return super()._find(scope, conversation)


class RepeatsConflict(Faults):
    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        if batch.entries and batch.version != super().load_memory(batch.conversation, LoadQuery()).version:
            raise Conflict("stale")
        super().persist_memory(batch)


class LosersAreNotTold(Faults):
    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        try:
            super().persist_memory(batch)
        except Conflict:
            return


def _renumbered(self: Faults, batch: Batch) -> Batch:
    version = self.load_memory(batch.conversation, LoadQuery(scope=batch.scope)).version
    moved = tuple(replace(entry, number=version + at) for at, entry in enumerate(batch.entries))
    return replace(batch, entries=moved, version=version)


def _at_any_version(self: Faults, batch: Batch) -> Batch:
    held = {entry.number for entry in self.load_memory(batch.conversation, LoadQuery(scope=batch.scope)).entries}
    return replace(batch, version=len(held) - sum(entry.number in held for entry in batch.entries))


def _first_come(self: Faults, batch: Batch) -> Batch:
    held = {entry.number for entry in self.load_memory(batch.conversation, LoadQuery(scope=batch.scope)).entries}
    return replace(batch, entries=tuple(entry for entry in batch.entries if entry.number not in held))


def _without_media(body: Body) -> Body:
    if not isinstance(body, Said):
        return body
    return replace(body, message=replace(body.message, content=(Text(body.message.text),)))


def _last_messages(found: list[Entry], query: LoadQuery) -> list[Entry]:
    said = [at for at, entry in enumerate(found) if isinstance(entry.body, Said)]
    return found if not query.messages or len(said) < query.messages else found[said[-query.messages] :]


def _no_marks(found: list[Entry], query: LoadQuery) -> list[Entry]:
    return [entry for entry in found if query.messages is None or not isinstance(entry.body, State | Summary)]


def _no_turn_before(found: list[Entry], query: LoadQuery) -> list[Entry]:
    return [entry for entry in found if query.messages is None or entry.turn != query.turn_id]


def _replaced(body: Body) -> Body:
    if not isinstance(body, Said):
        return body
    return replace(body, message=replace(body.message, content=(Text(body.message.text.replace("\0", "\ufffd")),)))


def _stripped(body: Body) -> Body:
    if not isinstance(body, Said):
        return body
    return replace(body, message=replace(body.message, content=(Text(" ".join(body.message.text.split())),)))


FAULTS: dict[str, Faulty] = {
    "declares_what_it_is": Undeclared,
    "unknown_is_empty": loading(lambda self, loaded, query: replace(loaded, version=loaded.version or 1)),
    "texts_come_back": bodies(_stripped),
    "version_counts_entries": loading(lambda self, loaded, query: replace(loaded, version=len(loaded.entries))),
    "poison_is_kept_or_refused": bodies(_replaced),
    "repeated_turn_is_skipped": storing(_renumbered),
    "scopes_are_apart": OneScope,
    "names_are_apart": naming(str.lower),
    "bad_names_are_refused": naming(lambda name: name[:400]),
    "keeper_lists_and_deletes": OldestFirst,
    "every_kind_comes_back": bodies(lambda body: replace(body, behind=()) if isinstance(body, Said) else body),
    "order_is_the_number": entries(lambda found, query: sorted(found, key=lambda entry: entry.body.kind)),
    "large_batch_keeps_order": entries(lambda found, query: sorted(found, key=lambda entry: str(entry.number))),
    "window_is_whole_turns": entries(_last_messages),
    "window_is_flat": Everything,
    "window_needs_no_marks": CutsAtMarks,
    "version_below_zero_is_not_compared": ComparesAlways,
    "open_turn_is_whole": entries(lambda found, query: found[-10:] if query.messages else found),
    "marks_come_with_a_window": entries(_no_marks),
    "asked_turn_comes_with_a_window": entries(_no_turn_before),
    "repeat_is_skipped": RepeatsConflict,
    "other_content_conflicts": storing(_first_come),
    "batch_is_all_or_nothing": Piecemeal,
    "many_conversations_at_once": OneConversation,
    "media_come_back": bodies(_without_media),
    "stale_version_conflicts": storing(_at_any_version),
    "lease_is_kept": loading(lambda self, loaded, query: replace(loaded, lease=None)),
    "lease_passes": storing(lambda self, batch: replace(batch, lease=batch.lease * 1000)),
    "one_writer_wins": LosersAreNotTold,
    "reopened_is_the_same": Faults,
}


def by_name(name: str) -> memory_checks.Check:
    (check,) = [check for check in memory_checks.CHECKS if check.name == name]
    return check


def reopened(name: str) -> Callable[[Any], Any]:
    """How a sound store is opened anew; the one whose fault is to forget comes back empty."""
    return (lambda closed: Faults()) if name == "reopened_is_the_same" else (lambda closed: closed)


@pytest.mark.parametrize("name", FAULTS)
def test_the_check_fails_on_its_fault(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_sharing, "_PATIENCE", 1.0)
    with pytest.raises((AssertionError, Conflict)):
        memory_checks.verify(by_name(name), FAULTS[name], reopen=reopened(name))


def test_every_check_has_a_fault_and_passes_on_a_sound_store() -> None:
    report = memory_checks.check_memory(Faults, reopen=lambda closed: closed)
    assert [result.check for result in report.results if result.status == "pass"] == list(
        map(str, memory_checks.CHECKS)
    )
    assert set(FAULTS) == set(map(str, memory_checks.CHECKS))


def test_the_samples_hold_every_kind() -> None:
    assert {type(body) for body in every_kind()} == set(get_args(Body))


def test_the_report_says_what_failed_and_what_was_skipped() -> None:
    report = memory_checks.check_memory(FAULTS["marks_come_with_a_window"])
    assert not report.ok
    assert [result.check for result in report.failed] == ["marks_come_with_a_window"]
    assert "fail  marks_come_with_a_window: expected numbers" in str(report)
    assert "skip  reopened_is_the_same: no `reopen` was given" in str(report)


def test_an_undeclared_flag_is_not_asked_for() -> None:
    plain = storing(_at_any_version)
    plain.capabilities = MemoryCapabilities(tool_messages=True)
    statuses = {result.check: result.status for result in memory_checks.check_memory(plain).results}
    assert statuses["one_writer_wins"] == statuses["media_come_back"] == "skip"
    assert statuses["lease_is_kept"] == statuses["stale_version_conflicts"] == "skip"
    assert statuses["window_is_flat"] == statuses["texts_come_back"] == "pass"


def test_hooks_may_be_async_and_name_what_they_want() -> None:
    class Async:
        def __init__(self) -> None:
            self._kept = InProcessMemory()
            self.capabilities = self._kept.capabilities
            self.conversations, self.delete = self._kept.conversations, self._kept.delete

        @hookimpl
        async def persist_memory(self, conversation: str, batch: Batch) -> None:
            assert conversation == batch.conversation
            self._kept.persist_memory(batch)

        @hookimpl
        async def load_memory(self, query: LoadQuery, conversation: str) -> Loaded | None:
            loaded = self._kept.load_memory(conversation, query)
            return loaded if loaded.version else None

    report = memory_checks.check_memory(Async)
    assert report.ok, str(report)
