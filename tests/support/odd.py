"""Answers that odd servers give, each as a stream and as a whole body, and tools that note what they were called with."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

from hookloop import tool
from hookloop.testing.server import DONE, Sse, chunk, md, ms, mstop

Called = list[tuple[str, dict[str, Any]]]
"""Names of tools with their arguments."""


class Ran:
    """Tools under the names of the cases; they note what they were called with."""

    def __init__(self) -> None:
        self.calls: Called = []
        self.lock = threading.Lock()

    def note(self, name: str, **arguments: Any) -> str:
        """Note one call, and give back its result."""
        with self.lock:
            self.calls.append((name, {key: value for key, value in arguments.items() if value is not None}))
        return f"{name} ran"

    def tools(self) -> list[Any]:
        """The tools."""

        @tool
        def f(a: int | None = None) -> str:
            """F."""
            return self.note("f", a=a)

        @tool
        def s(q: str) -> str:
            """S."""
            return self.note("s", q=q)

        @tool
        def read_file(p: int) -> str:
            """Read."""
            return self.note("read_file", p=p)

        @tool
        def bash(a: int) -> str:
            """Bash."""
            return self.note("bash", a=a)

        @tool
        def now() -> str:
            """Now."""
            return self.note("now")

        @tool
        def pay(n: int = 0) -> str:
            """Pay."""
            return self.note("pay", n=n)

        @tool
        def w(p: str = "", c: str = "") -> str:
            """Write."""
            return self.note("w", p=p, c=c)

        @tool
        def put(file_path: str, content: str) -> str:
            """Put."""
            return self.note("put", file_path=file_path, content=content)

        return [f, s, read_file, bash, now, pay, w, put]


def body(*entries: Mapping[str, Any], finish: str | None = "tool_calls", **message: Any) -> dict[str, Any]:
    """A whole Chat Completions answer with these tool call entries, and these fields of its message."""
    said = {"role": "assistant", "content": None, **message} | ({"tool_calls": list(entries)} if entries else {})
    choice = {"index": 0, "message": said, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "odd", "choices": [choice]}


def chat(events: Sequence[Any], whole: object, finish: str | None = "tool_calls") -> Sse:
    """An odd Chat Completions answer: chunks, to which their end is added, and the same as a body."""
    return Sse([*events, chunk({}, finish), DONE], whole=whole)


def claude(events: Sequence[Any], content: Sequence[Mapping[str, Any]], stop: str = "tool_use") -> Sse:
    """An odd Messages answer: the events of its blocks, and the same blocks as a body."""
    usage = {"input_tokens": 1, "output_tokens": 5}
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "odd", "stop_sequence": None}
    whole = {**head, "content": list(content), "stop_reason": stop, "usage": usage}
    return Sse([ms(input_tokens=1), *events, md(stop, output_tokens=5), mstop()], whole=whole)


__all__ = ["Called", "Ran", "body", "chat", "claude"]
