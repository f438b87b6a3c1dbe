"""Kind B: replies that break off, through the whole loop: nothing of them runs, and nothing of them is stored.

A body has no pieces, so what breaks there is the body: it ends in its middle, or comes as the error's own HTTP status. A
server that streams although it was not asked to is another neighbour: its broken stream is the answer in both transports.
"""

from __future__ import annotations

from typing import Any

import pytest
from odd import Ran
from scenarios import Hooked
from wires import MESSAGES

from cases import ON_EACH_WIRE, SCRIPTED, Place, places, shown
from hookloop.testing import call, say, think
from hookloop.testing.server import Cut, Drop, ErrorEvent, Sse, ant, calls, cbe, cbs, ijd, ms, tc
from hookloop_hookspecs import ProviderError, Retry

STREAMED = [place for place in ON_EACH_WIRE if place.transport == "stream"]


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Providers ask again without waiting."""
    for name in ("openai.retry", "anthropic.provider"):
        monkeypatch.setattr(f"hookloop_{name}._backoff", lambda state: 0.0)


T1 = {"type": "tool_use", "id": "t1", "name": "w", "input": {}}
LONG = "Here is the plan that breaks before anybody has read all of it, or even most of what it says"
on_each_wire = pytest.mark.parametrize("place", ON_EACH_WIRE, ids=str)


def nothing_of_it(place: Place, step: Any) -> None:
    """A broken answer is an error that may be tried again; it runs nothing, and the next turn knows nothing of it."""
    ran = Ran()
    with place.stage(step, say("fine"), tools=ran.tools()) as stage:
        outcome = stage.run("delete x")
        assert isinstance(stage.error, ProviderError)
        assert stage.error.retryable
        assert (outcome.status, ran.calls) == ("failed", [])
        assert [m.role for m in outcome.messages] == ["user"]
        assert stage.run("hello").text == "fine"
        assert stage.sent[1] == [("user", "hello")]


@on_each_wire
def test_B15_an_error_inside_the_stream_is_the_turn_s_error(place: Place) -> None:
    after = {"chat": 2, "responses": 6, "messages": 4}[place.wire.name if place.wire else ""]
    nothing_of_it(place, ErrorEvent(say("Partial text that is long"), after=after))


@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_B15_after_a_whole_call(place: Place) -> None:
    error = ant("error", error={"type": "overloaded_error", "message": "Overloaded"})
    nothing_of_it(place, Sse([ms(input_tokens=1), cbs(0, T1), ijd(0, '{"p":"x"}'), cbe(0), error]))


PAY = call("pay", {"n": 1}, id="c1")
ENDLESS = {
    "chat": Sse([calls(tc(0, "c1", "pay", '{"n":1}'))]),
    "responses": Cut(PAY, after=5, how="eof"),
    "messages": Sse([ms(input_tokens=1), cbs(0, {**T1, "name": "pay"}), ijd(0, '{"n":1}'), cbe(0)]),
}
"""Streams that just end behind a call that looks complete."""


@on_each_wire
def test_B17_an_end_without_a_terminal_event_is_an_error(place: Place) -> None:
    assert place.wire is not None
    nothing_of_it(place, ENDLESS[place.wire.name])


@pytest.mark.parametrize("how", ["reset", "close", "eof"])
@on_each_wire
def test_B18_a_cut_in_the_arguments_runs_no_prefix(place: Place, how: Any) -> None:
    nothing_of_it(place, Cut(call("w", {"p": "x" * 40, "c": "par"}, id="t1"), after=5, how=how))


@pytest.mark.parametrize("place", places(MESSAGES), ids=str)
def test_B18_as_it_was_seen(place: Place) -> None:
    nothing_of_it(place, Sse([ms(input_tokens=1), cbs(1, T1), ijd(1, '{"p":"x","c":"par')]))


@pytest.mark.parametrize("second", [False, True], ids=["first round", "second round"])
@on_each_wire
def test_B22_a_retry_that_a_plugin_asks_for_shows_the_text_once(place: Place, second: bool) -> None:
    """After visible text only a plugin has the model asked again; it is told what to forget, and history has one text."""
    kinds: list[str] = []
    plugins = [
        Hooked("again", on_model_error=lambda error: Retry()),
        Hooked("ear", on_event=lambda event: kinds.append(event.kind)),
    ]
    first = [call("now", id="n")] if second else []
    script = [*first, Cut(say(LONG), after=6, how="reset"), say("Here is the plan")]
    ran = Ran()
    with place.stage(*script, tools=ran.tools(), plugins=plugins) as stage:
        assert stage.run().text == "Here is the plan"
        assert kinds.count("reply_discarded") == (1 if place.transport == "stream" else 0)
        assert [text for kind, text in shown(stage.outcome.messages) if kind == "assistant"] == ["Here is the plan"]
        assert stage.sent[-1] == stage.sent[-2]


@on_each_wire
def test_B22_pieces_of_a_call_are_not_glued_to_the_next_attempt(place: Place) -> None:
    ran = Ran()
    plugins = [Hooked("again", on_model_error=lambda error: Retry())]
    whole = {"p": "a long path that is cut somewhere", "c": "print()"}
    script = [Cut(call("w", whole, id="t1"), after=4, how="reset"), call("w", whole, id="t1"), say("done")]
    with place.stage(*script, tools=ran.tools(), plugins=plugins) as stage:
        assert stage.run().text == "done"
        assert ran.calls == [("w", whole)]


@pytest.mark.parametrize("place", STREAMED, ids=str)
def test_B22_without_a_plugin_nothing_is_asked_again(place: Place) -> None:
    """Of a body nothing is visible before it is whole, so only a stream has this."""
    step = Cut(say(LONG), after=6, how="reset")
    with place.stage(step, say("later"), options={"retries": 2}) as stage:
        assert stage.run().status == "failed"
        assert len(stage.raw) == 1
        assert "Here is" in stage.outcome.partial
        stage.run("again")


@pytest.mark.parametrize("drop", ["at once", "while it thinks"])
@on_each_wire
def test_B24_an_answer_that_dies_before_anything_visible_leaves_no_trace(
    place: Place, drop: str, at_once: None
) -> None:
    thinks = Cut([think("hm, let me think about it"), say("never")], after=3, how="reset")
    step = Drop() if drop == "at once" else thinks
    with place.stage(step, say("fine"), options={"retries": 1}) as stage:
        assert stage.run().text == "fine"
        assert [m.role for m in stage.outcome.messages] == ["user", "assistant"]
        assert stage.outcome.messages[1].text == "fine"


@pytest.mark.parametrize("place", SCRIPTED, ids=str)
def test_B17_a_provider_whose_stream_just_ends_is_an_error(place: Place) -> None:
    """Whatever provider it is: pieces without a reply at the end are nothing."""
    from hookloop.testing import ScriptedProvider

    class Ends(ScriptedProvider):
        def stream(self, request: Any) -> Any:
            yield from (piece for piece in super().stream(request) if type(piece).__name__ != "Reply")

    ran = Ran()
    with place.stage(call("pay", {"n": 1}, id="c1"), tools=ran.tools()) as stage:
        made = Ends([*stage._script], transport=place.transport)
        stage._provider = lambda: made  # type: ignore[method-assign]  # this one provider for one turn
        assert stage.run().status == "failed"
        assert (ran.calls, stage.error.kind) == ([], "stream")
        del stage._provider
        assert stage.raw


@pytest.mark.parametrize("where", ["text", "call"])
@on_each_wire
def test_B15_plugins_hear_of_the_failure_with_what_had_come(place: Place, where: str) -> None:
    heard: list[Any] = []
    plugins = [Hooked(on_model_error=lambda error: heard.append(error))]
    item = say("Partial text that is long") if where == "text" else call("w", {"p": "x" * 50}, id="t1")
    with place.stage(ErrorEvent(item, after=4), plugins=plugins, tools=Ran().tools()) as stage:
        stage.run()
        (error,) = heard
        assert error is stage.error
        assert error.kind in ("overloaded", "server", "stream")
