"""Closed turns: reading them from a loaded log, and the views that are made of them. All pure.

A view is made of whole turns, newest first, so it never cuts a call from its result. What leaves a view when its turn ends:
ephemeral messages, older messages of a plugin's key, blank replies, and failed or cancelled turns none of whose calls started.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from hookloop_hookspecs import (
    Entry,
    Message,
    Resumed,
    Said,
    Started,
    State,
    Summary,
    Text,
    Thinking,
    ToolResult,
    TurnEnded,
    TurnStarted,
    TurnSuspended,
    Window,
)

from .log import flatten

PER_MESSAGE = 4
"""Tokens that a message costs beside its text, in the estimate of `tokens_of`."""


@dataclass(slots=True)
class PastTurn:
    """One turn of the loaded log, with its entries in the order of their numbers."""

    id: str
    entries: list[Entry]
    started: TurnStarted | None = None
    ended: TurnEnded | None = None
    suspended: bool = False
    ran: bool = False
    owner: str = ""
    said: bool = False

    @property
    def start(self) -> int:
        """The number of its first entry."""
        return self.entries[0].number

    @property
    def open(self) -> bool:
        """True when it began, neither ended nor waits for a decision."""
        return self.started is not None and self.ended is None and not self.suspended

    @property
    def dangling(self) -> bool:
        """True for a turn without marks (of another writer) whose last calls are not all answered."""
        calls, answered = 0, 0
        for entry in self.entries:
            if isinstance(entry.body, Said):
                calls += len(entry.body.message.calls)
                answered += len(entry.body.message.results)
        return self.started is None and answered < calls

    @property
    def hidden(self) -> bool:
        """True for a turn that later views leave out: it came to nothing and had no effect."""
        return self.ended is not None and self.ended.status in ("failed", "cancelled") and not self.ran

    def take(self, entry: Entry) -> None:
        """Add one entry."""
        self.entries.append(entry)
        match entry.body:
            case Said():  # first, as most entries are
                self.said = True
            case TurnStarted():
                self.started, self.owner = entry.body, entry.body.owner
            case TurnEnded():
                self.ended, self.suspended = entry.body, False
            case TurnSuspended():
                self.suspended = True
            case Resumed():
                self.suspended, self.owner = False, entry.body.owner
            case Started():
                self.ran = True
            case _:
                pass


@dataclass(slots=True)
class Past:
    """A loaded log: its turns in order, the newest state of each plugin, the newest summary, the first free number."""

    turns: list[PastTurn] = field(default_factory=list)
    states: dict[str, str] = field(default_factory=dict)
    summary: Summary | None = None
    number: int = 1

    @property
    def last(self) -> PastTurn | None:
        """The newest turn that said or began anything."""
        return self.turns[-1] if self.turns else None

    def turn(self, id: str) -> PastTurn | None:
        """The turn with this id, where it was loaded."""
        return next((turn for turn in reversed(self.turns) if turn.id == id), None)


def read(entries: Iterable[Entry]) -> Past:
    """Sort loaded entries into turns. A turn of which only a state or summary was loaded is no turn."""
    past = Past()
    turns: dict[str, PastTurn] = {}
    for entry in entries:
        turn = turns.get(entry.turn)
        if turn is None:
            turn = turns[entry.turn] = PastTurn(entry.turn, [])
        turn.take(entry)
        body = entry.body
        reserved = len(body.message.calls) if isinstance(body, Said) else 0
        past.number = max(past.number, entry.number + 1 + reserved)
        if isinstance(body, State):
            past.states[body.plugin] = body.value
        elif isinstance(body, Summary):
            past.summary = body
    past.turns = [turn for turn in turns.values() if turn.started is not None or turn.said]
    return past


def tokens_of(message: Message) -> int:
    """An estimate of a message's size in tokens: characters / 4, and a little for the frame; 1,000 for a picture or file."""
    return PER_MESSAGE + sum(_part_tokens(part) for part in message.content)


