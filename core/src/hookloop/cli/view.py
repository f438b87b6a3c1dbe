"""Events of a turn as lines in a terminal: text as it comes, and beside it what the loop does."""

from __future__ import annotations

import json

from rich.console import Console

from hookloop_hookspecs import Outcome
from hookloop_hookspecs import events as happened
from hookloop_hookspecs.redact import redact

from .terminal import Flow, clean, fitted, wrapped

QUIET_ENDS = ("done", "suspended", "failed")
"""Ends that need no line of their own; a failure is raised, and told by whoever catches it."""


class TurnView:
    """Prints the events of a turn, one after the other.

    Arguments: `console`, for the answer; `notes`, for what else is told (tool runs, warnings); `quiet` leaves the latter
    out except warnings; `flow` breaks the answer at words (not for pipes).
    """

    def __init__(self, console: Console, notes: Console, *, quiet: bool = False, flow: bool = False) -> None:
        self.console = console
        self.notes = notes
        self.quiet = quiet
        self._flow = Flow(console) if flow else None
        self._open = False
        self._streamed = ""
        self._failure = ""

    def show(self, event: happened.Event) -> None:
        """Print one event; most kinds say nothing here."""
        self._tell_failure(event)
        if isinstance(event, happened.TextPiece):
            self._text(event.text)
        elif isinstance(event, happened.ReplyReceived):
            self.line()
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
            self._note(f"{mark} {event.call.name}: {event.result.text}", style)
        elif isinstance(event, happened.Contributed):
            origin = event.message.origin
            self._note(f"+ {origin.plugin}.{origin.hook}: {event.message.text}", "magenta")
        elif isinstance(event, happened.Decision):
            self._note(f"! {event.plugin}.{event.hook}: {event.verdict} {event.detail}".rstrip(), "magenta")
        elif isinstance(event, happened.LimitReached):
            self._note(f"limit {event.limit} reached: {event.action}", "yellow")
        elif isinstance(event, happened.ModelFailed):
            self._failure = f"attempt {event.attempt} failed: {event.error}"

    def _tell_failure(self, event: happened.Event) -> None:
        """An attempt's failure is told when the turn goes on; where it ends the turn, that is told by whoever catches it."""
        if self._failure and not isinstance(event, happened.Stored):
            if not (isinstance(event, happened.TurnFinished) and event.outcome.status == "failed"):
                self._note(self._failure, "yellow")
            self._failure = ""

    def _text(self, text: str) -> None:
        self._streamed += text
        self._open = not text.endswith("\n")
        if self._flow is not None:
            self._flow.feed(clean(text))
        else:
            self._write(clean(text))

    def _write(self, text: str) -> None:
        self.console.print(text, end="", markup=False, soft_wrap=True)
        self.console.file.flush()

    def _note(self, text: str, style: str) -> None:
        self.line()
        self.notes.print(fitted(redact(text), self.notes.width), style=style, markup=False, soft_wrap=True)

    def line(self) -> None:
        """End a line that is still open."""
        if self._flow is not None:
            self._flow.end()
        elif self._open:
            self._write("\n")
        self._open = False

    def _finish(self, outcome: Outcome) -> None:
        if outcome.text and not self._streamed.endswith(outcome.text):
            self.line()
            self._text(outcome.text)
        self.line()
        if outcome.status not in QUIET_ENDS:
            error = f": {outcome.error}" if outcome.error else ""
            wrapped(self.notes, redact(f"{outcome.status} ({outcome.stop_reason}){error}"), 0, "yellow")


def _arguments(raw: str) -> str:
    """A call's arguments as a program writes them."""
    try:
        data = json.loads(raw)
    except ValueError:
        return raw
    if not isinstance(data, dict):
        return raw
    return ", ".join(f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in data.items())
