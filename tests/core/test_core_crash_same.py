"""A turn whose tools may run again comes to the very same history, wherever it crashed: nothing that hooks said is lost."""

from __future__ import annotations

from typing import Any

import pytest
from scenarios import Hooked

from hookloop import Agent, Limits, tool
from hookloop.engine.log import flatten
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, crash, crash_points, mortal, say
from hookloop_hookspecs import Ending, LoadQuery, Message, ModelRequest, NoOpenTurn, Replace, Stop, TurnEnded


@tool(idempotent=True)
def look(n: int) -> str:
    """Look."""
    return f"saw {n}"


@tool(idempotent=True, return_direct=True)
def final(n: int) -> str:
    """Answer."""
    return f"final {n}"


def talkative() -> Hooked:
    """A plugin that says something at every place, by what it sees and nothing else."""
    return Hooked(
        "talkative",
        before_turn=lambda: ["at the start", Message.system("be kind")],
        before_round=lambda turn: f"round {turn.round}",
        after_reply=lambda turn, reply: f"reply of round {turn.round} with {len(reply.calls)} calls",
        after_tool=lambda call, result: f"{call.id}: {result.text}",
        next_instructions=lambda turn, results: f"after {[result.text for result in results]}",
        review_answer=lambda turn: "not yet" if turn.round < 4 else None,
    )


def redacting() -> Hooked:
    """A plugin that changes results."""
    return Hooked("redacting", after_tool=lambda result: Replace(result.text.upper()))


def stopping() -> Hooked:
    """A plugin that ends the turn after the second group."""
    return Hooked("stopping", next_instructions=lambda turn: Stop("enough", "that is it") if turn.round == 2 else None)


def stopping_tool() -> Hooked:
    """A plugin that ends the turn by what a tool saw."""
    return Hooked("stopping", after_tool=lambda result: Stop("seen", "that is it") if result.text == "saw 2" else None)


GROUPS: list[Any] = [
    call("look", {"n": 1}, id="a"),
    [say("two more"), call("look", {"n": 2}, id="b"), call("look", {"n": 3}, id="c")],
    [call("look", {"n": "x"}, id="d"), call("nope", id="e"), call("look", {"n": 4}, id="f")],
]
CASES: dict[str, tuple[list[Any], Any, dict[str, Any]]] = {
    "talkative": ([*GROUPS, say("draft"), say("done")], talkative, {}),
    "redacting": ([*GROUPS, say("done")], redacting, {}),
    "stopped by next_instructions": ([*GROUPS, say("done")], stopping, {}),
    "stopped by after_tool": ([GROUPS[0], call("look", {"n": 2}, id="b"), say("done")], stopping_tool, {}),
    "return direct": ([GROUPS[0], call("final", {"n": 5}, id="z")], talkative, {}),
    "limit": ([*GROUPS, say("done")], talkative, {"limits": Limits(tool_calls=2)}),
    "limit with an answer": ([*GROUPS, say("done")], redacting, {"limits": Limits(tool_calls=2, on_breach="answer")}),
    "structured": (
        [GROUPS[0], [call("final_list", {"value": [1]}, id="o"), call("look", {"n": 6}, id="g")]],
        redacting,
        {},
    ),
}


class Kept:
    """What outlives a crash, and agents over it."""

    def __init__(self, name: str) -> None:
        self.memory = InProcessMemory()
        self.replies, self.plugin, self.parameters = CASES[name]
        self.run: dict[str, Any] = {"output": list[int]} if name == "structured" else {}

    def agent(self) -> Agent:
        provider = ScriptedProvider([self.answer] * 60)
        plugins = [self.plugin()]
        return Agent(provider, tools=[look, final], plugins=plugins, memory=self.memory, **self.parameters)

    def answer(self, request: ModelRequest) -> Any:
        said = sum(message.role == "assistant" for message in request.messages)
        return self.replies[min(said, len(self.replies) - 1)]

    def go(self, agent: Agent) -> Any:
        return agent.stream("go", conversation="c", turn_id="t", **self.run)

    def history(self) -> list[tuple[Any, ...]]:
        """What is stored, as comparable data. Call ids of a reply that was asked again may differ, so they stay out."""
        entries = self.memory.load_memory("c", LoadQuery()).entries
        ended = [entry.body for entry in entries if isinstance(entry.body, TurnEnded)]
        ends = [(body.status, body.stop_reason, body.text, body.output) for body in ended]
        said = [(m.role, m.text, m.origin.plugin, m.origin.hook, m.origin.round) for m in flatten(entries)]
        return [*said, *ends]


@pytest.mark.parametrize("name", CASES)
def test_a_resumed_turn_comes_to_the_same_history(name: str) -> None:
    whole = Kept(name)
    with whole.agent() as agent:
        whole.go(agent).result()
    wanted = whole.history()
    kept: dict[Any, Kept] = {}

    def play(at: int, when: Any) -> bool:
        world = kept[at, when] = Kept(name)
        agent = mortal(world.agent())
        return crash(agent, lambda: world.go(agent), at, when)

    for point in crash_points(play):
        world = kept[point]
        with world.agent() as agent:
            try:
                agent.resume("c", output=world.run.get("output"))
            except NoOpenTurn:
                world.go(agent).result()
        assert world.history() == wanted, point


def test_a_stop_that_was_stored_keeps_open_siblings_from_running_after_a_crash() -> None:
    """The sibling had started: what became of it nobody knows, and the turn was told to end."""
    CASES["siblings"] = (
        [[call("look", {"n": 2}, id="b"), call("look", {"n": 3}, id="c")], say("done")],
        stopping_tool,
        {},
    )
    kept: dict[Any, Kept] = {}

    def play(at: int, when: Any) -> bool:
        world = kept[at, when] = Kept("siblings")
        agent = mortal(world.agent())
        return crash(agent, lambda: world.go(agent), at, when)

    for point in crash_points(play):
        world = kept[point]
        stops = [e for e in world.memory.load_memory("c", LoadQuery()).entries if isinstance(e.body, Ending)]
        with world.agent() as agent:
            try:
                outcome = agent.resume("c")
            except NoOpenTurn:
                outcome = world.go(agent).result()
        texts = {m.text for m in outcome.messages if m.role == "tool"}
        assert outcome.status == "stopped"
        assert texts <= {"saw 2", "saw 3", "interrupted: the call had started, its effect is unknown"}
        assert not stops or "not run" not in str(texts)
