"""The log: what one conversation is made of, and the only thing a memory stores.

What must live here: the entry kinds, frozen. What must never be known here: how entries become messages (the engine
does that), how a store keeps them. A conversation is the sequence of its entries by number; a stored entry never
changes. Everything that a turn must know after a crash or a resume is recomputed from these, so there are no counters.

A reply with n calls at number k reserves k+1 … k+n: the result of its i-th call stands at k+i ("its place"), whenever
it ends. Marks name a call by that place. Order is the number, never a clock.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .messages import Message, ToolResult, Usage
from .quick import quick

StopReason: TypeAlias = Literal["end", "calls", "length", "filter", "refusal", "pause", "context"]
Status: TypeAlias = Literal["done", "stopped", "limit", "cancelled", "suspended", "failed"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it. `schema` is JSON text of an object schema; `strict` asks for the provider's strict mode."""

    name: str
    description: str
    schema: str
    strict: bool = False


@quick
@dataclass(frozen=True, slots=True)
class Said:
    """A message, with what `after_reply` or `after_tool` contributed about it (`behind`, shown after the call group).

    Replies carry their `stop` reason, `usage`, and how long the model took in `seconds`.
    """

    message: Message
    behind: tuple[Message, ...] = ()
    stop: StopReason | None = None
    usage: Usage | None = None
    seconds: float = 0.0
    kind: Literal["said"] = field(default="said", repr=False)


@dataclass(frozen=True, slots=True)
class TurnStarted:
    """A turn began and claims its conversation.

    `owner` names host, process and the process's start; `nonce` keeps two runs from writing equal entries; `system`
    and `tools` are what every request of the turn says; `view_from` is the number where the turn's view begins.
    `at` is the wall clock in seconds, for people; nothing is ordered by it.
    """

    owner: str
    nonce: str
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    view_from: int = 0
    at: float = 0.0
    kind: Literal["turn_started"] = field(default="turn_started", repr=False)


@dataclass(frozen=True, slots=True)
class Resumed:
    """An open or suspended turn was taken up again by `owner`."""

    owner: str
    nonce: str
    at: float = 0.0
    kind: Literal["resumed"] = field(default="resumed", repr=False)


@quick
@dataclass(frozen=True, slots=True)
class Started:
    """These calls (by place) may have had an effect from here on. `arguments` are what they run with, as JSON text."""

    places: tuple[int, ...]
    arguments: tuple[str, ...]
    kind: Literal["started"] = field(default="started", repr=False)


@dataclass(frozen=True, slots=True)
class Suspended:
    """The call at `place` waits for a decision. `arguments` as judged; after `expires` (epoch seconds) it is denied.

    `by_tool`: the tool itself asked, so an approved call is called again from its start.
    """

    place: int
    question: str
    arguments: str = "{}"
    expires: float | None = None
    by_tool: bool = False
    kind: Literal["suspended"] = field(default="suspended", repr=False)


@dataclass(frozen=True, slots=True)
class Decided:
    """Somebody decided on the suspended call at `place`.

    `arguments` (JSON text) replace the judged ones when not empty; `reason` is a denial's; `result` is an answer's (of a
    call whose id and name it does not say).
    """

    place: int
    decision: Literal["approve", "deny", "answer"]
    arguments: str = ""
    reason: str = ""
    result: ToolResult | None = None
    kind: Literal["decided"] = field(default="decided", repr=False)


@dataclass(frozen=True, slots=True)
class Recut:
    """The open turn's view was cut anew: closed turns and the open turn's entries before `view_from` are not sent."""

    view_from: int
    kind: Literal["recut"] = field(default="recut", repr=False)


@dataclass(frozen=True, slots=True)
class Ending:
    """The turn was told to end while calls run: no further request, but the one of the breach mode `answer`.

    `status` and `reason` are what the outcome will say; `by` names the plugin that stopped the turn.
    """

    status: Status
    reason: str
    text: str = ""
    answer: bool = False
    by: str = ""
    kind: Literal["ending"] = field(default="ending", repr=False)


@dataclass(frozen=True, slots=True)
class Spent:
    """Tokens used beside the replies in history: a plugin's own request, or a failed attempt (`why` says which)."""

    usage: Usage
    why: str = ""
    plugin: str = ""
    kind: Literal["spent"] = field(default="spent", repr=False)


@dataclass(frozen=True, slots=True)
class State:
    """A plugin's own JSON place in this conversation; the newest of a plugin counts."""

    plugin: str
    value: str
    kind: Literal["state"] = field(default="state", repr=False)


@dataclass(frozen=True, slots=True)
class Summary:
    """`message` stands in views for all closed turns before the entry number `covers`."""

    message: Message
    covers: int
    kind: Literal["summary"] = field(default="summary", repr=False)


@dataclass(frozen=True, slots=True)
class TurnSuspended:
    """The turn waits for decisions; it holds no claim any more. `at` is the wall clock in seconds."""

    at: float = 0.0
    kind: Literal["turn_suspended"] = field(default="turn_suspended", repr=False)


@dataclass(frozen=True, slots=True)
class TurnEnded:
    """The turn is over. `stop_reason` and `text` are the outcome's; `output` is the structured output as JSON text."""

    status: Status
    stop_reason: str
    text: str = ""
    output: str = ""
    error: str = ""
    kind: Literal["turn_ended"] = field(default="turn_ended", repr=False)


Body: TypeAlias = (
    Said
    | TurnStarted
    | Resumed
    | Started
    | Suspended
    | Decided
    | Recut
    | Ending
    | Spent
    | State
    | Summary
    | TurnSuspended
    | TurnEnded
)


@quick
@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of the log. `number` counts per conversation; `turn` is the id of the turn that wrote it."""

    number: int
    turn: str
    body: Body

    @property
    def id(self) -> str:
        """The entry's identity, by which a repeated write is known."""
        return f"{self.turn}:{self.number}"
