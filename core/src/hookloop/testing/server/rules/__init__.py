"""What the real APIs refuse, as pure functions over a parsed request body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from hookloop.testing.server.issued import Issued
from hookloop.testing.server.record import Violation

from . import chat, chat_profiles, chat_tools, messages, messages_thinking, messages_tools, responses, responses_items
from .chat_view import ChatView
from .messages_view import MessagesView
from .profiles import PROFILES
from .registry import Rulebook
from .responses_view import ResponsesView

MESSAGES = Rulebook(messages.RULES, messages_tools.RULES, messages_thinking.RULES)
CHAT = Rulebook(chat.RULES, chat_tools.RULES)
CHAT_PROFILES = chat_profiles.RULES
RESPONSES = Rulebook(responses.RULES, responses_items.RULES)


def check_messages(
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    *,
    issued: Issued | None = None,
    preserved: bool | None = None,
    off: Iterable[str] = (),
) -> list[Violation]:
    """What the Messages API refuses in this request.

    Arguments: `headers`, with lower-case names; None skips the rules about them. `issued`, the ledger that signatures are
    compared with; None skips those rules. `preserved`: whether thinking is bound to all before it (None: by the model's
    name). `off`, names of rules that do not apply.
    """
    return MESSAGES.find(MessagesView(body, headers, issued, preserved), off)


def check_chat(
    body: Mapping[str, Any],
    profile: str | None = None,
    *,
    headers: Mapping[str, str] | None = None,
    issued: Issued | None = None,
    off: Iterable[str] = (),
) -> list[Violation]:
    """What Chat Completions, or the compatible server that `profile` names, refuses in this request.

    The other arguments are those of `check_messages`. Raises `KeyError` for an unknown profile.
    """
    view = ChatView(body, headers, profile, issued)
    found = CHAT.find(view, off)
    if profile is None:
        return found
    return found + CHAT_PROFILES.find(view, (*off, *(CHAT_PROFILES.rules.keys() - PROFILES[profile].rules)))


def check_responses(
    body: Mapping[str, Any],
    headers: Mapping[str, str] | None = None,
    *,
    known: Issued | None = None,
    off: Iterable[str] = (),
) -> list[Violation]:
    """What the Responses API refuses in this request.

    Arguments: `known`, the ledger of issued items and responses; None skips the rules that compare with it. The others
    are those of `check_messages`.
    """
    return RESPONSES.find(ResponsesView(body, headers, known), off)


__all__ = [
    "CHAT",
    "CHAT_PROFILES",
    "MESSAGES",
    "PROFILES",
    "RESPONSES",
    "check_chat",
    "check_messages",
    "check_responses",
]
