"""The log of a turn: the one canonical history, and the window of it that is sent.

Rules for the next editor. Entries are only added; a number is given once. A reply with n calls reserves the n numbers
behind it, and each result takes its call's place whenever it ends. `window` is the list that requests share: it only grows
within an epoch, and a call group enters it when its last result is in. All that a turn counts is a fold over its entries
(`ledger`), so a resumed turn knows what the first run knew. Every step costs what is new, never the length of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import overload

from hookloop_hookspecs import ContractError, Entry, HistoryError, Message, Origin, Said, Started, ToolCall
from hookloop_hookspecs.entries import Body

from .history import clean_strings
from .ledger import Ledger


class Slice(Sequence[Message]):
    """The first `stop` messages of a list that grows: frozen for its holder, shared by all. Never a copy."""

    __slots__ = ("_items", "_stop")

    def __init__(self, items: list[Message], stop: int) -> None:
        self._items = items
        self._stop = stop

    def __len__(self) -> int:
        return self._stop

    def __iter__(self) -> Iterator[Message]:
        return islice(self._items, self._stop)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return [self._items[at] for at in range(*index.indices(self._stop))]
        return self._items[range(self._stop)[index]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    def __hash__(self) -> int:
        raise TypeError("a view of messages is not hashable")

    def __repr__(self) -> str:
        return f"Slice({list(self)!r})"


@dataclass(slots=True)
class Group:
    """A reply whose calls are not all answered yet, and what came after it meanwhile."""

    number: int
    said: Said
    calls: tuple[ToolCall, ...]
    results: dict[int, Said] = field(default_factory=dict)
    later: list[Entry] = field(default_factory=list)
    places: range = field(init=False)
    """The numbers of the results, in call order."""

    def __post_init__(self) -> None:
        self.places = range(self.number + 1, self.number + 1 + len(self.calls))

    def call(self, place: int) -> ToolCall:
        """The call whose result stands at `place`."""
        return self.calls[place - self.number - 1]

    @property
    def open(self) -> list[int]:
        """The places that have no result."""
        return [place for place in self.places if place not in self.results]

    def messages(self) -> list[Message]:
        """The group as it is sent: message, results in call order, then what was said about them."""
        done = [self.results[place] for place in self.places if place in self.results]
        sent = [self.said.message, *[said.message for said in done]]
        if len(done) < len(self.calls):
            return sent  # what was said about it waits, as it may not stand between a call and its result
        sent += self.said.behind
        for said in done:
            sent += said.behind
        return sent


class Log:
    """The open turn's entries and the window of messages that is sent.

    Arguments: `turn`, the turn's id; `number`, the first free number; `window`, the messages of closed turns in view (the
    log appends to this list); `ids`, the call ids in it (grows).
    """

    def __init__(self, turn: str, number: int, window: list[Message], ids: set[str]) -> None:
        self.turn = turn
        self.number = number
        self.window = window
        self.ids = ids
        self.entries: list[Entry] = []
        self.unsaved: list[Entry] = []
        self.ledger = Ledger()
        self.group: Group | None = None
        self.newest: Group | None = None

    def append(self, body: Body) -> Entry:
        """Add an entry at the next number; a reply with calls reserves the places of their results.

        Raises `HistoryError` for a message that may not stand here.
        """
        if not isinstance(body, (Said, Started)):
            body = clean_strings(body)  # marks of plugins and callers; messages were cleaned when they were made
        entry = Entry(self.number, self.turn, body)
        self.number += 1 + (self._admit(body) if isinstance(body, Said) else 0)
        self.unsaved.append(entry)
        self._take(entry)
        return entry

    def answer(self, place: int, said: Said) -> Entry:
        """Put a result at its call's place. Raises `HistoryError` where no call waits, or for another call's result."""
        group = self.group
        if group is None or place not in group.places or place in group.results:
            raise HistoryError(f"no call waits for a result at number {place}")
        (result,) = said.message.results
        if result.call_id != group.call(place).id:
            raise HistoryError(f"the result for {result.call_id!r} is not for the call {group.call(place).id!r}")
        if said.message.origin.kind == "engine" and not said.message.origin.turn:
            origin = Origin("engine", turn=self.turn, round=self.ledger.rounds)
            said = replace(said, message=replace(said.message, origin=origin))
        entry = Entry(place, self.turn, said)
        self.unsaved.append(entry)
        self._take(entry)
        return entry

    def replay(self, entries: Iterable[Entry]) -> None:
        """Take up entries that are stored already, in the order of their numbers."""
        for entry in entries:
            if isinstance(entry.body, Said) and not self._is_result(entry):
                self.ids.update(call.id for call in entry.body.message.calls)
            self._take(entry)
            reserved = len(entry.body.message.calls) if isinstance(entry.body, Said) else 0
            self.number = max(self.number, entry.number + 1 + reserved)

    def saved(self) -> None:
        """What was unsaved is stored."""
        self.unsaved = []

    def _admit(self, body: Said) -> int:
        """INV for one more message: how many places it reserves."""
        message = body.message
        if message.role == "tool" or message.results:
            raise HistoryError("a result stands at its call's place and nowhere else")
        calls = message.calls
        if calls and (message.role != "assistant" or self.group is not None):
            raise HistoryError(f"a {message.role} message with calls may not stand here")
        for extra in body.behind:
            if extra.role != "user" or extra.calls or extra.results:
                raise ContractError(f"a {extra.role} message may not be contributed")
        return len(calls)

    def _is_result(self, entry: Entry) -> bool:
        return self.group is not None and entry.number in self.group.places

    def _take(self, entry: Entry) -> None:
        self.entries.append(entry)
        self.ledger.take(entry)
        self._show(entry)

    def _show(self, entry: Entry) -> None:
        """Move what can be sent into the window."""
        body, group = entry.body, self.group
        if group is not None:
            if isinstance(body, Said) and entry.number in group.places:
                group.results[entry.number] = body
                if len(group.results) == len(group.calls):
                    self._close(group)
            else:
                group.later.append(entry)
            return
        if not isinstance(body, Said):
            return
        calls = body.message.calls
        if calls:
            self.group = self.newest = Group(entry.number, body, calls)
            return
        self.window.extend(shown(body))

    def _close(self, group: Group) -> None:
        self.group = None
        self.window.extend(group.messages())
        for entry in group.later:
            self._show(entry)


def shown(said: Said) -> Iterator[Message]:
    """What a request holds of an entry without calls: a blank reply is in the log and in no request."""
    if said.message.role != "assistant" or not said.message.blank or said.stop == "pause":
        yield said.message
    yield from said.behind


def flatten(entries: Iterable[Entry], *, blank: bool = True) -> Iterator[Message]:
    """Entries (ordered by number) to messages. With `blank` off, replies that no request holds are left out.

    An open group gives the results it has; what came behind it is held back, as it is in requests.
    """
    group: Group | None = None
    for entry in entries:
        if group is not None and entry.number not in group.places:
            if group.open:
                if isinstance(entry.body, Said):
                    break
                continue
            yield from group.messages()
            group = None
        body = entry.body
        if not isinstance(body, Said):
            continue
        if group is not None:
            group.results[entry.number] = body
        elif body.message.calls:
            group = Group(entry.number, body, body.message.calls)
        else:
            yield from shown(body) if not blank else (body.message, *body.behind)
    if group is not None:
        yield from group.messages()
