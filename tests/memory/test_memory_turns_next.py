"""The next turn always works: after every ending, on every store and placement, both real APIs accept what is sent."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from endings import ENDINGS, Ending, across_wires
from scenarios import tools
from wires import CHAT, MESSAGES, Wire, served, texts

from hookloop import Agent
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.memory import InProcessMemory
from hookloop.testing import call, say
from hookloop.testing.server import Fail, StrictServer
from hookloop_hookspecs import LoadQuery, ProviderError

WIRES = (CHAT, MESSAGES)
STORES = ("memory", "sqlite", "postgresql", "mariadb", "redis", "transcript")
BOTH_APIS = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)


def turn(wire: Wire, server: StrictServer, conversation: str, prompt: str, **parameters: Any) -> list[tuple[str, str]]:
    """One more turn with a tool through the real SDK; what its last request held."""
    server.play(call("edit", {"path": "z"}, id=f"call_{len(server.requests)}"), say("fine"))
    with Agent(wire.provider(server, "stream"), tools=tools([]), **parameters) as agent:
        outcome = agent.run(prompt, conversation=conversation)
    assert (outcome.status, outcome.text) == ("done", "fine")
    check(list(outcome.messages))
    sent = texts(server.requests[-1])
    assert ("user", "go") not in sent or sent.index(("user", "go")) == 0
    assert [text for _, text in sent].count(prompt) == 1
    return sent


def assert_next(wire: Wire, conversation: str, inside: bool, ending: Ending, **parameters: Any) -> None:
    """Two more turns in new agents: both are accepted, and see what an inside memory keeps of a turn whose tools had run."""
    with served() as server:
        for prompt in ("and again", "and once more"):
            sent = turn(wire, server, conversation, prompt, **parameters)
    assert [text for _, text in sent][-3:-1] == ["and once more", "call edit"]
    assert ("edited a" in [text for _, text in sent]) == (inside and "tool: edited a" in ending.stored)


@across_wires(STORES, WIRES)
def test_the_turn_after_any_ending_is_accepted(store: Any, ending: Ending, wire: Wire, conversation: str) -> None:
    memory = store.make()
    outcome = ending.play(memory, conversation)
    if store.reopen:
        memory = store.reopen(memory)
    inside = store.name != "transcript"
    assert_stored(memory, conversation, tail=outcome.status == "suspended" and inside)
    assert_next(wire, conversation, inside, ending, memory=memory)
    assert_stored(memory, conversation)
    if hasattr(memory, "close"):
        memory.close()


def assert_stored(memory: Any, conversation: str, *, tail: bool = False) -> None:
    """The stored copy is valid."""
    check(list(flatten(memory.load_memory(conversation, LoadQuery()).entries)), tail=tail)


@across_wires(("sqlite", "redis"), WIRES, quick=["sqlite"])
def test_the_turn_after_any_ending_outside_is_accepted(
    store: Any, ending: Ending, wire: Wire, conversation: str
) -> None:
    config = {"memory": [{"url": store.url, "placement": "outside"}]}
    ending.play(None, conversation, config=config)
    assert_next(wire, conversation, False, ending, config=config)


@across_wires(("sqlite", "redis"), WIRES, quick=["sqlite"])
def test_the_turn_after_any_ending_with_both_is_accepted(
    store: Any, ending: Ending, wire: Wire, conversation: str, tmp_path: Path
) -> None:
    memory = [store.url, f"transcript://{tmp_path}/texts"]
    ending.play(memory, conversation)
    assert_next(wire, conversation, True, ending, memory=memory)


def steps(script: Sequence[Any]) -> list[Any]:
    """The script for a server, which fails in HTTP where the scripted model raises."""
    return [Fail(500) if isinstance(step, ProviderError) else step for step in script]


@BOTH_APIS
@pytest.mark.parametrize("ending", ENDINGS, ids=str)
def test_every_ending_through_the_real_sdks(ending: Ending, wire: Wire) -> None:
    memory = InProcessMemory()
    with StrictServer(script=steps(ending.script)) as server:
        ending.play(memory, "c", wire.provider(server, "stream"))
        assert server.refusals == []
    assert_next(wire, "c", True, ending, memory=memory)
    assert_stored(memory, "c")
