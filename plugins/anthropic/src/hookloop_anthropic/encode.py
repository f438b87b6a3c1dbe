"""A `ModelRequest`'s messages into the wire's, each encoded once and then only added to.

No input and no output here, and no SDK. `Encoded` lives in the request's memo for one epoch. What was sent is never
rewritten: same-role messages are merged by appending, and cache marks are set while the text is put together.
`thinks` says that some reply holds thinking that the model may get back.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, takewhile
from typing import Final, Literal, TypeAlias

from hookloop_hookspecs import Message, ModelRequest, json_text

from .models import Generation
from .names import Names
from .parts import Encoder, Reader, Sent
from .properties import renames
from .tools import tool_texts

Place: TypeAlias = tuple[int, int]

_MARK: Final = ',"cache_control":{"type":"ephemeral"}}'
_MARKABLE: Final = frozenset({"text", "tool_result", "tool_use", "image", "document"})
_THOUGHTS: Final = ('{"type":"thinking"', '{"type":"redacted_thinking"')


def _text(text: str) -> Sent:
    return Sent(json_text({"type": "text", "text": text}), "text")


_FILLED: Final = _text("(no message)")
"""Stands where the API wants a message and there is nothing to say."""


@dataclass(slots=True)
class WireMessage:
    """A message on the wire. `results` counts the tool results, which stand first."""

    role: Literal["user", "assistant", "system"]
    blocks: list[Sent] = field(default_factory=list)
    results: int = 0
    text: str = ""

    @property
    def asks(self) -> bool:
        """True for a user message that holds no results."""
        return self.role == "user" and not self.results

    def append(self, blocks: list[Sent]) -> None:
        """Add blocks behind all others."""
        self.blocks += blocks
        self.text = ""

    def put_result(self, block: Sent) -> None:
        """Add a result behind the other results."""
        self.blocks.insert(self.results, block)
        self.results += 1
        self.text = ""

    def render(self, marked: Sequence[int] = (), *, last: bool = False, thoughts: bool = True) -> str:
        """The message as JSON text, with cache marks on the blocks at `marked`, with its thinking or without."""
        usual = not marked and not last and thoughts
        if usual and self.text:
            return self.text
        texts = [block.json[:-1] + _MARK if at in marked else block.json for at, block in enumerate(self.blocks)]
        if last and self.role == "assistant":
            texts[-1:] = _stripped(self.blocks[-1], texts[-1])
        if not thoughts:
            texts = [text for text in texts if not text.startswith(_THOUGHTS)] or [_FILLED.json]
        text = f'{{"role":"{self.role}","content":[{",".join(texts)}]}}'
        if usual:
            self.text = text
        return text


def _stripped(block: Sent, text: str) -> list[str]:
    """A prefill's last text may not end in white space; a block of nothing else goes."""
    if block.kind != "text":
        return [text]
    value = json.loads(text)
    value["text"] = value["text"].rstrip()
    return [json_text(value)] if value["text"] else []


