"""What both assemblies share: who asked, and how a reply grows out of events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from hookloop_hookspecs import Delta, Reply

from .identity import Identity
from .usage import Prices
from .values import Json


class Broken(Exception):
    """The answer cannot be what the server meant to say: cut off, or without what every answer has."""


class Refused(Exception):
    """The server said in its answer that it failed; `body` is what it said."""

    def __init__(self, body: object) -> None:
        super().__init__()
        self.body = body


@dataclass(frozen=True, slots=True)
class Context:
    """What an assembly must know beside the events. `seed` makes ids for calls that came without one."""

    identity: Identity
    request_id: str = ""
    prices: Prices | None = None
    seed: object = ""


class Assembly(Protocol):
    """One reply as it grows out of the events of one answer."""

    def take(self, event: Json, name: str = "") -> list[Delta]:
        """What one event adds. `name` is the event's name where the stream gave one."""
        ...

    def take_whole(self, body: Json) -> list[Delta]:
        """What a whole body holds. Raises `Broken` where it is no answer."""
        ...

    def done(self) -> None:
        """The stream's own end mark came."""
        ...

    @property
    def finished(self) -> bool:
        """True once the reply is whole: what happens to the connection, or to the rest of the bytes, cannot undo it."""
        ...

    def reply(self) -> Reply:
        """The reply. Raises `Broken` where the server never completed it."""
        ...

    def partial(self) -> Reply:
        """What had arrived of a reply that broke off; marked as cut, and without calls."""
        ...
