"""Scenarios in which the turn is left before its end: cancelled from within at every kind of moment, or its stream left."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from scenarios import EDIT, READ, Feedback, Hooked, SendFrom, failing, once, scenario, tools
from ways import Expected, Scenario

from hookloop import Agent, Limits, ToolContext, tool
from hookloop.testing import call, say, think
from hookloop_hookspecs import Deny, Retry

SCRIPT = [[think("hm"), EDIT], READ, say("a longer answer")]
HOOKS = ("recall", "before_turn", "before_round", "after_reply", "before_tool", "after_tool", "next_instructions")
EVENTS = (
    "turn_began",
    "request_sent",
    "thinking_piece",
    "call_piece",
    "reply_received",
    "tool_started",
    "tool_ended",
    "text_piece",
)
CANCELLED = Expected("cancelled", "cancelled")


class Cancels(Hooked):
    """A plugin that cancels the turn in one of its hooks, once."""

    agent: Any = None

    def __init__(self, hook: str, *, after_round: bool = False) -> None:
        self.left = False

        def implementation() -> None:
            if not self.left:
                self.left = True
                self.agent.cancel("c", after_round=after_round)

        super().__init__("cancels", **{hook: implementation})


def now(agent: Agent, conversation: str) -> None:
    """Cancel the turn."""
    agent.cancel(conversation)


def after_round(agent: Agent, conversation: str) -> None:
    """Have the turn end with its round."""
    agent.cancel(conversation, after_round=True)


class Reach:
    """What tools note to reach the agent."""

    agent: Any = None


def quitting(*, later: bool) -> Callable[[list[Any]], dict[str, Any]]:
    """Tools that cancel the turn they run in, at once or (`later`) at the round's end."""

    def parameters(notes: list[Any]) -> dict[str, Any]:
        reach = Reach()
        notes.append(reach)

        @tool
        def leave(context: ToolContext) -> str:
            """Cancel the turn, and go on until told."""
            reach.agent.cancel(context.conversation, after_round=later)
            assert later or context.cancel.wait(30)
            notes.append("left")
            return "left"

        @tool
        async def leave_async(context: ToolContext) -> str:
            """Cancel the turn, and never end where that is at once."""
            reach.agent.cancel(context.conversation, after_round=later)
            notes.append("left")
            if not later:
                await asyncio.Event().wait()
            return "left"

        return {"tools": [*tools(notes), leave, leave_async]}

    return parameters


PAY = call("pay", {"amount": 5}, id="p1")
RARE: list[tuple[str, list[Any], list[Callable[[], Any]], dict[str, Any], Expected]] = [
    ("contributed", SCRIPT, [Feedback], {}, CANCELLED),
    ("decision", SCRIPT, [lambda: Hooked(before_tool=lambda: Deny("no"))], {}, CANCELLED),
    ("call_suspended", [[PAY, EDIT], say("unused")], [], {}, CANCELLED),
    ("call_suspended, alone", [PAY, say("unused")], [], {}, Expected("suspended", "suspended", 1, 0)),
    ("model_failed", [failing(), say("ok")], [lambda: once("on_model_error", Retry())], {}, CANCELLED),
    ("limit_reached", SCRIPT, [], {"limits": Limits(tool_calls=1)}, Expected("limit", "tool_calls", 2, 1)),
    ("limit_reached, of rounds", SCRIPT, [], {"limits": Limits(rounds=1)}, Expected("limit", "rounds", 1, 1)),
    ("limit_reached, with an answer", SCRIPT, [], {"limits": Limits(rounds=1, on_breach="answer")}, CANCELLED),
    ("turn_finished", SCRIPT, [], {}, Expected("done", "end", 3, 2)),
]
"""Events of some turns: kind (and where), script, plugins, agent, what must come of it. What is over is not cancelled."""


def _kind(at: str) -> str:
    return at.partition(",")[0]


LEAVING = [
    *(
        scenario(f"cancel in {hook}", SCRIPT, lambda hook=hook: Cancels(hook), expected=CANCELLED)  # type: ignore[misc]  # bound now
        for hook in HOOKS
    ),
    *(
        scenario(
            f"too late to cancel {'after the round ' if later else ''}in review_answer",
            SCRIPT,
            lambda later=later: Cancels("review_answer", after_round=later),  # type: ignore[misc]  # bound now
            expected=Expected("done", "end", 3, 2, "a longer answer"),
        )
        for later in (False, True)
    ),
    *(
        scenario(
            f"cancel after the round in {hook}",
            SCRIPT,
            lambda hook=hook: Cancels(hook, after_round=True),  # type: ignore[misc]  # bound now
            expected=CANCELLED,
        )
        for hook in HOOKS
    ),
    *(
        scenario(
            f"cancel {word} at {kind}",
            SCRIPT,
            lambda kind=kind, act=act: SendFrom(kind, "", act),  # type: ignore[misc]  # bound now
            pieces=kind.endswith("piece"),
            expected=Expected("done", "end", 3, 2) if (kind, act) == ("text_piece", after_round) else CANCELLED,
        )
        for kind in EVENTS
        for word, act in (("now", now), ("after the round", after_round))
    ),
    *(
        Scenario(
            f"cancel {'after the round ' if later else ''}in the tool {name}",
            lambda name=name: [[call(name, id="c1"), call("alone", {"n": 1}, id="c2")], say("unused")],  # type: ignore[misc]  # bound now
            quitting(later=later),
            expected=Expected("cancelled", "cancelled", 1, 2 if later else 1),
        )
        for name in ("leave", "leave_async")
        for later in (False, True)
    ),
    *(
        scenario(f"the stream is left at {kind}", SCRIPT, leave=kind, pieces=kind.endswith("piece"), expected=CANCELLED)
        for kind in (*EVENTS, "stored")
    ),
    *(
        scenario(f"the stream is left at {at}", script, *makers, leave=_kind(at), expected=expected, **agent)
        for at, script, makers, agent, expected in RARE
    ),
    *(
        scenario(
            f"cancel now at {at}",
            script,
            *makers,
            lambda at=at: SendFrom(_kind(at), "", now),  # type: ignore[misc]  # bound now
            expected=expected,
            **agent,
        )
        for at, script, makers, agent, expected in RARE
    ),
]
"""Turns that somebody leaves; of streams that are left, only the two that stream can be compared."""
