"""Random histories: every store answers every batch and every query as the memory in this process does."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookloop.memory import InProcessMemory
from hookloop_hookspecs import Batch, Conflict, Entry, LoadQuery, Message, Said, State, Summary, TurnEnded, TurnStarted
from hookloop_hookspecs.entries import Body

STORES = ["sqlite", "sqlite-private", "postgresql", "mariadb", "redis"]
FRESH = count()


def body(kind: int, number: int) -> Body:
    """A body that is the same for the same arguments."""
    match kind:
        case 0:
            return State(f"plugin {number % 2}", f"{number}")
        case 1:
            return Summary(Message.user(f"summary {number}"), number)
        case _:
            return Said(Message.user(f"said {number}"))


TURN = st.lists(st.integers(0, 6), min_size=1, max_size=7)
HISTORY = st.lists(TURN, min_size=1, max_size=8)


def entries_of(history: list[list[int]]) -> list[Entry]:
    """The log of a history: turns with marks around what they hold."""
    log: list[Entry] = []
    for at, kinds in enumerate(history):
        start = len(log)
        bodies = [
            TurnStarted("o", f"n{at}"),
            *(body(k, start + i) for i, k in enumerate(kinds)),
            TurnEnded("done", "end"),
        ]
        log += [Entry(start + place, f"turn {at}", made) for place, made in enumerate(bodies)]
    return log


def answer(memory: Any, batch: Batch) -> str:
    """What a memory says to a batch."""
    try:
        memory.persist_memory(batch)
    except Conflict:
        return "conflict"
    return "stored"


@pytest.mark.parametrize("store", STORES, indirect=True)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(HISTORY, st.data())
def test_a_store_is_the_memory_in_this_process(store: Any, history: list[list[int]], data: st.DataObject) -> None:
    memory, model = store.make(), InProcessMemory()
    conversation, log, at = f"model {next(FRESH)} {id(model)}", entries_of(history), 0
    try:
        while at < len(log):
            size = data.draw(st.integers(1, 6))
            back = data.draw(st.sampled_from([0, 0, 0, 1, 3]))  # a batch may begin with what is stored already
            batch = log[max(at - back, 0) : at + size]
            moved = data.draw(st.sampled_from([0, 0, 0, 0, 1, -1]))  # and its writer may be wrong about the version
            version = max(at - back, 0) + moved
            shuffled = tuple(data.draw(st.permutations(batch)))
            asked = Batch(conversation, shuffled, version, data.draw(st.sampled_from(["", "me", "you"])), 60.0)
            said = answer(model, asked)
            assert answer(memory, asked) == said
            at += len(log[at : at + size]) if said == "stored" else 0
            if data.draw(st.booleans()):
                compare(memory, model, conversation, data)
        compare(memory, model, conversation, data)
    finally:
        memory.delete(conversation)
        memory.close()


def compare(memory: Any, model: InProcessMemory, conversation: str, data: st.DataObject) -> None:
    """Both answer a query alike."""
    messages = data.draw(st.none() | st.integers(0, 30))
    query = LoadQuery(messages, f"turn {data.draw(st.integers(0, 9))}")
    found, expected = memory.load_memory(conversation, query), model.load_memory(conversation, query)
    assert list(found.entries) == list(expected.entries)
    assert found.version == expected.version
    assert (found.lease and found.lease.owner) == (expected.lease and expected.lease.owner)
