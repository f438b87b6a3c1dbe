"""Kind H: what the Messages API wants of the next request, after turns that the loop made, stored and loaded."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from scenarios import Hooked, SendFrom
from wires import CHAT, MESSAGES, Wire

from cases import Place, few, hooked, places, shown
from hookloop import Limits, tool
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, reply, say, think
from hookloop_hookspecs import Approve, Message, Opaque, ProviderError, Retry, Thinking, ToolCall, ToolResult
from hookloop_hookspecs.messages import json_text


@tool
def get(x: str = "") -> str:
    """Get."""
    return f"got {x}"


@tool(needs_approval=True)
def put(x: str = "") -> str:
    """Put."""
    return f"put {x}"


THREE = [call("get", {"x": str(n)}, id=f"t{n}") for n in range(3)]
SOME = few(MESSAGES)
PREFILLED = Wire("haiku", "anthropic:claude-haiku-4-5", "")
"""A model whose last message may be its own."""


def blocks(request: Any) -> list[tuple[str, list[str]]]:
    """Roles and block types of a request."""
    return [(message["role"], [block["type"] for block in message["content"]]) for message in request.body["messages"]]


def thoughts(request: Any) -> list[tuple[str, str]]:
    """Thinking blocks of a request with their signatures."""
    content = [block for message in request.body["messages"] for block in message["content"]]
    return [(block["thinking"], block["signature"]) for block in content if block["type"] == "thinking"]


@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_H01_all_results_stand_in_one_message_in_call_order(place: Place) -> None:
    with place.stage(THREE, say("ok"), say("two"), tools=[get]) as stage:
        stage.run()
        stage.run("more")
        for request in stage.raw[1:]:
            assert (
                blocks(request)[2] == ("user", ["tool_result"] * 3) or blocks(request)[2][1][:3] == ["tool_result"] * 3
            )
            answered = [block["tool_use_id"] for block in request.body["messages"][2]["content"][:3]]
            assert answered == ["t0", "t1", "t2"]


@pytest.mark.parametrize(
    "hook", ["after_tool", "next_instructions", "after_reply", "before_round", "sent", "superseded"]
)
@pytest.mark.parametrize("place", [*places(MESSAGES), few(CHAT)[2]], ids=str)
def test_H02_user_text_comes_behind_all_results(place: Place, hook: str) -> None:
    def two(turn: Any) -> str | None:
        return "and NY?" if turn.round == (2 if hook == "before_round" else 1) else None

    plugins: list[Any] = [hooked(hook, two)] if "_" in hook else []
    if hook == "sent":
        plugins = [SendFrom("tool_started", "and NY?")]
    first = [*THREE[:2], call("put", id="p")] if hook == "superseded" else THREE[:2]
    with place.stage(first, say("ok"), tools=[get, put], plugins=plugins) as stage:
        if hook == "sent":
            play_with_sender(stage, plugins[0])
        else:
            stage.run()
        if hook == "superseded":
            stage.run("and NY?")
        kinds = [kind for kind, _ in stage.sent[1]]
        at = kinds.index("result")
        results = kinds.count("result")
        assert kinds[at : at + results] == ["result"] * results
        assert stage.sent[1][-1] == ("user", "and NY?")


def play_with_sender(stage: Any, sender: SendFrom) -> None:
    """A sender needs the agent that it sends to."""
    with stage.agent() as agent:
        sender.agent = agent
        stage.outcomes.append(agent.run("go", conversation="c"))
        stage.errors.append(None)


@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_H03_signatures_go_back_over_rounds_turns_and_stores(place: Place) -> None:
    script = [[think("R"), call("get", id="t1")], [think("S"), say("one")], say("two")]
    with place.stage(*script, tools=[get]) as stage:
        stage.run()
        stage.run("more")
        (first,) = thoughts(stage.raw[1])
        assert first[0] == "R"
        assert first[1]
        assert thoughts(stage.raw[2])[0] == first
        kinds = blocks(stage.raw[1])[1][1]
        assert kinds == ["thinking", "tool_use"]


@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_H03_signatures_go_back_after_a_suspension(place: Place) -> None:
    with place.stage([think("R"), call("put", id="t1")], say("one"), tools=[put]) as stage:
        stage.run()
        stage.resume(Approve())
        assert [text for text, _ in thoughts(stage.raw[1])] == ["R"]


INTERLEAVED = [think("a"), THREE[0], think("b"), THREE[1], THREE[2]]


@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_H05_interleaved_blocks_are_played_back_as_they_came(place: Place) -> None:
    with place.stage(INTERLEAVED, say("ok"), say("two"), tools=[get]) as stage:
        stage.run()
        stage.run("more")
        expected = ["thinking", "tool_use", "thinking", "tool_use", "tool_use"]
        for request in stage.raw[1:]:
            assert blocks(request)[1] == ("assistant", expected)
            assert [text for text, _ in thoughts(request)] == ["a", "b"]
        assert stage.raw[1].body["messages"][1] == without_marks(stage.raw[2].body["messages"][1])


def without_marks(message: dict[str, Any]) -> dict[str, Any]:
    """A message without cache marks, which wander."""
    content = [{k: v for k, v in block.items() if k != "cache_control"} for block in message["content"]]
    return {**message, "content": content}


@pytest.mark.parametrize("place", [*places(MESSAGES), *few(CHAT)], ids=str)
def test_H07_what_another_provider_signed_stays_at_home_and_comes_back(place: Place) -> None:
    memory = InProcessMemory()
    scripted = Place(None, "run", "stream")

    def at_home(*script: Any) -> list[Any]:
        with scripted.stage(*script, tools=[get], memory=memory) as home:
            home.run("at home")
            return home.scripted

    at_home([think("X", "of x"), THREE[0]], [think("Y", "of y"), say("one")])
    with place.stage(say("two"), tools=[get], memory=memory) as stage:
        stage.run("now you")
        kinds = [kind for kind, _ in stage.sent[0]]
        assert "thinking" not in kinds
        assert kinds.count("call") == kinds.count("result") == 1
    (request, *_) = at_home(say("three"))
    found = [part for message in request.messages for part in message.content if isinstance(part, Thinking)]
    assert [(part.text, part.signature) for part in found] == [("X", "of x"), ("Y", "of y")]


@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_H07_a_fallback_within_one_turn(place: Place) -> None:
    """The model changes between two rounds of a turn; the request of the second holds no thinking of the first."""
    other = ScriptedProvider([say("done")], model="other")
    plugins = [Hooked(on_model_error=lambda error: Retry(provider=other))]
    failing = ProviderError("overloaded", provider="x", kind="overloaded", retryable=True)
    with place.stage([think("R"), THREE[0]], failing, tools=[get], plugins=plugins) as stage:
        assert stage.run().text == "done"
        (request,) = other.requests
        assert [kind for kind, _ in shown(request.messages) if kind != "thinking"] == ["user", "call", "result"]


def server_tool() -> tuple[Any, Any]:
    """A paused reply with a server's own tool, and how it goes on."""
    use = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    paused = reply(say("Let me look."), Opaque(json_text(use)), stop="pause")
    return paused, reply(Opaque(json_text(found)), say("Here."))


