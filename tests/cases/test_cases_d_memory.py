"""Kind D: each message is stored once and sent once, and a turn that failed leaves nothing behind that is carried out later."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from scenarios import EDIT, Hooked, failing, tools
from wires import CHAT, MESSAGES, RESPONSES, Wire

from cases import EVERYWHERE, FEW, Line, Place, few, shown
from hookloop import Agent, tool
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop.testing.server import Fail
from hookloop_fallback import Fallback, FallbackOptions
from hookloop_hookspecs import Batch, MemoryCapabilities, Message, ProviderError, Retry, Said, TurnStarted, hookimpl


def users(lines: Sequence[Line]) -> list[str]:
    """The texts of the user's messages."""
    return [text for kind, text in lines if kind == "user"]


@pytest.mark.parametrize("place", EVERYWHERE, ids=str)
def test_D04_a_failed_turn_is_not_carried_out_by_the_next(place: Place) -> None:
    with place.stage(failing(), say("hello yourself"), tools=tools([])) as stage:
        assert stage.run("delete x").status == "failed"
        assert isinstance(stage.error, ProviderError)
        assert stage.run("hello").text == "hello yourself"
        assert stage.sent[1] == [("user", "hello")]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_D04_it_is_left_out_for_good(place: Place) -> None:
    """Also of the requests of later turns, and after the second failure in a row."""
    script = [failing(), failing(), say("one"), failing(), say("two")]
    with place.stage(*script) as stage:
        for prompt in ("delete x", "delete y", "1", "delete z", "2"):
            stage.run(prompt)
        assert users(stage.sent[-1]) == ["1", "2"]


