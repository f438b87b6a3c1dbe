"""Kind F: limits, forced choices, stop reasons and usage. A turn always ends, with a valid history and true counts."""

from __future__ import annotations

from typing import Any

import pytest
from scenarios import EDIT, Hooked, prolific, tools
from wires import CHAT, MESSAGES, RESPONSES

from cases import FEW, ON_EACH_WIRE, THROUGHOUT, Place, few, hooked, places, shown
from hookloop import Limits, tool
from hookloop.testing import call, reply, say
from hookloop.testing.server import DONE, Sse, calls, cbd, cbe, cbs, chunk, md, ms, mstop, tc
from hookloop_hookspecs import Approve, Deny, LimitError, Narrow, Settings, Stop, Usage

MODES: list[Any] = ["stop", "error_result", "answer", "raise"]


def edits(n: int) -> list[Any]:
    """n rounds of one call each."""
    return prolific(n)[:n]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_F01_a_limit_after_the_tools_ran_keeps_their_results(place: Place, mode: Any) -> None:
    ran: list[Any] = []
    last = [say("so far")] if mode == "answer" else []
    with place.stage(EDIT, *last, say("ok"), tools=tools(ran)) as stage:
        outcome = stage.run(with_={"limits": Limits(rounds=1, on_breach=mode)})
        assert (outcome.status, outcome.stop_reason) == ("limit", "rounds")
        assert isinstance(stage.error, LimitError) == (mode == "raise")
        assert [kind for kind, _ in shown(outcome.messages)][:3] == ["user", "call", "result"]
        assert stage.run("U2").text == "ok"
        assert ("result", "edited a") in stage.sent[-1]
        assert len(ran) == 1


@pytest.mark.parametrize("mode", ["stop", "raise"])
@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_F02_a_limit_throws_no_progress_away(place: Place, mode: Any) -> None:
    ran: list[Any] = []
    with place.stage(*edits(6), *edits(2), say("done"), tools=tools(ran)) as stage:
        outcome = stage.run(with_={"limits": Limits(tool_calls=5, on_breach=mode)})
        assert (outcome.status, outcome.stop_reason, len(ran)) == ("limit", "tool_calls", 5)
        assert len([m for m in outcome.messages if m.calls]) == 6
        assert (outcome.usage.input, len(outcome.rounds)) == (60, 6)
        assert stage.run("go on").text == "done"
        assert len(ran) == 7
        assert [text for kind, text in stage.sent[6] if kind == "result"][:5] == [f"edited {n}" for n in range(5)]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_F02_many_calls_in_the_reply_that_passes_the_limit(place: Place) -> None:
    """Those within the limit run, the others are answered; all in one group."""
    ran: list[Any] = []
    with place.stage(edits(5), tools=tools(ran)) as stage:
        outcome = stage.run(with_={"limits": Limits(tool_calls=3)})
        assert (outcome.status, sorted(ran)) == ("limit", [("edit", str(n)) for n in range(3)])
        assert [r.is_error for m in outcome.messages for r in m.results] == [False] * 3 + [True] * 2


@pytest.mark.parametrize("place", few(None), ids=str)
def test_F02_a_resume_goes_on_counting(place: Place) -> None:
    pay = [call("pay", {"amount": n}, id=f"p{n}") for n in range(4)]
    with place.stage(*pay, tools=tools([]), limits=Limits(tool_calls=3)) as stage:
        stage.run()
        while stage.outcome.status == "suspended":
            stage.resume(Approve())
        assert (stage.outcome.status, stage.outcome.stop_reason) == ("limit", "tool_calls")


def forced(request: Any) -> str:
    """The tool choice that a request asks for, as one word."""
    body = request.body if hasattr(request, "body") else None
    choice: Any = request.tool_choice if body is None else body.get("tool_choice", "auto")
    if isinstance(choice, dict):
        choice = choice.get("name") or choice.get("function", {}).get("name") or choice["type"]
    return "required" if choice == "any" else str(choice)


