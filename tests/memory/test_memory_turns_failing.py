"""A store that fails at one write, whichever it is: nothing is lost or doubled, and the conversation stays usable."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from endings import NORMAL, QUESTION, lines
from scenarios import tools

from hookloop import Agent
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.testing import ScriptedProvider, say
from hookloop_hookspecs import Batch, LoadQuery, PluginError, hookimpl

DONE = NORMAL[0]
WRITES = 9
"""A turn of three rounds with four calls: its start, three replies, four results, its end."""


class Flaky:
    """A memory that fails at its nth write: before anything is stored, or (`late`) when everything is."""

    def __init__(self, memory: Any, at: int, *, late: bool) -> None:
        self.memory, self.at, self.late = memory, at, late
        self.name, self.capabilities = memory.name, memory.capabilities
        self.writes = 0

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        self.writes += 1
        if self.writes == self.at and not self.late:
            raise OSError("the disk is full")
        self.memory.persist_memory(batch)
        if self.writes == self.at:
            raise OSError("the answer was lost")

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Any:
        return self.memory.load_memory(conversation, query)


def again(memory: Any, conversation: str) -> list[str]:
    """The next turn, in a new agent; what is stored afterwards, which must be valid."""
    with Agent(ScriptedProvider([say("fine")]), tools=tools([]), memory=memory) as agent:
        assert agent.run("next", conversation=conversation).text == "fine"
    entries = memory.load_memory(conversation, LoadQuery()).entries
    messages = list(flatten(entries))
    check(messages)
    assert len({entry.id for entry in entries}) == len(entries)
    return lines(messages)


@pytest.mark.parametrize(
    ("at", "late"),
    [
        pytest.param(at, late, id=f"{at}-{'late' if late else 'early'}")
        for at in range(1, WRITES + 1)
        for late in (False, True)
    ],
)
@pytest.mark.parametrize("store", ["memory", "sqlite", "redis"], indirect=True)
def test_a_write_that_fails_is_made_good(store: Any, at: int, late: bool, conversation: str) -> None:
    memory = store.make()
    flaky = Flaky(memory, at, late=late)
    with Agent(ScriptedProvider(list(DONE.script)), tools=tools([]), memory=flaky) as agent, suppress(PluginError):
        agent.run("go", conversation=conversation)
    stored = again(memory, conversation)
    assert stored[:1] == [QUESTION]
    assert stored.count(QUESTION) == 1
    assert stored[-2:] == ["user: next", "assistant: fine"]
    if hasattr(memory, "close"):
        memory.close()