@pytest.mark.parametrize("place", EVERYWHERE, ids=str)
def test_D04_a_failed_turn_with_effects_stays_and_says_what_was_done(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(EDIT, failing(), say("ok"), tools=tools(ran)) as stage:
        stage.run("delete x")
        stage.run("hello")
        assert users(stage.sent[-1]) == ["delete x", "hello"]
        assert ("result", "edited a") in stage.sent[-1]
        assert len(ran) == 1


def _break(hook: str) -> Hooked:
    def broken() -> None:
        raise RuntimeError("broken")

    return Hooked("broken", **{hook: broken})


@pytest.mark.parametrize("hook", ["before_turn", "before_round", "after_reply", "register_tools"])
@pytest.mark.parametrize("place", FEW, ids=str)
def test_D04_so_does_a_turn_that_a_plugin_broke(place: Place, hook: str) -> None:
    script = [say("lost")] if hook == "after_reply" else []
    with place.stage(*script, say("hello yourself")) as stage:
        assert stage.run("delete x", with_={"plugins": [_break(hook)]}).status == "failed"
        stage.run("hello")
        assert stage.sent[-1] == [("user", "hello")]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_D04_a_failed_turn_id_is_not_run_again(place: Place) -> None:
    with place.stage(failing("auth", False), say("later")) as stage:
        stage.run("delete x", turn_id="t1")
        again = stage.run("delete x", turn_id="t1")
        assert again.status == "failed"
        assert stage.error is not None
        assert len(stage.sent) == 1
        stage.run("hello")


@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("place", few(None), ids=str)
def test_D06_a_fallback_stores_and_sends_the_prompt_once(place: Place, n: int) -> None:
    """n providers fail with 429, the next one answers; in the second round again."""

    def limited() -> Any:
        return ScriptedProvider([ProviderError("429", provider="p", kind="rate_limit", retryable=True)] * 2)

    others: list[Any] = [limited() for _ in range(n - 1)]
    for at, one in enumerate(others):
        one.model = one.family = f"p{at}"
    last = ScriptedProvider([EDIT, say("done")], model="last")
    steps = [ProviderError("429", provider="p", kind="rate_limit", retryable=True)]
    plugins = [Fallback(FallbackOptions(providers=[*others, last]))]
    with place.stage(*steps, tools=tools([])) as stage:
        assert stage.run("do it", with_={"plugins": plugins}).text == "done"
        for provider in (*others, last):
            for request in provider.requests:
                assert users(shown(request.messages)) == ["do it"]
        assert users(shown(stage.stored())) == ["do it"]
        assert [m.role for m in stage.stored()] == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_D06_so_does_a_retry_of_the_same_model(place: Place) -> None:
    plugins = [Hooked(on_model_error=lambda error: Retry())]
    with place.stage(failing(), failing(), EDIT, failing(), say("done"), tools=tools([]), plugins=plugins) as stage:
        assert stage.run("do it").text == "done"
        assert all(users(request) == ["do it"] for request in stage.sent)
        assert len(stage.outcome.messages) == 4


@pytest.mark.parametrize("place", EVERYWHERE, ids=str)
def test_D07_the_store_grows_by_what_is_new(place: Place) -> None:
    with place.stage(*[say(f"a{n}") for n in range(5)], instructions="be kind") as stage:
        sizes = []
        for n in range(5):
            stage.run(f"u{n}")
            sizes.append(len(stage.stored()))
        assert sizes == [2, 4, 6, 8, 10]
        said = [body for body in stage.entries() if isinstance(body, Said)]
        assert not [body for body in said if body.message.role == "system"]
        assert users(stage.sent[-1]) == ["u0", "u1", "u2", "u3", "u4"]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_D07_with_plugins_that_contribute_everywhere(place: Place) -> None:
    """Contributions, system text and state of plugins are stored once, too."""

    def counting(turn: Any) -> str:
        turn.state["n"] = turn.state.get("n", 0) + 1
        return f"n={turn.state['n']}"

    plugins = [
        Hooked("a", before_turn=lambda: [Message.system("be kind"), "note"], before_round=counting),
        Hooked("b", recall=lambda: "a fact", after_reply=lambda: "seen"),
    ]
    with place.stage(*[say(f"a{n}") for n in range(4)], plugins=plugins, instructions="short") as stage:
        sizes = []
        for n in range(4):
            stage.run(f"u{n}")
            sizes.append(len(stage.entries()))
        assert len({b - a for a, b in pairwise(sizes)}) == 1
        assert len([m for m in stage.stored() if m.text == "note"]) == 4
        assert [m.text for m in stage.stored() if m.text.startswith("n=")] == ["n=1", "n=2", "n=3", "n=4"]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_D07_a_history_that_the_caller_keeps_does_not_grow_twice(place: Place) -> None:
    with place.stage(*[say(f"a{n}") for n in range(5)], say("end")) as stage:
        history: list[Message] = []
        for n in range(5):
            history = list(stage.run(f"u{n}", conversation="other", history=history).messages)
        assert [text for _, text in shown(history)] == [t for n in range(5) for t in (f"u{n}", f"a{n}")]
        stage.run("end")


class Saves:
    """A memory of its own kind: saves a question as soon as it comes in, and gives back all that it saved."""

    name = "saves"
    capabilities = MemoryCapabilities()

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.batches: list[list[str]] = []

    @hookimpl
    def before_turn(self, query: str = "") -> None:
        self.kept.append("saw a turn")

    @hookimpl
    def recall(self, query: Message) -> list[str]:
        self.kept.append(query.text)
        return [f"earlier: {text}" for text in self.kept[:-1] if text != "saw a turn"]

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        self.batches.append([e.body.message.text for e in batch.entries if isinstance(e.body, Said)])


@pytest.mark.parametrize("first", [True, False], ids=["before", "behind"])
@pytest.mark.parametrize("place", few(None), ids=str)
def test_D09_the_question_is_sent_once_whatever_the_order_of_memories(place: Place, first: bool) -> None:
    saves, home = Saves(), InProcessMemory()
    memory: list[Any] = [saves, home] if first else [home, saves]
    provider = ScriptedProvider([say("one"), say("two")], transport=place.transport)
    with Agent(provider, memory=memory) as agent:
        agent.run("u1", conversation="c")
        agent.run("u2", conversation="c")
    assert users(shown(provider.requests[1].messages)) == ["u1", "u2", "earlier: u1"]
    assert saves.batches == [["u1", "one"], ["u2", "two"]]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_D09_a_plugin_that_repeats_the_question_is_seen_as_one_that_contributes(place: Place) -> None:
    with place.stage(say("ok"), plugins=[Hooked("echo", before_turn=lambda turn: "a note")]) as stage:
        stage.run("u1")
        assert users(stage.sent[0]) == ["u1", "a note"]


@pytest.mark.parametrize("value", ["a\0b", {"k": "a\0b"}, "a\udc97b", {"k": "\ud83d"}], ids=ascii)
@pytest.mark.parametrize("place", FEW, ids=str)
def test_D10_D12_texts_that_no_store_or_wire_takes_are_mended_once(place: Place, value: Any) -> None:
    @tool
    def give() -> Any:
        """Give."""
        return value

    with place.stage(call("give", id="c1"), say("ok"), say("again"), tools=[give]) as stage:
        stage.run()
        first = [m.text for m in stage.outcome.messages]
        stage.run("more")
        assert [m.text for m in stage.outcome.messages][: len(first)] == first
        assert all(isinstance(text.encode(), bytes) and "\0" not in text for text in first)
        assert [r for r in stage.sent[2] if r[0] == "result"] == [r for r in stage.sent[1] if r[0] == "result"]


PLACES = ["prompt", "arguments", "reply", "hook", "error", "instructions", "system text of a hook"]


@pytest.mark.parametrize("text", ["a\0b", "a\udc97b"], ids=["nul", "surrogate"])
@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("place", few(None)[:2], ids=str)
def test_D10_D12_wherever_such_texts_come_from(place: Place, where: str, text: str) -> None:
    @tool
    def give(x: str = "") -> str:
        """Give."""
        if where == "error":
            raise ValueError(text)
        return "fine"

    first = call("give", {"x": text} if where == "arguments" else {}, id="c1")
    said = {"hook": text, "system text of a hook": Message.system(text)}.get(where)
    plugins = [Hooked(before_turn=lambda: said)]
    script = [first, say(text if where == "reply" else "ok"), say("again")]
    instructions = text if where == "instructions" else "hi"
    with place.stage(*script, tools=[give], plugins=plugins, instructions=instructions) as stage:
        stage.run(text if where == "prompt" else "go")
        stage.run("more")
        for request in stage.raw:
            assert "\0" not in request.system
            request.system.encode()
            for message in request.messages:
                message.text.encode()
                assert "\0" not in message.text


class Long:
    """A long-term memory that is fed with what is new."""

    name = "long"
    capabilities = MemoryCapabilities()

    def __init__(self) -> None:
        self.fed: list[list[str]] = []
        self.seen: list[list[str]] = []

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        self.fed.append([e.body.message.text for e in batch.entries if isinstance(e.body, Said)])

    @hookimpl
    def recall(self) -> None:
        return None

    @hookimpl
    def after_turn(self, outcome: Any) -> None:
        self.seen.append([m.text for m in outcome.new])


@pytest.mark.parametrize("place", few(None), ids=str)
def test_D17_what_is_new_is_told_apart_from_all_there_is(place: Place) -> None:
    long, home = Long(), InProcessMemory()
    for n in range(3):
        provider = ScriptedProvider([EDIT, say(f"a{n}")], transport=place.transport)
        with Agent(provider, tools=tools([]), memory=[home, long]) as agent:
            outcome = agent.run(f"u{n}", conversation="c")
        assert len(outcome.messages) == 4 * (n + 1)
    assert long.fed == [["u0", "a0"], ["u1", "a1"], ["u2", "a2"]]
    assert long.seen == [[f"u{n}", "", "edited a", f"a{n}"] for n in range(3)]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_D17_a_resumed_turn_is_fed_once(place: Place) -> None:
    from hookloop_hookspecs import Approve

    long, home = Long(), InProcessMemory()
    provider = ScriptedProvider([call("pay", {"amount": 1}, id="c1"), say("paid")], transport=place.transport)
    with Agent(provider, tools=tools([]), memory=[home, long]) as agent:
        agent.run("u", conversation="c")
        assert long.fed == []
        agent.resume("c", {"c1": Approve()})
    assert long.fed == [["u", "paid"]]


def test_D07_system_text_stands_in_the_mark_of_the_turn_alone() -> None:
    with few(None)[0].stage(say("ok"), instructions="be kind") as stage:
        stage.run()
        assert [body.system for body in stage.entries() if isinstance(body, TurnStarted)] == ["be kind"]


@pytest.mark.parametrize(
    "order", [(CHAT, MESSAGES, RESPONSES), (MESSAGES, RESPONSES, CHAT)], ids=["chat first", "last"]
)
@pytest.mark.parametrize("way", ["stream", "arun"])
def test_D06_a_fallback_over_real_sdks(way: str, order: tuple[Wire, Wire, Wire]) -> None:
    """Two servers are overloaded, the third answers; each got the prompt once, and all share one server here."""
    first, second, third = order
    overloaded = Fail(429, "slow down")
    with Place(first, way, "stream").stage(overloaded, overloaded, EDIT, say("done"), tools=tools([])) as stage:
        assert stage.server is not None
        others = [wire.provider(stage.server, "whole") for wire in (second, third)]
        plugins = [Fallback(FallbackOptions(providers=others))]
        outcome = stage.run("do it", with_={"plugins": plugins})
        assert (outcome.text, [users(request) for request in stage.sent]) == ("done", [["do it"]] * 4)
        assert [request.api for request in stage.raw] == [w.name for w in (first, second, third, third)]
        for provider in others:
            asyncio.run(provider.aclose())
            provider.close()
