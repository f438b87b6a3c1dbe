"""The real thing: processes that play turns are killed at any time, 200 times, and others go on where they were."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from turners import Journal, Mode, kill, live, modes, processes

from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop_hookspecs import Entry, LoadQuery, Message

pytestmark = pytest.mark.soak
KILLS = {"sqlite": 70, "postgresql": 70, "redis": 60}
LIVES = 10
"""So many kills happen in one conversation."""
LONGEST = 0.25
"""Seconds that a process lives at most once it plays."""


def play(context: Any, store: Any, conversation: str, path: Path, seed: int, mode: Mode, seconds: float | None) -> None:
    """One process: killed after so many seconds of playing, or (None) let to its end after one more turn."""
    ours, theirs = context.Pipe(duplex=False)
    turns = 1 if seconds is None else 1000
    process = context.Process(target=live, args=(store.url, conversation, path, seed, mode, turns, theirs))
    process.start()
    theirs.close()
    assert ours.poll(60), "the process does not begin"
    ours.recv()
    ours.close()
    if seconds is None:
        process.join(60)
        assert process.exitcode == 0, Journal(path).lines()[-3:]
    else:
        threading.Event().wait(seconds)
        kill(process)
    process.close()


@pytest.mark.parametrize("shared", KILLS, indirect=True)
def test_nothing_is_lost_or_doubled_over_kills(shared: Any, conversation: str, tmp_path: Path) -> None:
    context, chance = processes(), random.Random(7)
    recovered = 0
    for talk in range(KILLS[shared.name] // LIVES):
        name, path = f"{conversation}-{talk}", tmp_path / f"journal-{talk}"
        for at, mode in enumerate(modes(chance, LIVES)):
            play(context, shared, name, path, at, mode, chance.uniform(0.0, LONGEST))
        play(context, shared, name, path, LIVES, "resume", None)
        recovered += len(set(Journal(path).numbers("begin"))) - 1
        memory = shared.make()
        entries = memory.load_memory(name, LoadQuery()).entries
        memory.close()
        assert_story(Journal(path), entries)
    assert recovered > KILLS[shared.name] // 4


def assert_story(journal: Journal, entries: Sequence[Entry]) -> None:
    """What is stored agrees with what happened."""
    assert [rest for word, rest in journal.lines() if word == "error"] == []
    numbers = [entry.number for entry in entries]
    assert numbers == sorted(set(numbers))
    turns = [entry.turn for entry in entries]
    assert sum(a != b for a, b in pairwise(turns)) == len(set(turns)) - 1, "turns are mixed"
    messages = list(flatten(entries))
    check(messages)
    spent, looked = Counter(journal.numbers("spend")), Counter(journal.numbers("look"))
    assert set(spent.values()) <= {1}, "a call that cannot be repeated ran twice"
    done = set(journal.numbers("done"))
    for index in sorted(set(journal.numbers("begin"))):
        mine = list(flatten(entry for entry in entries if entry.turn == f"t{index}"))
        assert_turn(index, mine, whole=index in done, spent=spent, looked=looked)
    assert sum(message.origin.kind == "user" for message in messages if message.role == "user") <= len(
        set(journal.numbers("begin"))
    )


def assert_turn(index: int, mine: Sequence[Message], *, whole: bool, spent: Counter[int], looked: Counter[int]) -> None:
    """One turn's messages: all of them once where it came to its end, else those that were stored, once."""
    said = Counter(message.text for message in mine if message.role != "tool")
    assert max(said[f"go {index}"], said["two"], said[f"done {index}"]) <= 1
    results = Counter(result.call_id for message in mine for result in message.results)
    assert set(results.values()) <= {1}
    if whole:
        assert said[f"go {index}"] == said[f"done {index}"] == 1
        assert len(results) == (5 if index % 3 == 0 else 4)
    for message in mine:
        word, _, number = message.text.partition(" ")
        if message.role == "tool" and word == "spent":
            assert spent[int(number)] == 1
        elif message.role == "tool" and word == "saw":
            assert looked[int(number)] >= 1
        elif message.role == "tool" and whole:
            assert word == "interrupted:", message
            assert message.results[0].name != "look", "an idempotent call was not repeated"