def _part_tokens(part: object) -> int:
    match part:
        case Text() | Thinking():
            return len(part.text) // 4
        case ToolResult():
            return sum(_part_tokens(piece) for piece in part.content)
        case _:
            raw = getattr(part, "raw", None) or getattr(part, "data", "") or ""
            return min(1000, len(raw) // 4 + PER_MESSAGE)


@dataclass(frozen=True, slots=True)
class ShownTurn:
    """What later views show of a closed turn."""

    start: int
    messages: tuple[Message, ...]


def show(past: Past, *, bound: bool) -> list[ShownTurn]:
    """The closed turns as later turns see them, in order. With `bound`, thinking is left out (it is bound to what was
    before it, and a new epoch changes that).
    """
    covers = past.summary.covers if past.summary else 0
    shown: list[ShownTurn] = []
    keys: set[tuple[str, str]] = set()
    for turn in reversed(past.turns):
        if turn.hidden or turn.start < covers:
            continue
        messages = [message for message in flatten(turn.entries, blank=False) if not message.ephemeral]
        kept = list(_newest_of_keys(messages, keys))
        if bound:
            kept = [message for message in map(without_thinking, kept) if message.content]
        if kept:
            shown.append(ShownTurn(turn.start, tuple(kept)))
    return shown[::-1]


def lead(past: Past, left: Sequence[ShownTurn]) -> list[Message]:
    """What stands before the turns in view: the system messages of those that are `left` out of it, and the summary."""
    covers = past.summary.covers if past.summary else 0
    covered = [m for turn in past.turns if turn.start < covers and not turn.hidden for m in flatten(turn.entries)]
    system = [m for m in (*covered, *(m for turn in left for m in turn.messages)) if m.role == "system"]
    return system + ([past.summary.message] if past.summary else [])


def fills(past: Past, window: Window) -> bool:
    """Do the loaded turns fill the window, so that nothing before them could be in view?"""
    if not _leaves_out(past) and window.tokens is None:
        return True  # as many messages were loaded as the window holds, and all of them are shown
    shown = [message for turn in show(past, bound=False) for message in turn.messages]
    return Size.of(shown, window).fills(window)


def _leaves_out(past: Past) -> bool:
    """Is there anything among the loaded turns that views do not show?"""
    for turn in past.turns:
        if turn.hidden:
            return True
        for entry in turn.entries:
            if isinstance(entry.body, Said) and _may_leave(entry.body):
                return True
    return past.summary is not None


def _may_leave(said: Said) -> bool:
    message = said.message
    return bool(said.behind or message.ephemeral or message.key or (message.role == "assistant" and message.blank))


def _newest_of_keys(messages: Sequence[Message], keys: set[tuple[str, str]]) -> list[Message]:
    kept: list[Message] = []
    for message in reversed(messages):
        if message.key and message.origin.kind == "plugin":
            key = (message.origin.plugin, message.key)
            if key in keys:
                continue
            keys.add(key)
        kept.append(message)
    return kept[::-1]


def without_thinking(message: Message) -> Message:
    """The message without thinking; the same object where there is none."""
    if not any(isinstance(part, Thinking) for part in message.content):
        return message
    return replace(message, content=tuple(part for part in message.content if not isinstance(part, Thinking)))


def first_in_view(turns: Sequence[ShownTurn], window: Window, previous: int, question: Sequence[Message]) -> int:
    """The index of the first turn in view.

    The cut stays at the number `previous` until what follows it passes budget plus slack together with the open turn's
    `question`; then whole turns are kept, newest first, within the budget. Where the budget holds more than that (it was
    raised, or turns came to nothing), the view grows again.
    """
    stay = next((at for at, turn in enumerate(turns) if turn.start >= previous), len(turns))
    sizes = [Size.of(turn.messages, window) for turn in turns]
    at, size = len(turns), Size.of(question, window)
    whole = sum(sizes[stay:], size)
    while at > 0 and (size := size + sizes[at - 1]).fits(window, 0):
        at -= 1
    return min(at, stay) if at <= stay or whole.fits(window, window.slack) else at


@dataclass(frozen=True, slots=True)
class Size:
    """How large some messages are."""

    messages: int = 0
    tokens: int = 0

    @classmethod
    def of(cls, messages: Sequence[Message], window: Window) -> Size:
        """The size of these messages, as far as the window asks for it."""
        return cls(len(messages), sum(map(tokens_of, messages)) if window.tokens is not None else 0)

    def __add__(self, other: Size) -> Size:
        return Size(self.messages + other.messages, self.tokens + other.tokens)

    def fills(self, window: Window) -> bool:
        """Is this all that the window holds, slack included?"""
        by_messages = window.messages is not None and self.messages >= window.messages + window.slack
        return by_messages or (window.tokens is not None and self.tokens >= window.tokens + window.slack)

    def fits(self, window: Window, slack: int) -> bool:
        """Is this within the window's budget plus slack?"""
        return (window.messages is None or self.messages <= window.messages + slack) and (
            window.tokens is None or self.tokens <= window.tokens + slack
        )
