"""Rules behind a model that only talks; approval of what changes tickets; the compose file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from hookloop import Agent
from hookloop.testing import ScriptedProvider, call
from hookloop_booking import BookingOptions, BookingPlugin, BookingService
from hookloop_booking.rules import BookingRules
from hookloop_hookspecs import Approve, Deny

PLUGIN = Path(__file__).parents[2] / "plugins" / "booking"


@pytest.fixture
def service() -> Iterator[BookingService]:
    made = BookingService("sqlite://")
    yield made
    made.close()


def agent_of(service: BookingService, *script: object) -> Agent:
    return Agent(ScriptedProvider(list(script)), plugins=[BookingPlugin(service=service), BookingRules()])


def test_the_rules_act_where_the_model_only_talks(service: BookingService) -> None:
    with agent_of(service, "Sure, it is booked!", "It is booked now.") as agent:
        outcome = agent.run("book G456")
    assert outcome.text == "It is booked now."
    assert [ticket.id for ticket in service.booked()] == [2]
    acted = next(one for one in outcome.new if one.calls)
    assert (acted.origin.plugin, acted.calls[0].arguments) == ("booking-rules", {"ticket": "G456"})
    assert len(outcome.rounds) == 3


@pytest.mark.parametrize(
    ("prompt", "answer"),
    [("book G456", "Which class do you want?"), ("thank you", "You are welcome."), ("tell me a joke", "No.")],
)
def test_the_rules_leave_alone_what_is_not_clear(service: BookingService, prompt: str, answer: str) -> None:
    with agent_of(service, answer) as agent:
        assert agent.run(prompt).text == answer
    assert service.booked() == ()


def test_the_rules_leave_a_model_alone_that_used_a_tool(service: BookingService) -> None:
    with agent_of(service, [call("book", {"ticket": "D789"}, id="c1")], "Booked.", "Still booked.") as agent:
        assert len(agent.run("book D789", conversation="c").rounds) == 2
        assert agent.run("thanks", conversation="c").text == "Still booked."
    assert [ticket.id for ticket in service.booked()] == [3]


def test_the_rules_act_once_in_a_turn_and_again_in_the_next(service: BookingService) -> None:
    with agent_of(service, "Booked!", "Yes, booked.", "Cancelled!", "Yes, cancelled.") as agent:
        agent.run("book G456", conversation="c")
        agent.run("cancel G456", conversation="c")
    assert service.booked() == ()


def test_what_needs_approval_waits(service: BookingService) -> None:
    plugin = BookingPlugin(BookingOptions(approve=["book"]), service=service)
    script = [
        [call("book", {}, id="c1")],
        "No.",
        [call("book", {}, id="c2")],
        "Yes.",
        [call("cancel", {}, id="c3")],
        "Free.",
    ]
    with Agent(ScriptedProvider(script), plugins=[plugin]) as agent:
        assert agent.run("book", conversation="c").pending[0].question == "May the desk book a ticket?"
        assert agent.resume("c", {"c1": Deny("too early")}).text == "No."
        assert service.booked() == ()
        agent.run("book", conversation="c")
        assert agent.resume("c", {"c2": Approve()}).text == "Yes."
        assert len(service.booked()) == 1
        assert agent.run("cancel", conversation="c").text == "Free."


def test_a_misspelt_tool_that_waits_for_approval_is_an_error() -> None:
    with pytest.raises(ValidationError, match="approve"):
        BookingOptions.model_validate({"approve": ["bok"]})


def test_the_compose_file_starts_the_page_with_both_stores() -> None:
    text = (PLUGIN / "compose.yaml").read_text("utf-8")
    assert re.findall(r"^  (\w+):$", text.partition("volumes:\n  bookings")[0], re.MULTILINE) == [
        "desk",
        "postgres",
        "redis",
    ]
    copied = set(re.findall(r"\./(plugins/[\w-]+|core|hookspecs)", text))
    for folder in copied:
        assert (PLUGIN.parents[1] / folder / "pyproject.toml").is_file()
    assert {"core", "hookspecs", "plugins/web", "plugins/booking", "plugins/redis"} <= copied
    for part in (
        "postgresql+psycopg://",
        "redis://redis",
        '"hookloop", "demo", "--host", "0.0.0.0"',
        "127.0.0.1:8000:8000",
    ):
        assert part in text
