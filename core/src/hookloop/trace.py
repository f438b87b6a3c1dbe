"""Traces: each event of a turn as one line of JSON, with secrets taken out; and reading them again.

What must live here: the format. What must never be known here: how a trace is drawn. A request is written with the
messages that are new in it, so a trace grows with the conversation and not with its square.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TextIO

from pydantic import BaseModel, ConfigDict, TypeAdapter

from hookloop_hookspecs import CorruptData, Turn, hookimpl
from hookloop_hookspecs.events import Event, RequestSent, TurnFinished
from hookloop_hookspecs.redact import redact

VERSION: Final = 1


class TraceOptions(BaseModel):
    """`file` is appended to; without it nothing is recorded. `pieces`: streamed pieces too, which the replies repeat."""

    model_config = ConfigDict(extra="forbid")

    file: str | None = None
    pieces: bool = False


class Trace:
    """Records every event of every turn into a file, for `hookloop trace show`."""

    Options = TraceOptions

    def __init__(self, options: TraceOptions | None = None) -> None:
        self.options = options or TraceOptions()
        self._lock = threading.Lock()
        self._file: TextIO | None = None

    @hookimpl
    def on_event(self, turn: Turn, event: Event) -> None:
        """Write one line."""
        if self.options.file is None or (event.kind.endswith("_piece") and not self.options.pieces):
            return
        line = dump_event(event, time.time(), turn.conversation, turn.id)
        with self._lock:
            if self._file is None:
                self._file = _opened(self.options.file)
            self._file.write(line + "\n")
            self._file.flush()

    @hookimpl
    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def _opened(file: str) -> TextIO:
    """The file for appending; nobody else may read it, since conversations are private."""
    return os.fdopen(os.open(file, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Traced:
    """One line of a trace. `at` is the wall clock in seconds; `data` are the event's fields as plain values."""

    at: float
    conversation: str
    turn: str
    kind: str
    data: Mapping[str, Any]


def dump_event(event: Event, at: float, conversation: str, turn: str) -> str:
    """An event as one line of JSON text, without secrets."""
    head = {"v": VERSION, "at": round(at, 4), "conversation": conversation, "turn": turn, "kind": event.kind}
    return json.dumps({**head, **_redacted(_fields(event))}, ensure_ascii=False, separators=(",", ":"))


def read_trace(lines: Iterable[str], source: str = "trace") -> Iterator[Traced]:
    """The lines of a trace. Raises `CorruptData` with the line's number; a last line that was cut off is left out."""
    waiting: CorruptData | None = None
    for number, line in enumerate(lines, 1):
        if waiting is not None:
            raise waiting
        if line.strip():
            try:
                yield _traced(line)
            except (ValueError, KeyError, TypeError) as error:
                waiting = CorruptData(f"{source}:{number}: not a line of a trace: {type(error).__name__}: {error}")
    if waiting is not None and line.endswith("\n"):
        raise waiting


def whole_requests(trace: Iterable[Traced]) -> Iterator[tuple[Traced, list[dict[str, Any]]]]:
    """Each request of a trace with all its messages, as plain values: those of the one before it, and its own new ones."""
    last: dict[str, list[dict[str, Any]]] = {}
    for line in trace:
        if line.kind == "request_sent":
            new = line.data["messages"]
            last[line.turn] = last.get(line.turn, [])[: line.data["size"] - len(new)] + new
            yield line, last[line.turn]


def _traced(line: str) -> Traced:
    if not line.isascii() and any("\udc80" <= mark <= "\udcff" for mark in line):
        raise ValueError("it is not UTF-8")
    data = json.loads(line)
    if data.pop("v") != VERSION:
        raise ValueError(f"this version reads traces of version {VERSION}")
    return Traced(data.pop("at"), data.pop("conversation"), data.pop("turn"), data.pop("kind"), data)


def _fields(event: Event) -> dict[str, Any]:
    if isinstance(event, RequestSent):
        return _request(event)
    if isinstance(event, TurnFinished):
        return _finished(event)
    plain: dict[str, Any] = _adapter(type(event)).dump_python(event, mode="json", exclude={"kind"})
    return plain


def _request(event: RequestSent) -> dict[str, Any]:
    request = event.request
    first = len(request.messages) - event.fresh
    return {
        "round": event.round,
        "provider": event.provider,
        "attempt": event.attempt,
        "epoch": request.epoch,
        "size": len(request.messages),
        "system": request.system if request.round == 1 else None,
        "tools": [tool.name for tool in request.tools] if request.round == 1 else None,
        "tool_choice": request.tool_choice,
        "allowed": sorted(request.allowed) if request.allowed is not None else None,
        "messages": [_plain(message) for message in request.messages[first:]],
    }


def _finished(event: TurnFinished) -> dict[str, Any]:
    outcome = event.outcome
    return {
        "status": event.status,
        "stop_reason": event.stop_reason,
        "text": event.text,
        "rounds": len(outcome.rounds),
        "usage": _plain(outcome.usage),
        "error": f"{type(outcome.error).__name__}: {outcome.error}" if outcome.error else None,
        "warnings": list(outcome.warnings),
    }


def _plain(value: Any) -> Any:
    return _adapter(type(value)).dump_python(value, mode="json")


_ADAPTERS: Final[dict[Any, TypeAdapter[Any]]] = {}


def _adapter(kind: Any) -> TypeAdapter[Any]:
    if kind not in _ADAPTERS:
        _ADAPTERS[kind] = TypeAdapter(kind)
    return _ADAPTERS[kind]


def _redacted(value: Any) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: _redacted(item) for key, item in value.items()}
    return [_redacted(item) for item in value] if isinstance(value, list) else value
