"""Each message is written once: every way a turn can end, in every store, inside the loop, outside it, and both at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from endings import ENDINGS, NORMAL, QUESTION, Ending, across, lines
from scenarios import approve_all, tools

from hookloop import Agent
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Batch, Entry, HookloopError, LoadQuery, Message, TurnEnded, TurnStarted, hookimpl
from hookloop_transcript import TranscriptMemory

SERVED = ("sqlite", "postgresql", "mariadb", "redis")
EVERY = pytest.mark.parametrize("ending", ENDINGS, ids=str)


class Watched:
    """A memory as it is, that notes every batch it is given."""

    def __init__(self, memory: Any) -> None:
        self.memory = memory
        self.name = memory.name
        self.capabilities = memory.capabilities
        self.batches: list[Batch] = []

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.memory.persist_memory(batch)

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Any:
        return self.memory.load_memory(conversation, query)

    @hookimpl
    def close(self) -> None:
        if hasattr(self.memory, "close"):
            self.memory.close()


@contextmanager
def opened(store: Any) -> Iterator[Any]:
    """A memory on a store, watched; closed at the end."""
    memory = Watched(store.make())
    try:
        yield memory
    finally:
        memory.close()


def read(memory: Any, conversation: str) -> Sequence[Entry]:
    """All that is stored of a conversation, read anew."""
    entries: Sequence[Entry] = memory.load_memory(conversation, LoadQuery()).entries
    return entries


def assert_once(entries: Sequence[Entry], batches: Sequence[Batch]) -> None:
    """No entry was given to the store twice, or stands in it twice; what was given is there."""
    written = Counter(entry.id for batch in batches for entry in batch.entries)
    assert set(written.values()) <= {1}
    assert sorted(written) == sorted(entry.id for entry in entries)
    numbers = [entry.number for entry in entries]
    assert numbers == sorted(set(numbers))


@across(["memory", *SERVED], ENDINGS, full="memory")
def test_inside_every_message_is_stored_once_and_in_order(store: Any, ending: Ending, conversation: str) -> None:
    with opened(store) as memory:
        outcome = ending.play(memory, conversation)
        entries = read(memory.memory, conversation)
        assert lines(flatten(entries)) == list(ending.stored)
        assert lines(outcome.messages) == list(ending.stored)
        check(list(flatten(entries)), tail=outcome.status == "suspended")
        assert_once(entries, memory.batches)
        assert [batch.final for batch in memory.batches].count(True) == bool(entries) + (ending.resume is not None)


@EVERY
def test_outside_exactly_the_question_and_the_answer_are_stored(ending: Ending, tmp_path: Any) -> None:
    memory = Watched(TranscriptMemory(f"transcript://{tmp_path}"))
    ending.play(memory, "c")
    wanted = [] if ending.answer is None else [QUESTION, f"assistant: {ending.answer}"]
    assert lines(flatten(read(memory.memory, "c"))) == wanted
    assert len(memory.batches) == bool(wanted)


@across(SERVED, ENDINGS, rest=["sqlite", "redis"])
def test_a_store_for_everything_that_is_placed_outside_gets_the_same(
    store: Any, ending: Ending, conversation: str
) -> None:
    config = {"memory": [{"url": store.url, "placement": "outside"}]}
    ending.play(None, conversation, config=config)
    wanted = [] if ending.answer is None else [QUESTION, f"assistant: {ending.answer}"]
    with opened(store) as memory:
        assert lines(flatten(read(memory, conversation))) == wanted


@EVERY
def test_both_at_once_get_each_their_own(ending: Ending, tmp_path: Any) -> None:
    inside, outside = (f"sqlite:///{tmp_path}/chat.db", f"transcript://{tmp_path}/chats")
    ending.play([inside, outside], "c")
    answer = [] if ending.answer is None else [QUESTION, f"assistant: {ending.answer}"]
    for url, wanted in ((inside, list(ending.stored)), (outside, answer)):
        with Agent(ScriptedProvider([]), memory=url) as agent:
            assert lines(flatten(read(agent.memories[0], "c"))) == wanted


def talk(memory: Any, text: str, conversation: str, **parameters: Any) -> list[str]:
    """One more turn with one tool, and what its last request held. Each request must be valid."""
    provider = ScriptedProvider([call("edit", {"path": text}, id=f"c-{text}"), say(f"answer to {text}")])
    with Agent(provider, tools=tools([]), memory=memory, **parameters) as agent:
        outcome = agent.run(text, conversation=conversation)
    assert outcome.text == f"answer to {text}"
    for request in provider.requests:
        check(list(request.messages))
    return lines(provider.requests[-1].messages)


def asked(text: str) -> list[str]:
    return [f"user: {text}", "assistant: [edit]", f"tool: edited {text}"]


def answered(text: str) -> str:
    return f"assistant: answer to {text}"


@pytest.mark.parametrize("store", SERVED, indirect=True)
def test_the_owner_of_a_conversation_may_be_another_one_later(store: Any, conversation: str, tmp_path: Any) -> None:
    text = f"transcript://{tmp_path}/chats"
    talk([store.url, text], "one", conversation)
    assert talk([text, store.url], "two", conversation) == ["user: one", answered("one"), *asked("two")]
    assert talk([text], "three", conversation)[:4] == ["user: one", answered("one"), "user: two", answered("two")]
    whole = [*asked("one"), answered("one")]
    assert talk([store.url], "four", conversation)[: len(whole)] == whole


@pytest.mark.parametrize("store", SERVED, indirect=True)
def test_a_second_store_counts_by_itself_and_holds_every_turn_once(store: Any, conversation: str) -> None:
    whole = []
    for text in ("one", "two"):  # the first store forgets with its agent, the second one does not
        talk(["memory:", store.url], text, conversation)
        whole += [f"user: {text}", answered(text)]
    with Agent(ScriptedProvider([say("three")]), memory=["memory:", store.url]) as agent:
        outcome = agent.run("three", conversation=conversation, history=[])
    assert outcome.warnings == ()
    with opened(store) as memory:
        assert lines(flatten(read(memory, conversation))) == [*whole, "user: three", "assistant: three"]


@pytest.mark.parametrize("store", SERVED, indirect=True)
def test_a_second_store_that_missed_a_turn_gets_it_when_that_is_asked_for_again(
    store: Any, conversation: str, tmp_path: Any
) -> None:
    owner = f"sqlite:///{tmp_path}/owner.db"
    for memory in (owner, [owner, store.url], [owner, store.url]):
        with Agent(ScriptedProvider([say("one")] if memory is owner else []), memory=memory) as agent:
            assert agent.run("go", conversation=conversation, turn_id="t").text == "one"
    with opened(store) as memory:
        assert lines(flatten(read(memory, conversation))) == [QUESTION, "assistant: one"]


def play_moving(store: Any, ending: Ending, conversation: str) -> None:
    """Inside, then outside for two turns, then inside again: every request must be valid."""
    outside = {"memory": [{"url": store.url, "placement": "outside"}]}
    ending.play(store.url, conversation)
    for text, config in (("two", outside), ("three", outside), ("four", {"memory": [store.url]})):
        assert talk(None, text, conversation, config=config)[-3:] == asked(text)


@across(
    SERVED, [one for one in ENDINGS if one.stored and not one.name.startswith("suspended")], rest=["sqlite", "redis"]
)
def test_a_store_may_be_placed_outside_after_any_end_and_inside_again(
    store: Any, ending: Ending, conversation: str
) -> None:
    play_moving(store, ending, conversation)
    with opened(store) as memory:
        check(list(flatten(read(memory, conversation))))


@across(SERVED, [one for one in ENDINGS if one.name.startswith("suspended")])
def test_a_store_may_be_placed_outside_while_a_turn_waits(store: Any, ending: Ending, conversation: str) -> None:
    play_moving(store, ending, conversation)
    with opened(store) as memory:
        entries = read(memory, conversation)
    check(list(flatten(entries)))
    began = {entry.turn for entry in entries if isinstance(entry.body, TurnStarted)}
    assert began == {entry.turn for entry in entries if isinstance(entry.body, TurnEnded)}


@pytest.mark.parametrize("store", ["memory", *SERVED], indirect=True)
def test_a_suspension_as_text_of_a_conversation_that_is_stored_is_resumed_once(store: Any, conversation: str) -> None:
    notes: list[Any] = []
    script = [call("pay", {"amount": 4}, id="p"), say("paid"), say("paid again")]
    with opened(store) as memory:
        with Agent(ScriptedProvider(script), tools=tools(notes), memory=memory) as agent:
            suspended = agent.run("go", conversation=conversation)
            assert agent.resume(str(suspended.suspension), approve_all(suspended)).text == "paid"
            with pytest.raises(HookloopError):
                agent.resume(conversation, approve_all(suspended))
        assert notes == [("pay", 4)]
        stored = lines(flatten(read(memory.memory, conversation)))
        assert stored == [QUESTION, "assistant: [pay]", "tool: paid 4", "assistant: paid"]


@pytest.mark.parametrize("store", ["memory", *SERVED], indirect=True)
def test_a_suspension_as_text_is_taken_over_by_a_store_that_holds_nothing_of_it(store: Any, conversation: str) -> None:
    notes: list[Any] = []
    with Agent(ScriptedProvider([call("pay", {"amount": 4}, id="p")]), tools=tools(notes)) as agent:
        suspended = agent.run("go", conversation=conversation)
    text = str(suspended.suspension)
    with opened(store) as memory:
        provider = ScriptedProvider([say("paid"), say("as I said")])
        with Agent(provider, tools=tools(notes), memory=memory) as agent:
            assert agent.resume(text, approve_all(suspended)).text == "paid"
            with pytest.raises(HookloopError):
                agent.resume(text, approve_all(suspended))
            agent.run("and?", conversation=conversation)
        assert notes == [("pay", 4)]
        whole = [QUESTION, "assistant: [pay]", "tool: paid 4", "assistant: paid", "user: and?"]
        assert lines(provider.requests[-1].messages) == whole
        entries = read(memory.memory, conversation)
        assert lines(flatten(entries)) == [*whole, "assistant: as I said"]
        assert_once(entries, memory.batches)


@pytest.mark.parametrize("store", ["memory", *SERVED], indirect=True)
@pytest.mark.parametrize("before", [True, False])
def test_a_turn_with_a_history_of_the_callers_leaves_an_inside_store_alone(
    store: Any, conversation: str, before: bool
) -> None:
    with opened(store) as memory:
        if before:
            NORMAL[0].play(memory, conversation)
        stored = list(read(memory.memory, conversation))
        with Agent(ScriptedProvider([say("fine")]), memory=memory) as agent:
            outcome = agent.run(
                "beside", conversation=conversation, history=[Message.user("u"), Message.assistant("a")]
            )
        assert (outcome.text, outcome.warnings) == ("fine", ())
        assert list(read(memory.memory, conversation)) == stored
