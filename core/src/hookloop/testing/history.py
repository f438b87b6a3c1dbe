"""Assertions on histories, for the tests of plugins, memories and programs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from hookloop.engine.history import check
from hookloop_hookspecs import HistoryError, Message, ModelRequest, Outcome
from hookloop_hookspecs.messages import Part

History: TypeAlias = "Sequence[Message] | ModelRequest | Outcome"
"""Messages, or what holds them: a request, an outcome."""


def assert_valid_history(history: History, *, tail: bool = False) -> None:
    """Each call is answered exactly once, right behind its message; no result stands elsewhere; call ids are unique.

    `tail` lets the last calls be open, as they are while a turn waits for decisions.
    """
    try:
        check(_messages(history), tail=tail)
    except HistoryError as error:
        raise AssertionError(str(error)) from error


def assert_extends(before: History, after: History) -> None:
    """`after` begins with everything that `before` holds: the same blocks, under the same roles, in the same order."""
    old, new = _blocks(before), _blocks(after)
    for at, block in enumerate(old):
        if at >= len(new):
            raise AssertionError(f"block {at} is gone: {block!r:.200}")
        if new[at] != block:
            raise AssertionError(f"block {at} was {block!r:.200} and is now {new[at]!r:.200}")


def assert_growing(requests: Sequence[ModelRequest]) -> None:
    """Every request is valid, and within an epoch of a turn each extends the one before, with the same system text and
    tools: what lets a provider's cache hit.
    """
    for request in requests:
        assert_valid_history(request)
    for before, after in pairwise(requests):
        if (before.conversation, before.turn, before.epoch) == (after.conversation, after.turn, after.epoch):
            assert after.system == before.system, f"round {after.round}: the system text changed"
            assert after.tools == before.tools, f"round {after.round}: the tools changed"
            assert_extends(before, after)


def _messages(history: History) -> Sequence[Message]:
    return history.messages if isinstance(history, ModelRequest | Outcome) else history


def _blocks(history: History) -> list[tuple[str, Part]]:
    return [(message.role, part) for message in _messages(history) for part in message.content]


__all__ = ["History", "assert_extends", "assert_growing", "assert_valid_history"]
