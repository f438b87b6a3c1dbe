"""The conformance kit of memories sees faults: for each check a store that fails it and no other, and good ones."""

from __future__ import annotations

from typing import get_args

import pytest
from spoilt_stores import FAULTS, Sound, Undeclared, reopened

from hookloop.memory import InProcessMemory
from hookloop.testing import memory_checks, memory_sharing
from hookloop.testing.memory_subject import every_kind
from hookloop_hookspecs import (
    Batch,
    Loaded,
    LoadQuery,
    MemoryCapabilities,
    hookimpl,
)
from hookloop_hookspecs.entries import Body

NAMES = [check.name for check in memory_checks.CHECKS]


def statuses_of(report: memory_checks.Report) -> dict[str, str]:
    return {result.check: result.status for result in report.results}


@pytest.mark.parametrize("name", FAULTS)
def test_a_store_with_one_fault_fails_its_check_and_no_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "lease_passes":
        monkeypatch.setattr(memory_sharing, "_PATIENCE", 1.0)  # how long is waited for a lease that never passes
    statuses = statuses_of(memory_checks.check_memory(FAULTS[name], reopen=reopened(name)))
    assert statuses == {**dict.fromkeys(NAMES, "pass"), name: "fail"}


def test_every_check_has_a_fault_and_passes_on_a_sound_store() -> None:
    report = memory_checks.check_memory(Sound, reopen=lambda closed: closed)
    assert statuses_of(report) == dict.fromkeys(NAMES, "pass"), str(report)
    assert sorted(FAULTS) == sorted(NAMES)


def test_nothing_more_is_asked_of_a_store_that_does_not_say_what_it_is() -> None:
    report = memory_checks.check_memory(Undeclared, reopen=lambda closed: closed)
    assert statuses_of(report) == {**dict.fromkeys(NAMES, "skip"), "declares_what_it_is": "fail"}
    assert "`capabilities` must be MemoryCapabilities, not tuple" in report.failed[0].reason


def test_the_samples_hold_every_kind() -> None:
    assert {type(body) for body in every_kind()} == set(get_args(Body))


def test_the_report_says_what_failed_and_what_was_skipped() -> None:
    report = memory_checks.check_memory(FAULTS["marks_come_with_a_window"])
    assert not report.ok
    assert [result.check for result in report.failed] == ["marks_come_with_a_window"]
    assert "fail  marks_come_with_a_window: expected numbers" in str(report)
    assert "skip  reopened_is_the_same: no `reopen` was given" in str(report)


def test_an_undeclared_flag_is_not_asked_for() -> None:
    plain = type(
        "Plain", (FAULTS["stale_version_conflicts"],), {"capabilities": MemoryCapabilities(tool_messages=True)}
    )
    statuses = statuses_of(memory_checks.check_memory(plain))
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