def obedient(request: Any) -> Any:
    """A model that calls `edit` as long as it is forced to, and else answers."""
    return call("edit", {"path": "x"}) if forced(request) in ("edit", "required") else say("free at last")


@pytest.mark.parametrize("choice", ["required", "edit"])
@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_F05_a_forced_choice_holds_until_the_first_call(place: Place, choice: str) -> None:
    settings = Settings(max_tokens=50)
    with place.stage(obedient, obedient, tools=tools([]), tool_choice=choice, settings=settings) as stage:
        assert stage.run().text == "free at last"
        assert [forced(request) for request in stage.raw] == [choice, "auto"]
        assert settings == Settings(max_tokens=50)


@pytest.mark.parametrize("why", ["denied", "answered twice", "resumed", "failed"])
@pytest.mark.parametrize("place", FEW, ids=str)
def test_F05_whatever_became_of_that_call(place: Place, why: str) -> None:
    """A call that was denied, that waited, or that failed was asked for all the same. A new turn is forced anew."""
    plugins = [Hooked(before_tool=lambda call: Deny("no"))] if why == "denied" else []
    name = {"resumed": "pay", "failed": "boom"}.get(why, "edit")
    arguments = {"amount": 1} if name == "pay" else {} if name == "boom" else {"path": "a"}
    first = [call(name, arguments, id="c1")] * (2 if why == "answered twice" else 1)
    with place.stage(
        first, say("one"), first, say("two"), tools=tools([]), plugins=plugins, tool_choice="required"
    ) as st:
        for prompt in ("1", "2"):
            st.run(prompt)
            if why == "resumed":
                st.resume(Approve())
        assert [forced(request) for request in st.raw] == ["required", "auto"] * 2


@pytest.mark.parametrize("mode", ["answer", "error_result", "stop"])
@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_F04_at_the_limit_nothing_is_forced(place: Place, mode: Any) -> None:
    """A plugin forces the choice in every round; the limit still ends the turn."""
    plugins = [Hooked(before_round=lambda: Narrow(tool_choice="edit"))]
    last = {"answer": [obedient], "error_result": [], "stop": []}[mode]
    limits = Limits(rounds=3, on_breach=mode)
    with place.stage(*[obedient] * 3, *last, tools=tools([]), plugins=plugins, limits=limits) as stage:
        outcome = stage.run()
        assert (outcome.status, outcome.stop_reason) == ("limit", "rounds")
        choices = [forced(request) for request in stage.raw]
        assert choices == ["edit"] * 3 + ["none"] * len(last)


@pytest.mark.parametrize("place", FEW, ids=str)
def test_F04_the_one_answer_after_the_limit_runs_no_call(place: Place) -> None:
    ran: list[Any] = []
    script = [*edits(3), call("edit", {"path": "still"}, id="s")]
    with place.stage(*script, tools=tools(ran), limits=Limits(tool_calls=2, on_breach="answer")) as stage:
        outcome = stage.run()
        assert (outcome.status, len(ran)) == ("limit", 2)
        assert forced(stage.raw[-1]) == "none"


USAGES: dict[str, tuple[Any, Any]] = {
    "F06 both full": (
        {"input_tokens": 25, "output_tokens": 1, "cache_read_input_tokens": 100},
        {"input_tokens": 25, "output_tokens": 15, "cache_read_input_tokens": 100},
    ),
    "F06 output only": (
        {"input_tokens": 25, "output_tokens": 1, "cache_read_input_tokens": 100},
        {"output_tokens": 15},
    ),
    "late only": ({}, {"input_tokens": 25, "output_tokens": 15, "cache_read_input_tokens": 100}),
}


def said_whole(text: str) -> dict[str, Any]:
    """A whole Messages answer with the usage of F06."""
    usage = {"input_tokens": 25, "output_tokens": 15, "cache_read_input_tokens": 100}
    content = [{"type": "text", "text": text}]
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "odd", "stop_sequence": None}
    return {**head, "content": content, "stop_reason": "end_turn", "usage": usage}


