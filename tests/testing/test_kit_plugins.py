"""The conformance of hook plugins sees faults: for each check plugins that fail it and no other, and good ones."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import SkipTest

import pytest
from good_plugins import EVERYTHING, GOOD, Everything, Feedback, Retries, Timed, Wrapping, one_tool_named, plugin

from hookloop.testing import call, check_plugin, plugin_checks
from hookloop_hookspecs import (
    Deny,
    Message,
    Retry,
    Stop,
    Suspend,
    ToolResult,
    hookimpl,
    tool,
)
from hookloop_hookspecs.events import CallPiece, Event, ReplyReceived, TextPiece


def failing_after_errors(result: ToolResult) -> None:
    assert not result.is_error, "no result"


def growing() -> Any:
    said: list[str] = []

    def next_instructions(results: Any) -> list[str]:
        said.extend(result.text for result in results)
        return list(dict.fromkeys(said))

    return plugin(next_instructions=next_instructions)()


def counting(kind: type[Event]) -> Callable[[], Any]:
    """A plugin that says how many pieces the stream came in."""

    def make() -> Any:
        pieces: list[Event] = []

        def on_event(event: Event) -> None:
            pieces.extend([event] if isinstance(event, kind) else [])

        return plugin(on_event=on_event, next_instructions=lambda: f"{len(pieces)} pieces")()

    return make


def in_a_loop() -> str | None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return None
    return "async"


def writes_memo(request: Any) -> None:
    request.memo["mine"] = 1


def turns_errors(result: ToolResult) -> None:
    object.__setattr__(result, "private", '{"seen":true}')


def reads_last_part(event: Event) -> None:
    if isinstance(event, ReplyReceived):
        assert event.reply.text.strip() or event.reply.calls, "a blank reply"


def bad_making() -> Any:
    raise KeyError("LINT_HOME")


def one_tool() -> Any:
    return one_tool_named("helper")


def old_wrapper() -> Any:
    class Old:
        @hookimpl(hookwrapper=True)
        def after_tool(self) -> Iterator[None]:
            yield

    return Old()


def unmarked() -> Any:
    class Unmarked:
        def after_tool(self, result: Any) -> None: ...

    return Unmarked()


def raising_on_decision(decision: Any) -> None:
    assert decision is None, "decided"


def sees_no_cancel(outcome: Any) -> None:
    assert outcome.status != "cancelled"


def raising() -> None:
    raise RuntimeError("broken")


async def raising_late() -> None:
    await asyncio.sleep(0)
    raise RuntimeError("broken")


def raising_half_way() -> Iterator[str]:
    yield "one"
    raise RuntimeError("broken")


def keeps(batch: Any) -> None: ...


def nobody_may() -> Stop:
    return Stop("closed", "come again tomorrow")


FAULTY: list[tuple[str, str, Callable[[], Any]]] = [
    ("is_a_plugin", "did you mean after_tool", plugin(after_tol=lambda: None)),
    ("is_a_plugin", "no hook", plugin()),
    ("is_a_plugin", "put @hookimpl on after_tool", unmarked),
    ("is_a_plugin", "reslt", plugin(after_tool=lambda reslt: None)),
    ("is_a_plugin", "old-style", old_wrapper),
    ("is_a_plugin", "LINT_HOME", bad_making),
    ("works", "next_instructions raised RuntimeError in an ordinary turn: broken", plugin(next_instructions=raising)),
    ("works", "before_round raised RuntimeError", plugin(before_round=raising_late)),
    ("works", "after_reply raised RuntimeError", plugin(after_reply=raising_half_way)),
    ("works", "on_event raised RuntimeError", plugin(on_event=raising)),
    ("works", "close raised RuntimeError", plugin(close=raising)),
    ("works", "close raised RuntimeError", plugin(close=raising_late)),
    ("works", "never ended", plugin(review_answer=lambda: "not yet")),
    ("leaves_its_arguments_alone", "before_round changed its argument 'request'", plugin(before_round=writes_memo)),
    ("leaves_its_arguments_alone", "after_tool changed its argument 'result'", plugin(after_tool=turns_errors)),
    ("returns_what_it_may", "returned int 42", plugin(after_tool=lambda: 42)),
    ("returns_what_it_may", "returned Retry", plugin(recall=lambda: Retry())),
    ("returns_what_it_may", "returned Suspend", plugin(after_tool=lambda r=None: Suspend("x"))),
    ("returns_what_it_may", "role 'assistant'", plugin(before_round=lambda: Message.assistant("I"))),
    ("returns_what_it_may", "role 'system'", plugin(next_instructions=lambda: Message.system("I"))),
    ("returns_what_it_may", "after_turn returned 'bye'", plugin(after_turn=lambda: "bye")),
    ("returns_what_it_may", "select_context returned 5", plugin(select_context=lambda: 5)),
    ("returns_what_it_may", "register_tools returned 5", plugin(register_tools=lambda: [5])),
    ("returns_what_it_may", "failing", plugin(on_model_error=lambda: [Deny("failing")])),
    ("is_stable_over_many_rounds", "it says ever more", growing),
    ("adds_nothing_twice", "'again'", plugin(after_tool=lambda: "again", next_instructions=lambda: "again")),
    ("adds_nothing_twice", "after_reply added", plugin(after_reply=lambda: ["more", "more"])),
    ("adds_nothing_twice", "the tool 'helper' twice", plugin(register_tools=lambda: [one_tool(), one_tool()])),
    ("is_the_same_in_all_ways", "whole", counting(CallPiece)),
    ("is_the_same_in_all_ways", "whole", counting(TextPiece)),
    ("is_the_same_in_all_ways", "arun", plugin(next_instructions=in_a_loop)),
    ("is_the_same_in_all_ways", "arun", plugin(before_turn=in_a_loop)),
    ("survives_failures", "a tool that raises", plugin(after_tool=failing_after_errors)),
    ("survives_failures", "a provider that fails", plugin(on_model_error=raising)),
    ("survives_failures", "a blank reply", plugin(on_event=reads_last_part)),
    ("survives_failures", "an approval", plugin(before_tool=raising_on_decision)),
    (
        "survives_failures",
        "a caller who leaves",
        plugin(after_turn=sees_no_cancel),
    ),
    ("tells_its_time", "persist_memory is never asked", plugin(persist_memory=keeps, after_turn=lambda: None)),
    ("tells_its_time", "after_tool is never asked", plugin(before_turn=nobody_may, after_tool=lambda: "hello")),
]


@pytest.mark.parametrize("make", GOOD)
def test_a_good_plugin_passes_all(make: Callable[[], Any]) -> None:
    report = check_plugin(make)
    assert report.ok, str(report)
    assert [result.check for result in report.results] == [check.name for check in plugin_checks.CHECKS]


@pytest.mark.parametrize(("check", "words", "make"), FAULTY, ids=[f"{n}-{c[0]}" for n, c in enumerate(FAULTY)])
def test_a_faulty_plugin_fails_its_check_and_no_other(check: str, words: str, make: Callable[[], Any]) -> None:
    report = check_plugin(make)
    assert [result.check for result in report.failed] == [check], str(report)
    assert words in report.failed[0].reason


def test_every_check_has_a_faulty_plugin() -> None:
    assert {check.name for check in plugin_checks.CHECKS} == {case[0] for case in FAULTY}


def test_what_is_no_plugin_is_not_looked_at_further() -> None:
    report = check_plugin(unmarked)
    assert {result.status for result in report.results[1:]} == {"skip"}


def test_the_time_of_each_hook_is_told() -> None:
    told = check_plugin(Everything).results[-1]
    assert (told.check, told.status) == ("tells_its_time", "pass")
    times = [re.fullmatch(r"(\w+) \d+ µs", one) for one in told.reason.split(", ")]
    assert [time and time[1] for time in times] == sorted(EVERYTHING)


def test_a_hook_that_only_an_error_asks_has_its_time_too() -> None:
    assert "on_model_error" in check_plugin(Retries).results[-1].reason


def test_a_wrapper_has_no_time_of_its_own() -> None:
    told = check_plugin(Wrapping).results[-1]
    assert (told.status, told.reason) == ("skip", "it only wraps the hooks of others")


def test_texts_that_always_differ_are_said_to() -> None:
    (ways,) = [result for result in check_plugin(Timed).results if result.check == "is_the_same_in_all_ways"]
    assert "differ from run to run" in ways.reason


def test_even_then_their_number_must_be_the_same() -> None:
    def sometimes() -> list[str]:
        times = [f"at {time.perf_counter_ns()}", f"again at {time.perf_counter_ns()}"]
        return times if in_a_loop() else times[:1]

    report = check_plugin(plugin(next_instructions=sometimes))
    assert [result.check for result in report.failed] == ["is_the_same_in_all_ways"]


def test_a_plugin_about_other_tools_gets_them() -> None:
    @tool
    def lint(file: str) -> str:
        """Look for faults."""
        return f"{file}: 3 faults"

    def about_lint(result: ToolResult) -> None:
        if result.name == "lint":
            raise RuntimeError("broken for lint")

    make = plugin(after_tool=about_lint)
    assert check_plugin(make).ok
    report = check_plugin(make, tools=[lint], calls=[call("lint", {"file": "a"}, id="l1")])
    assert [result.check for result in report.failed] == ["works"]


def test_verify_is_for_one_check() -> None:
    by_name = {check.name: check for check in plugin_checks.CHECKS}
    assert str(by_name["works"]) == "works"
    plugin_checks.verify(by_name["works"], Feedback)
    with pytest.raises(AssertionError, match="broken"):
        plugin_checks.verify(by_name["works"], plugin(next_instructions=raising))
    with pytest.raises(SkipTest):
        plugin_checks.verify(by_name["works"], plugin())


def test_a_plugin_may_ask_for_what_the_program_gives() -> None:
    make = plugin(before_turn=lambda turn: f"you are {turn.deps['user']}")
    assert not check_plugin(make).ok
    assert check_plugin(make, deps={"user": "Ada"}).ok


def test_each_play_has_a_plugin_of_its_own() -> None:
    numbers = itertools.count()
    made: list[int] = []

    def make() -> Any:
        made.append(next(numbers))
        return Feedback()

    check_plugin(make)
    assert len(made) > 20