@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_H12_a_paused_turn_is_sent_back_as_it_is(place: Place) -> None:
    with place.stage(*server_tool(), say("bye")) as stage:
        assert stage.run().text == "Here."
        second = blocks(stage.raw[1])
        assert second == [("user", ["text"]), ("assistant", ["text", "server_tool_use"])]
        stage.run("thanks")
        kinds = ["text", "server_tool_use", "web_search_tool_result", "text"]
        assert blocks(stage.raw[2])[1] == ("assistant", kinds)


@pytest.mark.parametrize("mode", ["stop", "answer", "raise"])
@pytest.mark.parametrize("place", [*SOME[:1], *few(None)[1:2]], ids=str)
def test_H12_pauses_are_bounded_by_the_limits(place: Place, mode: Any) -> None:
    paused = [one for _ in range(3) for one in server_tool()[:1]]
    last = [say("so far")] if mode == "answer" else []
    with place.stage(*paused, *last, limits=Limits(rounds=3, on_breach=mode)) as stage:
        assert (stage.run().status, stage.outcome.stop_reason) == ("limit", "rounds")


@pytest.mark.parametrize("text", ["a  \n", " a ", "  \n"])
@pytest.mark.parametrize("place", places(PREFILLED), ids=str)
def test_H09_a_final_message_is_stripped_on_the_wire_alone(place: Place, text: str) -> None:
    """A pause makes the reply the last message of the next request, then it stands in mid-history."""
    script = [reply(say(text), stop="pause"), say("b"), say("c")]
    with place.stage(*script) as stage:
        stage.run()
        assert stage.outcome.messages[1].content[-1] == say(text)
        stage.run("more")
        last = stage.raw[1].body["messages"][-1]["content"]
        assert all(block["text"] == block["text"].rstrip() for block in last if block["type"] == "text")
        assert all(block["type"] == "text" and block["text"] for block in last)


