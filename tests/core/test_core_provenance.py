"""Each message says where it came from, also after a JSON round trip."""

from __future__ import annotations

from scenarios import EDIT, READ, Hooked, scenario
from ways import play

from hookloop.engine.log import flatten
from hookloop.testing import call, say
from hookloop_hookspecs import Answer, Message, Replace, hookimpl
from hookloop_hookspecs.codec import dump_entry, dump_message, load_entry, load_message


class Everywhere:
    """Contributes in every hook that may."""

    name = "everywhere"
    version = "1.2"

    @hookimpl
    def recall(self) -> str:
        return "recalled"

    @hookimpl
    def before_turn(self) -> str:
        return "turn"

    @hookimpl
    def before_round(self) -> str:
        return "round"

    @hookimpl
    def after_reply(self) -> str:
        return "reply"

    @hookimpl
    def after_tool(self) -> str:
        return "tool"

    @hookimpl
    def next_instructions(self) -> Message:
        return Message.user("next", key="k")


def test_every_message_of_an_outcome_names_its_giver() -> None:
    seen = play(scenario("all", [EDIT, say("done")], Everywhere), "run")
    got = [
        (m.text, m.origin.kind, m.origin.plugin, m.origin.version, m.origin.hook, m.origin.round)
        for m in seen.outcome.messages
    ]
    ours = ("plugin", "everywhere", "1.2")
    assert got == [
        ("go", "user", "", "", "", 0),
        ("recalled", *ours, "recall", 0),
        ("turn", *ours, "before_turn", 0),
        ("round", *ours, "before_round", 1),
        ("", "model", "", "", "", 1),
        ("edited a", "tool", "", "", "", 1),
        ("reply", *ours, "after_reply", 1),
        ("tool", *ours, "after_tool", 1),
        ("next", *ours, "next_instructions", 1),
        ("round", *ours, "before_round", 2),
        ("done", "model", "", "", "", 2),
        ("reply", *ours, "after_reply", 2),
    ]
    assert {m.origin.turn for m in seen.outcome.messages} == {"t1"}
    assert {m.origin.model for m in seen.outcome.messages if m.role == "assistant"} == {"scripted:scripted"}


def test_verdicts_leave_their_mark_too() -> None:
    seen = play(
        scenario(
            "verdicts",
            [EDIT, READ, call("nope", id="c3"), say("done")],
            lambda: Hooked("judge", before_tool=lambda call: Answer("by hand") if call.name == "read" else None),
            lambda: Hooked("redact", after_tool=lambda call: Replace("***") if call.name == "edit" else None),
        ),
        "run",
    )
    marks = [
        (m.text[:7], m.origin.kind, m.origin.plugin, m.origin.hook) for m in seen.outcome.messages if m.role == "tool"
    ]
    assert marks == [
        ("***", "tool", "redact", "after_tool"),
        ("by hand", "plugin", "judge", "before_tool"),
        ("There i", "engine", "", ""),
    ]


def test_origins_survive_a_round_trip_through_json() -> None:
    seen = play(scenario("all", [EDIT, READ, say("done")], Everywhere), "run")
    for message in seen.outcome.messages:
        assert load_message(dump_message(message)) == message
    entries = [entry for entry in seen.raw if entry.turn == "t1"]
    again = [load_entry(dump_entry(entry)) for entry in entries]
    assert again == entries
    assert list(flatten(again)) == list(seen.outcome.messages)
