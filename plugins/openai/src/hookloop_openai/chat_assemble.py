"""Raw Chat Completions events to deltas and one reply. A whole body is one event of the same kind.

The reply's order is thinking, text, calls, whatever order they came in, so that both transports give the same.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hookloop_hookspecs import Delta, Opaque, Part, Reply, Text, TextDelta, Thinking, ThinkingDelta, Usage, json_text
from hookloop_hookspecs.entries import StopReason

from .assembly import Assembly, Broken, Context
from .ids import distinct
from .reasoning import Details
from .slots import Slots
from .usage import usage_of
from .values import Json, Pairs, is_object, mapping, sequence, string, utf8, whole
from .wire_text import tagged

_STOPS: Final[dict[str, StopReason]] = {
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "filter",
    "refusal": "refusal",
    "model_context_window_exceeded": "context",
}

_FAILED: Final = frozenset({"error", "abort", "network_error", "insufficient_system_resource"})


class ChatAssembly(Assembly):
    """One reply as it grows."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._profile = context.identity.profile
        self._text: list[str] = []
        self._thought: list[str] = []
        self._refusal: list[str] = []
        self._pairs = (Pairs(), Pairs())
        self._slots = Slots(self._profile.call_extras, context.seed)
        self._details = Details()
        self._finish = ""
        self._model = ""
        self._id = ""
        self._usage: Json = {}
        self._done = False

    def take(self, event: Json, name: str = "") -> list[Delta]:
        """What a chunk adds, as deltas."""
        self._model = string(event.get("model")) or self._model
        self._id = string(event.get("id")) or self._id
        self._usage = _usage(event) or self._usage
        deltas: list[Delta] = []
        for place, choice in enumerate(sequence(event.get("choices"))):
            if isinstance(choice, dict) and not _place(choice, place):
                self._finish = string(choice.get("finish_reason")) or self._finish
                self._choice(choice, deltas)
        return deltas

    def take_whole(self, body: Json) -> list[Delta]:
        """A whole body, as one event."""
        choices = [choice for choice in sequence(body.get("choices")) if isinstance(choice, dict)]
        if not choices:
            raise Broken("the answer has no choices")
        self._done = True
        return self.take({**body, "choices": [_as_delta(choice) for choice in choices]})

    def done(self) -> None:
        """The server said that nothing more comes."""
        self._done = True

    @property
    def finished(self) -> bool:
        """True once nothing but usage can come: at the end mark, or a finish reason that is no failure."""
        return self._done or (bool(self._finish) and self._finish not in _FAILED)

    def _choice(self, choice: Json, deltas: list[Delta]) -> None:
        delta = choice.get("delta")
        if not isinstance(delta, dict):
            return
        content = delta.get("content")
        if content:
            self._content(content, deltas)
        if len(delta) > 1 or content is None:
            self._beside(delta, deltas)

    def _beside(self, delta: Json, deltas: list[Delta]) -> None:
        """Everything of a delta but its content."""
        self._think(string(delta.get("reasoning_content")) or string(delta.get("reasoning")), deltas)
        self._details.take(sequence(delta.get("reasoning_details")))
        if refusal := string(delta.get("refusal")):
            self._refusal.append(refusal)
        for entry in sequence(delta.get("tool_calls")):
            if isinstance(entry, dict):
                deltas.append(self._slots.take(entry))

    def _content(self, content: object, deltas: list[Delta]) -> None:
        if isinstance(content, str):
            self._say(content, deltas)
        elif isinstance(content, dict):
            self._say(json_text(content), deltas)
        for part in sequence(content):
            self._content_part(mapping(part), deltas)

    def _content_part(self, part: Json, deltas: list[Delta]) -> None:
        if part.get("type") in ("thinking", "reasoning"):
            self._think(_part_thought(part), deltas)
        elif part.get("type") in ("text", "output_text"):
            self._say(string(part.get("text")), deltas)
        elif part.get("type") == "refusal":
            self._refusal.append(string(part.get("refusal")))

    def _say(self, text: str, deltas: list[Delta]) -> None:
        if text and (text := self._pairs[0].join(text)):
            self._text.append(text)
            deltas.append(TextDelta(text))

    def _think(self, text: str, deltas: list[Delta]) -> None:
        if text and (text := self._pairs[1].join(text)):
            self._thought.append(text)
            deltas.append(ThinkingDelta(text))

    def reply(self) -> Reply:
        """The whole reply. Raises `Broken` where the server never finished it."""
        if not self._finish and not self._done:
            raise Broken("the stream ended without a finish reason")
        if self._finish in _FAILED:
            raise Broken(f"the server gave up ({self._finish})")
        calls = self._calls()
        stop: StopReason = _STOPS.get(self._finish, "calls" if calls else "end")
        if self._refusal and not calls and stop == "end":
            stop = "refusal"
        return self._made((*self._spoken(), *calls), stop)

    def partial(self) -> Reply:
        """What had arrived, without the calls: nobody said that they were complete."""
        return self._made(self._spoken(), "length")

    def _made(self, content: tuple[Part, ...], stop: StopReason) -> Reply:
        usage = usage_of(self._usage, self._context.prices) if self._usage else Usage()
        model = utf8(self._model) or self._context.identity.model
        return Reply(content, stop, usage, model, utf8(self._finish), self._context.request_id or utf8(self._id))

    def _spoken(self) -> tuple[Part, ...]:
        identity = self._context.identity
        parts: list[Part] = []
        text = "".join((*self._text, self._pairs[0].rest()))
        thought = "".join((*self._thought, self._pairs[1].rest()))
        extra = self._kept()
        if thought or extra:
            parts.append(Thinking(thought, provider=identity.tag, family=identity.family, extra=extra))
        if text:
            parts.append(Text(text))
        if self._refusal:
            data = json_text({"type": "refusal", "refusal": utf8("".join(self._refusal))})
            parts.append(Opaque(data, identity.tag, identity.family))
        return tuple(parts)

    def _kept(self) -> str:
        details = self._details.merged()
        if not details or "reasoning_details" not in self._profile.message_extras:
            return ""
        identity = self._context.identity
        return tagged(identity.tag, identity.family, message={"reasoning_details": details})

    def _calls(self) -> tuple[Part, ...]:
        identity = self._context.identity
        parts: list[Part] = []
        for call, extra in self._slots.calls():
            self._check(call.name, call.raw)
            kept = tagged(identity.tag, identity.family, call=extra) if extra else ""
            parts.append(replace(call, extra=kept))
        return distinct(parts)

    def _check(self, name: str, raw: str) -> None:
        if not name:
            raise Broken("a tool call has no name")
        if not self._finish and not is_object(raw):
            raise Broken("the stream ended within a tool call")


def _place(choice: Json, place: int) -> int:
    """Which of several alternative answers a choice belongs to; where it stands, if nobody says."""
    said = whole(choice.get("index"))
    return place if said is None else said


def _part_thought(part: Json) -> str:
    """The text of a content part that holds reasoning: plain, or in parts of its own."""
    inner = part.get("thinking") or part.get("text") or part.get("summary")
    return inner if isinstance(inner, str) else "".join(string(mapping(p).get("text")) for p in sequence(inner))


def _as_delta(choice: Json) -> Json:
    """A whole choice as if it had come in one event; each of its calls has a place of its own."""
    message = dict(mapping(choice.get("message")))
    entries = [entry for entry in sequence(message.get("tool_calls")) if isinstance(entry, dict)]
    message["tool_calls"] = [{**entry, "index": place} for place, entry in enumerate(entries)]
    return {**choice, "delta": message}


def _usage(event: Json) -> Json:
    return mapping(event.get("usage")) or mapping(mapping(event.get("x_groq")).get("usage"))
