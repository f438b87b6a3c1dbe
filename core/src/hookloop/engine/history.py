"""The invariant of histories (INV), and the two ways in: cleaning what arrives, repairing what a caller hands over.

INV of flattened messages: each call is answered exactly once, in the run of results right after its assistant message; no
result stands elsewhere; call ids are unique. `tail` allows the last call group to be open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from hookloop_hookspecs import HistoryError, Message, Origin, Part, Text, ToolCall, ToolResult
from hookloop_hookspecs.entries import ToolSpec
from hookloop_hookspecs.messages import ResultPart

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ENGINE = Origin("engine")


def check(messages: Sequence[Message], *, tail: bool = False) -> None:
    """Raise `HistoryError` unless the messages satisfy INV."""
    seen: set[str] = set()
    waiting: list[str] = []
    for at, message in enumerate(messages):
        if message.role == "tool":
            waiting = _answered(at, message, waiting)
            continue
        if waiting:
            raise HistoryError(f"message {at}: calls {waiting} are not answered before the next {message.role} message")
        _shape(at, message)
        for call in message.calls:
            if not call.id or call.id in seen:
                raise HistoryError(f"message {at}: call id {call.id!r} is missing or repeated")
            seen.add(call.id)
            waiting.append(call.id)
    if waiting and not tail:
        raise HistoryError(f"the history ends with calls that are not answered: {waiting}")


def _answered(at: int, message: Message, waiting: list[str]) -> list[str]:
    if len(message.content) != 1 or not message.results:
        raise HistoryError(f"message {at}: a tool message holds exactly one result")
    (result,) = message.results
    if result.call_id not in waiting:
        raise HistoryError(f"message {at}: the result for {result.call_id!r} stands without its call right before it")
    return [id for id in waiting if id != result.call_id]


def _shape(at: int, message: Message) -> None:
    if message.results:
        raise HistoryError(f"message {at}: a {message.role} message holds a result")
    if message.calls and message.role != "assistant":
        raise HistoryError(f"message {at}: a {message.role} message holds a call")


def clean_text(text: str) -> str:
    """Text that every store and provider takes: no lone surrogates and no NUL (both become U+FFFD)."""
    if text.isascii():
        return text.replace("\0", "\ufffd") if "\0" in text else text
    text = text.replace("\0", "\ufffd")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_part(part: Part) -> Part:
    """The part with clean text; the same object where there is nothing to clean."""
    if isinstance(part, Text) and not part.extra:
        return replace(part, text=clean_text(part.text)) if _dirty(part.text) else part
    if isinstance(part, ToolResult):
        return _clean_result(part)
    return clean_strings(part)


C = TypeVar("C", bound="DataclassInstance")


def clean_strings(value: C) -> C:
    """A part or mark with all its strings clean (also those in tuples of such values); the same object where they are."""
    changes: dict[str, object] = {}
    for name in _names(type(value)):
        old = getattr(value, name)
        if old.__class__ is str and old.isascii() and "\0" not in old:
            continue
        new = _cleaned(old)
        if new is not old:
            changes[name] = new
    return replace(value, **changes) if changes else value


@cache
def _names(kind: type[DataclassInstance]) -> tuple[str, ...]:
    return tuple(spec.name for spec in fields(kind))


def _cleaned(value: object) -> object:
    if isinstance(value, str):
        return clean_text(value) if _dirty(value) and clean_text(value) != value else value
    if isinstance(value, tuple):
        new = tuple([_cleaned(item) for item in value])
        return value if all(a is b for a, b in zip(new, value, strict=True)) else new
    return clean_strings(value) if isinstance(value, CLEANED) else value


CLEANED = (ToolSpec, ToolResult, Text)
"""Values inside marks that hold text of their own."""


def _clean_result(part: ToolResult) -> ToolResult:
    if _dirty(part.ran) or _dirty(part.private):
        part = replace(part, ran=clean_text(part.ran), private=clean_text(part.private))
    if not [piece for piece in part.content if isinstance(piece, Text) and _dirty(piece.text)]:
        return part
    content: tuple[ResultPart, ...] = tuple(
        replace(piece, text=clean_text(piece.text)) if isinstance(piece, Text) else piece for piece in part.content
    )
    return replace(part, content=content)


def _dirty(text: str) -> bool:
    return not text.isascii() or "\0" in text


def clean(content: tuple[Part, ...]) -> tuple[Part, ...]:
    """All parts, clean."""
    if len(content) == 1:
        part = clean_part(content[0])
        return content if part is content[0] else (part,)
    return tuple([clean_part(part) for part in content])


def unique_ids(content: tuple[Part, ...], taken: set[str], number: int) -> tuple[Part, ...]:
    """The parts with call ids that are not in `taken` (which grows); `number` makes the new ones unique and stable.

    Servers repeat ids, or leave them out: "search:0" in every round, "" in each call.
    """
    fresh: list[Part] = []
    changed = False
    for at, part in enumerate(content):
        if isinstance(part, ToolCall):
            id = part.id
            while not id or id in taken:
                id = f"{id or 'call'}_{number}_{at}"
            taken.add(id)
            if id != part.id:
                part, changed = replace(part, id=id), True
        fresh.append(part)
    return tuple(fresh) if changed else content


def distinct(messages: list[Message]) -> list[Message]:
    """The messages of a view with call ids that are unique in it: turns that were never loaded together may share some."""
    ids = [call.id for message in messages for call in message.calls]
    return messages if len(set(ids)) == len(ids) else repair(messages, lambda _: None)


def repair(messages: Iterable[Message], warn: Callable[[str], None]) -> list[Message]:
    """A history that satisfies INV, from one that a caller brings: orphaned results are dropped, repeated ones too, calls
    without a result are answered as interrupted, ids made unique on both sides. The caller's objects are not touched.
    """
    source = [part for message in messages for part in _by_role(message, warn)]
    out: list[Message] = []
    taken: set[str] = set()
    at = 0
    while at < len(source):
        message = source[at]
        at += 1
        if message.role == "tool":
            warn(f"a result without its call was left out of the history: {[r.call_id for r in message.results]}")
            continue
        results: list[ToolResult] = []
        while at < len(source) and source[at].role == "tool" and message.calls:
            results.extend(source[at].results)
            at += 1
        out.extend(_group(message, results, taken, len(out), warn))
    return out


def _by_role(message: Message, warn: Callable[[str], None]) -> list[Message]:
    """The message with nothing in it that its role may not hold. Results stand in messages of their own: some clients keep
    them in the user's message, before its text.
    """
    role, results = message.role, [Message("tool", (result,), Origin("tool")) for result in message.results]
    if role == "tool" and len(results) == len(message.content) == 1:
        return [message]
    misplaced = (ToolResult,) if role == "assistant" else (ToolResult, ToolCall)
    rest = tuple(part for part in message.content if not isinstance(part, misplaced))
    if role != "assistant" and message.calls:
        warn(f"calls in a {role} message were left out of the history: {[call.id for call in message.calls]}")
    if role == "tool":
        return results
    inner = [message] if len(rest) == len(message.content) else [replace(message, content=rest)] if rest else []
    return [*results, *inner] if role == "user" else [*inner, *results]


def _group(
    message: Message, results: Sequence[ToolResult], taken: set[str], number: int, warn: Callable[[str], None]
) -> list[Message]:
    """The message and one result for each of its calls, whatever came."""
    renamed = replace(message, content=unique_ids(clean(message.content), taken, number))
    pool = list(results)
    group = [renamed]
    for old, new in zip(message.calls, renamed.calls, strict=True):
        found = next((result for result in pool if result.call_id == old.id), None)
        if found is None:
            group.append(closing(new, "interrupted: the call was not answered, its effect is unknown"))
            continue
        pool.remove(found)
        group.append(Message("tool", clean((replace(found, call_id=new.id),)), Origin("tool")))
    for left in pool:
        warn(f"a result without its call was left out of the history: {left.call_id!r}")
    return group


def closing(call: ToolCall, text: str, origin: Origin = ENGINE) -> Message:
    """An error result from the engine, for a call that nobody answered."""
    return Message("tool", (ToolResult(call.id, call.name, (Text(text),), is_error=True),), origin)
