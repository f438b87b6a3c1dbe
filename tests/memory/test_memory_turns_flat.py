"""What a turn costs a store does not grow with the conversation: writes by the fixed points, and SQLite's own steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from scenarios import tools
from sqlalchemy import event

from hookloop import Agent
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Batch, Entry, LoadQuery, Message, Said, TurnEnded, TurnStarted, hookimpl
from hookloop_hookspecs.entries import Body
from hookloop_sql import SqlMemory

SIZES = (100, 3000)
WINDOW = {"window": {"messages": 40}}


class Counted(InProcessMemory):
    """A memory that notes its batches and what was loaded."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: list[Batch] = []
        self.loaded: list[int] = []

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        self.batches.append(batch)
        super().persist_memory(batch)

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Any:
        loaded = super().load_memory(conversation, query)
        self.loaded.append(len(loaded.entries))
        return loaded


def rounds(number: int) -> list[Any]:
    """A model that calls one tool in each of so many rounds, then answers."""
    return [*(call("edit", {"path": str(at)}, id=f"c{at}") for at in range(number)), say("done")]


def fill(memory: Any, messages: int) -> None:
    """Put so many messages into the conversation "c", in closed turns of two."""
    for start in range(0, messages * 2, 4):
        bodies: tuple[Body, ...] = (
            TurnStarted("", ""),
            Said(Message.user(f"question {start}")),
            Said(Message.assistant(f"answer {start}"), stop="end"),
            TurnEnded("done", "end", f"answer {start}"),
        )
        entries = tuple(Entry(start + at + 1, f"old-{start}", body) for at, body in enumerate(bodies))
        memory.persist_memory(Batch("c", entries, start))


@pytest.mark.parametrize("number", range(4))
def test_a_round_adds_one_write_for_its_reply_and_one_for_each_result(number: int) -> None:
    memory = Counted()
    with Agent(ScriptedProvider(rounds(number)), tools=tools([]), memory=memory) as agent:
        agent.run("go", conversation="c")
    assert len(memory.batches) == 2 + 2 * number
    assert len(memory.loaded) == 1


def test_what_is_loaded_does_not_grow_with_the_conversation() -> None:
    loaded = []
    for size in SIZES:
        memory = Counted()
        fill(memory, size)
        with Agent(ScriptedProvider(rounds(1)), tools=tools([]), memory=memory, config=WINDOW) as agent:
            agent.run("go", conversation="c")
        loaded += memory.loaded
    assert loaded[0] == loaded[1] <= 100


def steps(folder: Path, size: int) -> int:
    """How many steps SQLite's machine takes for a turn in a conversation of so many messages."""
    url = f"sqlite:///{folder}/{size}.db"
    filling = SqlMemory(url)
    fill(filling, size)
    filling.close()
    memory, counted = SqlMemory(url), [0]

    def count() -> int:
        counted[0] += 1
        return 0

    @event.listens_for(memory._engine, "connect")
    def watch(connection: Any, record: object) -> None:
        connection.set_progress_handler(count, 1)

    with Agent(ScriptedProvider(rounds(1)), tools=tools([]), memory=memory, config=WINDOW) as agent:
        agent.run("go", conversation="c")
    return counted[0]


def test_a_turn_takes_sqlite_as_many_steps_in_a_long_conversation(tmp_path: Path) -> None:
    short, long = (steps(tmp_path, size) for size in SIZES)
    assert long < 1.3 * short
