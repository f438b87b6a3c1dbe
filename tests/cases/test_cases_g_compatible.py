"""Kind G: what OpenAI-compatible servers want of the next request, after turns that the loop made, stored and loaded."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from scenarios import Hooked
from wires import CHAT, DEEPSEEK, MISTRAL

from cases import ON_EACH_WIRE, ON_WIRES, THROUGHOUT, Place, few, places
from hookloop import tool
from hookloop.testing import call, say, think
from hookloop_hookspecs import Approve, ConfigError, Message, Narrow, PluginError, ToolCall, ToolResult


@tool
def get(x: str = "") -> str:
    """Get."""
    return f"got {x}"


@tool(needs_approval=True)
def put(x: str = "") -> str:
    """Put."""
    return f"put {x}"


def assistants(request: Any) -> list[dict[str, Any]]:
    """The assistant messages of a Chat Completions request."""
    return [message for message in request.body["messages"] if message["role"] == "assistant"]


@pytest.mark.parametrize("place", places(CHAT), ids=str)
def test_G03_content_is_null_beside_calls_and_never_null_without(place: Place) -> None:
    with place.stage(call("get", id="c1"), say(""), say("two"), tools=[get]) as stage:
        stage.run()
        stage.run("more")
        calling, *others = assistants(stage.raw[2])
        assert ("content" in calling, calling["content"]) == (True, None)
        assert all(other["content"] is not None and "tool_calls" not in other for other in others)


@pytest.mark.parametrize("place", ON_WIRES, ids=str)
def test_G05_without_tools_there_is_no_word_of_tools(place: Place) -> None:
    with place.stage(say("ok")) as stage:
        stage.run()
        assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(stage.raw[0].body)


@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_G05_a_hook_may_take_all_tools_away(place: Place) -> None:
    plugins = [Hooked(before_round=lambda turn: Narrow(tools=()) if turn.round == 1 else None)]
    with place.stage(call("get", id="c1"), call("get", id="c2"), say("ok"), tools=[get], plugins=plugins) as stage:
        assert stage.run().text == "ok"
        assert [r.is_error for m in stage.outcome.messages for r in m.results] == [True, False]


@pytest.mark.parametrize(("tools", "choice"), [([], "required"), ([], "get"), ([get], "nope")])
@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_G06_a_choice_that_cannot_be_met_is_an_error_before_any_request(place: Place, tools: Any, choice: str) -> None:
    with place.stage(say("fine")) as stage:
        assert stage.run(with_={"tools": tools, "tool_choice": choice}).status == "failed"
        assert isinstance(stage.error, ConfigError)
        assert stage.raw == []
        assert stage.run().text == "fine"


UNMET = {
    "unknown": Narrow(tool_choice="nope"),
    "not allowed": Narrow(tool_choice="get", tools=("put",)),
    "required of none": Narrow(tool_choice="required", tools=()),
}


@pytest.mark.parametrize("name", UNMET)
@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_G06_a_hook_s_choice_that_cannot_be_met_is_the_hook_s_error(place: Place, name: str) -> None:
    with place.stage(say("fine"), tools=[get, put]) as stage:
        stage.run(with_={"plugins": [Hooked("chooser", before_round=lambda: UNMET[name])]})
        assert isinstance(stage.error, PluginError | ConfigError)
        assert "chooser" in str(stage.error)
        assert stage.raw == []
        stage.run()


FOREIGN = ["call_PTLP8x" + "y" * 20, "toolu_01A", "search:0", "x" * 90]


@pytest.mark.parametrize("place", places(MISTRAL), ids=str)
def test_G07_ids_of_other_servers_fit_mistral_and_stay_themselves(place: Place) -> None:
    """The first turn is played on another API; the ids of the log are those that it gave."""
    first = [[call("get", {"x": str(n)}, id=id) for n, id in enumerate(FOREIGN)], say("one")]
    with Place(None, "run", "stream").stage(*first, tools=[get]) as before:
        before.run()
        memory = before.memory
        before.say(say("two"))
        before.run("and?")
    with place.stage(say("three"), tools=[get], memory=memory) as stage:
        outcome = stage.run("now you")
        wire = stage.raw[0].body["messages"]
        ids = [entry["id"] for message in wire for entry in message.get("tool_calls", ())]
        answers = [message["tool_call_id"] for message in wire if message["role"] == "tool"]
        assert ids == answers
        assert all(re.fullmatch("[A-Za-z0-9]{9}", id) for id in ids)
        assert [c.id for m in outcome.messages for c in m.calls] == FOREIGN


@pytest.mark.parametrize("place", places(MISTRAL), ids=str)
def test_G07_ids_that_repeat_fit_too(place: Place) -> None:
    """Mistral's own ids, repeated in each round, then made unique by the engine, then fitted again."""
    rounds = [call("get", {"x": str(n)}, id="abcdefghi") for n in range(3)]
    with place.stage(*rounds, say("done"), tools=[get]) as stage:
        assert stage.run().text == "done"
        wire = stage.raw[-1].body["messages"]
        assert len({entry["id"] for message in wire for entry in message.get("tool_calls", ())}) == 3


