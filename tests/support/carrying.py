"""What the tests of carried turns share: who is asked where, and what hears nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

from hookloop import Agent, Outcome, tool
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Delta, ModelRequest, Reply

HERE = "the caller"
MAIN = threading.main_thread().ident or 0


def where() -> str:
    """Which thread this is."""
    main = threading.current_thread() is threading.main_thread()
    return HERE if main else threading.current_thread().name


class Asked(ScriptedProvider):
    """Notes on which threads it is asked; `at` its nth request something is done first."""

    def __init__(self, *script: Any, at: int = 0, act: Callable[[], object] | None = None) -> None:
        super().__init__(*script)
        self.at = at
        self.act = act
        self.threads: list[str] = []

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        self.threads.append(where())
        if self.act is not None and len(self.threads) == self.at:
            self.act()
        return super().stream(request)


@tool
def note(text: str) -> str:
    """Say on which thread it runs."""
    return f"{text} on {where()}"


def two_calls() -> list[Any]:
    return [call("note", {"text": "one"}, id="c1"), call("note", {"text": "two"}, id="c2"), say("done")]


def results(outcome: Outcome) -> list[str]:
    return [result.text for message in outcome.new for result in message.results]


class Deaf:
    """Blocks the thread that calls it, until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.end = threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        self.end.wait(30)
        return "woke up"


def leaving(agent: Agent, deaf: Deaf, leave: Callable[[], object]) -> None:
    """Run a turn, and let `leave` be called once the deaf thing runs; again where Python lost it (in a weakref's callback)."""
    over = threading.Event()

    def wait() -> None:
        assert deaf.begun.wait(20)
        leave()
        if not over.wait(5):
            leave()

    thread = threading.Thread(target=wait)
    thread.start()
    try:
        agent.run("go", conversation="c")
    finally:
        over.set()
        thread.join()