class Encoded:
    """The messages of one epoch on the wire. `extend` takes in what is new."""

    def __init__(self, request: ModelRequest, reader: Reader, model: Generation) -> None:
        self.reader = reader
        self.names = Names([tool.name for tool in request.tools])
        self.tools = tool_texts(request.tools, self.names, model)
        self.messages: list[WireMessage] = []
        self.thinks = False
        self._tops = [request.system]
        self._waiting: list[str] = []
        self._places_system = model.places_system
        self.renames = {tool.name: names for tool in request.tools if (names := renames(tool.schema))}
        self._encoder = Encoder(reader, self.names, self.renames)
        self._count = 0
        self._newest: Message | None = None
        self._ends: list[Place] = []

    def continues(self, request: ModelRequest, reader: Reader) -> bool:
        """True when what is encoded here is a beginning of the request."""
        count = self._count
        if reader != self.reader or count > len(request.messages):
            return False
        return count == 0 or request.messages[count - 1] is self._newest

    def extend(self, messages: Sequence[Message]) -> None:
        """Encode the messages that were not there before."""
        for at in range(self._count, len(messages)):
            self._add(messages[at])
            self._newest = messages[at]
        self._count = len(messages)
        self._mark_end()

    def _add(self, message: Message) -> None:
        if message.role == "system":
            self._system(message.text)
        elif message.role == "assistant":
            self._assistant(self._encoder.assistant(message.content))
        elif message.role == "tool":
            for result in message.results:
                self._user_message().put_result(self._encoder.result(result))
        else:
            self._user(self._encoder.user(message.content))

    def _system(self, text: str) -> None:
        if not text.strip():
            return
        (self._waiting if self._places_system and self.messages else self._tops).append(text)

    def _assistant(self, blocks: list[Sent]) -> None:
        while blocks and blocks[-1].json.startswith(_THOUGHTS):
            blocks.pop()  # the API refuses a message that ends in thinking
        if not blocks:
            return
        self._place_waiting()
        if not self.messages:
            self._user([])
        if self.messages[-1].role != "assistant":
            self.messages.append(WireMessage("assistant"))
        self.messages[-1].append(blocks)
        self.thinks = self.thinks or any(block.json.startswith(_THOUGHTS) for block in blocks)

    def _user(self, blocks: list[Sent]) -> None:
        if not blocks and self._last_role == "user":
            return
        self._user_message().append(blocks or [_FILLED])

    def _user_message(self) -> WireMessage:
        if self._last_role != "user":
            self.messages.append(WireMessage("user"))
        return self.messages[-1]

    @property
    def container(self) -> str:
        """The id of the newest container in which the vendor ran code; empty for none."""
        return self._encoder.container

    @property
    def _last_role(self) -> str:
        return self.messages[-1].role if self.messages else ""

    def _place_waiting(self) -> None:
        """System text goes behind a user message and before the model's next one, where it is allowed; else on top."""
        if not self._waiting:
            return
        if self._last_role == "user":
            self.messages.append(_system_message(self._waiting))
        else:
            self._tops += self._waiting
        self._waiting = []

    def _mark_end(self) -> None:
        """Note where this request ends; of an epoch's first request also where the turn before had its last one end."""
        end = next(self._markable(len(self.messages)), None)
        if end is None or end in self._ends[-1:]:
            return
        before = self._ends[-1:] or list(islice(self._markable(self._latest_reply), 1))
        self._ends = [*before, end]

    @property
    def _latest_reply(self) -> int:
        places = (at for at in range(len(self.messages) - 1, -1, -1) if self.messages[at].role == "assistant")
        return next(places, 0)

    def _markable(self, before: int) -> Iterator[Place]:
        for at in range(before - 1, -1, -1):
            blocks = self.messages[at].blocks
            yield from ((at, n) for n in range(len(blocks) - 1, -1, -1) if blocks[n].kind in _MARKABLE)

    @property
    def begins_with_thinking(self) -> bool:
        """True unless the turn in progress began with a reply that has no thinking in front."""
        turn = takewhile(lambda message: not message.asks, reversed(self.messages))
        replies = [message for message in turn if message.role == "assistant"]
        return not replies or replies[-1].blocks[0].json.startswith(_THOUGHTS)

    def render(self, cache: bool, thoughts: bool = True) -> list[tuple[str, str]]:
        """The three lists of a body as (key, JSON text), empty ones left out: tools, system, messages.

        Arguments: `cache` sets cache marks; without `thoughts` earlier thinking is left out.
        """
        tail = [_system_message(self._waiting)] if self._waiting and self._last_role == "user" else []
        tops = [*self._tops, *(() if tail else self._waiting)]
        system = [json_text({"type": "text", "text": text}) for text in tops if text.strip()]
        tools = list(self.tools)
        if cache and (system or tools):
            stable = system or tools
            stable[-1] = stable[-1][:-1] + _MARK
        lists = {"tools": tools, "system": system, "messages": self._texts(tail, cache, thoughts)}
        return [(key, f"[{','.join(texts)}]") for key, texts in lists.items() if texts or key == "messages"]

    def _texts(self, tail: list[WireMessage], cache: bool, thoughts: bool) -> list[str]:
        messages = [*self.messages, *tail] or [WireMessage("user", [_FILLED])]
        marked: dict[int, list[int]] = {}
        for at, n in self._ends if cache else ():
            marked.setdefault(at, []).append(n)
        final = len(messages) - 1
        return [
            message.render(marked.get(at, ()), last=at == final, thoughts=thoughts)
            for at, message in enumerate(messages)
        ]


def _system_message(texts: list[str]) -> WireMessage:
    return WireMessage("system", [_text(text) for text in texts])
