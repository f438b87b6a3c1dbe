"""What callers bring: prompts, ids, histories, suspensions, made into what the engine takes."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Sequence
from typing import Any

from hookloop_hookspecs import ConfigError, CorruptData, Entry, Message, Said
from hookloop_hookspecs.codec import load_entry
from hookloop_hookspecs.storing import LONGEST_ID
from hookloop_hookspecs.wellformed import fault

from .engine.history import repair


def message_of(prompt: Any) -> Message:
    """The user's message: text, a message with the role user, or parts. Raises `ConfigError`."""
    if isinstance(prompt, Message):
        if trouble := fault(prompt):
            raise ConfigError(f"a prompt is text, a user Message, or parts (Text, Image, File); here {trouble}")
        if prompt.role != "user" or prompt.calls or prompt.results:
            raise ConfigError(f"a turn starts with a user message, not with one of the role {prompt.role!r}")
        return prompt
    if isinstance(prompt, str):
        return Message("user", prompt)
    if isinstance(prompt, Iterable):
        return message_of(Message("user", list(prompt)))
    raise ConfigError(f"a prompt is text, a Message or parts, not {type(prompt).__name__}")


def conversation_of(conversation: str | None) -> str:
    """The conversation's id; a new one for None, so that nobody shares one by accident. Raises `ConfigError`."""
    id = _id(conversation, "conversation")
    if id.lstrip().startswith("{"):
        raise ConfigError("conversation begins with '{', as the text of a suspension does; give another id")
    return id


def turn_of(turn_id: str | None) -> str:
    """The turn's id; a new one for None. Raises `ConfigError`."""
    return _id(turn_id, "turn_id")


def _id(value: str | None, what: str) -> str:
    """An id of the caller's, checked as every store would; a new one for None."""
    if value is None:
        return uuid.uuid4().hex
    if not isinstance(value, str) or not value.strip():
        raise ConfigError(f"{what} is empty; leave it out for a new one, or give the id of yours")
    if len(value) > LONGEST_ID:
        raise ConfigError(f"{what} has {len(value)} characters; give an id of at most {LONGEST_ID}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ConfigError(f"{what} holds a lone surrogate; give an id that is valid text") from None
    if "\0" in value:
        raise ConfigError(f"{what} holds a NUL; give an id without control characters")
    return value


def history_of(history: Sequence[Message], turn: str, warnings: list[str]) -> tuple[Entry, ...]:
    """A caller's history as entries of closed turns: repaired, numbered, the caller's list untouched.

    Raises `ConfigError` for what is no `Message`.
    """
    entries: list[Entry] = []
    group, before = 0, ""
    history = tuple(history)
    for at, message in enumerate(history):
        if trouble := fault(message) if isinstance(message, Message) else f"it is a {type(message).__name__}":
            raise ConfigError(f"history[{at}] is no Message that can be used: {trouble}")
    for message in repair(history, warnings.append):
        starts = message.role == "user" and message.origin.kind == "user"
        if starts and (before != "user" or message.origin.turn != entries[-1].body.message.origin.turn):  # type: ignore[union-attr]  # all are Said
            group += 1
        entries.append(Entry(len(entries) + 1, f"{turn}-history-{group}", Said(message)))
        before = message.role
    return tuple(entries)


def suspension_of(text: str) -> tuple[str, str, tuple[Entry, ...]] | None:
    """Conversation, turn and entries of an `outcome.suspension`; None where the text is a conversation's id.

    Raises `CorruptData` for a suspension that cannot be read.
    """
    if not text.lstrip().startswith("{"):
        return None
    try:
        data = json.loads(text)
        return str(data["conversation"]), str(data["turn"]), tuple(load_entry(line) for line in data["entries"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(f"not a suspension: {type(error).__name__}: {error}") from error
