"""The turn as a hook sees it."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from typing import Any, Protocol

from .messages import Message, Usage


class Turn(Protocol):
    """What the hook argument `turn` offers. Each plugin gets its own; it is valid during the hook that got it."""

    @property
    def id(self) -> str:
        """The turn's id."""

    @property
    def conversation(self) -> str:
        """The conversation's id."""

    @property
    def round(self) -> int:
        """The current round, from 1; 0 before the first."""

    @property
    def calls(self) -> int:
        """Tool calls answered or under way in this turn, denied and failed ones too."""

    @property
    def errors(self) -> int:
        """How many results in a row were errors."""

    @property
    def usage(self) -> Usage:
        """What the turn has used so far."""

    @property
    def deps(self) -> Any:
        """The object that the caller gave to `run(..., deps=…)`."""

    @property
    def state(self) -> MutableMapping[str, Any]:
        """The plugin's own JSON place in this conversation. What is put in here is stored with the turn."""

    @property
    def messages(self) -> Sequence[Message]:
        """The messages as the next request would hold them."""

    @property
    def resumed(self) -> bool:
        """True on a resume."""

    def complete(self, prompt: str, *, system: str = "") -> str:
        """Ask the turn's model, outside history. Usage counts with the turn's; past a limit it raises `LimitError`."""

    async def acomplete(self, prompt: str, *, system: str = "") -> str:
        """`complete` for async hooks."""