@pytest.mark.parametrize("name", USAGES)
@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_F06_usage_is_exact_in_both_transports(place: Place, name: str) -> None:
    start, late = USAGES[name]
    text = [cbs(0, {"type": "text", "text": ""}), cbd(0, "text_delta", text="hi"), cbe(0)]
    events = [ms(**start), *text, md("end_turn", **late), mstop()]
    with place.stage(Sse(events, whole=said_whole("hi")), Sse(events, whole=said_whole("hi"))) as stage:
        for _ in range(2):
            usage = stage.run().usage
            assert (usage.input, usage.output, usage.cache_read) == (25, 15, 100)
            assert usage.total == 140


@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_F06_a_turn_s_usage_is_the_sum_of_its_rounds(place: Place) -> None:
    def said(part: Any, n: int) -> Any:
        return reply(part, usage=Usage(10 * n, n, total=11 * n))

    pay = call("pay", {"amount": 1}, id="p")
    with place.stage(said(EDIT, 1), said(pay, 2), said(say("done"), 3), tools=tools([])) as stage:
        stage.run()
        outcome = stage.resume(Approve())
        assert (outcome.usage.input, outcome.usage.output, outcome.usage.total) == (60, 6, 66)
        assert [one.usage.input for one in outcome.rounds] == [10, 20, 30]


@tool
def write(path: str = "", text: str = "") -> str:
    """Write a file; both parameters may be left out, so that a prefix would fit."""
    raise AssertionError("a call of a cut reply ran")


CUT = ['{"path":"a"', "{}", '{"path":"a"}', "", '{"path":"a","te']


@pytest.mark.parametrize("raw", CUT)
@pytest.mark.parametrize("place", few(None), ids=str)
def test_F08_a_call_at_the_output_limit_never_runs(place: Place, raw: str) -> None:
    with place.stage(reply(call("write", raw, id="c1"), stop="length"), say("short"), tools=[write]) as stage:
        assert stage.run().text == "short"
        text = stage.sent[1][-1]
        assert text[0] == "result"
        assert "cut" in text[1]


@pytest.mark.parametrize("raw", CUT)
@pytest.mark.parametrize("place", ON_EACH_WIRE, ids=str)
def test_F08_on_the_wire(place: Place, raw: str) -> None:
    with place.stage(cut_call(place, raw), say("short"), tools=[write]) as stage:
        assert stage.run().text == "short"
        assert "cut" in stage.sent[1][-1][1]


def cut_call(place: Place, raw: str) -> Any:
    """A call that the output limit cut, streamed and whole."""
    if place.wire is RESPONSES:
        return reply(call("write", raw, id="c1"), stop="length")
    if place.wire is CHAT:
        function = {"name": "write", "arguments": raw}
        message = {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": function}],
        }
        choice = {"index": 0, "message": message, "finish_reason": "length"}
        whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "odd", "choices": [choice]}
        return Sse([calls(tc(0, "c1", "write", raw)), chunk({}, "length"), DONE], whole=whole)
    block = {"type": "tool_use", "id": "t1", "name": "write", "input": {}}
    events = [ms(input_tokens=1), cbs(0, block), cbd(0, "input_json_delta", partial_json=raw)]
    events += [cbe(0), md("max_tokens", output_tokens=9), mstop()]
    return Sse(events, whole={**said_whole(""), "content": [block], "stop_reason": "max_tokens"})


@pytest.mark.parametrize("mode", ["stop", "raise"])
@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_F08_replies_that_are_cut_again_and_again_end_the_turn(place: Place, mode: Any) -> None:
    cut = [reply(call("write", {"path": "a"}, id=f"c{n}"), stop="length") for n in range(3)]
    with place.stage(*cut, tools=[write], limits=Limits(truncated=3, on_breach=mode)) as stage:
        outcome = stage.run()
        assert (outcome.status, outcome.stop_reason) == ("limit", "truncated")
        assert isinstance(stage.error, LimitError) == (mode == "raise")


