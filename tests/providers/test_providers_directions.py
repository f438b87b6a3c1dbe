"""Conversations that move between providers and back, recuts on models that bind thinking, structured output on each wire."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from pydantic import BaseModel
from scenarios import EDIT, READ, tools
from ways import TRANSPORTS, WAYS
from wires import CHAT, COMPATIBLE, DEEPSEEK, GEMINI, MESSAGES, MISTRAL, RESPONSES, WIRES, Wire, play, served, texts

from hookloop import Agent, tool
from hookloop.memory import InProcessMemory
from hookloop.testing import call, say, think

THINKING = Wire("bound", "anthropic:claude-opus-5-5", "", (("thinking", "adaptive"),))
REASONING = Wire("reasoning", "openai:gpt-5.4", "/v1", (("api", "responses"),))
OURS = (CHAT, REASONING, THINKING, MESSAGES)
OTHERS = (DEEPSEEK, MISTRAL, GEMINI)
BOTH = [
    *((a, b) for a in OURS for b in (CHAT, RESPONSES, REASONING, THINKING) if a != b),
    *((a, b) for a in OTHERS for b in (CHAT, REASONING, THINKING)),
    *((a, b) for a in (CHAT, REASONING, THINKING) for b in OTHERS),
]
HOME = {
    "deepseek": b'"reasoning_content":"hm"',
    "gemini": b'"thought_signature":"of hm"',
    "messages": b'"thinking":"hm"',
    "reasoning": b'"encrypted_content":"',
}
"""What of the first turn only its own provider may read, and reads again when the conversation comes back.

A model that binds thinking to all before it is not here: the engine sends it none of closed turns.
"""


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("first", "second"), BOTH, ids=lambda wire: wire.name)
def test_a_conversation_moves_to_another_provider_and_back(first: Wire, second: Wire, way: str, transport: str) -> None:
    memory = InProcessMemory()
    at_home = ([think("hm"), signed(first, EDIT, "of hm")], say("edited it"), say("and back"))
    away = ([think("so"), signed(second, READ, "of so")], say("read it"))
    with served(*at_home, profile=first.demands) as home, served(*away, profile=second.demands) as abroad:
        for wire, server, prompt in ((first, home, "edit a"), (second, abroad, "read a"), (first, home, "and now?")):
            with Agent(wire.provider(server, transport), tools=tools([]), memory=memory) as made:
                outcome = play(made, way, prompt)
        assert home.left == abroad.left == 0
    assert outcome.text == "and back"
    moved, back = abroad.requests[0], home.requests[2]
    assert said(texts(moved)) == ["edit a", "call edit", "edited a", "edited it", "read a"]
    assert said(texts(back))[-5:] == ["read a", "call read", "content of a", "read it", "and now?"]
    assert not any(private in moved.raw for private in (b'"hm"', b"of hm"))
    assert not any(private in back.raw for private in (b'"so"', b"of so"))
    assert HOME.get(first.name, b"") in back.raw


def signed(wire: Wire, part: Any, signature: str) -> Any:
    """A call as this endpoint says it: Gemini signs each."""
    extra = {"extra_content": {"google": {"thought_signature": signature}}}
    return replace(part, extra=json.dumps(extra)) if wire is GEMINI else part


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


BY_SCHEMA = ("chat", "responses", "messages", "reasoning", "azure", "xai")
"""Those that are given the schema; all others are given the output tool."""


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("wire", [*WIRES, REASONING, *COMPATIBLE], ids=lambda wire: wire.name)
def test_structured_output_on_each_wire(wire: Wire, way: str, transport: str) -> None:
    good = '{"train": "G123", "seats": [1, 2]}'

    def answer(text: str) -> Any:
        by_tool = [think("so"), signed(wire, call("final_Ticket", text, id=f"out{len(text)}"), "of so")]
        return lambda recorded: by_tool if _uses_tool(recorded.body) else say(text)

    first = [think("hm"), signed(wire, EDIT, "of hm")]
    with served(first, answer('{"train": 5, "seats": "none"}'), answer(good), profile=wire.demands) as server:
        with Agent(wire.provider(server, transport), tools=tools([])) as made:
            outcome = play(made, way, "book", output=Ticket)
    assert outcome.output == Ticket(train="G123", seats=[1, 2])
    assert (outcome.status, outcome.stop_reason) == ("done", "end")
    assert [_uses_tool(recorded.body) for recorded in server.requests] == [wire.name not in BY_SCHEMA] * 3
    assert all(b'"json_schema"' in recorded.raw or _uses_tool(recorded.body) for recorded in server.requests)


def _uses_tool(body: dict[str, Any]) -> bool:
    """Is the output asked for through the output tool?"""
    names = [one.get("name") or one.get("function", {}).get("name") for one in body.get("tools", [])]
    return "final_Ticket" in names
