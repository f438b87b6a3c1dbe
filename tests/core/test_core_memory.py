"""Placement, claims, repeated turns, histories that callers keep: what the engine does with a memory."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from scenarios import EDIT, READ, Hooked, approve_all, tools

from hookloop import Agent, tool
from hookloop.engine.history import check
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, mortal, say
from hookloop_hookspecs import (
    Approve,
    Batch,
    Conflict,
    Deny,
    Entry,
    HookloopError,
    Image,
    Loaded,
    LoadQuery,
    MemoryCapabilities,
    Message,
    ModelRequest,
    PluginError,
    Said,
    State,
    Text,
    ToolCall,
    ToolResult,
    TurnEnded,
    hookimpl,
)


class Outside:
    """A memory that keeps texts only."""

    capabilities = MemoryCapabilities()

    def __init__(self, name: str = "outside", fails: bool = False) -> None:
        self.name = name
        self.batches: list[Batch] = []
        self.fails = fails

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        if self.fails:
            raise OSError("disk full")
        self.batches.append(batch)


class Texts(Outside):
    """One that also loads, so it may own the history."""

    @hookimpl
    def load_memory(self, conversation: str) -> Loaded:
        entries = [entry for batch in self.batches for entry in batch.entries]
        return Loaded(entries, len(entries))


def said(entries: Any) -> list[tuple[str, str]]:
    """Role and text of the messages among entries."""
    return [(e.body.message.role, e.body.message.text) for e in entries if isinstance(e.body, Said)]


def test_inside_and_outside_at_once_each_get_their_own() -> None:
    inside, outside = InProcessMemory(), Outside()
    with Agent(ScriptedProvider([EDIT, READ, say("done")]), tools=tools([]), memory=[inside, outside]) as agent:
        agent.run("go", conversation="c")
    stored = inside.load_memory("c", LoadQuery()).entries
    assert said(stored) == [
        ("user", "go"),
        ("assistant", ""),
        ("tool", "edited a"),
        ("assistant", ""),
        ("tool", "content of a"),
        ("assistant", "done"),
    ]
    assert len({entry.id for entry in stored}) == len(stored)
    (batch,) = outside.batches
    assert said(batch.entries) == [("user", "go"), ("assistant", "done")]
    assert len(batch.entries) == 2


def test_a_memory_of_texts_that_owns_the_history_is_loaded_and_written_once_a_turn() -> None:
    memory = Texts()
    provider = ScriptedProvider([EDIT, say("one"), say("two")])
    with Agent(provider, tools=tools([]), memory=memory) as agent:
        agent.run("first", conversation="c")
        agent.run("second", conversation="c")
    assert [said(batch.entries) for batch in memory.batches] == [
        [("user", "first"), ("assistant", "one")],
        [("user", "second"), ("assistant", "two")],
    ]
    assert [batch.version for batch in memory.batches] == [0, 2]
    assert [m.text for m in provider.requests[-1].messages] == ["first", "one", "second"]


def test_return_direct_gives_outside_memories_its_result_as_the_answer() -> None:
    outside = Outside()
    with Agent(ScriptedProvider([call("direct", {"text": "x"}, id="c1")]), tools=tools([]), memory=[outside]) as agent:
        agent.run("go")
    assert said(outside.batches[0].entries) == [("user", "go"), ("assistant", "<x>")]


def test_ephemeral_and_tool_messages_never_reach_memories_outside() -> None:
    outside = Outside()
    plugin = Hooked("p", recall=lambda: "a fact", next_instructions=lambda: Message.user("psst", ephemeral=True))
    with Agent(ScriptedProvider([EDIT, say("done")]), tools=tools([]), plugins=[plugin], memory=[outside]) as agent:
        agent.run("go")
    assert said(outside.batches[0].entries) == [("user", "go"), ("assistant", "done")]


def test_an_outside_memory_that_fails_is_skipped_with_a_warning() -> None:
    with Agent(ScriptedProvider([say("done")]), memory=[InProcessMemory(), Outside(fails=True)]) as agent:
        outcome = agent.run("go")
    assert outcome.status == "done"
    assert any("disk full" in warning for warning in outcome.warnings)


def test_an_owner_that_fails_raises_with_the_finished_outcome() -> None:
    with (
        Agent(ScriptedProvider([say("done")]), memory=Texts(fails=True)) as agent,
        pytest.raises(PluginError, match="hook persist_memory: OSError: disk full") as caught,
    ):
        agent.run("go")
    outcome = caught.value.outcome
    assert isinstance(caught.value.__cause__, OSError)
    assert outcome is not None
    assert (outcome.status, outcome.text) == ("done", "done")


def test_the_load_report_says_where_each_memory_stands_and_why() -> None:
    with Agent(ScriptedProvider([]), memory=[InProcessMemory(), Outside()]) as agent:
        inside, outside = agent.report.memories
    assert (inside.placement, outside.placement) == ("inside", "outside")
    assert inside.flags == ("tool_messages", "versioned", "media")
    assert "keeps every entry kind" in inside.why
    assert "another memory owns the history" in outside.why


def test_inside_without_the_flag_is_an_error_that_says_what_to_change() -> None:
    with pytest.raises(HookloopError, match=r"transcript.*tool_messages"):
        Agent(ScriptedProvider([]), config={"memory": [{"url": "transcript:///tmp/none", "placement": "inside"}]})


def test_a_repeated_turn_id_gives_the_finished_turn_and_runs_nothing() -> None:
    notes: list[Any] = []
    memory = InProcessMemory()
    for _ in range(3):
        provider = ScriptedProvider([EDIT, say("done")])
        with Agent(provider, tools=tools(notes), memory=memory) as agent:
            outcome = agent.run("go", conversation="c", turn_id="t")
        assert (outcome.status, outcome.text, outcome.turn_id) == ("done", "done", "t")
        assert [m.text for m in outcome.new] == ["go", "", "edited a", "done"]
    assert notes == [("edit", "a")]
    assert provider.requests == []


def test_a_repeated_turn_id_raises_a_failed_ones_error() -> None:
    memory = InProcessMemory()
    for _ in range(2):
        with (
            Agent(ScriptedProvider([OSError("no route")]), memory=memory) as agent,
            pytest.raises(HookloopError, match="no route"),
        ):
            agent.run("go", conversation="c", turn_id="t")


def test_a_repeated_turn_id_of_a_suspended_turn_leaves_it_suspended() -> None:
    with Agent(ScriptedProvider([call("pay", {"amount": 1}, id="p")]), tools=tools([])) as agent:
        first = agent.run("go", conversation="c", turn_id="t")
        again = agent.run("go", conversation="c", turn_id="t")
    assert (again.status, again.turn_id) == ("suspended", first.turn_id)
    assert [p.id for p in again.pending] == ["p"]


def test_a_second_turn_in_a_running_conversation_is_a_conflict_with_nothing_stored() -> None:
    memory = InProcessMemory()
    ended: list[Any] = []
    entered, leave = threading.Event(), threading.Event()

    @tool
    def hold() -> str:
        """Hold the turn."""
        entered.set()
        leave.wait(20)
        return "held"

    first = Agent(ScriptedProvider([call("hold", id="h"), say("one")]), tools=[hold], memory=memory)
    model = ScriptedProvider([say("two")])
    second = Agent(model, memory=memory, plugins=[Hooked("p", after_turn=lambda outcome: ended.append(outcome.status))])
    with first, second:
        thread = threading.Thread(target=first.run, args=["go"], kwargs={"conversation": "c"})
        thread.start()
        entered.wait(20)
        for agent in (first, second):
            before = memory.load_memory("c", LoadQuery()).version
            with pytest.raises(Conflict):
                agent.run("me too", conversation="c")
            assert memory.load_memory("c", LoadQuery()).version == before
        leave.set()
        thread.join()
        assert model.requests == []
        assert ended == ["failed"]
        assert second.run("now", conversation="c").text == "two"
    assert said(memory.load_memory("c", LoadQuery()).entries)[-2:] == [("user", "now"), ("assistant", "two")]


def test_a_turn_that_was_taken_over_fails_at_its_next_append_and_runs_no_further_call() -> None:
    memory, notes = InProcessMemory(), list[Any]()

    def steal(request: ModelRequest) -> Any:
        kept = memory.load_memory("c", LoadQuery())
        thief = Entry(100, "thief", TurnEnded("failed", "x"))
        memory.persist_memory(Batch("c", (thief,), kept.version))
        return EDIT

    model = ScriptedProvider([steal, say("never")])
    with Agent(model, tools=tools(notes), memory=memory) as agent, pytest.raises(Conflict):
        agent.run("go", conversation="c")
    assert notes == []
    assert said(memory.load_memory("c", LoadQuery()).entries) == [("user", "go")]


def test_without_a_conversation_each_run_is_a_new_one() -> None:
    provider = ScriptedProvider([say("a"), say("b")])
    with Agent(provider) as agent:
        one, two = agent.run("x"), agent.run("y")
    assert one.conversation != two.conversation
    assert [m.text for m in provider.requests[1].messages] == ["y"]


def test_a_history_of_the_caller_is_used_as_it_is_and_not_touched() -> None:
    provider = ScriptedProvider([EDIT, say("one"), say("two")])
    with Agent(provider, tools=tools([])) as agent:
        first = agent.run("first")
        history = list(first.messages)
        before = list(history)
        second = agent.run("second", history=history)
    assert history == before
    assert [m.text for m in provider.requests[-1].messages] == ["first", "", "edited a", "one", "second"]
    assert [m.text for m in second.messages] == ["first", "", "edited a", "one", "second", "two"]


ORPHANS: dict[str, tuple[list[Message], list[tuple[str, str]]]] = {
    "unanswered": (
        [Message.user("u"), Message.assistant(ToolCall("k", "f"))],
        [
            ("user", "u"),
            ("assistant", ""),
            ("tool", "interrupted: the call was not answered, its effect is unknown"),
            ("user", "go"),
        ],
    ),
    "answered by another id later": (
        [
            Message.user("u"),
            Message.assistant(ToolCall("k", "f")),
            Message.tool(ToolResult("k", "f", (Text("r"),))),
            Message.assistant("t"),
            Message.user("v"),
            Message.tool(ToolResult("k", "f", (Text("again"),))),
        ],
        [("user", "u"), ("assistant", ""), ("tool", "r"), ("assistant", "t"), ("user", "v"), ("user", "go")],
    ),
    "same ids in two rounds": (
        [
            Message.user("u"),
            Message.assistant(ToolCall("0", "f")),
            Message.tool(ToolResult("0", "f", (Text("ra"),))),
            Message.assistant(ToolCall("0", "f")),
            Message.tool(ToolResult("0", "f", (Text("rb"),))),
        ],
        [("user", "u"), ("assistant", ""), ("tool", "ra"), ("assistant", ""), ("tool", "rb"), ("user", "go")],
    ),
    "two results for one call": (
        [
            Message.user("u"),
            Message.assistant(ToolCall("k", "f")),
            *[Message.tool(ToolResult("k", "f", (Text(t),))) for t in "ab"],
        ],
        [("user", "u"), ("assistant", ""), ("tool", "a"), ("user", "go")],
    ),
}


@pytest.mark.parametrize("name", ORPHANS)
def test_a_broken_history_of_the_caller_is_mended(name: str) -> None:
    history, wanted = ORPHANS[name]
    provider = ScriptedProvider([say("ok")])
    with Agent(provider) as agent:
        agent.run("go", history=history)
    (request,) = provider.requests
    check(request.messages)
    assert [(m.role, m.text) for m in request.messages] == wanted


def test_a_suspension_is_resumed_from_json_without_a_memory_that_lasts() -> None:
    notes: list[Any] = []
    script = [[call("pay", {"amount": 1}, id="p"), EDIT], say("paid")]
    with Agent(ScriptedProvider(script), tools=tools(notes)) as agent:
        suspended = agent.run("go")
    text = suspended.suspension
    assert text is not None
    assert json.loads(text)["conversation"] == suspended.conversation
    provider = ScriptedProvider([say("paid")])
    with Agent(provider, tools=tools(notes)) as agent:
        outcome = agent.resume(text, approve_all(suspended))
    assert (outcome.status, outcome.text, outcome.conversation) == ("done", "paid", suspended.conversation)
    assert notes == [("edit", "a"), ("pay", 1)]
    assert [m.text for m in provider.requests[0].messages] == ["go", "", "paid 1", "edited a"]


def test_a_decision_is_taken_once() -> None:
    memory, notes = InProcessMemory(), list[Any]()
    with Agent(
        ScriptedProvider([call("pay", {"amount": 1}, id="p"), say("ok"), say("x")]), tools=tools(notes), memory=memory
    ) as agent:
        agent.run("go", conversation="c")
        agent.resume("c", {"p": Approve()})
        with pytest.raises(HookloopError):
            agent.resume("c", {"p": Approve()})
    assert notes == [("pay", 1)]


def test_refusing_to_supersede_pending_calls() -> None:
    with Agent(
        ScriptedProvider([call("pay", {"amount": 1}, id="p"), say("no")]), tools=tools([]), on_pending="refuse"
    ) as agent:
        agent.run("go", conversation="c")
        with pytest.raises(Conflict, match="waits for decisions"):
            agent.run("something else", conversation="c")
        assert agent.resume("c", {"p": Deny("no")}).text == "no"


def test_an_expired_suspension_counts_as_denied() -> None:
    from hookloop_hookspecs import Suspend

    plugin = Hooked("p", before_tool=lambda decision: Suspend("now?", expires=0.0) if decision is None else None)
    notes: list[Any] = []
    with Agent(ScriptedProvider([EDIT, say("too late")]), tools=tools(notes), plugins=[plugin]) as agent:
        suspended = agent.run("go", conversation="c")
        outcome = agent.resume("c", approve_all(suspended))
    assert notes == []
    assert [m.text for m in outcome.new if m.role == "tool"] == ["denied: expired"]


class Counter:
    """Counts its rounds over turns, in its own state."""

    name = "counter"

    @hookimpl
    def before_round(self, turn: Any) -> str:
        turn.state["n"] = turn.state.get("n", 0) + 1
        return f"round {turn.state['n']}"


def test_a_plugins_state_is_kept_with_the_conversation() -> None:
    memory = InProcessMemory()
    for expected in (1, 2, 3):
        provider = ScriptedProvider([say("ok")])
        with Agent(provider, plugins=[Counter()], memory=memory) as agent:
            agent.run("go", conversation="c")
        assert provider.requests[0].messages[-1].text == f"round {expected}"
    states = [e.body for e in memory.load_memory("c", LoadQuery()).entries if isinstance(e.body, State)]
    assert states[-1] == State("counter", '{"n":3}')


def test_media_become_placeholders_where_the_store_keeps_none() -> None:
    class Plain(InProcessMemory):
        capabilities = MemoryCapabilities(tool_messages=True)

    memory, provider = Plain(), ScriptedProvider([say("a cat"), say("it was a picture")])
    with Agent(provider, memory=memory) as agent:
        first = agent.run([Text("what is this?"), Image.of(b"png")], conversation="c")
        agent.run("and?", conversation="c")
    assert any("placeholder" in warning for warning in first.warnings)
    assert isinstance(provider.requests[0].messages[0].content[1], Image)
    assert provider.requests[1].messages[0].text == "what is this?[image image/png not kept]"


def test_a_failed_turn_is_left_out_of_later_views_unless_a_tool_had_run() -> None:
    provider = ScriptedProvider([OSError("down"), EDIT, OSError("down again"), say("ok")])
    with Agent(provider, tools=tools([])) as agent:
        for prompt in ("delete x", "edit a"):
            with pytest.raises(HookloopError):
                agent.run(prompt, conversation="c")
        agent.run("hello", conversation="c")
    assert [m.text for m in provider.requests[-1].messages] == ["edit a", "", "edited a", "hello"]


def test_calls_that_a_writer_without_marks_left_open_are_answered_wherever_there_is_room() -> None:
    memory = InProcessMemory()
    left = [
        Entry(1, "x", Said(Message.user("q"))),
        Entry(2, "x", Said(Message.assistant([ToolCall("c1", "edit")]))),
        Entry(3, "y", Said(Message.user("r"))),  # where the result of c1 would have its place
        Entry(4, "y", Said(Message.assistant([ToolCall("c2", "edit")]))),
    ]
    memory.persist_memory(Batch("c", tuple(left), 0))
    provider = ScriptedProvider([say("one"), say("two")])
    with Agent(provider, memory=memory) as agent:
        for text in ("hi", "again"):
            agent.run(text, conversation="c")
    for request in provider.requests:
        check(list(request.messages))
        assert [message.text for message in request.messages if message.role == "user"][:3] == ["q", "r", "hi"]
    stored = memory.load_memory("c", LoadQuery()).entries
    assert list(stored[:4]) == left
    assert isinstance(stored[4].body, Said)
    assert (stored[4].number, stored[4].body.message.results[0].call_id) == (5, "c2")


@pytest.mark.parametrize("durable", [True, False])
def test_a_turn_that_another_process_left_is_taken_up_with_a_warning_where_the_memory_is_not_durable(
    durable: bool,
) -> None:
    class Kept(InProcessMemory):
        capabilities = MemoryCapabilities(tool_messages=True, versioned=True, durable=durable)

    memory, notes = Kept(), list[Any]()
    with mortal(
        Agent(ScriptedProvider([call("pay", {"amount": 1}, id="p")]), tools=tools(notes), memory=memory)
    ) as one:
        one.run("go", conversation="c")
    with Agent(ScriptedProvider([say("paid")]), tools=tools(notes), memory=memory) as other:
        outcome = other.resume("c", {"p": Approve()})
        (report,) = other.report.memories
    assert (outcome.text, notes) == ("paid", [("pay", 1)])
    assert ["does not declare durable" in warning for warning in outcome.warnings] == [True] * (not durable)
    assert ("in this process alone" in report.why) is not durable


def test_a_memory_that_is_not_versioned_is_asked_for_no_lease() -> None:
    kept: dict[bool, list[float]] = {}
    for versioned in (True, False):

        class Kept(InProcessMemory):
            capabilities = MemoryCapabilities(tool_messages=True, versioned=versioned)
            batches: list[Batch]

            @hookimpl
            def persist_memory(self, batch: Batch) -> None:
                self.batches.append(batch)
                super().persist_memory(batch)

        memory = Kept()
        memory.batches = []
        with Agent(ScriptedProvider([EDIT, say("done")]), tools=tools([]), memory=memory) as agent:
            agent.run("go", conversation="c")
        kept[versioned] = [batch.lease for batch in memory.batches]
    assert all(lease > 0 for lease in kept[True][:-1])
    assert kept[False] == [0.0] * len(kept[False])
