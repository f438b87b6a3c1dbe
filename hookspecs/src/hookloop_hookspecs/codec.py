"""Entries and messages to JSON text and back. Data never names a class to import; unknown data is a typed error."""

from __future__ import annotations

import json
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from .entries import Body, Entry
from .errors import ContractError, CorruptData
from .messages import Message

SCHEMA = 1
"""Version of the entries' JSON. A store keeps what it is given; `load_entry` refuses what is newer."""

T = TypeVar("T")


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Any]) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


@cache
def _body() -> TypeAdapter[Any]:
    return TypeAdapter(Annotated[Body, Field(discriminator="kind")])


def dump_entry(entry: Entry) -> str:
    """The entry as one line of JSON text; the same entry always gives the same text.

    Raises `ContractError` for an entry that `load_entry` would refuse, since a value in it is not what its type says.
    """
    try:
        body = _body().dump_json(entry.body, warnings="error").decode("utf-8")
    except PydanticSerializationError as error:
        raise ContractError(
            f"entry {entry.number} of turn {entry.turn[:80]!r} cannot be stored: {_brief(error)}"
        ) from error
    turn = json.dumps(entry.turn, ensure_ascii=False)
    return f'{{"v":{SCHEMA},"number":{entry.number},"turn":{turn},"body":{body}}}'


def load_entry(text: str | bytes) -> Entry:
    """The entry that `dump_entry` wrote.

    Raises `CorruptData` when the text is not an entry, or was written by a newer schema than this version knows.
    """
    try:
        data = json.loads(text)
        version = data["v"]
        if version != SCHEMA:
            raise CorruptData(f"entry has schema {version!r}, this hookloop reads {SCHEMA}; install a newer hookloop")
        number, turn = data["number"], data["turn"]
        if type(number) is not int or not isinstance(turn, str):
            raise CorruptData(f"an entry's number is {number!r:.40} and its turn {turn!r:.40}")
        return Entry(number, turn, _body().validate_python(data["body"]))
    except CorruptData:
        raise
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise CorruptData(f"not an entry of a hookloop log: {_brief(error)}") from error


def dump_message(message: Message) -> str:
    """A message as JSON text, with origin and all parts."""
    text: bytes = _adapter(Message).dump_json(message)
    return text.decode("utf-8")


def load_message(text: str | bytes) -> Message:
    """The message that `dump_message` wrote. Raises `CorruptData`."""
    return _load(Message, text)


def _load(kind: type[T], text: str | bytes) -> T:
    try:
        value: T = _adapter(kind).validate_json(text)
    except ValidationError as error:
        raise CorruptData(f"not a {kind.__name__}: {_brief(error)}") from error
    return value


def _brief(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error)[:200]}"
