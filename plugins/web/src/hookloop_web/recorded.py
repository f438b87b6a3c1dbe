"""A recorded trace as rooms that can only be looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookloop_hookspecs import ConfigError
from hookloop_hookspecs.events import Event

from .agents import Running, Told
from .rooms import Rooms
from .story import Story


class Nobody:
    """Stands where an agent would: nobody answers in a trace."""

    memories = ()

    def astream(self, prompt: Any, *, conversation: str) -> Running:
        """Raises `ConfigError`."""
        raise ConfigError(f"{conversation} is a recorded trace; nobody answers")

    def aresume_stream(self, conversation: str, decisions: Mapping[str, Any] | None = None) -> Running:
        """Raises `ConfigError`."""
        raise ConfigError(f"{conversation} is a recorded trace; nobody answers")

    def send(self, conversation: str, text: str) -> None:
        """Raises `ConfigError`."""
        raise ConfigError(f"{conversation} is a recorded trace; nobody answers")

    def cancel(self, conversation: str) -> None:
        """Nothing runs."""


def recorded(lines: Iterable[tuple[str, Told]]) -> Rooms:
    """Rooms made of conversations and what happened in them."""
    stories: dict[str, Story] = {}
    for conversation, told in lines:
        stories.setdefault(conversation, Story()).take(told)
    rooms = Rooms(Nobody(), _nothing_happens, shared=True)
    rooms.keep(stories)
    return rooms


def _nothing_happens(event: Event, conversation: str, turn: str) -> Told:
    return Told(0.0, turn, event.kind, {"conversation": conversation})
