"""Kind C: whatever a model asks for and whatever a tool does, each call has one result and the turn goes on."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from scenarios import Hooked
from wires import CHAT, RESPONSES

from cases import FEW, ON_EACH_WIRE, ON_WIRES, THROUGHOUT, Place, few, places
from hookloop import Limits, tool
from hookloop.testing import call, say
from hookloop_hookspecs import Deny, Image, Narrow, Stop, Suspend, Text


@tool
def get_site(name: str = "") -> str:
    """Get a site."""
    return f"site {name}"


def errors(outcome: Any) -> list[str]:
    """The texts of all error results."""
    return [r.text for m in outcome.messages for r in m.results if r.is_error]


@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_C01_an_unknown_tool_is_named_with_those_there_are(place: Place) -> None:
    with place.stage(call("list_site", id="c1"), say("ok"), tools=[get_site]) as stage:
        assert stage.run().text == "ok"
        (text,) = errors(stage.outcome)
        assert "list_site" in text
        assert "get_site" in text
        assert stage.sent[1][-1] == ("result", text)


@pytest.mark.parametrize("name", [" ", "get site", "get_site\n", "x" * 300, "final_list", "Get_Site", "ünïcode"])
@pytest.mark.parametrize("place", ON_WIRES, ids=str)
def test_C01_odd_names_are_unknown_tools_too(place: Place, name: str) -> None:
    with place.stage(call(name, id="c1"), say("ok"), tools=[get_site]) as stage:
        assert stage.run().text == "ok"
        assert len(errors(stage.outcome)) == 1


@pytest.mark.parametrize("place", FEW, ids=str)
def test_C01_no_tools_at_all(place: Place) -> None:
    with place.stage(call("list_site", id="c1"), say("ok")) as stage:
        assert stage.run().text == "ok"
        assert "none" in errors(stage.outcome)[0]


@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_C03_only_tools_that_are_there_may_suspend(place: Place) -> None:
    """A policy that suspends whatever it does not know is not even asked about a name that does not exist."""

    @tool(needs_approval=True)
    def client_side(x: int = 0) -> str:
        """Done elsewhere."""
        return "never"

    plugins = [Hooked(before_tool=lambda call: None if call.name == "get_site" else Suspend("may it?"))]
    script = [[call("list_site", id="c1"), call("get_site", {"name": "a"}, id="c2")], say("ok")]
    with place.stage(*script, tools=[get_site, client_side], plugins=plugins) as stage:
        assert (stage.run().status, stage.outcome.text) == ("done", "ok")
        assert [line[0] for line in stage.sent[1]] == ["user", "call", "call", "result", "result"]


@pytest.mark.parametrize("raw", ['["x"]', '"ls"', "3", "true", '{"name": "print("hi")"}', "{", "null", '{"nme": 1}'])
@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_C04_C06_C07_arguments_that_do_not_fit_are_an_error_result(place: Place, raw: str) -> None:
    ran: list[Any] = []

    @tool
    def f(name: str = "") -> str:
        """Only an optional parameter."""
        ran.append(name)
        return "ran"

    with place.stage(call("f", raw, id="c1"), say("ok"), tools=[f]) as stage:
        assert stage.run().text == "ok"
        if raw == "null":
            return
        assert (ran, len(errors(stage.outcome))) == ([], 1)
        assert len(errors(stage.outcome)[0]) < 3000


@pytest.mark.parametrize(
    "value", [{"s": {2, 1}}, object(), b"\xff", (x for x in "ab"), float("nan"), [], None, "", {}, 0]
)
@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_C09_C11_whatever_a_tool_returns_is_one_result(place: Place, value: Any) -> None:
    ran: list[int] = []

    @tool
    def give() -> Any:
        """Give something."""
        ran.append(1)
        return value

    with place.stage(call("give", id="c1"), say("ok"), tools=[give]) as stage:
        assert stage.run().text == "ok"
        assert len(ran) == 1
        assert [kind for kind, _ in stage.sent[1]] == ["user", "call", "result"]


class _Breaks:
    """An iterable, a mapping, whatever: it raises when it is looked at."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @property
    def tolist(self) -> Any:
        raise self.error

    def __repr__(self) -> str:
        raise self.error


