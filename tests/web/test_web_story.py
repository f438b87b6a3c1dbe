"""The fold behind the page: live turns, stored logs and traces are drawn alike; details are exact and without secrets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from hookloop import Agent, Limits
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop.trace import read_trace
from hookloop_hookspecs import Answer, Approve, Deny, LoadQuery, ProviderError, Retry, hookimpl, tool
from hookloop_web import Rooms, Story, Told
from hookloop_web.commands import describe, shown_limits
from hookloop_web.room import Busy, decision_of
from hookloop_web.stored import tell

SECRET = "sk-live-0123456789abcdef"


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


@tool(needs_approval=True)
def drop(path: str) -> str:
    """Remove a file."""
    return f"removed {path}"


class Feedback:
    """Adds a message after each call group, and one about each call."""

    name = "feedback"

    @hookimpl
    def next_instructions(self) -> str:
        return "run the linter"

    @hookimpl
    def after_tool(self) -> str:
        return "one call more"


def told_of(agent: Agent, *prompts: str) -> list[Told]:
    """What happened in turns of one conversation."""

    async def run() -> list[Told]:
        told = []
        for prompt in prompts:
            async with agent.astream(prompt, conversation="c") as events:
                told += [describe(event, "c", events.turn_id) async for event in events]
        return told

    return asyncio.run(run())


def story_of(told: Sequence[Told]) -> Story:
    story = Story()
    story.take_all(told)
    return story


def drawn(story: Story) -> list[Any]:
    """What of a story does not depend on where it came from."""
    return [
        (
            turn["status"],
            [(one["n"], one.get("calls"), one.get("usage")) for one in turn["rounds"]],
            [
                (one["kind"], one["origin"], one["who"], one["state"], one["text"], one["round"])
                for one in turn["blocks"]
                if one["kind"] not in ("stored",)
            ],
        )
        for turn in story.state()
    ]


@pytest.fixture
def two_turns() -> tuple[list[Told], InProcessMemory]:
    memory = InProcessMemory()
    script = [
        [say("I edit"), call("edit", {"path": "a"}, id="c1"), call("edit", {"path": "b"}, id="c2")],
        "done",
        "again",
    ]
    with Agent(ScriptedProvider(script), tools=[edit], plugins=[Feedback()], memory=[memory]) as agent:
        return told_of(agent, "go", "once more"), memory


def test_a_stored_log_is_drawn_like_the_live_turn(two_turns: tuple[list[Told], InProcessMemory]) -> None:
    told, memory = two_turns
    stored = story_of(list(tell(memory.load_memory("c", LoadQuery()).entries)))
    assert sorted(map(repr, drawn(stored)[0][2])) == sorted(map(repr, drawn(story_of(told))[0][2]))
    assert [one[:2] for one in drawn(stored)] == [one[:2] for one in drawn(story_of(told))]
    assert stored.title == "go"


def test_a_trace_is_drawn_like_the_live_turn(two_turns: tuple[list[Told], InProcessMemory]) -> None:
    told, _ = two_turns
    lines = [
        json.dumps({"v": 1, "at": one.at, "conversation": "c", "turn": one.turn, "kind": one.kind, **one.data})
        for one in told
        if not one.kind.endswith("_piece")
    ]
    traced = [Told(one.at, one.turn, one.kind, one.data) for one in read_trace(lines)]
    assert drawn(story_of(traced)) == drawn(story_of(told))


def test_the_operations_give_what_the_state_gives(two_turns: tuple[list[Told], InProcessMemory]) -> None:
    """A browser that was there from the start sees what one sees that opens the page now."""
    told, _ = two_turns
    story = Story()
    turns: dict[str, Any] = {}
    for one in told:
        for op in story.take(one):
            if op["op"] == "turn":
                turns.setdefault(op["turn"]["id"], {"rounds": {}, "blocks": {}}).update(op["turn"])
            elif op["op"] == "round":
                turns[op["round"]["turn"]]["rounds"].setdefault(op["round"]["n"], {}).update(op["round"])
            elif op["op"] == "block":
                turns[op["block"]["turn"]]["blocks"].setdefault(op["block"]["key"], {}).update(op["block"])
            else:
                turns[op["turn"]]["blocks"][op["key"]]["text"] += op["text"]
    seen = [
        {**turn, "rounds": list(turn["rounds"].values()), "blocks": list(turn["blocks"].values())}
        for turn in turns.values()
    ]
    assert seen == story.state()


def test_a_click_opens_the_exact_request(two_turns: tuple[list[Told], InProcessMemory]) -> None:
    told, memory = two_turns
    turn = told[0].turn
    (_, exact), (_, reply) = story_of(told).detail(turn, 2)
    request = json.loads(exact)
    texts = ["".join(part.get("text", "") for part in one["content"]) for one in request["messages"]]
    assert texts == ["go", "I edit", "", "", "one call more", "one call more", "run the linter"]
    assert [one["name"] for one in request["tools"]] == ["edit"]
    assert json.loads(reply)["content"][0]["text"] == "done"

    (title, recorded), _ = story_of(list(tell(memory.load_memory("c", LoadQuery()).entries))).detail(turn, 2)
    assert "put together" in title
    assert [one["role"] for one in json.loads(recorded)["messages"]] == [one["role"] for one in request["messages"]]
    assert story_of(told).detail(turn, 9) == story_of(told).detail("nobody", 1) == []


def test_secrets_are_shown_nowhere() -> None:
    script = [[call("edit", {"path": SECRET}, id="c1")], f"the key is {SECRET}"]
    with Agent(ScriptedProvider(script), tools=[edit], instructions=f"Use {SECRET}.") as agent:
        story = story_of([one for one in told_of(agent, f"my key: {SECRET}") if not one.kind.endswith("_piece")])
    (turn,) = story.turns
    shown = json.dumps(story.state()) + repr([story.detail(turn, what) for what in (1, 2, "call/c1", "2/reply")])
    assert SECRET not in shown
    assert "[redacted]" in shown


def test_long_texts_are_cut_and_whole_on_a_click() -> None:
    with Agent(ScriptedProvider(["y" * 100_000])) as agent:
        story = story_of(told_of(agent, "x" * 100_000))
    ((turn, state),) = [(one["id"], one) for one in story.state()]
    assert [(len(one["text"]), one["more"]) for one in state["blocks"] if one["kind"] != "stored"] == [
        (8000, 92_000)
    ] * 2
    assert story.detail(turn, "1/reply") == [("As it came", "y" * 100_000)]


def test_limits_failures_and_verdicts_are_told() -> None:
    class Again:
        name = "again"

        @hookimpl
        def on_model_error(self) -> Retry:
            return Retry()

        @hookimpl
        def before_tool(self) -> Deny:
            return Deny("not now")

    script = [ProviderError("busy", provider="p", kind="overloaded"), [call("edit", {"path": "a"}, id="c1")], "never"]
    with Agent(ScriptedProvider(script), tools=[edit], plugins=[Again()], limits=Limits(rounds=1)) as agent:
        story = story_of(told_of(agent, "go"))
    (turn,) = story.state()
    lines = {one["kind"]: (one["who"], one["text"]) for one in turn["blocks"]}
    assert "overloaded" in lines["model_failed"][1]
    assert lines["decision"] == ("again", "Deny not now")
    assert "rounds" in lines["limit_reached"][1]
    assert (turn["status"], turn["used_rounds"], turn["used_calls"]) == ("limit", 1, 1)
    assert shown_limits(Limits(rounds=1, tokens=5)) == {
        "rounds": 1,
        "calls": 150,
        "tokens": 5,
        "cost": None,
        "seconds": None,
    }


def test_rooms_decide_refuse_and_close() -> None:
    async def run() -> None:
        script = [[call("drop", {"path": "a"}, id="c1")], "gone", "next"]
        async with Agent(ScriptedProvider(script), tools=[drop]) as agent:
            rooms = Rooms(agent, describe, turns=1)
            mine = rooms.new_id("me")
            room = await rooms.open(mine)
            task = room.begin("drop it")
            with pytest.raises(Busy):
                room.begin("twice")
            with pytest.raises(Busy, match="as many"):
                rooms.check_room()
            await task
            assert room.story.waiting == {"c1": '{"path":"a"}'}
            later = story_of(list(tell(agent.memories[0].load_memory(mine, LoadQuery()).entries)))
            assert later.waiting == room.story.waiting, "what is read from the store waits too"
            await room.decide("c1", decision_of("approve", "", '{"path": "b"}', '{"path":"a"}'))
            assert room.outcome is not None
            assert room.outcome.text == "gone"
            assert len(room.story.turns) == 1
            assert [one["title"] for one in await rooms.listing("me")] == ["drop it"]
            assert await rooms.listing("you") == []
            assert (rooms.may_open("me", mine), rooms.may_open("you", mine)) == (True, False)
            assert await rooms.newest("me") == mine
            shared = Rooms(agent, describe, shared=True)
            assert shared.may_open("you", mine)
            assert not shared.may_open("you", "../" + mine)
            assert [one["title"] for one in await shared.listing("you")] == ["drop it"]
            assert await shared.newest("you") != mine, "shared, but not opened unasked"
            await rooms.close()

    asyncio.run(run())


def test_a_decision_is_read_with_care() -> None:
    assert decision_of("deny", " ", None, "{}") == Deny("denied by the user")
    assert decision_of("approve", "", "{}", "{}") == Approve()
    assert decision_of("approve", "", '{"a": 1}', "{}") == Approve({"a": 1})
    assert decision_of("answer", "42", None, "{}") == Answer("42")
    for verdict, arguments in (("approve", "[1]"), ("approve", "{"), ("maybe", None)):
        with pytest.raises(ValueError, match=r"JSON|verdict"):
            decision_of(verdict, "", arguments, "{}")
