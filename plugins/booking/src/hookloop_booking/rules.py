"""Offline rules behind a real model: when it only talks though it was clearly asked to act, the rules act."""

from __future__ import annotations

from typing import Final

from hookloop_hookspecs import Answer, Message, ModelRequest, Reply, ToolCall, Turn, hookimpl

from .intents import Intent, read_intent

ACTIONS: Final = ("book", "cancel", "list_available", "list_booked")
QUESTION_MARKS: Final = ("?", "？")

NOTE: Final = (
    "The answer above used no tool. The desk's rules now do what was asked ({action}); tell the user what comes of it."
)


class BookingRules:
    """A fallback for models that answer a clear wish without calling a tool.

    When a turn would end without any tool call, though its question is clearly a booking, a cancellation or a list, the
    rules make the call, once, and the model puts the result into words. A model that asks back is left alone. What the
    model streams is not held back for this.
    """

    name = "booking-rules"

    @hookimpl
    def review_answer(self, turn: Turn, reply: Reply) -> Message | None:
        """Not yet: the rules go on."""
        intent = _wish(turn)
        asks_back = reply.text.rstrip().endswith(QUESTION_MARKS)
        if intent is None or turn.calls or asks_back or turn.state.get("acted") == turn.id:
            return None
        turn.state["acted"] = turn.id
        return Message.user(NOTE.format(action=intent.action), ephemeral=True)

    @hookimpl
    def before_round(self, turn: Turn, request: ModelRequest) -> Answer[Reply] | None:
        """The rules' own reply: the call."""
        intent = _wish(turn)
        if intent is None or turn.calls or turn.state.get("acted") != turn.id:
            return None
        if intent.action not in {tool.name for tool in request.tools}:
            return None
        arguments = {"ticket": intent.ticket} if intent.ticket else {}
        call = ToolCall.of(intent.action, arguments, id=f"rules-{request.round}")
        return Answer(Reply((call,), "calls", model="offline rules"))


def _wish(turn: Turn) -> Intent | None:
    """What the newest message of the user clearly asks for."""
    said = next((one for one in reversed(turn.messages) if one.role == "user" and one.origin.kind == "user"), None)
    intent = read_intent(said.text) if said is not None else None
    return intent if intent is not None and intent.action in ACTIONS else None
