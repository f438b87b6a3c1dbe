"""The plugin: formats each event and writes it out at once."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import TextIO

from pydantic import BaseModel, ConfigDict, Field

from hookloop_hookspecs import Turn, hookimpl
from hookloop_hookspecs.events import Event, RequestSent, TurnBegan

from .clean import name
from .format import LIMIT, format_event
from .shown import Memory


class PromptLogOptions(BaseModel):
    """`file`: append to it instead of standard error; `full`: everything, unbounded; `limit`: characters of a text."""

    model_config = ConfigDict(extra="forbid")

    file: str = ""
    full: bool = False
    limit: int = Field(default=LIMIT, ge=40)


class PromptLog:
    """Prints each round: what is sent, what comes back, and the tool runs in between.

    Arguments: `options`, as config gives them; `stream`, where to write when no file is named (default: what is
    standard error at that moment; it is never closed). Raises `OSError` when the file cannot be opened.
    """

    name = "prompt-log"
    Options = PromptLogOptions

    def __init__(self, options: PromptLogOptions | None = None, *, stream: TextIO | None = None) -> None:
        self._options = options or PromptLogOptions()
        self._stream = stream
        path = self._options.file
        self._file = Path(path).open("a", encoding="utf-8") if path else None  # noqa: SIM115 - open as long as the agent
        self._lock = threading.Lock()
        self._memory = Memory()
        self._turn = ""

    @hookimpl
    def on_event(self, turn: Turn, event: Event) -> None:
        """Write the event's lines."""
        with self._lock:
            shown = self._memory.look(turn.conversation, event.request) if isinstance(event, RequestSent) else None
            lines = format_event(event, full=self._options.full, limit=self._options.limit, shown=shown)
            if lines:
                self._write([*self._whose(turn, event), *lines])

    @hookimpl
    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._file is not None:
                self._file.close()

    def _whose(self, turn: Turn, event: Event) -> list[str]:
        """Says which turn the next lines are about, where turns run side by side and it is another than before."""
        if turn.id == self._turn or isinstance(event, TurnBegan):
            self._turn = turn.id
            return []
        self._turn = turn.id
        return [f"‥‥ turn {name(turn.id)} ‥‥ conversation {name(turn.conversation)}"]

    def _write(self, lines: list[str]) -> None:
        out = self._file or self._stream or sys.stderr
        encoding = out.encoding or "utf-8"
        text = "".join(f"{line}\n" for line in lines)
        out.write(text.encode(encoding, "backslashreplace").decode(encoding))
        out.flush()
