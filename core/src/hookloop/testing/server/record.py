"""What the server remembers: requests, refusals, and clients that left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Api: TypeAlias = Literal["messages", "chat", "responses"]

ENDPOINTS: Mapping[str, Api] = {"/messages": "messages", "/chat/completions": "chat", "/responses": "responses"}


@dataclass(frozen=True, slots=True, eq=False)
class Recorded:
    """One request to a model endpoint. `headers` have lower-case names; `body` is the parsed JSON of `raw`."""

    api: Api
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    raw: bytes
    stream: bool

    @property
    def model(self) -> str:
        """The model that was asked."""
        return str(self.body.get("model", ""))


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that a request breaks, with what the API would answer."""

    rule: str
    message: str
    status: int = 400
    type: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Refusal:
    """A request that was not answered from the script: the rule it broke first, and all that it broke."""

    rule: str
    status: int
    message: str
    request: Recorded | None
    all: tuple[Violation, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Departure:
    """A client that left before the end of its answer; `sent` counts the bytes that were written until then.

    `written`: the whole answer was, and the client closed its connection with a part of it unread.
    """

    request: Recorded | None
    sent: int
    written: bool = False


def api_of(path: str) -> Api | None:
    """The API that a path belongs to, by its ending; None for every other path."""
    bare = path.partition("?")[0].rstrip("/")
    return next((api for ending, api in ENDPOINTS.items() if bare.endswith(ending)), None)


__all__ = ["Api", "Departure", "Recorded", "Refusal", "Violation", "api_of"]
