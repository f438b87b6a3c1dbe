"""The form of a transcript: lines at the margin say what is what, indented lines are what was said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hookloop_hookspecs import ContractError, CorruptData
from hookloop_hookspecs.storing import check_ids

FIRST = "hookloop transcript 1"
END = "end"
_HEAD_LINES = 3
_INDENT = "    "
_ROLES = ("user", "assistant")
_TURN_HEAD = "turn "
_TURN = re.compile(r'turn (?P<id>"(?:[^"\\]|\\.)*") (?P<at>\S+)')


@dataclass(frozen=True, slots=True)
class Spoken:
    """One turn: its id, when it ended (ISO 8601), and what was said, as (role, text)."""

    turn: str
    at: str
    said: tuple[tuple[str, str], ...]


def header(conversation: str, scope: str) -> str:
    """The head of a file, which says whose transcript it is."""
    return f"{FIRST}\nconversation {_quoted(conversation)}\nscope {_quoted(scope)}\n"


def written(spoken: Spoken) -> str:
    """A turn as text. It begins with an empty line and ends with the line that says it is whole."""
    lines = ["", f"turn {_quoted(spoken.turn)} {spoken.at}"]
    for role, text in spoken.said:
        lines += [role, *(_INDENT + line for line in text.split("\n"))]
    return "\n".join([*lines, END, ""])


def whole(content: str, conversation: str, scope: str) -> str:
    """The content up to the end of its last whole turn: without what a crash cut short, "" where nothing is left.

    Raises `CorruptData` for the transcript of another conversation, a file that is none, or a last turn that no crash
    left like this: it is some editor's, and dropping it would lose what was said.
    """
    head = header(conversation, scope)
    if head.startswith(content):
        return ""
    if not content.startswith(head):
        raise CorruptData(f"not the transcript of conversation {conversation!r}")
    at = content.rfind(f"\n{END}\n")
    kept = content[: at + len(END) + 2] if at >= len(head) else head
    rest = content[len(kept) :]
    if rest.endswith(f"\n{END}"):  # an editor took the last line's end, or a crash did
        return content
    _check_cut(rest)
    return kept


def _check_cut(rest: str) -> None:
    """Raise `CorruptData` where this is not the beginning of a turn. A loss of power may leave NULs behind it."""
    *lines, last = rest.rstrip("\0").split("\n")
    for line in lines:
        if line and not line.startswith((_INDENT, _TURN_HEAD)) and line not in _ROLES:
            raise CorruptData(f"not a line of a transcript: {line[:80]!r}")
    if not last.startswith((_INDENT, _TURN_HEAD)) and not any(
        word.startswith(last) for word in (*_ROLES, END, _INDENT, _TURN_HEAD)
    ):
        raise CorruptData(f"not a line of a transcript: {last[:80]!r}")


def parsed(content: str) -> list[Spoken]:
    """The turns of a whole file. Raises `CorruptData` for a line that is not of a transcript."""
    return list(_turns(content.removesuffix("\n").split("\n")[_HEAD_LINES:]))


def names(content: str) -> tuple[str, str] | None:
    """The conversation and the scope that a file is of; None for a file that is no transcript."""
    lines = content.split("\n", 3)
    if len(lines) < 4 or lines[0] != FIRST:
        return None
    conversation, scope = lines[1].removeprefix("conversation "), lines[2].removeprefix("scope ")
    try:
        found = str(json.loads(conversation)), str(json.loads(scope))
        check_ids(*found)
    except (ValueError, ContractError):
        return None
    return found


def _turns(lines: Sequence[str]) -> Iterator[Spoken]:
    at = 0
    while at < len(lines):
        if not lines[at]:
            at += 1
            continue
        stop = lines.index(END, at)
        yield _turn(lines[at:stop])
        at = stop + 1


def _turn(lines: Sequence[str]) -> Spoken:
    head = _TURN.fullmatch(lines[0])
    if head is None:
        raise CorruptData(f"a turn was expected in the transcript, not {lines[0][:80]!r}")
    said: list[tuple[str, list[str]]] = []
    for line in lines[1:]:
        if said and (not line or line.startswith(_INDENT)):  # editors trim the indent of an empty line
            said[-1][1].append(line[len(_INDENT) :])
        elif line in _ROLES:
            said.append((line, []))
        else:
            raise CorruptData(f"not a line of a transcript: {line[:80]!r}")
    return Spoken(_name(head["id"]), _time(head["at"]), tuple((role, "\n".join(text)) for role, text in said))


def _name(quoted: str) -> str:
    try:
        value: Any = json.loads(quoted)
    except ValueError as error:
        raise CorruptData(f"not a turn's id: {quoted[:80]!r}") from error
    return str(value)


def _time(at: str) -> str:
    try:
        datetime.fromisoformat(at)
    except ValueError as error:
        raise CorruptData(f"not a time: {at[:80]!r}") from error
    return at


def _quoted(name: str) -> str:
    """In one line: JSON, and what some editors take for a line's end escaped."""
    return json.dumps(name, ensure_ascii=not name.isprintable())