@pytest.mark.parametrize("empty", ["", "  ", "\n"])
@pytest.mark.parametrize("place", [*places(MESSAGES), *few(CHAT)], ids=str)
def test_H10_empty_texts_are_not_sent(place: Place, empty: str) -> None:
    script = [[say(empty), THREE[0]], say(empty), say("two"), say("three")]
    with place.stage(*script, tools=[get]) as stage:
        assert stage.run().text == ""
        stage.run("more")
        stage.run("and more")
        if place.wire is MESSAGES:
            for request in stage.sent:
                assert all(text.strip() for kind, text in request if kind in ("assistant", "user"))
            roles = [role for role, _ in blocks(stage.raw[-1])]
            assert all(a != b for a, b in pairwise(roles))


@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_H10_an_answer_without_any_block(place: Place) -> None:
    with place.stage(reply(), say("two"), tools=[get]) as stage:
        assert (stage.run().status, stage.outcome.text) == ("done", "")
        stage.run("more")
        assert [text for kind, text in stage.sent[1] if kind == "user"] == ["go", "more"]


@pytest.mark.parametrize("place", [*places(MESSAGES), *few(CHAT)], ids=str)
def test_H14_all_system_text_reaches_the_model(place: Place) -> None:
    plugins = [Hooked(before_turn=lambda: Message.system("S2"))]
    with place.stage(say("one"), say("two"), instructions="S1") as stage:
        stage.run()
        stage.run("more", with_={"plugins": plugins})
        raw = stage.raw[1].raw.decode()
        assert 0 < raw.index("S1") < raw.index("S2")
        assert ("user", "S1") not in stage.sent[1]
        assert ("user", "S2") not in stage.sent[1]


@pytest.mark.parametrize("place", [*places(MESSAGES), *few(CHAT)], ids=str)
def test_H14_system_messages_of_a_history_that_is_handed_over(place: Place) -> None:
    history = [
        Message.system("S1"),
        Message.user("U1"),
        Message.assistant(ToolCall.of("get", {}, "t1")),
        Message.tool(ToolResult("t1", "get", (say("r"),))),
        Message.assistant("A1"),
        Message.system("S2"),
    ]
    with place.stage(say("one"), say("two"), tools=[get]) as stage:
        stage.run("U2", conversation="other", history=history)
        raw = stage.raw[0].raw.decode()
        assert 0 < raw.index("S1") < raw.index("S2")
        assert not {("user", "S1"), ("user", "S2")} & set(stage.sent[0])
        stage.run()
