"""Steps of a script that only a wire can play. Plain script items (text, calls, thinking, replies) are steps too."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from hookloop.testing.script import Item

    from .record import Recorded

How: TypeAlias = Literal["reset", "close", "eof"]
"""`"reset"`: the connection breaks; `"close"`: it is closed in mid-body; `"eof"`: the body ends properly, too early."""

Event: TypeAlias = "Mapping[str, Any] | str | bytes"


@dataclass(frozen=True, slots=True)
class Fail:
    """An HTTP failure in the error shape of the API that is asked.

    Arguments: `type` and `code` default to what the API says with this status; `headers` are added (`retry-after`);
    `body`, where given, is sent in place of the shaped one (a str or bytes as it is, anything else as JSON).
    """

    status: int = 500
    message: str = "The server had an error while processing your request."
    type: str = ""
    code: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: object = None


@dataclass(frozen=True, slots=True)
class Cut:
    """The answer `item`, broken off.

    Arguments: `after` counts whole stream events, or bytes of the body with `unit="bytes"`; an answer that is not
    streamed and is to be cut after events is cut in its middle. `how` says what the client sees.
    """

    item: Step
    after: int = 1
    how: How = "reset"
    unit: Literal["events", "bytes"] = "events"


@dataclass(frozen=True, slots=True)
class Drop:
    """No answer at all: the connection breaks (or is closed) when the request has come."""

    how: Literal["reset", "close"] = "reset"


@dataclass(frozen=True, slots=True)
class ErrorEvent:
    """The answer `item`, ended by an error inside the stream (the status stays 200) after `after` events.

    A request that is not streamed gets the same error as an HTTP failure with `status`. On Responses, `form="failed"`
    sends `response.failed` in place of the `error` event.
    """

    item: Step
    after: int = 1
    message: str = "Overloaded"
    type: str = ""
    code: str | None = None
    status: int = 529
    form: Literal["error", "failed"] = "error"


@dataclass(frozen=True, slots=True)
class Delay:
    """The answer `item`, held back: for seconds, or until the event is set.

    `after` counts the stream events that are sent first; with 0 the headers wait too.
    """

    until: float | threading.Event
    item: Step
    after: int = 0


@dataclass(frozen=True, slots=True)
class Deltas:
    """The answer `item`, its texts and arguments cut into deltas of `size` characters, or at the offsets `cuts`."""

    item: Step
    size: int = 1
    cuts: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Chunks:
    """The answer `item` with its body cut into network chunks of `size` bytes, or at the byte offsets `at`.

    Chunks may end inside a line and inside a character of several bytes.
    """

    item: Step
    size: int = 1
    at: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Sse:
    """Stream events exactly as given, nothing added: no `[DONE]`, no terminal event.

    A mapping is sent as JSON, with an `event:` line where it has a `type`; a str or bytes is sent as it is (`DONE`).
    A request that is not streamed gets the JSON of `whole` where there is one, else the events as well.
    """

    events: Sequence[Event]
    whole: object = None


@dataclass(frozen=True, slots=True)
class Raw:
    """Status, headers and body exactly as given, cut into network chunks at the byte offsets `cuts`."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cuts: Sequence[int] = ()


WireStep: TypeAlias = "Fail | Cut | Drop | ErrorEvent | Delay | Deltas | Chunks | Sse | Raw"
Step: TypeAlias = "WireStep | Item | Callable[[Recorded], Any]"
"""One answer of the server: a wire step, a script item, or a function that makes either from the recorded request."""

__all__ = [
    "Chunks",
    "Cut",
    "Delay",
    "Deltas",
    "Drop",
    "ErrorEvent",
    "Event",
    "Fail",
    "How",
    "Raw",
    "Sse",
    "Step",
    "WireStep",
]
