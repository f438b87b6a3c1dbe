"""Conversations as text: what the keeper exports, and what an import must be before anything of it is stored.

An import goes past the engine, so all that the engine sees to when it writes is checked here: numbers, pairing, marks.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import pairwise

from hookloop_hookspecs import (
    ContractError,
    CorruptData,
    Decided,
    Entry,
    HistoryError,
    Said,
    Spent,
    Started,
    State,
    Summary,
    Suspended,
    TurnEnded,
    TurnStarted,
)
from hookloop_hookspecs.codec import dump_entry, load_entry
from hookloop_hookspecs.storing import EntryTexts

from .engine.history import check
from .engine.log import Log, flatten

FORMAT = "hookloop-conversation"
"""What the first line of an export says it is."""
AFTERWARDS = (State, Spent, Summary)
"""Marks that may stand behind a turn's end."""


def exported(conversation: str, entries: Iterable[Entry]) -> str:
    """A conversation as text."""
    head = json.dumps({"format": FORMAT, "conversation": conversation}, ensure_ascii=False)
    return "\n".join([head, *map(dump_entry, entries), ""])


def imported(text: str, source: str = "the text") -> tuple[str, Sequence[Entry]]:
    """What `exported` wrote: the conversation's id and its entries.

    Raises `CorruptData` with the line of what cannot be read, and with the line or number of what could not be gone on with.
    """
    head, *lines = text.split("\n")
    name = _name(head, source)
    placed: list[tuple[str, Entry]] = []
    for number, line in enumerate(lines, 2):
        if line.strip():
            placed.append(_entry(line, f"{source}, line {number}"))
    if not placed:
        raise CorruptData(f"{source}, line 2: the conversation has no entries")
    for (_, one), (place, other) in pairwise(placed):
        if other.number <= one.number:
            raise CorruptData(
                f"{place}: number {other.number} comes behind number {one.number}; they rise, none repeats"
            )
    entries = [entry for _, entry in placed]
    try:
        verify(entries)
    except HistoryError as error:
        raise CorruptData(f"{source}: {error}") from error
    return name, entries


def _name(head: str, source: str) -> str:
    try:
        data = json.loads(head)
        if data["format"] != FORMAT:
            raise ValueError(f"format is {data['format']!r}")
        name = data["conversation"]
        if not isinstance(name, str) or not name:
            raise ValueError(f"conversation is {name!r:.80}")
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(f"{source}, line 1: not an exported conversation: {error}") from error
    return name


def _entry(line: str, place: str) -> tuple[str, Entry]:
    try:
        entry = load_entry(line)
        EntryTexts().text(entry)
    except (CorruptData, ContractError) as error:
        raise CorruptData(f"{place}: {error}") from error
    if entry.number < 0:
        raise CorruptData(f"{place}: number {entry.number} is below 0")
    return place, entry


def verify(entries: Iterable[Entry]) -> None:
    """Raise `HistoryError`, which names an entry's number, for a log (ordered by number) that the engine did not write: calls
    and results that do not pair, marks of no call, turns that go on behind their end or were left open by the next.
    """
    turns: dict[str, list[Entry]] = {}
    for entry in entries:
        if isinstance(entry.body, TurnStarted):
            _left(entry, turns.values())
        turns.setdefault(entry.turn, []).append(entry)
    for turn in turns.values():
        _turn(turn)


def _left(entry: Entry, turns: Iterable[Sequence[Entry]]) -> None:
    """A turn that begins has closed all earlier ones."""
    for turn in turns:
        open = isinstance(turn[0].body, TurnStarted) and not any(isinstance(one.body, TurnEnded) for one in turn)
        if open and turn[0].turn != entry.turn:
            raise HistoryError(f"entry {entry.number} begins a turn, but turn {turn[0].turn!r} has not come to an end")


def _turn(entries: Sequence[Entry]) -> None:
    log = Log(entries[0].turn, entries[0].number, [], set())
    places: set[int] = set()
    ended = False
    for entry in entries:
        fault = _fault(entry, log, places, ended)
        if fault:
            raise HistoryError(f"entry {entry.number}: {fault}")
        if isinstance(entry.body, Said):
            places.update(range(entry.number + 1, entry.number + 1 + len(entry.body.message.calls)))
        ended = ended or isinstance(entry.body, TurnEnded)
        log.replay([entry])
    try:
        check(list(flatten(entries)), tail=not ended)
    except HistoryError as error:
        raise HistoryError(f"turn {entries[0].turn!r}, which begins at entry {entries[0].number}: {error}") from error


def _fault(entry: Entry, log: Log, places: set[int], ended: bool) -> str:
    """What is wrong with one more entry of a turn; empty where nothing is."""
    body = entry.body
    if ended and not isinstance(body, AFTERWARDS):
        return f"a {body.kind} behind the end of its turn"
    if isinstance(body, TurnStarted):
        return "its turn had begun already" if log.entries else ""
    if isinstance(body, Said):
        return _misplaced(entry.number, body, log)
    if not log.entries or not isinstance(log.entries[0].body, TurnStarted):
        return f"a {body.kind} in a turn that never began"
    if isinstance(body, Started) and len(body.places) != len(body.arguments):
        return f"{len(body.places)} calls started with {len(body.arguments)} arguments"
    named = body.places if isinstance(body, Started) else (body.place,) if isinstance(body, Suspended | Decided) else ()
    strange = [place for place in named if place not in places]
    return f"no call has its place at number {strange[0]}" if strange else ""


def _misplaced(number: int, said: Said, log: Log) -> str:
    message, group = said.message, log.group
    if any(extra.role != "user" or extra.calls or extra.results for extra in said.behind):
        return "a message about it is not a user's"
    if group is None or number not in group.places:
        if message.role == "tool" or message.results:
            return "a result at the place of no call"
        return "a reply before all calls were answered" if group is not None and message.role == "assistant" else ""
    results = message.results
    wanted = group.call(number).id
    if message.role != "tool" or len(results) != 1 or results[0].call_id != wanted:
        return f"not the result of the call {wanted!r}, whose place this is"
    return ""
