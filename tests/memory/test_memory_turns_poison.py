"""Texts and names that break stores, through whole turns: kept as the engine cleans them, or refused with nothing stored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from scenarios import Hooked, tools

from hookloop import Agent, tool
from hookloop.engine.history import check, clean_text
from hookloop.engine.log import flatten
from hookloop.testing import ScriptedProvider, call, say, think
from hookloop_hookspecs import (
    Answer,
    Approve,
    Deny,
    HookloopError,
    LoadQuery,
    Message,
    State,
    Stop,
    Suspend,
    Text,
)

INSIDE = ("memory", "sqlite", "postgresql", "mariadb", "redis")
EVERYWHERE = pytest.mark.parametrize("store", [*INSIDE, "transcript"], indirect=True)
TEXTS = {
    "nul": "a\0b\0",
    "surrogate": "a\udc97b",
    "pair": "\ud83d\ude00 and \U0001f600",
    "quotes": """it's "quoted" `so`; DROP TABLE x; -- \\' %s {0} $1""",
    "lines": "a\r\nb\rc\u2028d\n\nend\n    indented\n",
    "marks": "\ufeff\u202e\x1b[0m\x7f\x85",
    "large": "0123456789abcdeé" * 65_536,
}
NAMES = {
    "quotes": """it's "quoted" `so`; --""",
    "slashes": "a/b\\c",
    "newlines": "a\nb\r\nc",
    "parent": "..",
    "path": "../../etc/passwd",
    "dots": "...",
    "braces": "{0} %s $1 :x ?",
    "colons": "a:b:c*[]",
    "wide": "Ünï\U0001f600code",
    "spaces": "  a  ",
    "case": "ABC",
}
REFUSED = {"empty": "", "nul": "a\0b", "surrogate": "a\udc97", "long": "x" * 100_000}


@pytest.fixture
def memory(store: Any) -> Iterator[Any]:
    """A memory on each store, closed at the end."""
    made = store.make()
    yield made
    if hasattr(made, "close"):
        made.close()


def play(memory: Any, store: Any, text: str, conversation: str) -> tuple[Any, list[Message]]:
    """A turn that says a text at every place where one may be said; its outcome, and what is read anew afterwards."""

    @tool
    def echo(text: str) -> str:
        """Say it again."""
        return text

    def note(turn: Any) -> None:
        turn.state["text"] = text

    provider = ScriptedProvider([[say(text), call("echo", {"text": text}, id="c1")], say(text)])
    notes = Hooked("notes", before_turn=lambda: text, after_tool=lambda: text, before_round=note)
    with Agent(provider, tools=[echo], plugins=[notes], memory=memory) as agent:
        outcome = agent.run(text, conversation=conversation)
    again = store.reopen(memory) if store.reopen else memory
    entries = again.load_memory(conversation, LoadQuery()).entries
    messages = list(flatten(entries))
    check(messages)
    states = [entry.body for entry in entries if isinstance(entry.body, State)]
    assert all(clean_text(state.value) == state.value for state in states)
    if again is not memory and hasattr(again, "close"):
        again.close()
    return outcome, messages


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@EVERYWHERE
def test_texts_come_back_as_the_engine_cleans_them(store: Any, memory: Any, text: str, conversation: str) -> None:
    outcome, messages = play(memory, store, text, conversation)
    clean = clean_text(text)
    assert outcome.status == "done"
    if store.name == "transcript":
        assert [(m.role, m.text) for m in messages] == [("user", clean), ("assistant", clean)]
        return
    assert tuple(messages) == outcome.new
    assert [(m.role, m.text) for m in messages] == [
        ("user", clean),
        ("user", clean),
        ("assistant", clean),
        ("tool", clean),
        ("user", clean),
        ("assistant", clean),
    ]
    assert clean_text(str(messages[2].calls[0].arguments["text"])) == clean


@EVERYWHERE
def test_names_are_kept_apart_whatever_stands_in_them(store: Any, memory: Any, conversation: str) -> None:
    names = [f"{conversation}{name}" if name.strip(". ") else name for name in NAMES.values()]
    for at, name in enumerate([*names, conversation + "abc"]):
        with Agent(ScriptedProvider([say(f"answer {at}")]), memory=memory) as agent:
            outcome = agent.run(f"go {at}", conversation=name, turn_id=f"{name}\n{at}/..")
        assert [message.text for message in outcome.messages][-2:] == [f"go {at}", f"answer {at}"]
    for at, name in enumerate([*names, conversation + "abc"]):
        entries = memory.load_memory(name, LoadQuery()).entries
        assert [m.text for m in flatten(entries)][-2:] == [f"go {at}", f"answer {at}"]
        assert entries[-1].turn == f"{name}\n{at}/.."
        with Agent(ScriptedProvider([]), memory=memory) as agent:
            assert agent.run("again", conversation=name, turn_id=f"{name}\n{at}/..").text == f"answer {at}"
        assert memory.delete(name)


