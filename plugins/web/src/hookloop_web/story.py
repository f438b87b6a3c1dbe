"""What the page shows of a conversation: a fold over what happened, into turns, rounds and blocks.

Rules for the next editor. All that is drawn comes from here, whether it happens now, is read from a trace, or from a
store. `take` gives back what changed, as operations that the browser applies in order; `state` is the same as a whole. The
browser decides nothing. Texts are cut to what a person reads; `detail` has them whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from .agents import Told
from .exchanges import Exchange, messages_before
from .plain import pretty, words_of

Op: TypeAlias = dict[str, Any]
Block: TypeAlias = dict[str, Any]

LONGEST: Final = 8_000
"""Characters of one block that the page shows at once."""

OVER: Final = ("done", "stopped", "limit", "cancelled", "failed")


@dataclass(slots=True)
class Turn:
    """One turn as it is drawn. `head` is its line; `rounds` and `blocks` are in the order in which they came."""

    head: dict[str, Any]
    rounds: dict[int, dict[str, Any]] = field(default_factory=dict)
    blocks: dict[str, Block] = field(default_factory=dict)
    whole: dict[str, Any] = field(default_factory=dict)
    exchanges: dict[int, Exchange] = field(default_factory=dict)
    round: int = 0


class Story:
    """One conversation, drawn from what happened in it."""

    def __init__(self) -> None:
        self.turns: dict[str, Turn] = {}
        self._takes: dict[str, Callable[[Turn, Told], list[Op]]] = {
            "turn_began": self._began,
            "request_sent": self._request,
            "text_piece": self._text,
            "thinking_piece": self._thinking,
            "call_piece": self._writing,
            "reply_received": self._reply,
            "reply_discarded": self._discarded,
            "model_failed": self._model_failed,
            "tool_started": self._started,
            "tool_ended": self._ended,
            "call_suspended": self._suspended,
            "contributed": self._contributed,
            "message_sent": self._sent,
            "turn_finished": self._finished,
        }

    def take(self, told: Told) -> list[Op]:
        """Add one event; what changed."""
        turn = self.turns.get(told.turn)
        if turn is None:
            turn = self.turns[told.turn] = Turn(_head(told, len(self.turns) + 1))
        if told.kind in self._takes:
            return self._takes[told.kind](turn, told)
        return self._note(turn, told)

    def take_all(self, line: Iterable[Told]) -> None:
        """Add many events, whose changes nobody waits for."""
        for told in line:
            self.take(told)

    def state(self) -> list[dict[str, Any]]:
        """All turns, for a page that opens."""
        return [
            {**turn.head, "rounds": list(turn.rounds.values()), "blocks": list(turn.blocks.values())}
            for turn in self.turns.values()
        ]

    @property
    def title(self) -> str:
        """The first question."""
        blocks = (block for turn in self.turns.values() for block in turn.blocks.values())
        return next((block["text"] for block in blocks if block["origin"] == "user"), "")[:80]

    @property
    def last(self) -> dict[str, Any] | None:
        """The head of the newest turn."""
        return next(reversed(self.turns.values())).head if self.turns else None

    @property
    def waiting(self) -> dict[str, str]:
        """The calls of the newest turn that wait for a decision, by their id: the arguments."""
        turn = next(reversed(self.turns.values()), None)
        asked = (block for block in turn.blocks.values() if block.get("state") == "asked") if turn else ()
        return {block["call"]: block["args"] for block in asked}

    def detail(self, turn_id: str, what: int | str) -> list[tuple[str, str]]:
        """What stands behind a click, as titles and texts: a round's request and reply, or a block as it came."""
        turn = self.turns.get(turn_id)
        if turn is None:
            return []
        if isinstance(what, int):
            if what not in turn.exchanges:
                return []
            upto = list(self.turns).index(turn_id) + 1
            before = messages_before([one.exchanges for one in list(self.turns.values())[:upto]], what)
            return turn.exchanges[what].shown(before)
        whole = turn.whole.get(what)
        return [("As it came", whole if isinstance(whole, str) else pretty(whole))] if whole is not None else []

    def _began(self, turn: Turn, told: Told) -> list[Op]:
        resumed = bool(told.data.get("resumed"))
        turn.head |= {"status": "running", "resumed": turn.head["resumed"] or resumed}
        turn.head["began"] = turn.head["began"] or told.at
        message = told.data.get("message")
        return [_op_turn(turn), *(self._message(turn, message) if message else [])]

    def _request(self, turn: Turn, told: Told) -> list[Op]:
        number = turn.round = int(told.data["round"])
        turn.exchanges.setdefault(number, Exchange()).ask(told)
        fresh = len(told.data.get("messages") or ())
        line = turn.rounds.setdefault(number, {"turn": turn.head["id"], "n": number, "tools": 0.0, "seconds": 0.0})
        line |= {"provider": told.data.get("provider", ""), "size": told.data.get("size", 0), "fresh": fresh}
        line |= {"attempt": told.data.get("attempt", 1), "state": "asked"}
        turn.head["used_rounds"] = len(turn.rounds)
        return [_op_round(line), _op_turn(turn)]

    def _text(self, turn: Turn, told: Told) -> list[Op]:
        return self._piece(turn, "reply", told.data["text"])

    def _thinking(self, turn: Turn, told: Told) -> list[Op]:
        return self._piece(turn, "thinking", told.data["text"])

    def _piece(self, turn: Turn, kind: str, text: str) -> list[Op]:
        key = f"{turn.round}/{kind}"
        block = turn.blocks.get(key)
        if block is None or block["state"] == "discarded":
            block = self._block(turn, key, kind, "model", state="streaming")
            block["text"] = text[:LONGEST]
            return [_op_block(block)]
        room = LONGEST - len(block["text"])
        if room <= 0:
            return []
        block["text"] += text[:room]
        return [{"op": "text", "turn": turn.head["id"], "key": key, "text": text[:room]}]

    def _writing(self, turn: Turn, told: Told) -> list[Op]:
        """A call's name is shown at once; its arguments when they are whole."""
        data = told.data
        if not data.get("id") or f"call/{data['id']}" in turn.blocks:
            return []
        return [_op_block(self._call(turn, {"id": data["id"], "name": data["name"], "raw": ""}, "writing"))]

    def _reply(self, turn: Turn, told: Told) -> list[Op]:
        data = told.data
        reply, message, number = data["reply"], data["message"], int(data["round"])
        exchange = turn.exchanges.setdefault(number, Exchange())
        exchange.reply = {**reply, "content": message["content"], "seconds": data.get("seconds", 0.0)}
        line = turn.rounds.setdefault(number, {"turn": turn.head["id"], "n": number, "tools": 0.0})
        line |= {"seconds": data.get("seconds") or 0.0, "usage": reply.get("usage") or {}, "stop": reply.get("stop")}
        line |= {"state": "answered", "by": data.get("answered_by") or "", "calls": _count(message, "call")}
        _add_usage(turn.head, line["usage"])
        ops = [_op_round(line), _op_turn(turn)]
        turn.round = number
        for kind, part in (("thinking", "thinking"), ("reply", "text")):
            text = "".join(one.get("text", "") for one in message["content"] if one["type"] == part)
            if text.strip() or f"{number}/{kind}" in turn.blocks:
                block = self._block(turn, f"{number}/{kind}", kind, _origin(message), state="whole")
                ops.append(_op_block(self._fill(turn, block, text, text)))
        calls = [part for part in message["content"] if part["type"] == "call"]
        return ops + [_op_block(self._call(turn, call, "waiting")) for call in calls]

    def _discarded(self, turn: Turn, told: Told) -> list[Op]:
        ops = []
        for kind in ("reply", "thinking"):
            block = turn.blocks.get(f"{turn.round}/{kind}")
            if block is not None and block["state"] == "streaming":
                block["state"] = "discarded"
                ops.append(_op_block(block))
        return [*ops, *self._note(turn, told)]

    def _model_failed(self, turn: Turn, told: Told) -> list[Op]:
        line = turn.rounds.get(int(told.data["round"]))
        ops = [] if line is None else [_op_round(line | {"state": "failed"})]
        return [*ops, *self._note(turn, told)]

    def _started(self, turn: Turn, told: Told) -> list[Op]:
        call = {**told.data["call"], "raw": told.data.get("arguments") or told.data["call"]["raw"]}
        return [_op_block(self._call(turn, call, "running"))]

    def _ended(self, turn: Turn, told: Told) -> list[Op]:
        result = told.data["result"]
        seconds = told.data.get("seconds") or 0.0
        state = "error" if result.get("is_error") else "done"
        call = told.data["call"] if not result.get("ran") else {**told.data["call"], "raw": result["ran"]}
        block = self._call(turn, call, state) | {"ran": told.data.get("ran"), "seconds": seconds}
        text = "".join(part.get("text", f"[{part['type']}]") for part in result.get("content", ()))
        turn.blocks[block["key"]] = self._fill(turn, block, text, {"call": told.data["call"], "result": result})
        turn.head["used_calls"] = sum(1 for one in turn.blocks.values() if one["kind"] == "call")
        line = turn.rounds.get(int(told.data.get("round") or 0))
        ops = [_op_block(block), _op_turn(turn)]
        if line is not None:
            line["tools"] = max(float(line.get("tools") or 0.0), seconds)
            ops.append(_op_round(line))
        return ops

    def _suspended(self, turn: Turn, told: Told) -> list[Op]:
        block = self._call(turn, told.data["call"], "asked")
        block["question"] = told.data.get("question", "")
        block["expires"] = told.data.get("expires")
        return [_op_block(block)]

    def _contributed(self, turn: Turn, told: Told) -> list[Op]:
        return self._message(turn, told.data["message"])

    def _sent(self, turn: Turn, told: Told) -> list[Op]:
        return self._message(turn, told.data["message"])

    def _message(self, turn: Turn, message: Mapping[str, Any]) -> list[Op]:
        origin = message.get("origin") or {}
        block = self._block(turn, f"message/{len(turn.blocks)}", "message", origin.get("kind", "user"))
        block |= {"who": origin.get("plugin", ""), "hook": origin.get("hook", ""), "role": message["role"]}
        block["ephemeral"] = bool(message.get("ephemeral"))
        text = "".join(part.get("text", f"[{part['type']}]") for part in message["content"])
        return [_op_block(self._fill(turn, block, text, message))]

    def _finished(self, turn: Turn, told: Told) -> list[Op]:
        data = told.data
        turn.head |= {"status": data["status"], "reason": data.get("stop_reason", ""), "error": data.get("error") or ""}
        turn.head["ended"] = told.at
        ops = [_op_turn(turn)]
        for block in turn.blocks.values():
            if block["state"] == "streaming" or (block["state"] in ("running", "writing") and data["status"] in OVER):
                block["state"] = "cut"
                ops.append(_op_block(block))
        text = data.get("text") or ""
        shown = any(block["text"] == text[:LONGEST] for block in turn.blocks.values() if block["kind"] == "reply")
        if data["status"] in OVER and text and not shown:
            block = self._block(turn, "end", "reply", "engine", state="whole")
            ops.append(_op_block(self._fill(turn, block, text, text)))
        return ops

    def _note(self, turn: Turn, told: Told) -> list[Op]:
        """What has no form of its own: limits, cuts, writes, warnings, verdicts."""
        data = told.data
        block = self._block(turn, f"note/{len(turn.blocks)}", told.kind, "engine")
        block |= {"who": data.get("plugin", ""), "hook": data.get("hook", "")}
        if told.kind == "decision":
            block["origin"] = "plugin" if data.get("plugin") else "user"
        return [_op_block(self._fill(turn, block, words_of(told), data))]

    def _call(self, turn: Turn, call: Mapping[str, Any], state: str) -> Block:
        key = f"call/{call['id']}"
        block = self._block(turn, key, "call", "tool", state=state)
        block |= {"call": call["id"], "name": call["name"], "args": call["raw"][:LONGEST]}
        turn.whole.setdefault(key, {"call": call})
        return block

    def _block(self, turn: Turn, key: str, kind: str, origin: str, state: str = "") -> Block:
        block = turn.blocks.get(key)
        if block is None:
            head = {"turn": turn.head["id"], "key": key, "round": turn.round, "kind": kind, "text": "", "who": ""}
            block = turn.blocks[key] = head
        block |= {"origin": origin, "state": state}
        return block

    def _fill(self, turn: Turn, block: Block, text: str, whole: Any) -> Block:
        block |= {"text": text[:LONGEST], "more": max(0, len(text) - LONGEST)}
        turn.whole[block["key"]] = whole
        return block


def _head(told: Told, number: int) -> dict[str, Any]:
    head = {
        "id": told.turn,
        "number": number,
        "began": told.at,
        "ended": 0.0,
        "status": "open",
        "reason": "",
        "error": "",
    }
    return {**head, "resumed": False, "used_rounds": 0, "used_calls": 0, "tokens": None, "cost": None}


def _add_usage(head: dict[str, Any], usage: Mapping[str, Any]) -> None:
    for name, key in (("tokens", "total"), ("cost", "cost")):
        if usage.get(key) is not None:
            head[name] = (head[name] or 0) + usage[key]


def _origin(message: Mapping[str, Any]) -> str:
    return str((message.get("origin") or {}).get("kind", "model"))


def _count(message: Mapping[str, Any], kind: str) -> int:
    return sum(1 for part in message["content"] if part["type"] == kind)


def _op_turn(turn: Turn) -> Op:
    return {"op": "turn", "turn": dict(turn.head)}


def _op_round(line: Mapping[str, Any]) -> Op:
    return {"op": "round", "round": dict(line)}


def _op_block(block: Block) -> Op:
    return {"op": "block", "block": dict(block)}