@pytest.mark.parametrize("place", places(DEEPSEEK), ids=str)
def test_G09_reasoning_goes_back_over_turns_and_stores(place: Place) -> None:
    script = [[think("R1"), call("get", id="c1")], [think("R2"), say("one")], [think("R3"), say("two")]]
    with place.stage(*script, tools=[get]) as stage:
        stage.run()
        stage.run("more")
        assert assistants(stage.raw[1])[0]["reasoning_content"] == "R1"
        assert assistants(stage.raw[2])[0]["reasoning_content"] == "R1"


@pytest.mark.parametrize("place", places(DEEPSEEK), ids=str)
def test_G09_reasoning_goes_back_after_a_resume(place: Place) -> None:
    script = [[think("R1"), call("put", id="c1")], say("one")]
    with place.stage(*script, tools=[put]) as stage:
        stage.run()
        stage.resume(Approve())
        assert assistants(stage.raw[1])[0]["reasoning_content"] == "R1"


@pytest.mark.parametrize("place", places(CHAT), ids=str)
def test_G09_it_is_not_sent_to_others(place: Place) -> None:
    with place.stage([think("R1"), call("get", id="c1")], say("one"), say("two"), tools=[get]) as stage:
        stage.run()
        stage.run("more")
        assert all("reasoning_content" not in m for request in stage.raw for m in assistants(request))


BAD = ['{"x":"C:\\Users"}', '{"x":', "not json", '["x"]', '{"x":1}{"x":2}']


@pytest.mark.parametrize("raw", BAD)
@pytest.mark.parametrize("place", [*few(None)[:2], *ON_EACH_WIRE], ids=str)
def test_G13_bad_arguments_are_valid_json_in_every_later_request(place: Place, raw: str) -> None:
    """The log keeps what the model wrote; on the wire it is an object, now, in the next turn, and for another server."""
    from hookloop.memory import InProcessMemory

    memory = InProcessMemory()
    scripted = Place(None, "run", "stream")
    with scripted.stage(call("get", raw, id="c1"), say("one"), tools=[get], memory=memory) as before:
        assert before.run().text == "one"
        assert before.outcome.messages[1].calls[0].raw == raw
        assert before.outcome.messages[2].results[0].is_error
    with place.stage(say("two"), tools=[get], memory=memory) as stage:
        stage.run("more")
        if place.wire is None:
            return
        (line,) = [text for kind, text in stage.sent[0] if kind == "call"]
        assert isinstance(json.loads(line.removeprefix("get ")), dict)


@pytest.mark.parametrize("place", ON_EACH_WIRE, ids=str)
def test_G13_a_history_that_is_handed_over_with_bad_arguments(place: Place) -> None:
    history = [
        Message.user("u"),
        Message.assistant(ToolCall("c1", "get", BAD[0])),
        Message.tool(ToolResult("c1", "get", (say("r"),))),
        Message.assistant("t"),
    ]
    with place.stage(say("one"), say("two"), tools=[get]) as stage:
        stage.run("go", conversation="other", history=history)
        (line,) = [text for kind, text in stage.sent[0] if kind == "call"]
        assert isinstance(json.loads(line.removeprefix("get ")), dict)
        stage.run()
