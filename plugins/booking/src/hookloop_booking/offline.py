"""A provider without a model: rules read what is asked, the agent's tools do it, and their results are put into words.

It looks at the request's messages and tools and at nothing else, and keeps no state: what it must do is told by
whatever stands behind the last assistant message. Results there are answered, questions there become calls. Equal
requests get equal replies.
"""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hookloop_hookspecs import (
    CallDelta,
    Delta,
    Message,
    ModelRequest,
    Provider,
    ProviderTraits,
    Reply,
    Text,
    TextDelta,
    ToolCall,
    Usage,
)

from .intents import Intent, Language, language, read_intent
from .phrases import NOTICE, PHRASES, answer

_PIECE: Final = 12
_NO_TOKENS: Final = Usage(input=0, output=0, total=0)


class OfflineProvider(Provider):
    """Answers by rules, in English and Chinese; needs no network and no key. Named "offline:rules"."""

    name = "offline"
    traits = ProviderTraits(vision=False)

    def __init__(self, model: str = "rules") -> None:
        self.model = model or "rules"
        self.family = "offline"

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        """The reply in small pieces, then whole."""
        reply = _reply(request)
        yield from _pieces(reply)
        yield reply

    async def astream(self, request: ModelRequest) -> AsyncIterator[Delta | Reply]:
        """The reply in small pieces, then whole."""
        for item in self.stream(request):
            yield item


def _reply(request: ModelRequest) -> Reply:
    tail = _tail(request.messages)
    spoken = _language(request.messages)
    said: list[str] = []
    calls: list[ToolCall] = []
    ids = _fresh_ids(request)
    for message in tail:
        if message.role == "tool":
            said += [answer(result, spoken) for result in message.results if _is_current(message, tail)]
        elif _is_question(message):
            step = _react(read_intent(message.text), request, spoken)
            said += step.said
            calls += [ToolCall.of(name, arguments, next(ids)) for name, arguments in step.calls]
    text = _with_notice("\n".join(said), request.messages, spoken, is_silent=bool(calls))
    content = (*((Text(text),) if text else ()), *calls)
    return Reply(content, "calls" if calls else "end", _NO_TOKENS, "offline rules, no model")


@dataclass(frozen=True, slots=True)
class _Step:
    """What one question leads to: something to say, or calls by name and arguments."""

    said: tuple[str, ...] = ()
    calls: tuple[tuple[str, dict[str, str]], ...] = ()


def _react(intent: Intent, request: ModelRequest, spoken: Language) -> _Step:
    if intent.action not in ("book", "cancel", "list_available", "list_booked"):
        return _Step((PHRASES[spoken][intent.action],))
    if not _may_call(intent.action, request):
        return _Step((PHRASES[spoken]["no_tool"].format(tool=intent.action),))
    return _Step(calls=((intent.action, {"ticket": intent.ticket} if intent.ticket else {}),))


def _may_call(name: str, request: ModelRequest) -> bool:
    offered = any(spec.name == name for spec in request.tools)
    return offered and request.tool_choice != "none" and (request.allowed is None or name in request.allowed)


def _tail(messages: Sequence[Message]) -> list[Message]:
    """The messages behind the last assistant message, oldest first."""
    newest_first = itertools.takewhile(lambda message: message.role != "assistant", reversed(messages))
    return list(newest_first)[::-1]


def _is_question(message: Message) -> bool:
    """True for what a person said; what plugins put in is no question."""
    return message.role == "user" and message.origin.kind == "user"


def _is_current(message: Message, tail: Sequence[Message]) -> bool:
    """False for a result of an earlier turn that ended before it was told: what follows is a new matter."""
    return message.origin.turn == tail[-1].origin.turn


def _language(messages: Sequence[Message]) -> Language:
    newest = next((message for message in reversed(messages) if _is_question(message)), None)
    return language(newest.text) if newest else "en"


def _fresh_ids(request: ModelRequest) -> Iterator[str]:
    """Ids made of the round that no call in the request has."""
    taken = {call.id for message in request.messages for call in message.calls}
    numbered = (f"offline-{request.round}-{number}" for number in itertools.count(1))
    return (made for made in numbered if made not in taken)


def _with_notice(text: str, messages: Sequence[Message], spoken: Language, *, is_silent: bool) -> str:
    """The text with the notice before it, where this conversation has not had it yet."""
    if not text:
        if is_silent:
            return ""
        text = PHRASES[spoken]["nothing"]
    told = any(
        notice in message.text for message in messages if message.role == "assistant" for notice in NOTICE.values()
    )
    return text if told else f"{NOTICE[spoken]}\n{text}"


def _pieces(reply: Reply) -> Iterator[Delta]:
    calls = itertools.count()
    for part in reply.content:
        if isinstance(part, Text):
            yield from (TextDelta(part.text[at : at + _PIECE]) for at in range(0, len(part.text), _PIECE))
        elif isinstance(part, ToolCall):
            yield CallDelta(next(calls), part.id, part.name, part.raw)