def refuse(memory: Any, scope: str, conversation: str, turn_id: str | None) -> str:
    """A turn that must be refused before a model is asked, with nothing stored; what the error says."""
    provider = ScriptedProvider([say("done")])
    with Agent(provider, memory=memory, scope=scope) as agent, pytest.raises(HookloopError) as refused:
        agent.run("go", conversation=conversation, turn_id=turn_id)
    assert provider.requests == []
    return str(refused.value)


@pytest.mark.parametrize("name", REFUSED.values(), ids=REFUSED)
@EVERYWHERE
def test_conversations_that_no_store_keeps_are_refused(memory: Any, name: str, conversation: str) -> None:
    assert "conversation" in refuse(memory, conversation, name, None)
    assert list(memory.conversations(conversation)) == []


@pytest.mark.parametrize(
    "name", [REFUSED["nul"], REFUSED["surrogate"], REFUSED["long"]], ids=["nul", "surrogate", "long"]
)
@EVERYWHERE
def test_scopes_that_no_store_keeps_are_refused(memory: Any, name: str, conversation: str) -> None:
    assert "scope" in refuse(memory, name, conversation, None)


@pytest.mark.parametrize(
    "store",
    [*INSIDE, "transcript"],
    indirect=True,
)
def test_turn_ids_that_are_no_text_are_refused(memory: Any, conversation: str) -> None:
    assert "turn" in refuse(memory, "", conversation, "a\udc97")
    assert list(memory.load_memory(conversation, LoadQuery()).entries) == []


POISON = "a\udc97\0b"
EDIT = call("edit", {"path": "a"}, id="c1")
PAY = call("pay", {"amount": 1}, id="c1")


def hooked(**hooks: Any) -> dict[str, Any]:
    """An agent's parameters: one plugin."""
    return {"plugins": [Hooked("poisoner", **hooks)]}


def failing() -> None:
    raise ValueError(POISON)


def keep(turn: Any) -> None:
    turn.state[POISON] = POISON


PLACES: dict[str, tuple[list[Any], dict[str, Any], Any]] = {
    "instructions": ([EDIT, say("x")], {"instructions": POISON}, None),
    "system text": ([EDIT, say("x")], hooked(before_turn=lambda: Message.system(POISON)), None),
    "state": ([EDIT, say("x")], hooked(before_round=keep), None),
    "question": (
        [EDIT, say("x")],
        hooked(before_tool=lambda decision: None if decision else Suspend(POISON)),
        Approve(),
    ),
    "decision": ([PAY, say("x")], {}, Deny(POISON)),
    "answer": ([PAY, say("x")], {}, Answer(POISON)),
    "arguments": ([PAY, say("x")], {}, Approve({"amount": 1, POISON: POISON})),
    "denial": ([EDIT, say("x")], hooked(before_tool=lambda: Deny(POISON)), None),
    "stop at the start": ([EDIT, say("x")], hooked(before_turn=lambda: Stop(POISON, POISON)), None),
    "stop of a reply": ([EDIT, say("x")], hooked(after_reply=lambda: Stop(POISON, POISON)), None),
    "stop of a call": ([EDIT, say("x")], hooked(after_tool=lambda: Stop(POISON, POISON)), None),
    "key": ([EDIT, say("x")], hooked(next_instructions=lambda: Message.user("t", key=POISON)), None),
    "failure": ([EDIT, say("x")], hooked(next_instructions=failing), None),
    "call": ([call(POISON, {"path": POISON}, id=POISON), say("x")], {}, None),
    "escapes": ([call("edit", '{"path": "\\udc97\\u0000"}', id="c1"), say("x")], {}, None),
    "metadata": ([EDIT, Text("x", extra=POISON)], {}, None),
    "thinking": ([[think(POISON, POISON), EDIT], say("x")], {}, None),
    "provider failure": ([EDIT, OSError(POISON)], {}, None),
}
"""A script, an agent's parameters, and a decision on the call: where texts come from that nobody may have looked at."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("store", ["sqlite", "redis"], indirect=True)
def test_poison_from_any_place_leaves_a_conversation_usable(
    store: Any, memory: Any, place: str, conversation: str
) -> None:
    script, parameters, decision = PLACES[place]
    with Agent(ScriptedProvider(list(script)), tools=tools([]), memory=memory, **parameters) as agent:
        with suppress(HookloopError):
            agent.run("go", conversation=conversation)
            if decision is not None:
                agent.resume(conversation, {"c1": decision})
    with Agent(ScriptedProvider([say("fine")]), tools=tools([]), memory=memory) as agent:
        outcome = agent.run("next", conversation=conversation)
    assert outcome.text == "fine"
    check(list(outcome.messages))
