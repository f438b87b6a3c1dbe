"""The lost feedback through both real SDKs: on the wire, in four ways and two transports."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import pytest
from scenarios import EDIT, READ, Feedback, tools
from ways import TRANSPORTS, WAYS
from wires import WIRES, Wire, play, served, texts

from hookloop import Agent, Limits
from hookloop.testing import call, say
from hookloop_hookspecs import LimitError, hookimpl


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_the_third_request_holds_the_feedback_once_where_it_was(wire: Wire, transport: str, way: str) -> None:
    with served(EDIT, READ, say("done")) as server:
        with Agent(wire.provider(server, transport), tools=tools([]), plugins=[Feedback()]) as agent:
            outcome = play(agent, way)
        assert outcome.text == "done"
        second, third = (texts(recorded) for recorded in server.requests[1:])
        assert [text for _, text in third].count("FOO_BAR_FEEDBACK") == 1
        assert third.index(("user", "FOO_BAR_FEEDBACK")) == second.index(("user", "FOO_BAR_FEEDBACK")) == 3
        assert third[: len(second)] == second
        assert {recorded.stream for recorded in server.requests} == {transport == "stream"}


class Chatty:
    """Injects a user message after every call."""

    name = "chatty"

    @hookimpl
    def after_tool(self) -> str:
        return "a user message"


@pytest.mark.parametrize("mode", ["stop", "error_result", "answer", "raise"])
@pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
def test_after_any_breach_the_api_accepts_the_next_turn(wire: Wire, mode: Any) -> None:
    script = [call("edit", {"path": str(at)}, id=f"c{at}") for at in range(12)] + [say("done")]
    with served() as server:
        server.play(*script)
        limits = Limits(tool_calls=10, on_breach=mode)
        with Agent(wire.provider(server, "stream"), tools=tools([]), plugins=[Chatty()], limits=limits) as agent:
            with pytest.raises(LimitError) if mode == "raise" else nullcontext():
                agent.run("go", conversation="c")
    memory = agent.memories[0]
    with served(say("next")) as server, Agent(wire.provider(server, "whole"), tools=tools([]), memory=memory) as again:
        assert again.run("and now?", conversation="c").text == "next"
