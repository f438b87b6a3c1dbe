"""History to Chat Completions messages. Pure; a history only grows, so each message is encoded once.

Messages of a request are kept here between the rounds of an epoch. What a server refuses never leaves: results stand
right behind their calls and in one run, texts are valid UTF-8, arguments are objects, media follow their group.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hookloop_hookspecs import File, Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from hookloop_hookspecs.messages import Part

from .identity import Identity
from .ids import WireIds
from .media import Unsendable, file_address, file_name, image_address, left_out, pdf, sound, told
from .profile import matches
from .values import Json, dumps, mapping, utf8
from .wire_text import NO_VISION, arguments, clean, joined, omitted, tool_name


class ChatHistory:
    """The encoded messages of one epoch, each also as the JSON text that is sent."""

    KEY: Final = "messages"

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._profile = identity.profile
        self._ids = WireIds(identity.profile.id_pattern, identity.profile.id_length)
        self._media: list[Json] = []
        self._system: list[str] = []
        self._messages: list[Json] = []
        self._held: dict[str, Json] = {}
        self._written: list[bytes] = []

    def extend(self, messages: Iterable[Message]) -> None:
        """Encode the messages that came since."""
        for message in messages:
            self._add(message)

    def written(self, system: str) -> list[bytes]:
        """All messages of the request as JSON texts, the system text first."""
        self._written += [dumps(message) for message in self._messages[len(self._written) :]]
        texts = [utf8(text) for text in (system, *self._system) if text]
        head = [{"role": self._profile.system_role, "content": "\n\n".join(texts)}] if texts else []
        tail = [{"role": "user", "content": self._profile.user_last}] if self._speaks_last() else []
        return [*map(dumps, head), *self._written, *map(dumps, [*self._attachments(), *tail])]

    def _speaks_last(self) -> bool:
        last = self._messages[-1] if self._messages else {}
        return bool(self._profile.user_last) and not self._media and last.get("role") in ("assistant", "system")

    def _attachments(self) -> list[Json]:
        return [{"role": "user", "content": list(self._media)}] if self._media else []

    def _add(self, message: Message) -> None:
        if message.role == "tool":
            for result in message.results:
                self._result(result)
            return
        self._flush()
        if message.role == "system":
            self._instruct(joined(message.content))
        elif message.role == "assistant":
            self._speak(self._assistant(message))
        else:
            self._append({"role": "user", "content": self._content(message.content)})

    def _speak(self, wire: Json) -> None:
        """Say an assistant's message; where a message may hold one call only, each call waits for its result."""
        calls = wire.get("tool_calls", ())
        if len(calls) < 2 or not self._profile.one_call:
            self._append(wire)
            return
        rest = {"role": "assistant", "content": None if self._profile.call_content == "null" else ""}
        for place, call in enumerate(calls):
            self._held[call["id"]] = (rest if place else wire) | {"tool_calls": [call]}

    def _instruct(self, text: str) -> None:
        if self._profile.one_system:
            self._system.append(text)
        else:
            self._append({"role": self._profile.system_role, "content": text})

    def _result(self, result: ToolResult) -> None:
        wire = self._ids.result(result.call_id)
        text, media = self._split(result.content)
        if media:
            text = text or "See what is attached below."
            self._media += [{"type": "text", "text": f"Attached to the result of call {wire}:"}, *media]
        if wire in self._held:
            self._append(self._held.pop(wire))
        self._append({"role": "tool", "tool_call_id": wire, "content": text})
        if not self._ids.open:
            self._flush()

    def _split(self, parts: tuple[Part, ...]) -> tuple[str, list[Json]]:
        if all(isinstance(part, Text) for part in parts):
            return joined(parts), []
        encoded = [self._part(part) for part in parts]
        texts = [part["text"] for part in encoded if part["type"] == "text"]
        return "\n".join(texts), [part for part in encoded if part["type"] != "text"]

    def _flush(self) -> None:
        if self._media:
            content, self._media = self._media, []
            self._append({"role": "user", "content": content})

    def _content(self, parts: tuple[Part, ...]) -> str | list[Json]:
        kept = [part for part in parts if not isinstance(part, Opaque) or self._identity.owns(part)]
        if all(isinstance(part, Text) for part in kept):
            return joined(kept)
        return [self._part(part) for part in kept]

    def _part(self, part: Part) -> Json:
        if isinstance(part, Image | File):
            return self._seen(part)
        if isinstance(part, Opaque):
            return mapping(clean(part.value))
        return {"type": "text", "text": utf8(part.text) if isinstance(part, Text) else ""}

    def _seen(self, part: Image | File) -> Json:
        """An image or a file; a text that says what stood here where the server would refuse it."""
        try:
            return self._image(part) if isinstance(part, Image) else self._file(part)
        except Unsendable as why:
            return {"type": "text", "text": left_out(part, why)}

    def _image(self, part: Image) -> Json:
        if not self._identity.vision:
            return {"type": "text", "text": NO_VISION}
        return {"type": "image_url", "image_url": {"url": image_address(part, self._profile.image_types)}}

    def _file(self, part: File) -> Json:
        if address := file_address(part):
            return {"type": "text", "text": f"[File: {address}]"}
        if (text := told(part)) is not None:
            return {"type": "text", "text": text}
        if not self._profile.files:
            return {"type": "text", "text": omitted(part)}
        if heard := sound(part):
            return {"type": "input_audio", "input_audio": {"data": heard.data, "format": heard.format}}
        return {"type": "file", "file": {"filename": file_name(part), "file_data": pdf(part)}}

    def _assistant(self, message: Message) -> Json:
        text = joined(message.content)
        calls = self._calls([part for part in message.content if isinstance(part, ToolCall)])
        wire: Json = {"role": "assistant", "content": text}
        if calls:
            wire["content"] = text or (None if self._profile.call_content == "null" else "")
            wire["tool_calls"] = calls
        return wire | self._reasoning(message, bool(text), bool(calls))

    def _reasoning(self, message: Message, text: bool, calls: bool) -> Json:
        own = [part for part in message.content if isinstance(part, Thinking) and self._identity.owns(part)]
        back = self._kept([part.extra for part in own])
        thought = utf8("".join(part.text for part in own))
        name = self._profile.reasoning_field
        if name and thought and (self._profile.reasoning_with_content or not text):
            return back | {name: thought}
        if name and calls and matches(self._profile.reasoning_filler_models, self._identity.model):
            return back | {name: self._profile.reasoning_filler}
        return back

    def _kept(self, extras: list[str]) -> Json:
        back: Json = {}
        for extra in extras:
            kept = mapping(self._identity.home(extra).get("message"))
            back |= {name: clean(kept[name]) for name in self._profile.message_extras if name in kept}
        return back

    def _calls(self, calls: list[ToolCall]) -> list[Json]:
        wire = [self._call(call) for call in calls]
        filler, models = self._profile.call_filler, self._profile.call_filler_models
        if wire and matches(models, self._identity.model) and not any(name in wire[0] for name in filler):
            wire[0] |= filler
        return wire

    def _call(self, call: ToolCall) -> Json:
        kept = mapping(self._identity.home(call.extra).get("call"))
        back = {name: clean(kept[name]) for name in self._profile.call_extras if name in kept}
        if kept.get("type") == "custom":
            custom = {"name": tool_name(call.name), "input": utf8(call.raw)}
            return {"id": self._ids.call(call.id), "type": "custom", "custom": custom} | back
        function = {"name": tool_name(call.name), "arguments": arguments(call)}
        return {"id": self._ids.call(call.id), "type": "function", "function": function} | back

    def _append(self, wire: Json) -> None:
        """Put a message behind the others, with what must stand between them."""
        last = self._messages[-1] if self._messages else {}
        before, role = last.get("role", ""), wire["role"]
        if self._profile.merge_roles and role == before != "tool" and not last.get("tool_calls"):
            self._messages[-1] = self._merged(last, wire)
            del self._written[len(self._messages) - 1 :]
            return
        if before == "tool" and role in ("user", "system") and self._profile.after_tool:
            self._messages.append({"role": "assistant", "content": self._profile.after_tool})
        if not before and role == "assistant" and self._profile.user_first:
            self._messages.append({"role": "user", "content": self._profile.user_first})
        self._messages.append(wire)

    def _merged(self, first: Json, second: Json) -> Json:
        both = {**first, **second, "content": _together(first.get("content"), second.get("content"))}
        if both["content"] and not self._profile.reasoning_with_content:
            both.pop(self._profile.reasoning_field, None)
        return both


def _together(first: object, second: object) -> object:
    if isinstance(first, list) or isinstance(second, list):
        return [*_parts(first), *_parts(second)]
    return "\n\n".join(text for text in (first, second) if isinstance(text, str) and text)


def _parts(content: object) -> list[object]:
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if content else []
