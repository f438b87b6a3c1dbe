"""Events of a turn as lines in a terminal: text as it comes, and beside it what the loop does."""

from __future__ import annotations

import json

from rich.console import Console

from hookloop_hookspecs import Outcome
from hookloop_hookspecs import events as happened

from .terminal import clean, one_line


class TurnView:
    """Prints the events of a turn, one after the other.

    Arguments: `console`, for the answer; `notes`, for what else is told (tool runs, warnings); `quiet` leaves the latter
    out except warnings.
    """

    def __init__(self, console: Console, notes: Console, quiet: bool = False) -> None:
        self.console = console
        self.notes = notes
        self.quiet = quiet
        self._open = False
        self._streamed = ""

    def show(self, event: happened.Event) -> None:
        """Print one event; most kinds say nothing here."""
        if isinstance(event, happened.TextPiece):
            self._text(event.text)
        elif isinstance(event, happened.ReplyDiscarded):
            self._note(f"discarded: {event.why}", "yellow")
            self._streamed = ""
        elif isinstance(event, happened.Warned):
            self._note(f"warning: {event.text}", "yellow")
        elif isinstance(event, happened.TurnFinished):
            self._finish(event.outcome)
        elif not self.quiet:
            self._loop(event)

    def _loop(self, event: happened.Event) -> None:
        if isinstance(event, happened.ToolStarted):
            self._note(f"→ {event.call.name}({_arguments(event.arguments)})", "cyan")
        elif isinstance(event, happened.ToolEnded):
            mark, style = ("✗", "red") if event.result.is_error else ("←", "dim")
            self._note(f"{mark} {event.call.name}: {_short(event.result.text)}", style)
        elif isinstance(event, happened.Contributed):
            origin = event.message.origin
            self._note(f"+ {origin.plugin}.{origin.hook}: {_short(event.message.text)}", "magenta")
        elif isinstance(event, happened.Decision):
            self._note(f"! {event.plugin}.{event.hook}: {event.verdict} {_short(event.detail)}".rstrip(), "magenta")
        elif isinstance(event, happened.LimitReached):
            self._note(f"limit {event.limit} reached: {event.action}", "yellow")
        elif isinstance(event, happened.ModelFailed):
            self._note(f"attempt {event.attempt} failed: {_short(event.error)}", "yellow")

    def _text(self, text: str) -> None:
        self._write(clean(text))
        self._streamed += text
        self._open = not text.endswith("\n")

    def _write(self, text: str) -> None:
        self.console.print(text, end="", markup=False, soft_wrap=True)
        self.console.file.flush()

    def _note(self, text: str, style: str) -> None:
        self.line()
        self.notes.print(one_line(text), style=style, markup=False, soft_wrap=True)

    def line(self) -> None:
        """End a line that is still open."""
        if self._open:
            self._write("\n")
            self._open = False

    def _finish(self, outcome: Outcome) -> None:
        if outcome.text and not self._streamed.endswith(outcome.text):
            self.line()
            self._text(outcome.text)
        self.line()
        if outcome.status not in ("done", "suspended"):
            error = f": {_short(str(outcome.error))}" if outcome.error else ""
            self._note(f"{outcome.status} ({outcome.stop_reason}){error}", "yellow")


def _arguments(raw: str) -> str:
    """A call's arguments as a program writes them."""
    try:
        data = json.loads(raw)
    except ValueError:
        return _short(raw)
    if not isinstance(data, dict):
        return _short(raw)
    return _short(", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in data.items()))


def _short(text: str, length: int = 200) -> str:
    line = one_line(text)
    return line if len(line) <= length else f"{line[: length - 1]}…"
