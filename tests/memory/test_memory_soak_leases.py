"""A living owner is never taken over, however slow it is; one that stands still is, and then does no more harm."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from endings import lines
from turners import Journal, kill, processes, slow

from hookloop import Agent, Outcome
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.testing import ScriptedProvider, say
from hookloop_hookspecs import Conflict, LoadQuery

pytestmark = pytest.mark.soak
LEASE = 1.0
SHARED = pytest.mark.parametrize("shared", ["sqlite", "postgresql", "redis"], indirect=True)


@dataclass
class Owner:
    """A process that holds a conversation."""

    process: Any
    leave: Any
    answer: Any

    def end(self) -> str:
        """Let it go on; how its turn ended."""
        self.leave.set()
        assert self.answer.poll(60)
        status: str = self.answer.recv()
        self.process.join(60)
        return status


@contextmanager
def owning(store: Any, conversation: str, path: Path, way: str, renewal: float) -> Iterator[Owner]:
    """A process with a turn under way, whose claim lasts a second and is renewed every so many seconds."""
    context = processes()
    entered, leave = context.Event(), context.Event()
    ours, theirs = context.Pipe(duplex=False)
    arguments = (store.url, conversation, path, (LEASE, renewal), way, (entered, leave), theirs)
    process = context.Process(target=slow, args=arguments)
    process.start()
    theirs.close()
    try:
        assert entered.wait(60)
        yield Owner(process, leave, ours)
    finally:
        if process.is_alive():
            kill(process)
        process.close()
        ours.close()


def rival(store: Any, conversation: str) -> Outcome | None:
    """Somebody else's turn; None where it is refused."""
    model = ScriptedProvider([say("mine")])
    with Agent(model, memory=store.make()) as agent:
        try:
            return agent.run("me", conversation=conversation)
        except Conflict:
            assert model.requests == []
            return None


def stored(store: Any, conversation: str) -> list[str]:
    """What is stored, which must be valid."""
    memory = store.make()
    messages = list(flatten(memory.load_memory(conversation, LoadQuery()).entries))
    memory.close()
    check(messages)
    return lines(messages)


OWNED = ["user: go", "assistant: [hold]", "tool: spent 1", "assistant: [hold]", "tool: spent 2", "assistant: done"]


@SHARED
@pytest.mark.parametrize("way", ["threads", "tasks"])
def test_a_living_owner_is_never_taken_over(shared: Any, way: str, conversation: str, tmp_path: Path) -> None:
    with owning(shared, conversation, tmp_path / "journal", way, LEASE / 3) as owner:
        until, tries = time.monotonic() + 6 * LEASE, 0
        while time.monotonic() < until:
            assert rival(shared, conversation) is None
            tries += 1
        assert tries > 6
        assert owner.end() == "done"
    assert stored(shared, conversation) == OWNED
    assert rival(shared, conversation) is not None


@SHARED
def test_an_owner_that_stands_still_is_taken_over_and_starts_nothing_more(
    shared: Any, conversation: str, tmp_path: Path
) -> None:
    journal = Journal(tmp_path / "journal")
    with owning(shared, conversation, journal.path, "threads", 1000.0) as owner:
        os.kill(owner.process.pid, signal.SIGSTOP)
        until = time.monotonic() + 60
        while (outcome := rival(shared, conversation)) is None and time.monotonic() < until:
            threading.Event().wait(0.05)
        assert outcome is not None
        os.kill(owner.process.pid, signal.SIGCONT)
        assert owner.end() == "conflict"
    assert journal.numbers("spend") == [1]
    interrupted = "tool: interrupted: the call had started, its effect is unknown"
    assert stored(shared, conversation) == ["user: go", "assistant: [hold]", interrupted, "user: me", "assistant: mine"]
