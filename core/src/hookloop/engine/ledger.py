"""What a turn has used so far: a fold over its entries. Nothing else counts, so nothing can be fooled or forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field

from hookloop_hookspecs import (
    Decided,
    Ending,
    Entry,
    Recut,
    Resumed,
    Said,
    Spent,
    Started,
    Suspended,
    TurnStarted,
    TurnSuspended,
    Usage,
)
from hookloop_hookspecs.arguments import ArgumentsError, parse_arguments
from hookloop_hookspecs.entries import Body
from hookloop_hookspecs.messages import ToolCall

Mark = Started | Suspended | Decided
COMPARED = 2000
"""Characters of arguments up to which another spelling (white space, order of keys) is seen through."""


@dataclass(slots=True)
class Tally:
    """Counts of calls: in all, by tool, and how many identical ones in a row."""

    calls: int = 0
    by_tool: dict[str, int] = field(default_factory=dict)
    repeated: int = 0
    last: ToolCall | None = None
    uncounted: str | None = None

    def count(self, call: ToolCall) -> None:
        """Count one more call; the output tool's (`uncounted`) are none."""
        if call.name == self.uncounted:
            return
        self.calls += 1
        self.by_tool[call.name] = self.by_tool.get(call.name, 0) + 1
        self.repeated = self.repeated + 1 if self.last is not None and identical(call, self.last) else 1
        self.last = call

    def copy(self) -> Tally:
        """An equal tally that counts on by itself."""
        return Tally(self.calls, dict(self.by_tool), self.repeated, self.last, self.uncounted)


def identical(one: ToolCall, other: ToolCall) -> bool:
    """Are these the same call, whatever the spelling of its arguments?"""
    if one.name != other.name:
        return False
    if one.raw == other.raw:
        return True
    return max(len(one.raw), len(other.raw)) <= COMPARED and _spelled(one.raw) == _spelled(other.raw)


def _spelled(raw: str) -> object:
    """Arguments as the tool would get them; text that is no JSON stands for itself."""
    try:
        return parse_arguments(raw)
    except ArgumentsError:
        return raw


@dataclass(slots=True)
class Ledger:
    """Counters of one turn. `marks` holds the last mark of each call by place, which is the call's state."""

    rounds: int = 0
    tally: Tally = field(default_factory=Tally)
    errors: int = 0
    truncated: int = 0
    usage: Usage = Usage()
    seconds: float = 0.0
    since: float = 0.0
    started: int = 0
    marks: dict[int, Mark] = field(default_factory=dict)
    ending: Ending | None = None
    ending_at: int = 0
    recut: int = 0
    owner: str = ""

    def take(self, entry: Entry) -> None:
        """Count one entry of the turn."""
        body: Body = entry.body
        if isinstance(body, Said):  # as most entries are
            self._said(body)
            return
        match body:
            case Started():
                self.started += len(body.places)
                for at, place in enumerate(body.places):
                    one = len(body.places) == 1
                    self.marks[place] = body if one else Started((place,), (body.arguments[at],))
            case Suspended() | Decided():
                self.marks[body.place] = body
            case Spent():
                self.usage = self.usage + body.usage
            case Ending():
                self.ending, self.ending_at = body, entry.number
            case Recut():
                self.recut = body.view_from
            case TurnStarted() | Resumed():
                self.owner, self.since = body.owner, body.at
            case TurnSuspended():
                self.seconds += max(0.0, body.at - self.since) if body.at else 0.0
            case _:
                pass

    def _said(self, said: Said) -> None:
        message = said.message
        if message.role == "tool":
            (result,) = message.results
            self.errors = self.errors + 1 if result.is_error else 0
        elif said.stop is not None:
            self.rounds += 1
            if said.usage is not None:
                self.usage = self.usage + said.usage
            self.truncated = self.truncated + 1 if said.stop == "length" else 0
            for call in message.calls:
                self.tally.count(call)
