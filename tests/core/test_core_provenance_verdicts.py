"""What verdicts, decisions, tools and people put into history says where it came from, also after a JSON round trip."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pytest
from scenarios import EDIT, READ, Hooked, SendFrom, failing, scenario
from ways import TRANSPORTS, WAYS, Seen, play

from hookloop import Limits
from hookloop.engine.log import flatten
from hookloop.testing import call, reply, say
from hookloop_hookspecs import Answer, Approve, Deny, Message, Replace, Stop
from hookloop_hookspecs.codec import dump_entry, dump_message, load_entry, load_message

PAY = call("pay", {"amount": 5}, id="p1")
DECIDED = ("user", "", "", "resume")
ENGINE = ("engine", "", "", "")
USER = ("user", "", "", "")
MODEL = ("model", "", "", "")
TOOL = ("tool", "", "", "")


class Judge(Hooked):
    """A plugin with a version, which has nothing to say in the turn that comes after (`broken` is False then)."""

    version = "2.1"

    def __init__(self, **hooks: Callable[..., Any]) -> None:
        self.broken = True
        super().__init__("judge", **{hook: self._meanwhile(function) for hook, function in hooks.items()})

    def _meanwhile(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def implementation(*given: Any) -> Any:
            return function(*given) if self.broken else None

        return implementation


def of(hook: str, kind: str = "plugin") -> tuple[str, str, str, str]:
    """The mark of what the judge made in a hook."""
    return (kind, "judge", "2.1", hook)


def marks(seen: Seen) -> list[tuple[str, Any, int]]:
    """Text, giver and round of each message of the turn, which all say its id; the same after JSON."""
    outcome = seen.outcome
    assert {m.origin.turn for m in outcome.messages} == {"t1"}
    assert [load_message(dump_message(m)) for m in outcome.messages] == list(outcome.messages)
    entries = [entry for entry in seen.raw if entry.turn == "t1"]
    again = [load_entry(dump_entry(entry)) for entry in entries]
    assert list(flatten(again)) == list(outcome.messages)
    return [
        (m.text, (m.origin.kind, m.origin.plugin, m.origin.version, m.origin.hook), m.origin.round)
        for m in outcome.messages
    ]


GO = ("go", USER, 0)
ASKED = ("", MODEL, 1)
CASES: dict[str, tuple[Any, list[tuple[str, Any, int]]]] = {
    "review_answer": (
        scenario(
            "review",
            [say("first"), say("second")],
            lambda: Judge(review_answer=lambda turn: "not yet" if turn.round == 1 else None),
        ),
        [GO, ("first", MODEL, 1), ("not yet", of("review_answer"), 1), ("second", MODEL, 2)],
    ),
    "sent while a tool runs": (
        scenario("sent", [EDIT, say("ok")], lambda: SendFrom("tool_started", "hurry")),
        [GO, ASKED, ("edited a", TOOL, 1), ("hurry", USER, 1), ("ok", MODEL, 2)],
    ),
    "sent while answering": (
        scenario("sent", [say("one"), say("two")], lambda: SendFrom("reply_received", "wait")),
        [GO, ("one", MODEL, 1), ("wait", USER, 1), ("two", MODEL, 2)],
    ),
    "before_turn replaces": (
        scenario("replaced", [say("ok")], lambda: Judge(before_turn=lambda query: _once(query, "better"))),
        [("better", of("before_turn", "user"), 0), ("ok", MODEL, 1)],
    ),
    "before_round answers": (
        scenario("answered", [], lambda: Judge(before_round=lambda: Answer("short"))),
        [GO, ("short", of("before_round"), 1)],
    ),
    "before_round answers with a call": (
        scenario(
            "answered",
            [say("ok")],
            lambda: Judge(before_round=lambda turn: Answer(reply(EDIT)) if turn.round == 1 else None),
        ),
        [GO, ("", of("before_round"), 1), ("edited a", TOOL, 1), ("ok", MODEL, 2)],
    ),
    "on_model_error answers": (
        scenario("sorry", [EDIT, failing()], lambda: Judge(on_model_error=lambda: Answer("sorry"))),
        [GO, ASKED, ("edited a", TOOL, 1), ("sorry", of("on_model_error"), 2)],
    ),
    "after_reply replaces": (
        scenario("replaced", [say("bad")], lambda: Judge(after_reply=lambda: Replace("good"))),
        [GO, ("good", of("after_reply", "model"), 1)],
    ),
    "after_reply stops": (
        scenario("stopped", [EDIT], lambda: Judge(after_reply=lambda: Stop("unsafe", "I may not"))),
        [GO, ("I may not", of("after_reply"), 1)],
    ),
    "before_tool denies": (
        scenario("denied", [EDIT, say("ok")], lambda: Judge(before_tool=lambda: Deny("not now"))),
        [GO, ASKED, ("denied: not now", of("before_tool"), 1), ("ok", MODEL, 2)],
    ),
    "before_tool stops": (
        scenario(
            "stopped",
            [[READ, EDIT]],
            lambda: Judge(before_tool=lambda call: Stop("enough", "bye") if call.name == "edit" else None),
        ),
        [GO, ASKED, ("not run: stopped by judge", ENGINE, 1), ("not run: stopped by judge", of("before_tool"), 1)],
    ),
    "after_tool fails": (
        scenario("failed", [EDIT], lambda: Judge(after_tool=lambda: 1 / 0)),
        [GO, ASKED, ("ran; result withheld: plugin judge failed", TOOL, 1)],
    ),
    "approved": (
        scenario("approved", [PAY, say("ok")], resume=[lambda outcome: {"p1": Approve({"amount": 3})}]),
        [GO, ASKED, ("paid 3", TOOL, 1), ("ok", MODEL, 2)],
    ),
    "denied by somebody": (
        scenario("denied", [PAY, say("ok")], resume=[lambda outcome: {"p1": Deny("no money")}]),
        [GO, ASKED, ("denied: no money", DECIDED, 1), ("ok", MODEL, 2)],
    ),
    "answered by somebody": (
        scenario("answered", [PAY, say("ok")], resume=[lambda outcome: {"p1": Answer("paid by hand")}]),
        [GO, ASKED, ("paid by hand", DECIDED, 1), ("ok", MODEL, 2)],
    ),
    "a tool's error": (
        scenario("told", [call("tell", id="c1"), call("boom", id="c2"), say("ok")]),
        [
            GO,
            ASKED,
            ("try something else", TOOL, 1),
            ("", MODEL, 2),
            ("boom failed: ValueError", TOOL, 2),
            ("ok", MODEL, 3),
        ],
    ),
    "faults that the engine finds": (
        scenario(
            "faults",
            [[EDIT, call("edit", "{", id="c2")], call("edit", {"path": "b"}, id="c3")],
            limits=Limits(tool_calls=2),
        ),
        [
            GO,
            ASKED,
            ("edited a", TOOL, 1),
            ("The arguments of edit were not understood", ENGINE, 1),
            ("", MODEL, 2),
            ("not run: the limit 'tool_calls' of this turn is reached", ENGINE, 2),
        ],
    ),
    "calls that the engine closes": (
        scenario("closed", [EDIT], lambda: SendFrom("tool_started", "", lambda agent, _: agent.cancel("c"))),
        [GO, ASKED, ("not run: the turn ended before this call began", ENGINE, 1)],
    ),
}


def _once(query: Message, text: str) -> Any:
    return None if query.text == text else Replace(text)


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", CASES)
def test_each_message_names_its_giver(name: str, way: str, transport: str) -> None:
    case, wanted = CASES[name]
    got = marks(play(case, way, transport))
    assert [(text[: len(start)], *rest) for (text, *rest), (start, *_) in zip(got, wanted, strict=True)] == wanted
