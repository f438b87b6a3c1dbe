"""What the real APIs refuse, as pure functions over a parsed request body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookloop.testing.server.issued import Issued
from hookloop.testing.server.record import Violation


def check_messages(
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    *,
    issued: Issued | None = None,
    preserved: bool | None = None,
    off: Iterable[str] = (),
) -> list[Violation]:
    """What the Messages API refuses in this request."""
    return []


def check_chat(
    body: Mapping[str, Any],
    profile: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    off: Iterable[str] = (),
) -> list[Violation]:
    """What Chat Completions, or a server that copies it, refuses in this request."""
    return []


def check_responses(
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    *,
    known: Issued | None = None,
    off: Iterable[str] = (),
) -> list[Violation]:
    """What the Responses API refuses in this request."""
    return []
