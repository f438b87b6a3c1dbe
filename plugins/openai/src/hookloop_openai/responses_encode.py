"""History to Responses input items. Pure; each message is encoded once.

What this provider's model made goes back as the items it came as, in order: reasoning travels with what follows it,
encrypted, and never alone. What others made is written anew from texts and calls. Items that want an answer travel
with it (see `answered`); a user's message may hold it as an opaque part.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from hookloop_hookspecs import File, Image, Message, Opaque, Text, Thinking, ToolCall, ToolResult
from hookloop_hookspecs.messages import Part

from .answered import Answered
from .identity import Identity
from .ids import WireIds
from .media import Unsendable, document, file_address, file_name, image_address, left_out
from .values import Json, dumps, mapping, sequence, utf8
from .wire_text import NO_VISION, arguments, clean, joined, omitted, tool_name

LONGEST_ID: Final = 64
CUSTOM: Final = "custom_tool_call"
CONTENT: Final = "input_"
"""How the types of a user message's parts begin, where those of items do not."""


class ResponsesHistory:
    """The encoded items of one epoch, each as the JSON text that is sent."""

    KEY: Final = "input"

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._profile = identity.profile
        self._ids = WireIds(identity.profile.id_pattern, max(LONGEST_ID, identity.profile.id_length))
        self._customs: set[str] = set()
        self._written: list[bytes] = []
        self._item_ids: set[str] = set()
        self._answered = Answered(identity)

    def extend(self, messages: Iterable[Message]) -> None:
        """Encode the messages that came since."""
        new = list(messages)
        self._answered.look(new)
        for message in new:
            self._written += [dumps(item) for item in self._encoded(message)]

    def written(self, system: str) -> list[bytes]:
        """All items of the request as JSON texts; the system text stands beside them."""
        return self._written

    def _encoded(self, message: Message) -> list[Json]:
        if message.role == "tool":
            return [self._result(result) for result in message.results]
        if message.role == "assistant":
            return self._assistant(message)
        if message.role == "system":
            return [{"role": self._profile.system_role, "content": joined(message.content)}]
        return self._user(message.content)

    def _user(self, parts: Iterable[Part]) -> list[Json]:
        """A user's message; opaque items in it stand before it, right behind what they answer."""
        items: list[Json] = []
        content: list[Part] = []
        for part in parts:
            item = self._opaque(part) if isinstance(part, Opaque) else {}
            if item and not str(item["type"]).startswith(CONTENT):
                items.append(self._once(item))
            elif item or not isinstance(part, Opaque):
                content.append(part)
        return items if items and not content else [*items, {"role": "user", "content": self._content(content)}]

    def _content(self, parts: Iterable[Part]) -> str | list[Json]:
        parts = tuple(parts)
        if all(isinstance(part, Text) for part in parts):
            return joined(parts)
        return [self._part(part) for part in parts]

    def _part(self, part: Part) -> Json:
        if isinstance(part, Image | File):
            return self._seen(part)
        if isinstance(part, Opaque):
            return self._opaque(part)
        return {"type": "input_text", "text": utf8(part.text) if isinstance(part, Text) else ""}

    def _seen(self, part: Image | File) -> Json:
        """An image or a file; a text that says what stood here where the server would refuse it."""
        try:
            return self._image(part) if isinstance(part, Image) else self._file(part)
        except Unsendable as why:
            return {"type": "input_text", "text": left_out(part, why)}

    def _image(self, part: Image) -> Json:
        if not self._identity.vision:
            return {"type": "input_text", "text": NO_VISION}
        address = image_address(part, self._profile.image_types)
        return {"type": "input_image", "detail": "auto", "image_url": address}

    def _file(self, part: File) -> Json:
        if not self._profile.files:
            return {"type": "input_text", "text": omitted(part)}
        if address := file_address(part):
            return {"type": "input_file", "file_url": address}
        return {"type": "input_file", "filename": file_name(part), "file_data": document(part)}

    def _result(self, result: ToolResult) -> Json:
        wire = self._ids.result(result.call_id)
        kind = "custom_tool_call_output" if wire in self._customs else "function_call_output"
        return {"type": kind, "call_id": wire, "output": self._content(result.content)}

    def _assistant(self, message: Message) -> list[Json]:
        items: list[Json] = []
        reasoning: list[Json] = []
        bare = False
        for part in message.content:
            if isinstance(part, Thinking):
                item = self._thought(part)
                bare = bare or (item is None and self._identity.owns(part))
                reasoning += [item] if item else []
                continue
            item = self._said(part)
            if item is not None:
                items += [self._once(thought) for thought in reasoning]
                items.append(self._once(_without_id(item) if bare else item))
                reasoning = []
        return items

    def _once(self, item: Json) -> Json:
        """The item, without an id that stands in the request already; a local shell's output has the id of its call."""
        id = str(item.get("id") or "") if item.get("type") != "local_shell_call_output" else ""
        if id in self._item_ids:
            return _without_id(item)
        self._item_ids |= {id} if id else set()
        return item

    def _thought(self, part: Thinking) -> Json | None:
        """The reasoning item, if it may travel: a server that keeps nothing must get it whole, encrypted."""
        item = mapping(self._identity.home(part.extra).get("item")) if self._identity.owns(part) else {}
        if not item or not (item.get("encrypted_content") or self._profile.store):
            return None
        return mapping(clean(item))

    def _said(self, part: Part) -> Json | None:
        if isinstance(part, Text):
            return self._text(part)
        if isinstance(part, ToolCall):
            return self._call(part)
        return (self._opaque(part) or None) if isinstance(part, Opaque) else None

    def _opaque(self, part: Opaque) -> Json:
        """The item as it came, where it may be sent; else an empty one."""
        item = mapping(part.value) if self._identity.owns(part) else {}
        return mapping(clean(item)) if self._answered.sends(item) else {}

    def _text(self, part: Text) -> Json | None:
        item = mapping(self._identity.home(part.extra).get("item"))
        if item:
            return mapping(clean(_refilled(item, part.text)))
        if not part.text:
            return None
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": utf8(part.text)}]}

    def _call(self, part: ToolCall) -> Json:
        item = mapping(self._identity.home(part.extra).get("item"))
        wire = self._ids.call(part.id)
        said = {"call_id": wire, "name": tool_name(part.name)}
        if item.get("type") == CUSTOM:
            self._customs.add(wire)
            return {**mapping(clean(item)), **said, "input": utf8(part.raw)}
        return {**mapping(clean(item)), "type": "function_call", **said, "arguments": arguments(part)}


def emptied(item: Json) -> Json:
    """A message item without the text that its part holds already."""
    content = sequence(item.get("content"))
    if len(content) != 1 or mapping(content[0]).get("type") != "output_text":
        return item
    kept = {name: value for name, value in content[0].items() if name not in ("text", "logprobs")}
    return {**item, "content": [kept]}


def _refilled(item: Json, text: str) -> Json:
    content = sequence(item.get("content"))
    if len(content) == 1 and "text" not in mapping(content[0]):
        return {**item, "content": [{**mapping(content[0]), "text": text}]}
    if item_text(item) == text:
        return item
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


def item_text(item: Json) -> str:
    """All output text of a message item."""
    parts: list[Any] = sequence(item.get("content"))
    return "".join(
        str(mapping(p).get("text") or "") for p in parts if mapping(p).get("type") in ("output_text", "text")
    )


def _without_id(item: Json) -> Json:
    return {name: value for name, value in item.items() if name != "id"}
