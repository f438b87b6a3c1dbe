"""The wound the project exists for: what a hook adds is still there in every later request, once, in its place."""

from __future__ import annotations

from typing import Any

import pytest
from scenarios import EDIT, READ, Feedback, scenario, tools
from ways import TRANSPORTS, WAYS, play

from hookloop import Agent, Limits
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import hookimpl


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transport", TRANSPORTS)
def test_the_feedback_is_in_the_third_request_once_and_where_it_was(way: str, transport: str) -> None:
    seen = play(scenario("feedback", [EDIT, READ, say("done")], Feedback), way, transport)
    second, third = (request[2] for request in seen.requests[1:3])
    texts = [message.text for message in third]
    assert texts.count("FOO_BAR_FEEDBACK") == 1
    assert [message.text for message in second].index("FOO_BAR_FEEDBACK") == texts.index("FOO_BAR_FEEDBACK") == 3
    assert third[: len(second)] == second
    assert texts == ["go", "", "edited a", "FOO_BAR_FEEDBACK", "", "content of a"]


class Injector:
    """Adds one message in every round, in the hook it was made for."""

    def __init__(self, name: str, hook: str) -> None:
        self.name = name

        def inject(turn: Any) -> str:
            return f"{name} {turn.round}"

        setattr(self, hook, hookimpl(inject))


@pytest.mark.parametrize("asynchronous", [False, True])
def test_five_plugins_injecting_for_200_rounds_lose_and_double_nothing(asynchronous: bool) -> None:
    rounds = 200
    hooks = ("next_instructions", "before_round", "after_tool", "after_reply", "next_instructions")
    names = [f"p{at}" for at in range(5)]
    script = [call("edit", {"path": str(at)}, id=f"c{at}") for at in range(rounds)] + [say("done")]
    provider = ScriptedProvider(script)
    limits = Limits(rounds=None, tool_calls=None, per_tool=None)
    plugins = [Injector(name, hook) for name, hook in zip(names, hooks, strict=True)]
    with Agent(provider, tools=tools([]), plugins=plugins, limits=limits) as agent:
        outcome = _run(agent, asynchronous)
    assert outcome.text == "done"
    last = provider.requests[-1].messages
    for name, hook in zip(names, hooks, strict=True):
        texts = [m.text for m in last if m.origin.plugin == name]
        until = rounds + 1 if hook == "before_round" else rounds
        assert texts == [f"{name} {at}" for at in range(1, until + 1)]
    first_round = [message.text for message in last[1:8]]
    assert first_round == ["p1 1", "", "edited 0", "p3 1", "p2 1", "p0 1", "p4 1"]
    for before, after in zip(provider.requests, provider.requests[1:], strict=False):
        assert list(after.messages[: len(before.messages)]) == list(before.messages)


def _run(agent: Agent, asynchronous: bool) -> Any:
    if not asynchronous:
        return agent.run("go")
    import asyncio

    return asyncio.run(agent.arun("go"))


class Chatty:
    """Injects a user message after every call, which must not look like a new turn."""

    name = "chatty"

    @hookimpl
    def after_tool(self) -> str:
        return "a user message"


@pytest.mark.parametrize("mode", ["stop", "error_result", "answer", "raise"])
@pytest.mark.parametrize("way", WAYS)
def test_injected_messages_do_not_reset_the_limit_of_ten_calls(mode: Any, way: str) -> None:
    script = [call("edit", {"path": str(at)}, id=f"c{at}") for at in range(15)] + [say("done")]
    limits = Limits(tool_calls=10, on_breach=mode)
    seen = play(scenario("counters", script, Chatty, limits=limits), way)
    assert sum(note[0] == "edit" for note in seen.notes) == 10
    if mode == "error_result":
        assert seen.outcome.status == "done"
    else:
        assert (seen.outcome.status, seen.outcome.stop_reason) == ("limit", "tool_calls")
    assert [type(error).__name__ for error in seen.errors] == (["LimitError"] if mode == "raise" else [])
    if mode == "answer":
        assert seen.requests[-2][4] == "none"
        assert len(seen.requests) == 13
