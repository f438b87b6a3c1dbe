"""A turn on SQLite at 100 and at 10,000 stored messages: milliseconds of CPU, beyond the commit, and writes.

The turn has four messages (question, call, result, answer) and a window of 40. Every write is a commit, which waits for the
file. "Beyond the commit" is therefore measured on a private database: it has no file, and with synchronous = normal a commit
there is next to nothing.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hookloop import Agent, tool
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Batch, Entry, Message, Said, TurnEnded, TurnStarted, hookimpl
from hookloop_hookspecs.entries import Body
from hookloop_sql import SqlMemory
from hookloop_sql.options import SqlOptions

SIZES = (100, 10_000)
WINDOW = {"window": {"messages": 40}}
TURNS = 40
ALLOWED_MS = 1.0
ALLOWED_RATIO = 1.2
FIXED_POINTS = 4
"""The turn's start; the reply with its call; the result; the answer with the turn's end."""


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


def answer(request: Any) -> Any:
    """A call for a question, an answer for a result."""
    if request.messages[-1].role == "tool":
        return say("done")
    return call("edit", {"path": "a"}, id=f"c{request.turn}")


class Counting(SqlMemory):
    """The store as it is; notes what it is asked."""

    batches: list[Batch]

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        """Store a batch."""
        self.batches.append(batch)
        super().persist_memory(batch)


def filled(memory: SqlMemory, messages: int) -> None:
    """Put so many messages into the conversation "c", in turns of two."""
    for start in range(0, messages * 2, 400):
        entries: list[Entry] = []
        for number in range(start, min(start + 400, messages * 2), 4):
            turn = f"old-{number}"
            bodies: tuple[Body, ...] = (
                TurnStarted("", ""),
                Said(Message.user(f"question {number}")),
                Said(Message.assistant(f"answer {number}"), stop="end"),
                TurnEnded("done", "end", f"answer {number}"),
            )
            entries += [Entry(number + at + 1, turn, body) for at, body in enumerate(bodies)]
        memory.persist_memory(Batch("c", tuple(entries), start))


@contextmanager
def store(kind: type[SqlMemory], url: str, messages: int) -> Iterator[Any]:
    """A store with so many messages."""
    memory = kind(url, SqlOptions(synchronous="normal"))
    memory.batches = []  # type: ignore[attr-defined]  # of the one that counts
    filled(memory, messages)
    yield memory
    memory.close()


def played(memory: Any, turns: int) -> list[float]:
    """Seconds of CPU of each of so many turns."""
    with Agent(
        ScriptedProvider([answer] * 2 * turns, transport="whole"), tools=[edit], memory=memory, config=WINDOW
    ) as agent:
        return [timed(lambda: agent.run("go", conversation="c")) for _ in range(turns)]


def timed(work: Callable[[], object]) -> float:
    """Seconds of CPU of this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def least(seconds: list[float]) -> float:
    """Milliseconds of the tenth of the turns that was disturbed least, after some to warm up."""
    settled = sorted(seconds[5:])
    return 1000 * sum(settled[: max(1, len(settled) // 10)]) / max(1, len(settled) // 10)


def files(messages: int) -> float:
    """Milliseconds of CPU of a turn on a file."""
    with (
        tempfile.TemporaryDirectory() as folder,
        store(SqlMemory, f"sqlite:///{Path(folder)}/chat.db", messages) as memory,
    ):
        return least(played(memory, TURNS))


def private(messages: int) -> tuple[float, int]:
    """Milliseconds of CPU of a turn on a private database, and its writes."""
    with store(Counting, "sqlite://", messages) as memory:
        whole = least(played(memory, TURNS))
        memory.batches.clear()
        played(memory, 1)
        return whole, len(memory.batches)


def main() -> None:
    """Print a table."""
    print("a turn of four messages, window of 40, SQLite: milliseconds of CPU")
    on_file = {size: files(size) for size in SIZES}
    print(f"  on a file: {', '.join(f'{ms:.2f} at {size:,}' for size, ms in on_file.items())} messages", end="")
    print(f", ratio {on_file[SIZES[1]] / on_file[SIZES[0]]:.2f} (allowed {ALLOWED_RATIO})")
    for size in SIZES:
        whole, writes = private(size)
        print(f"  beyond the commit, {size:,} messages: {whole:.2f} (allowed {ALLOWED_MS})", end="")
        print(f"; {writes} writes (fixed points: {FIXED_POINTS})")


if __name__ == "__main__":
    main()