@pytest.mark.parametrize("place", [*few(None), *ON_EACH_WIRE], ids=str)
def test_C09_a_result_that_fails_while_it_is_written_is_an_error_result(place: Place) -> None:
    @tool
    def give() -> Any:
        """Give something."""
        return [_Breaks(ValueError("no")), {_Breaks(KeyError("no"))}]

    with place.stage(call("give", id="c1"), say("ok"), tools=[give]) as stage:
        assert stage.run().text == "ok"
        assert len(errors(stage.outcome)) == 1


class Three:
    """Tools of C12: one fast, one that fails at once, one that ends after the failure was settled."""

    def __init__(self) -> None:
        self.failed = threading.Event()
        self.completed: list[str] = []

    def on_event(self, event: Any) -> None:
        if event.kind == "tool_ended" and event.call.name == "boom":
            self.failed.set()

    def tools(self, kind: str) -> list[Any]:
        def fast() -> str:
            """Fast."""
            self.completed.append("fast")
            return "fast"

        def boom() -> str:
            """Fail."""
            raise RuntimeError("at once")

        def slow() -> str:
            """Slow."""
            assert self.failed.wait(20)
            self.completed.append("slow")
            return "slow"

        async def aslow() -> str:
            """Slow."""
            assert await asyncio.to_thread(self.failed.wait, 20)
            self.completed.append("slow")
            return "slow"

        return [tool(fast), tool(boom), tool(slow) if kind == "sync" else tool(name="slow")(aslow)]


THREE = [call("fast", id="c1"), call("boom", id="c2"), call("slow", id="c3")]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_C12_a_failing_sibling_costs_no_result(place: Place, kind: str) -> None:
    three = Three()
    plugins = [Hooked(on_event=lambda event: three.on_event(event))]
    with place.stage(THREE, say("ok"), tools=three.tools(kind), plugins=plugins) as stage:
        assert stage.run().text == "ok"
        results = [text for kind, text in stage.sent[1] if kind == "result"]
        assert (results[0], results[2]) == ("fast", "slow")
        assert "RuntimeError" in results[1]
        assert sorted(three.completed) == ["fast", "slow"]


@pytest.mark.parametrize("verdict", [Stop("enough"), RuntimeError("plugin broke")], ids=["stop", "raises"])
@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("place", FEW, ids=str)
def test_C12_when_the_group_is_left_its_siblings_are_awaited(place: Place, kind: str, verdict: Any) -> None:
    """A plugin ends the turn at the failure: what runs comes to its end before the turn does, and history is valid."""
    three = Three()

    def after_tool(call: Any) -> Any:
        if call.name != "boom":
            return None
        three.failed.set()
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    with place.stage(THREE, tools=three.tools(kind), plugins=[Hooked(after_tool=after_tool)]) as stage:
        assert stage.run().status == ("stopped" if isinstance(verdict, Stop) else "failed")
        assert len(three.completed) == len(set(three.completed))
        assert [m.role for m in stage.outcome.messages] == ["user", "assistant", "tool", "tool", "tool"]


@pytest.mark.parametrize("retries", [0, 1])
@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_C14_unknown_calls_use_up_nobody_s_retries(place: Place, retries: int) -> None:
    ran: list[int] = []

    @tool(retries=retries)
    def ok() -> str:
        """Fine."""
        ran.append(1)
        return "fine"

    script = [[call("nope", id="c1"), call("ok", id="c2")], [call("nope2", id="c3"), call("ok", id="c4")], say("end")]
    with place.stage(*script, tools=[ok]) as stage:
        assert stage.run().text == "end"
        assert len(ran) == 2


@pytest.mark.parametrize("place", FEW, ids=str)
def test_C14_results_between_errors_begin_the_count_anew(place: Place) -> None:
    script = [[call("nope", id=f"n{at}"), call("get_site", id=f"g{at}")] for at in range(4)]
    with place.stage(*script, say("end"), tools=[get_site], limits=Limits(errors=1)) as stage:
        assert stage.run().text == "end"


