"""Cutting the open turn's own view, as a last resort: closed turns leave, then its oldest complete call groups.

The question (the turn's first messages) always stays, and the log itself is never cut. The open turn keeps its thinking, since
models that bind it also want it back; the request says that it was cut (`recut`), so that the provider can ask for leniency.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hookloop_hookspecs import Entry, Message, Recut, Said, Window
from hookloop_hookspecs.events import ViewCut

from .begin import new_epoch
from .effects import Emit, Flow
from .log import flatten
from .past import Size
from .run import Run


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of the open turn that stays or goes whole: a call group with what follows it up to the next reply."""

    start: int
    messages: tuple[Message, ...]


def pieces(entries: Sequence[Entry]) -> list[Piece]:
    """The open turn in pieces: first the question, then one piece for each reply."""
    found: list[Piece] = []
    block: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: entry.number):
        if isinstance(entry.body, Said) and entry.body.message.role == "assistant" and block:
            found.append(Piece(block[0].number, tuple(flatten(block, blank=False))))
            block = []
        block.append(entry)
    if block:
        found.append(Piece(block[0].number, tuple(flatten(block, blank=False))))
    return found


def outgrown(run: Run) -> bool:
    """Does the open turn alone pass budget plus slack? Only what is new is measured."""
    window = run.window
    if window.messages is None and window.tokens is None:
        return False
    fresh = run.log.window[run.measured :]
    run.measured += len(fresh)
    run.size = run.size + Size.of(fresh, window)
    return not run.size.fits(window, window.slack)


def standing(run: Run) -> list[Message]:
    """What a cut leaves before the question: system messages that a caller's history began with."""
    first = next((at for at, message in enumerate(run.log.window) if message.role != "system"), len(run.log.window))
    return run.log.window[:first]


def _in_view(whole: list[Piece], start: int) -> list[Piece]:
    return whole[:1] + [piece for piece in whole[1:] if piece.start >= start]


def recut(run: Run, why: str) -> Flow[bool]:
    """Cut the view anew; False where nothing more can go. A new epoch begins."""
    before = len(run.log.window)
    whole = _in_view(pieces(run.log.entries), run.log.ledger.recut)
    question, rest = whole[0], whole[1:]
    keep = _keep(question, rest, _half(run, before))
    messages = standing(run) + [message for piece in (question, *keep) for message in piece.messages]
    if len(messages) >= before:
        return False
    start = keep[0].start if keep else run.log.number
    run.add(Recut(start))
    run.log.window, run.closed = messages, 0
    run.measured, run.size = len(messages), Size.of(messages, run.window)
    new_epoch(run)
    yield from Emit(ViewCut(before, len(messages), why)).ask()
    return True


def _half(run: Run, before: int) -> Window:
    """What a recut keeps: half the budget, so that the next one is some rounds away (each costs a cache)."""
    window = run.window
    if window.messages is None and window.tokens is None:
        return Window(max(1, before // 2))
    return Window(_halved(window.messages), _halved(window.tokens))


def _halved(budget: int | None) -> int | None:
    return None if budget is None else max(1, budget // 2)


def _keep(question: Piece, rest: list[Piece], window: Window) -> list[Piece]:
    """The newest pieces within the window; the last one stays whatever its size (its results were never seen)."""
    size = Size.of(question.messages, window)
    at = len(rest)
    while at > 0 and ((size := size + Size.of(rest[at - 1].messages, window)).fits(window, 0) or at == len(rest)):
        at -= 1
    return rest[at:]
