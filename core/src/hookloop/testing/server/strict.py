"""The strict local server: plays a script to real SDKs, and refuses what the real APIs refuse."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any

from .cutting import Cutter
from .issued import Issued
from .plan import Plan, whole_plan
from .play import Player
from .record import Api, Departure, Recorded, Refusal, Violation, api_of
from .rules import PROFILES, check_chat, check_messages, check_responses
from .shapes import error_body, request_id_header
from .steps import Raw, Step
from .wire import HttpRequest, Leave, Listener

DEFAULT_OFF = ("tools_missing", "single_call")
"""What only some routes and templates ask."""


OWN_RULES = ("script_over", "step_failed")
"""Refusals that no API knows: the script is used up, or a step of it raised. SDKs are told not to ask again."""


class StrictServer:
    """A server on 127.0.0.1 that speaks Messages, Chat Completions and Responses from one script.

    Each POST to a model endpoint, whichever API it is, takes the next step, unless it breaks a rule: then it is refused
    as the real API would, and the step stays for the next request. Use it as a context manager; all threads and sockets
    are gone after it.

    Arguments: `script`, the steps; `strict=False` refuses nothing but requests beyond the script; `off`, names of rules
    that do not apply; `profile`, a compatible server whose demands are added to Chat Completions ("deepseek", "mistral",
    "gemini", "vllm", "llama.cpp", "groq", "ollama", "openrouter", "together", "xai"); `preserved_thinking`, whether
    thinking is bound to all that came before it: True or False for every model, None by the model's name; `deltas`, the
    characters in a delta; `chunks`, the bytes in a network chunk (0: as large as can be).

    Attributes: `url`, `requests`, `refusals`, `departures` (clients that left before the end of their answer),
    `elsewhere` (method and path of requests to anything but a model endpoint, which are answered with 404).
    Base URLs: `url` for the Anthropic SDK, `url + "/v1"` for the OpenAI SDK.
    """

    def __init__(
        self,
        script: Iterable[Step] = (),
        *,
        strict: bool = True,
        off: Iterable[str] = DEFAULT_OFF,
        profile: str | None = None,
        preserved_thinking: bool | None = None,
        deltas: int = 16,
        chunks: int = 0,
    ) -> None:
        if profile is not None and profile not in PROFILES:
            raise ValueError(f"no profile {profile!r}; there are {', '.join(PROFILES)}")
        self.steps: list[Step] = list(script)
        self.strict = strict
        self.off = frozenset(off)
        self.profile = profile
        self.preserved_thinking = preserved_thinking
        self.issued = Issued()
        self.requests: list[Recorded] = []
        self.refusals: list[Refusal] = []
        self.departures: list[Departure] = []
        self.elsewhere: list[str] = []
        self._chunks = chunks
        self._next = 0
        self._lock = threading.Lock()
        self._player = Player(self.issued, profile, Cutter(deltas))
        self._listener: Listener | None = None

    @property
    def url(self) -> str:
        """The root of the server. Raises `RuntimeError` when it is not running."""
        if self._listener is None:
            raise RuntimeError("the server is not running: use it in a with block")
        return f"http://127.0.0.1:{self._listener.port}"

    def __enter__(self) -> StrictServer:
        """Start to listen on a free port."""
        self._listener = Listener(self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End every connection and thread."""
        self.close()

    def close(self) -> None:
        """End every connection and thread; harmless when repeated."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()

    def play(self, *steps: Step) -> None:
        """Append steps to the script."""
        with self._lock:
            self.steps.extend(steps)

    def replay(self, status: int, headers: Mapping[str, str], body_bytes: bytes, cuts: Sequence[int] = ()) -> None:
        """Append an answer of exactly these bytes, cut into network chunks at these offsets."""
        self.play(Raw(status, dict(headers), body_bytes, tuple(cuts)))

    @property
    def left(self) -> int:
        """The number of steps that no request has taken."""
        return len(self.steps) - self._next

    def check(self, request: Recorded) -> list[Violation]:
        """Every rule that a request breaks, the one that the API would name first."""
        return _CHECKS[request.api](self, request)

    def _handle(self, http: HttpRequest) -> tuple[Plan, Leave]:
        api = api_of(http.path)
        if http.method != "POST" or api is None:
            unknown = self._unknown(http)
            bare = replace(unknown, frames=()) if http.method == "HEAD" else unknown
            return bare, partial(self._left, None)
        request, faults = _record(api, http)
        with self._lock:
            self.requests.append(request)
        plan = self._answer(request, faults)
        return plan, partial(self._left, request)

    def _answer(self, request: Recorded, faults: list[Violation]) -> Plan:
        if not faults and self.strict:
            faults = self.check(request)
        if faults:
            return self._refuse(request, faults)
        step, over = self._take()
        if over is not None:
            return self._refuse(request, [over])
        try:
            return self._cut(self._player.play(step, request))
        except Exception as error:
            message = f"the step failed: {type(error).__name__}: {error}"
            return self._refuse(request, [Violation("step_failed", message, 500, "", "step_failed")])

    def _cut(self, plan: Plan) -> Plan:
        if not self._chunks or plan.size or plan.cuts:
            return plan
        return replace(plan, size=self._chunks)

    def _take(self) -> tuple[Any, Violation | None]:
        with self._lock:
            if self._next < len(self.steps):
                self._next += 1
                return self.steps[self._next - 1], None
        message = f"the script has {len(self.steps)} steps, and was asked for one more"
        return None, Violation("script_over", message, 500, "", "script_over")

    def _refuse(self, request: Recorded, faults: Sequence[Violation]) -> Plan:
        first = faults[0]
        with self._lock:
            self.refusals.append(Refusal(first.rule, first.status, first.message, request, tuple(faults)))
        return self._error(request.api, first)

    def _error(self, api: Api, fault: Violation) -> Plan:
        request_id = self.issued.new("req_")
        shaped = error_body(api, fault, request_id, self.profile)
        retry = {"x-should-retry": "false"} if fault.rule in OWN_RULES else {}
        return whole_plan(shaped, fault.status, {request_id_header(api): request_id, **retry})

    def _unknown(self, http: HttpRequest) -> Plan:
        with self._lock:
            self.elsewhere.append(f"{http.method} {http.path}")
        api: Api = "messages" if "anthropic-version" in http.headers else "chat"
        message = f"Invalid URL ({http.method} {http.path})" if api == "chat" else "Not Found"
        return self._error(api, Violation("not_found", message, 404, ""))

    def _left(self, request: Recorded | None, sent: int, written: bool) -> None:
        with self._lock:
            self.departures.append(Departure(request, sent, written))


def _record(api: Api, http: HttpRequest) -> tuple[Recorded, list[Violation]]:
    """The request as recorded, and what is wrong with it as JSON."""
    body, fault = _parse(http.body)
    stream = body.get("stream") is True
    return Recorded(api, http.path, http.headers, body, http.body, stream), [fault] if fault else []


def _parse(raw: bytes) -> tuple[dict[str, Any], Violation | None]:
    try:
        body = json.loads(raw.decode("utf-8"), parse_constant=_no_constant)
        if b"\\ud" in raw or b"\\uD" in raw:
            json.dumps(body, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        return {}, Violation("json", f"The request body is not valid JSON: {error}", 400, "", None)
    if isinstance(body, dict):
        return body, None
    return {}, Violation("json", "The request body is not a JSON object", 400, "", None)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _messages(server: StrictServer, request: Recorded) -> list[Violation]:
    kept = server.preserved_thinking
    return check_messages(request.body, request.headers, issued=server.issued, preserved=kept, off=server.off)


def _chat(server: StrictServer, request: Recorded) -> list[Violation]:
    return check_chat(request.body, server.profile, headers=request.headers, issued=server.issued, off=server.off)


def _responses(server: StrictServer, request: Recorded) -> list[Violation]:
    return check_responses(request.body, request.headers, known=server.issued, off=server.off)


_CHECKS: Mapping[Api, Callable[[StrictServer, Recorded], list[Violation]]] = {
    "messages": _messages,
    "chat": _chat,
    "responses": _responses,
}
