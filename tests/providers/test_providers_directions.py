"""Conversations that move between providers and back, recuts on models that bind thinking, structured output on each wire."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel
from scenarios import EDIT, READ, tools
from ways import TRANSPORTS
from wires import CHAT, MESSAGES, RESPONSES, WIRES, Wire, served, texts

from hookloop import Agent, tool
from hookloop.memory import InProcessMemory
from hookloop.testing import call, say, think

THINKING = Wire("bound", "anthropic:claude-opus-5-5", "", (("thinking", "adaptive"),))
REASONING = Wire("reasoning", "openai:gpt-5.4", "/v1", (("api", "responses"),))
BOTH = [(a, b) for a in (CHAT, REASONING, THINKING, MESSAGES) for b in (CHAT, RESPONSES, REASONING, THINKING) if a != b]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize(("first", "second"), BOTH, ids=lambda wire: wire.name)
def test_a_conversation_moves_to_another_provider_and_back(first: Wire, second: Wire, transport: str) -> None:
    memory = InProcessMemory()
    script = ([think("hm"), EDIT], say("edited it"), [think("so"), READ], say("read it"), say("and back"))
    with served(*script) as server:
        for wire, prompt in ((first, "edit a"), (second, "read a"), (first, "and now?")):
            with Agent(wire.provider(server, transport), tools=tools([]), memory=memory) as made:
                outcome = made.run(prompt, conversation="c")
    assert outcome.text == "and back"
    moved, back = (texts(server.requests[at]) for at in (2, 4))
    assert said(moved) == ["edit a", "call edit", "edited a", "edited it", "read a"]
    assert said(back)[-5:] == ["read a", "call read", "content of a", "read it", "and now?"]
    assert "hm" not in str(server.requests[2].body["messages" if "messages" in server.requests[2].body else "input"])
    assert '"so"' not in str(server.requests[4].raw)


def said(flat: list[tuple[str, str]]) -> list[str]:
    """The texts of a request, opaque blocks aside."""
    return [text for _, text in flat if text and text not in ("thinking", "reasoning", "hm")]


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-haiku-4-5", "claude-sonnet-4-6"])
def test_a_long_turn_is_cut_and_the_server_takes_it(model: str) -> None:
    @tool
    def step(n: int) -> str:
        """Take a step."""
        return "x" * 10

    script: list[Any] = [[think(f"t{at}"), call("step", {"n": at}, id=f"toolu_{at}")] for at in range(9)]
    wire = Wire("cut", f"anthropic:{model}", "")
    with served(*script, say("done")) as server:
        with Agent(wire.provider(server, "stream"), tools=[step], config={"window": {"messages": 6}}) as made:
            assert made.run("go").text == "done"
        assert len({len(recorded.body["messages"]) for recorded in server.requests}) < 7


class Ticket(BaseModel):
    """What is asked for."""

    train: str
    seats: list[int]


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("wire", [*WIRES, REASONING], ids=lambda wire: wire.name)
def test_structured_output_on_each_wire(wire: Wire, transport: str) -> None:
    good = '{"train": "G123", "seats": [1, 2]}'

    def answer(text: str) -> Any:
        return lambda recorded: (
            say(text) if not _uses_tool(recorded.body) else call("final_Ticket", text, id="call_out")
        )

    with served(EDIT, answer('{"train": 5, "seats": "none"}'), answer(good)) as server:
        with Agent(wire.provider(server, transport), tools=tools([])) as made:
            outcome = made.run("book", output=Ticket)
    assert outcome.output == Ticket(train="G123", seats=[1, 2])
    assert (outcome.status, outcome.stop_reason) == ("done", "end")


def _uses_tool(body: dict[str, Any]) -> bool:
    """Is the output asked for through the output tool?"""
    names = [one.get("name") or one.get("function", {}).get("name") for one in body.get("tools", [])]
    return "final_Ticket" in names
