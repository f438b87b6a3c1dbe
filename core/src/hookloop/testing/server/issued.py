"""What this server has handed out: signatures, encrypted items, responses. Stateful rules compare with it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, TypeAlias

JsonObject: TypeAlias = "dict[str, Any]"

SIGNED = ("thinking", "redacted_thinking")
"""The blocks that carry a signature, or are one."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """Digests of what may come before a block: the top-level system, the tools, the blocks that are not thinking."""

    system: str
    tools: str
    blocks: str

    def changed(self, now: Prefix) -> str:
        """What differs in another prefix, in words; empty where nothing does."""
        names = {"system": "`system` prompt", "tools": "`tools`", "blocks": "messages before it"}
        return next((name for key, name in names.items() if getattr(self, key) != getattr(now, key)), "")


@dataclass(frozen=True, slots=True)
class Signed:
    """A thinking block as it was issued: its text, the model, the thinking that was asked for, what came before it.

    `prefix` stands for what came before it; `previous` is the signature of the thinking block before it, empty where
    there was none.
    """

    text: str
    model: str
    thinking: str
    prefix: Prefix
    previous: str


@dataclass(frozen=True, slots=True)
class StoredResponse:
    """A response as it was issued: its items, those of its request and chain, and whether it can be referred to."""

    id: str
    items: tuple[JsonObject, ...]
    stored: bool


@dataclass(slots=True)
class Issued:
    """The ledger of one server. Safe to use from several threads.

    What is kept by a call's id is kept as a list, since scripts may use an id again.
    """

    signatures: dict[str, list[Signed]] = field(default_factory=dict)
    thinking_of_call: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    responses: dict[str, StoredResponse] = field(default_factory=dict)
    items: dict[str, JsonObject] = field(default_factory=dict)
    stored_items: set[str] = field(default_factory=set)
    reasoning_before: dict[str, str] = field(default_factory=dict)
    encrypted: dict[str, set[str]] = field(default_factory=dict)
    reasoning_of_call: dict[str, list[str]] = field(default_factory=dict)
    extra_of_call: dict[str, list[JsonObject]] = field(default_factory=dict)
    _count: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def new(self, prefix: str) -> str:
        """A fresh identifier, the same in the same order of questions."""
        with self._lock:
            self._count += 1
            return f"{prefix}{self._count:024d}"

    def short_id(self) -> str:
        """A fresh call id of nine letters and digits, as Mistral makes them."""
        with self._lock:
            self._count += 1
            return f"c{self._count:08d}"

    def sign(self, body: Mapping[str, Any], content: Sequence[JsonObject]) -> None:
        """Note the thinking and the calls of an answer to this Messages request."""
        if not any(block["type"] in SIGNED for block in content):
            for block in content:
                if block["type"] == "tool_use":
                    self.thinking_of_call.setdefault(block["id"], []).append(())
            return
        trace = Trace.of(body)
        mine: list[str] = []
        model, asked = str(body.get("model", "")), str((body.get("thinking") or {}).get("type", ""))
        for block in content:
            if block["type"] in SIGNED:
                mine.append(signature_of(block))
                signed = Signed(str(block.get("thinking", "")), model, asked, trace.prefix(), trace.thinking)
                self.signatures.setdefault(signature_of(block), []).append(signed)
            elif block["type"] == "tool_use":
                self.thinking_of_call.setdefault(block["id"], []).append(tuple(mine))
            trace.add("assistant", block)

    def say(self, message: JsonObject) -> None:
        """Note the reasoning and the calls of a Chat Completions message."""
        reasoning = str(message.get("reasoning_content") or message.get("reasoning") or "")
        for call in message.get("tool_calls", ()):
            self.reasoning_of_call.setdefault(call["id"], []).append(reasoning)
            self.extra_of_call.setdefault(call["id"], []).append(call)

    def respond(self, body: Mapping[str, Any], response_id: str, output: Sequence[JsonObject]) -> None:
        """Note the items of an answer to this Responses request."""
        stored = body.get("store") is not False
        before = (*self.chain(body.get("previous_response_id")), *input_items(body))
        self.responses[response_id] = StoredResponse(response_id, (*before, *output), stored)
        reasoning = ""
        for item in output:
            self._note(item, stored, reasoning)
            reasoning = item.get("id", "") if item["type"] == "reasoning" else ""

    def chain(self, previous: object) -> tuple[JsonObject, ...]:
        """All items that the id of a stored response stands for."""
        known = self.responses.get(previous) if isinstance(previous, str) else None
        return known.items if known and known.stored else ()

    def _note(self, item: JsonObject, stored: bool, reasoning: str) -> None:
        key = item.get("id", "")
        self.items[key] = item
        if stored:
            self.stored_items.add(key)
        if reasoning:
            self.reasoning_before[key] = reasoning
        if item.get("encrypted_content"):
            self.encrypted.setdefault(item["encrypted_content"], set()).add(key)


class Trace:
    """A running digest of a Messages prefix, block by block, blind to what a client may change freely.

    Cache marks, null fields, `is_error: false`, blank text, and how blocks are cut into messages do not count.
    """

    def __init__(self, system: object, tools: object) -> None:
        self._hash = blake2b(digest_size=16)
        self._system, self._tools = _digest(_blocks(system)), _digest(tools or [])
        self.thinking = ""

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Trace:
        """The trace of a whole request."""
        trace = cls(body.get("system"), body.get("tools"))
        for message in body.get("messages", ()):
            for block in _blocks(message.get("content")):
                trace.add(message.get("role", ""), block)
        return trace

    def add(self, role: str, block: JsonObject) -> None:
        """Go on by one block."""
        kind = block.get("type")
        if kind in SIGNED:
            self.thinking = signature_of(block)
        elif kind != "text" or str(block.get("text", "")).strip():
            self._hash.update(_canonical([role, block]))

    def prefix(self) -> Prefix:
        """What stands for everything so far."""
        return Prefix(self._system, self._tools, self._hash.copy().hexdigest())


def _canonical(value: object) -> bytes:
    return json.dumps(plain(value), sort_keys=True).encode("ascii")


def _digest(value: object) -> str:
    return blake2b(_canonical(value), digest_size=16).hexdigest()


def signature_of(block: Mapping[str, Any]) -> str:
    """What identifies a thinking block: its signature, or the data of a redacted one."""
    return str(block.get("signature") or block.get("data") or "")


def plain(value: Any) -> Any:
    """The value without cache marks, nulls and defaults; a string content as the one text block it stands for."""
    if isinstance(value, Mapping):
        kept = {key: item for key, item in value.items() if item is not None and key != "cache_control"}
        if kept.get("is_error") is False:
            del kept["is_error"]
        if kept.get("type") == "tool_result":
            kept["content"] = _blocks(kept.get("content"))
        return {key: plain(item) for key, item in kept.items()}
    return [plain(item) for item in value] if isinstance(value, list | tuple) else value


def _blocks(content: object) -> list[JsonObject]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [block for block in content if isinstance(block, dict)] if isinstance(content, Iterable) else []


def input_items(body: Mapping[str, Any]) -> tuple[JsonObject, ...]:
    """The input of a Responses request as a list of items."""
    given = body.get("input", ())
    if isinstance(given, str):
        return ({"type": "message", "role": "user", "content": given},)
    return tuple(item for item in given if isinstance(item, dict)) if isinstance(given, list) else ()