@pytest.mark.parametrize("place", FEW, ids=str)
def test_C14_retries_are_counted_for_each_call(place: Place) -> None:
    tries: list[str] = []

    @tool(retries=1)
    def shaky(n: str) -> str:
        """Fails at its first try."""
        tries.append(n)
        if tries.count(n) == 1:
            raise ValueError("again")
        return n

    script = [[call("shaky", {"n": n}, id=n) for n in "ab"], call("shaky", {"n": "c"}, id="c"), say("end")]
    with place.stage(*script, tools=[shaky]) as stage:
        assert stage.run().text == "end"
        assert (sorted(tries), errors(stage.outcome)) == (["a", "a", "b", "b", "c", "c"], [])


PICTURE = Image("aGk=", "image/png")


def look() -> Any:
    """Look at something."""
    return [Text("seen:"), PICTURE]


def images(request: Any) -> bool:
    """Does a request carry a picture?"""
    return "aGk=" in (request.raw.decode() if hasattr(request, "raw") else repr(request))


@pytest.mark.parametrize("where", ["result", "user"])
@pytest.mark.parametrize("place", [*places(CHAT), *places(RESPONSES)], ids=str)
def test_C16_a_blind_model_gets_a_placeholder_and_history_keeps_the_picture(place: Place, where: str) -> None:
    """Anthropic's models all see, so there it is a matter of the compatible servers alone."""
    first = call("look", id="c1") if where == "result" else say("nice")
    prompt = "go" if where == "result" else [Text("look"), PICTURE]
    script = [first, say("ok"), say("blind")] if where == "result" else [first, say("blind")]
    with place.stage(*script, tools=[tool(look)]) as stage:
        stage.run(prompt)
        assert images(stage.raw[-1])
        stage.options = {"vision": False}
        outcome = stage.run("now you")
        assert not images(stage.raw[-1])
        assert any(PICTURE in m.content or any(PICTURE in r.content for r in m.results) for m in outcome.messages)
        stage.options = {}
        stage.say(say("sees again"))
        stage.run("and you")
        assert images(stage.raw[-1])


@pytest.mark.parametrize("place", THROUGHOUT, ids=str)
def test_C18_an_unknown_name_comes_with_those_that_are_close(place: Place) -> None:
    @tool
    def central_get_sites() -> str:
        """Get."""
        return "sites"

    with place.stage(call("central_list_sites", id="c1"), say("ok"), tools=[central_get_sites, get_site]) as stage:
        stage.run()
        assert "Did you mean central_get_sites" in errors(stage.outcome)[0]


NEVER: dict[str, tuple[str, str, list[Any]]] = {
    "unknown": ("list_site", "{}", []),
    "no json": ("get_site", "{", []),
    "bad arguments": ("get_site", '{"nope": 1}', []),
    "denied": ("get_site", "{}", [Hooked(before_tool=lambda call: Deny("no"))]),
    "not allowed in this round": ("get_site", "{}", [Hooked(before_round=lambda: Narrow(tools=()))]),
}
"""Ways in which a call never runs: name, arguments, plugins."""


@pytest.mark.parametrize("limit", ["repeated", "tool_calls", "per_tool", "calls_per_reply", "errors"])
@pytest.mark.parametrize("name", NEVER)
@pytest.mark.parametrize("place", few(None)[1::2], ids=str)
def test_C18_F09_F10_calls_that_never_run_count_for_every_limit(place: Place, name: str, limit: str) -> None:
    tool_name, raw, plugins = NEVER[name]
    limits = Limits(**{limit: 2})  # type: ignore[arg-type]  # names from the table
    calls = [call(tool_name, raw, id=f"c{at}") for at in range(3)]
    script = [calls] if limit == "calls_per_reply" else calls
    with place.stage(*script, tools=[get_site], plugins=plugins, limits=limits, patience=5) as stage:
        outcome = stage.run()
        assert (outcome.status, outcome.stop_reason) == ("limit", limit)
        assert len(errors(outcome)) == 3
