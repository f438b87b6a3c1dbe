"""The smallest useful plugin."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import pluggy
import pytest
from pydantic import ValidationError

import hookloop_feedback
from hookloop import Agent, tool
from hookloop.testing import ScriptedProvider, call, say
from hookloop_feedback import Feedback, FeedbackOptions
from hookloop_hookspecs import Text, ToolResult, hooks


def result(name: str, *, is_error: bool = False, text: str = "ok") -> ToolResult:
    return ToolResult("c1", name, (Text(text),), is_error=is_error)


def test_it_speaks_after_a_success_of_the_watched_tool_only() -> None:
    feedback = Feedback(FeedbackOptions(text="FOO_BAR_FEEDBACK"))

    assert feedback.next_instructions([result("edit")]) == "FOO_BAR_FEEDBACK"
    assert feedback.next_instructions([result("read")]) is None
    assert feedback.next_instructions([result("edit", is_error=True)]) is None
    assert feedback.next_instructions([]) is None


def test_it_speaks_once_for_several_calls_of_a_round() -> None:
    assert (
        Feedback(FeedbackOptions(text="x")).next_instructions([result("edit"), result("read"), result("edit")]) == "x"
    )


@pytest.mark.parametrize(
    ("when", "success", "error"), [("success", "x", None), ("error", None, "x"), ("always", "x", "x")]
)
def test_when_says_which_results_count(when: str, success: str | None, error: str | None) -> None:
    feedback = Feedback(FeedbackOptions.model_validate({"when": when, "text": "x"}))

    assert feedback.next_instructions([result("edit")]) == success
    assert feedback.next_instructions([result("edit", is_error=True)]) == error


def test_the_text_may_hold_tool_and_result_and_any_other_brace() -> None:
    feedback = Feedback(FeedbackOptions(tool="run", text="{tool} gave {result}; see {this}"))

    assert feedback.next_instructions([result("run", text="{x}")]) == "run gave {x}; see {this}"


@pytest.mark.parametrize("options", [{"tol": "edit"}, {"when": "never"}, {"text": 3}])
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FeedbackOptions.model_validate(options)


def test_it_is_found_by_entry_point() -> None:
    (found,) = entry_points(group="hookloop.plugins", name="feedback")
    assert found.load() is Feedback


def test_it_stays_small_enough_to_be_a_model() -> None:
    source = Path(hookloop_feedback.__file__).read_text(encoding="utf-8")
    assert len(source.splitlines()) < 40


def test_its_hooks_are_hooks_of_the_contract() -> None:
    manager = pluggy.PluginManager("hookloop")
    manager.add_hookspecs(hooks)
    manager.register(Feedback())
    manager.check_pending()


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


@tool
def read(path: str) -> str:
    """Read a file."""
    return f"text of {path}"


def test_every_later_request_holds_the_feedback_once_at_the_same_place() -> None:
    script = ScriptedProvider(call("edit", {"path": "a"}), call("read", {"path": "a"}), say("done"))
    with Agent(script, tools=[edit, read], plugins=[Feedback(FeedbackOptions(text="FOO_BAR_FEEDBACK"))]) as agent:
        outcome = agent.run("edit a")

    places = [
        [at for at, message in enumerate(request.messages) if message.text == "FOO_BAR_FEEDBACK"]
        for request in script.requests
    ]
    assert places == [[], [3], [3]]
    (told,) = [message for message in outcome.messages if message.text == "FOO_BAR_FEEDBACK"]
    assert (told.origin.kind, told.origin.plugin, told.origin.hook, told.origin.round) == (
        "plugin",
        "feedback",
        "next_instructions",
        1,
    )
