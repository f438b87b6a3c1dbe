"""A stored log, told again as what happened, so that one fold draws live turns, traces and old conversations."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from typing import Any

from hookloop_hookspecs import (
    Decided,
    Entry,
    Message,
    Resumed,
    Said,
    Suspended,
    ToolCall,
    TurnEnded,
    TurnStarted,
    TurnSuspended,
    Usage,
)
from hookloop_hookspecs.codec import dump_message
from hookloop_hookspecs.redact import redact

from .agents import Told
from .plain import clean


def tell(entries: Iterable[Entry]) -> Iterator[Told]:
    """What happened, in the order of the log. Times of single tools are not stored, so they are 0."""
    teller = _Teller()
    for entry in sorted(entries, key=lambda entry: entry.number):
        if not (isinstance(entry.body, Said) and entry.body.message.results):
            yield from teller.group_over()
        yield from teller.entry(entry)
    yield from teller.group_over()


class _Teller:
    """Reads a log from its start; keeps what a later entry refers to."""

    def __init__(self) -> None:
        self.calls: dict[int, ToolCall] = {}
        self.answered: set[int] = set()
        self.messages: list[dict[str, Any]] = []
        self.sent = 0
        self.start: TurnStarted | None = None
        self.behind: list[tuple[str, Message]] = []

    def group_over(self) -> Iterator[Told]:
        """What was said about the calls of a group stands behind its last result."""
        behind, self.behind = self.behind, []
        for turn, message in behind:
            yield Told(0, turn, "contributed", {"message": self._keep(message)})

    def entry(self, entry: Entry) -> Iterator[Told]:
        match entry.body:
            case TurnStarted() as body:
                self.start = body
                yield Told(body.at, entry.turn, "turn_began", {"message": None, "resumed": False})
            case Resumed() as body:
                yield Told(body.at, entry.turn, "turn_began", {"message": None, "resumed": True})
            case Said() as body:
                yield from self._said(entry, body)
            case Suspended() as body if body.place in self.calls and body.place not in self.answered:
                data = {"call": _call(self.calls[body.place]), "question": redact(body.question)}
                yield Told(0, entry.turn, "call_suspended", {**data, "expires": body.expires, "round": 0})
            case Decided() as body:
                verdict = {"verdict": body.decision, "detail": redact(body.reason)}
                yield Told(0, entry.turn, "decision", {"plugin": "", "hook": "", **verdict})
            case TurnSuspended() as body:
                yield Told(body.at, entry.turn, "turn_finished", {"status": "suspended", "stop_reason": "suspended"})
            case TurnEnded() as body:
                data = {"status": body.status, "stop_reason": body.stop_reason, "text": redact(body.text)}
                yield Told(0, entry.turn, "turn_finished", {**data, "error": redact(body.error)})
            case _:
                pass

    def _said(self, entry: Entry, said: Said) -> Iterator[Told]:
        message = said.message
        if message.role == "assistant":
            yield from self._reply(entry, said)
        elif message.results:
            yield self._result(entry, message)
        else:
            kind = "message_sent" if message.origin.kind == "user" else "contributed"
            yield Told(0, entry.turn, kind, {"message": self._keep(message)})
        self.behind += [(entry.turn, extra) for extra in said.behind]

    def _reply(self, entry: Entry, said: Said) -> Iterator[Told]:
        message, start = said.message, self.start
        head = {"round": message.origin.round, "provider": message.origin.model, "size": len(self.messages)}
        if start is not None:
            head |= {"system": redact(start.system), "tools": [tool.name for tool in start.tools]}
        yield Told(0, entry.turn, "request_sent", {**head, "messages": self.messages[self.sent :]})
        self.start, self.sent = None, len(self.messages)
        for offset, call in enumerate(message.calls, 1):
            self.calls[entry.number + offset] = call
        reply = {"stop": said.stop or "", "usage": asdict(said.usage or Usage()), "model": message.origin.model}
        data = {"round": message.origin.round, "reply": reply, "message": self._keep(message), "seconds": said.seconds}
        yield Told(0, entry.turn, "reply_received", {**data, "answered_by": message.origin.plugin})

    def _result(self, entry: Entry, message: Message) -> Told:
        (result,) = message.results
        self.answered.add(entry.number)
        call = self.calls.get(entry.number, ToolCall(result.call_id, result.name))
        plain = self._keep(message)["content"][0]
        data = {"round": message.origin.round, "call": _call(call), "result": plain, "ran": bool(result.ran)}
        return Told(0, entry.turn, "tool_ended", {**data, "seconds": 0.0})

    def _keep(self, message: Message) -> dict[str, Any]:
        plain: dict[str, Any] = clean(json.loads(dump_message(message)))
        self.messages.append(plain)
        return plain


def _call(call: ToolCall) -> dict[str, Any]:
    return {"id": call.id, "name": call.name, "raw": redact(call.raw)}
