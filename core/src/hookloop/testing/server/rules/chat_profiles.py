"""What compatible servers ask beyond Chat Completions; each rule holds where a profile lists it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any

from hookloop.testing.server.record import Violation

from .chat_view import ChatView, JsonObject, calls_of
from .registry import Finding, Rulebook, fault

RULES: Rulebook[ChatView] = Rulebook()
rule = RULES.rule

_SHORT_ID = re.compile(r"[a-zA-Z0-9]{9}")
_GEMINI_3 = re.compile(r"gemini-([3-9]|\d\d)")
_NAME_START = re.compile(r"[a-zA-Z_]")


@rule("mistral_id")
def _mistral_id(view: ChatView) -> Iterable[Finding]:
    """Mistral: call ids are nine letters and digits."""
    ids = [call.get("id") for _, call in view.calls()]
    ids += [message.get("tool_call_id") for message in view.messages if message.get("role") == "tool"]
    for call in ids:
        if not _SHORT_ID.fullmatch(str(call)):
            yield f"Tool call id was {call} but must be a-z, A-Z, 0-9, with a length of 9."


@rule("user_after_tool", "guess")
def _user_after_tool(view: ChatView) -> Iterable[Finding]:
    """Mistral: no user message right behind a tool message."""
    for before, after in pairwise(view.messages):
        if before.get("role") == "tool" and after.get("role") in ("user", "system"):
            yield _disorder(f"Unexpected role '{after['role']}' after role 'tool'")


@rule("last_role", "guess")
def _last_role(view: ChatView) -> Iterable[Finding]:
    """Mistral: the last message is a user's or a tool's (or a prefix)."""
    last = view.messages[-1] if view.messages else {"role": "user"}
    if last.get("role") not in ("user", "tool") and not last.get("prefix"):
        role = last.get("role")
        yield _disorder(f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {role}")


def _disorder(message: str) -> Violation:
    return Violation("", message, 400, "invalid_request_message_order", "3230")


@rule("arguments_object")
def _arguments_object(view: ChatView) -> Iterable[Finding]:
    """Servers whose templates parse arguments: they are valid JSON, and an object."""
    for path, call in view.calls():
        text = call["function"].get("arguments") if "function" in call else "{}"
        if not isinstance(_json(text), dict):
            yield f"{path}.function.arguments: not a valid JSON object: {str(text)[:80]!r}"


def _json(text: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return None


@rule("reasoning_back")
def _reasoning_back(view: ChatView) -> Iterable[Finding]:
    """DeepSeek, thinking: an assistant message with calls carries the reasoning that it came with."""
    for message in view.messages if _deepseek_thinks(view) else ():
        calls = calls_of(message)
        if calls and not _reasoned(view, message, calls):
            yield "The `reasoning_content` in the thinking mode must be passed back to the API."


def _deepseek_thinks(view: ChatView) -> bool:
    """As the request says; where it does not, every model but `deepseek-chat` thinks."""
    mode = view.body.get("thinking")
    if isinstance(mode, Mapping):
        return mode.get("type") != "disabled"
    return view.body.get("model") != "deepseek-chat"


def _reasoned(view: ChatView, message: JsonObject, calls: list[JsonObject]) -> bool:
    sent = message.get("reasoning_content")
    known = view.issued.reasoning_of_call if view.issued else {}
    issued = next((known[str(call.get("id"))] for call in calls if str(call.get("id")) in known), None)
    if issued is None:
        return bool(sent)
    texts = [text for text in issued if text]
    return sent in texts if texts else sent != ""  # one that came without may stay without, or carry a filler


@rule("thought_signature")
def _thought_signature(view: ChatView) -> Iterable[Finding]:
    """Gemini: in the current turn the first call of a message carries the thought signature that it came with."""
    for message in _current_turn(view):
        for at, call in enumerate(calls_of(message)):
            if not _signed_as_issued(view, call, first=at == 0):
                yield (
                    "Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                    "work correctly."
                )


def _signed_as_issued(view: ChatView, call: JsonObject, *, first: bool) -> bool:
    """Whether the call has the signature it came with; of foreign calls Gemini 3 wants one on the first."""
    issued = view.issued.extra_of_call.get(str(call.get("id"))) if view.issued else None
    if issued is not None:
        return _signature(call) in [_signature(one) for one in issued]
    return not first or bool(_signature(call)) or not _GEMINI_3.search(str(view.body.get("model")))


def _current_turn(view: ChatView) -> list[JsonObject]:
    start = max((i for i, message in enumerate(view.messages) if message.get("role") == "user"), default=-1)
    return view.messages[start + 1 :]


def _signature(call: Mapping[str, Any]) -> Any:
    extra = call.get("extra_content")
    for vendor in ("google", "vertex"):
        inner = extra.get(vendor) if isinstance(extra, Mapping) else None
        if isinstance(inner, Mapping) and inner.get("thought_signature"):
            return inner["thought_signature"]
    return None


@rule("name_start")
def _name_start(view: ChatView) -> Iterable[Finding]:
    """Gemini: function names start with a letter or underscore."""
    for index, function in view.functions:
        if not _NAME_START.match(str(function.get("name", ""))):
            yield f"tools[{index}].function.name: Invalid function name. Must start with a letter or an underscore."


@rule("single_call")
def _single_call(view: ChatView) -> Iterable[Finding]:
    """Some templates: one call a message."""
    if any(len(ids) > 1 for _, ids, _ in view.groups()):
        yield "This model only supports single tool-calls at once!"


@rule("system_first")
def _system_first(view: ChatView) -> Iterable[Finding]:
    """Templates: one system message, at the beginning."""
    if any(message.get("role") == "system" for message in view.messages[1:]):
        yield fault("System message must be at the beginning.", 500)


@rule("alternation")
def _alternation(view: ChatView) -> Iterable[Finding]:
    """Templates: user and assistant alternate, calls and their results aside."""
    spoken = list(_spoken(view))
    first_wrong = bool(spoken) and spoken[0] != "user"
    if first_wrong or any(before == after for before, after in pairwise(spoken)):
        yield fault("Conversation roles must alternate user/assistant/user/assistant/...", 500)


def _spoken(view: ChatView) -> Iterator[str]:
    for message in view.messages:
        role = message.get("role")
        if role == "user" or (role == "assistant" and not calls_of(message)):
            yield str(role)


@rule("content_and_thinking")
def _content_and_thinking(view: ChatView) -> Iterable[Finding]:
    """The gpt-oss template: no content beside thinking in a message with calls."""
    for message in view.messages if "gpt-oss" in str(view.body.get("model")) else ():
        if calls_of(message) and message.get("content") and message.get("reasoning_content"):
            yield fault("Cannot pass both content and thinking in an assistant message with tool calls!", 500)
