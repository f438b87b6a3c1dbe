"""A server for the checks of a provider: plays a script over HTTP, in whatever form the provider's own API has."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

from hookloop_hookspecs import Reply

from .script import as_reply
from .server.plan import Plan, head_of, held, stream_plan, whole_plan
from .server.steps import Cut, Delay, Drop, Fail
from .server.wire import HttpRequest, Leave, Listener

Answer: TypeAlias = "Mapping[str, Any] | Sequence[Mapping[str, Any] | str | bytes]"
"""A mapping is one JSON body; a sequence is a stream: a str or bytes is sent as it is, a mapping as an SSE event."""


class Endpoint(Protocol):
    """What plays a script to a provider. `StrictServer` is one; `LocalEndpoint` makes one for any API.

    Steps are script items, and `Fail`, `Cut`, `Drop` and `Delay` of `hookloop.testing.server`. `requests` are those that
    came, each with its parsed JSON as `body`. It is a context manager.
    """

    @property
    def url(self) -> str:
        """Where it listens."""

    @property
    def requests(self) -> Sequence[Any]:
        """The requests that came, in order."""

    def play(self, *steps: Any) -> None:
        """Append steps to the script."""

    def __enter__(self) -> Self:
        """Start to listen."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every connection and thread."""


@dataclass(frozen=True, slots=True)
class Received:
    """One request: its path, its headers with lower-case names, its parsed JSON."""

    path: str
    headers: Mapping[str, str]
    body: Any


class LocalEndpoint:
    """A server on 127.0.0.1 for a provider's own API.

    Arguments: `answer` makes what goes over the wire for a reply, given the request's body: one JSON body, or the events of
    a stream; `fail` makes the body of a failure from its status and message.
    """

    def __init__(
        self, answer: Callable[[Reply, Any], Answer], fail: Callable[[int, str], Any] = lambda _, message: message
    ) -> None:
        self.requests: list[Received] = []
        self._answer = answer
        self._fail = fail
        self._steps: list[Any] = []
        self._lock = threading.Lock()
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        """The root of the server. Raises `RuntimeError` when it is not running."""
        if self._listener is None:
            raise RuntimeError("the endpoint is not running: use it in a with block")
        return f"http://127.0.0.1:{self._listener.port}"

    def play(self, *steps: Any) -> None:
        """Append steps to the script; each request takes the next one."""
        with self._lock:
            self._steps.extend(steps)

    def __enter__(self) -> Self:
        self._listener = Listener(self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def _handle(self, http: HttpRequest) -> tuple[Plan, Leave]:
        body = json.loads(http.body) if http.body else None
        with self._lock:
            self.requests.append(Received(http.path, http.headers, body))
            step = self._steps.pop(0) if self._steps else Fail(500, "the script is over")
        return self._plan(step, body), lambda sent, written: None

    def _plan(self, step: Any, body: Any) -> Plan:
        match step:
            case Fail():
                return whole_plan(self._fail(step.status, step.message), step.status, step.headers)
            case Drop():
                return Plan(0, ending=step.how)
            case Cut():
                plan = self._plan(step.item, body)
                return replace(plan, frames=head_of(plan, step.after), ending=step.how)
            case Delay():
                return held(self._plan(step.item, body), step.until, step.after)
        answer = self._answer(as_reply(step), body)
        return whole_plan(answer) if isinstance(answer, Mapping) else stream_plan(answer)


__all__ = ["Answer", "Endpoint", "LocalEndpoint", "Received"]
