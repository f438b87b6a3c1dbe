"""The keeper's tools: list, look, export, restore, fork at an entry, delete."""

from __future__ import annotations

import pytest
from scenarios import EDIT, READ, tools

from hookloop import Agent
from hookloop.engine.history import check
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Approve, ConfigError, CorruptData, LoadQuery


def kept() -> InProcessMemory:
    """A memory with a conversation of two turns, the second of which waits."""
    memory = InProcessMemory()
    script = [[EDIT, READ], say("done"), call("pay", {"amount": 1}, id="p")]
    with Agent(ScriptedProvider(script), tools=tools([]), memory=memory) as agent:
        agent.run("one", conversation="c")
        agent.run("two", conversation="c")
    return memory


def test_conversations_are_listed_looked_at_and_deleted() -> None:
    with Agent(ScriptedProvider([]), memory=kept()) as agent:
        keeper = agent.keeper
        assert [info.conversation for info in keeper.list()] == ["c"]
        assert [m.text for m in keeper.messages("c")][:2] == ["one", ""]
        assert keeper.delete("c")
        assert not keeper.delete("c")
        assert keeper.list() == ()
        with pytest.raises(ConfigError, match="no conversation 'c'"):
            keeper.messages("c")


def test_an_export_restored_elsewhere_is_the_same_and_goes_on() -> None:
    memory = kept()
    with Agent(ScriptedProvider([]), memory=memory) as agent:
        text = agent.keeper.export("c")
    other = InProcessMemory()
    notes: list[object] = []
    with Agent(ScriptedProvider([say("paid")]), tools=tools(notes), memory=other) as agent:
        assert agent.keeper.restore(text) == "c"
        assert agent.keeper.export("c") == text
        with pytest.raises(ConfigError, match="exists"):
            agent.keeper.restore(text)
        assert agent.keeper.restore(text, "d") == "d"
        outcome = agent.resume("c", {"p": Approve()})
    assert outcome.text == "paid"
    assert notes == [("pay", 1)]
    assert other.load_memory("d", LoadQuery()).entries == memory.load_memory("c", LoadQuery()).entries


@pytest.mark.parametrize(
    "text", ["", "{}", "nonsense", '{"format": "hookloop-conversation", "conversation": "c"}\n{"v": 9}']
)
def test_what_is_no_export_is_refused_with_its_line_and_stores_nothing(text: str) -> None:
    with Agent(ScriptedProvider([])) as agent:
        with pytest.raises(CorruptData, match=r"line [12]"):
            agent.keeper.restore(text)
        assert agent.keeper.list() == ()


def test_a_fork_at_any_entry_is_valid_and_goes_on() -> None:
    memory = kept()
    numbers = [entry.number for entry in memory.load_memory("c", LoadQuery()).entries]
    for at in [*numbers, None]:
        provider = ScriptedProvider([say("differently")])
        with Agent(provider, tools=tools([]), memory=memory) as agent:
            agent.keeper.fork("c", f"fork {at}", at)
            check(agent.keeper.messages(f"fork {at}"), tail=at is None)
            assert agent.run("three", conversation=f"fork {at}").text == "differently"
            check(provider.requests[0].messages)
        with Agent(ScriptedProvider([]), memory=memory) as agent:
            assert [e.number for e in agent.keeper.entries("c")] == numbers


def test_a_fork_at_no_entry_or_onto_another_is_refused() -> None:
    with Agent(ScriptedProvider([]), memory=kept()) as agent:
        with pytest.raises(ConfigError, match="no entry 99"):
            agent.keeper.fork("c", "d", 99)
        with pytest.raises(ConfigError, match="exists"):
            agent.keeper.fork("c", "c")
