"""Ctrl-C in sync turns: noted while the engine's own steps run, and met where something waits.

A KeyboardInterrupt that strikes between two steps of the engine would leave an entry half appended, or an effect done and not
answered. So the innermost turn of the main thread stands before Python's own handler for as long as it runs (as
`asyncio.Runner` does), unless the program has a handler of its own.
"""

from __future__ import annotations

import signal
import threading
from typing import Protocol


class Turn(Protocol):
    """What is asked and told: may it not be struck now, and that somebody pressed Ctrl-C."""

    @property
    def shielded(self) -> bool:
        """Is it between two steps that belong together?"""

    def press(self) -> None:
        """Note that Ctrl-C was pressed."""


_turns: list[Turn] = []
"""The sync turns of the main thread, the innermost last."""


def watch(turn: Turn) -> None:
    """A turn begins on this thread."""
    if threading.current_thread() is not threading.main_thread():
        return
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _pressed)
    if signal.getsignal(signal.SIGINT) is _pressed:
        _turns.append(turn)


def forget(turn: Turn) -> None:
    """It is over; the last one gives Python's own handler back its place."""
    if turn in _turns and threading.current_thread() is threading.main_thread():
        _turns.remove(turn)
        if not _turns and signal.getsignal(signal.SIGINT) is _pressed:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _pressed(number: int, frame: object) -> None:
    if _turns and _turns[-1].shielded:
        _turns[-1].press()
    else:
        raise KeyboardInterrupt