@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_F10_a_hook_that_always_blocks_meets_the_limits(place: Place) -> None:
    asked: list[int] = []

    def block() -> Deny:
        asked.append(1)
        return Deny("blocked")

    script = [call("edit", {"path": "a"}, id="same") for _ in range(6)]
    plugins, limits = [Hooked(before_tool=block)], Limits(tool_calls=5)
    ran: list[Any] = []
    with place.stage(*script, tools=tools(ran), plugins=plugins, limits=limits) as stage:
        outcome = stage.run()
        assert (outcome.status, outcome.stop_reason) == ("limit", "tool_calls")
        assert (len(asked), ran) == (5, [])


@pytest.mark.parametrize("limit", ["rounds", "repeated", "errors", "per_tool"])
@pytest.mark.parametrize("place", few(None), ids=str)
def test_F10_so_does_it_with_other_limits(place: Place, limit: str) -> None:
    rounds = 4 if limit == "rounds" else 5
    script = [call("edit", {"path": "a"}, id="same") for _ in range(rounds)]
    plugins, limits = [Hooked(before_tool=lambda: Deny("blocked"))], Limits(**{limit: 4})  # type: ignore[arg-type]  # names from the table
    with place.stage(*script, tools=tools([]), plugins=plugins, limits=limits) as stage:
        outcome = stage.run()
        assert (outcome.status, outcome.stop_reason) == ("limit", limit)


@pytest.mark.parametrize("hook", ["before_tool", "after_tool", "next_instructions", "after_reply"])
@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_F10_a_hook_may_end_the_run(place: Place, hook: str) -> None:
    ran: list[Any] = []
    plugins = [hooked(hook, lambda: Stop("enough", "that is enough"))]
    with place.stage(EDIT, tools=tools(ran), plugins=plugins) as stage:
        outcome = stage.run()
        assert (outcome.status, outcome.stop_reason, outcome.text) == ("stopped", "enough", "that is enough")
        assert len(ran) == (0 if hook in ("before_tool", "after_reply") else 1)


@pytest.mark.parametrize("text", ["", "I was about to"])
@pytest.mark.parametrize("stop", ["filter", "refusal"])
@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_F12_a_blocked_answer_is_told_from_an_empty_one(place: Place, stop: Any, text: str) -> None:
    if place.wire is not None:
        stop = (
            "refusal" if place.wire is MESSAGES else "filter"
        )  # OpenAI's refusal is a block of its own, kept as it is
    with place.stage(reply(say(text), stop=stop), tools=tools([])) as stage:
        outcome = stage.run()
        assert (outcome.status, outcome.text) == ("done", text)
        assert outcome.stop_reason in ("filter", "refusal")
        assert len(stage.raw) == 1


@pytest.mark.parametrize("stop", ["filter", "refusal"])
@pytest.mark.parametrize("place", few(None), ids=str)
def test_F12_nobody_makes_a_blocked_answer_go_on(place: Place, stop: Any) -> None:
    """Neither a review nor a structured output that is missing asks again; calls in it do not run."""
    ran: list[Any] = []
    plugins = [Hooked(review_answer=lambda: "not yet")]
    parts: list[Any] = [say("no"), EDIT]
    with place.stage(reply(*parts, stop=stop), reply(say("no"), stop=stop), tools=tools(ran), plugins=plugins) as stage:
        assert stage.run().stop_reason == stop
        assert stage.run("as data", output=dict[str, int]).stop_reason == stop
        assert (ran, len(stage.raw)) == ([], 2)


@pytest.mark.parametrize("finish", ["content_filter", "function_call", "model_length", "eos", "", None])
@pytest.mark.parametrize("place", places(CHAT), ids=str)
def test_F12_any_word_for_the_end_is_taken(place: Place, finish: str | None) -> None:
    message = {"role": "assistant", "content": "hi"}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    whole = {"id": "x", "object": "chat.completion", "created": 1, "model": "odd", "choices": [choice]}
    step = Sse([chunk({"content": "hi"}), chunk({}, finish), DONE], whole=whole)
    with place.stage(step, tools=tools([])) as stage:
        outcome = stage.run()
        assert (outcome.status, outcome.text) == ("done", "hi")
        expected = {"content_filter": "filter", "model_length": "length"}
        assert outcome.stop_reason == expected.get(finish or "", "end")
