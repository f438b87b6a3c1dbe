"""Tool calls as the drivers run them: which may start, and what one call comes to. Shared by both drivers."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from time import monotonic
from typing import Any, TypeAlias

from hookloop.engine.effects import Done, Job
from hookloop_hookspecs import Text, Tool, ToolContext, ToolError
from hookloop_hookspecs.redact import bounded, redact
from hookloop_hookspecs.results import Unencodable, encode_result
from hookloop_hookspecs.tools import SuspendCall


class Schedule:
    """Which jobs may start: in order, in parallel up to `cap`, serial tools alone."""

    def __init__(self, jobs: Iterable[Job], cap: int) -> None:
        self._waiting = deque(jobs)
        self._cap = cap
        self.running: dict[int, Job] = {}

    def ready(self) -> list[Job]:
        """The jobs to start now; they count as running."""
        started: list[Job] = []
        while self._waiting and self._may(self._waiting[0]):
            started.append(self.begin())
        return started

    @property
    def single(self) -> bool:
        """Is there one job alone, which may start now in a thread?"""
        return len(self._waiting) == 1 and not self.running and not self._waiting[0].tool.is_async

    def begin(self) -> Job:
        """The next job, which counts as running from here on."""
        job = self._waiting.popleft()
        self.running[job.place] = job
        return job

    def _may(self, job: Job) -> bool:
        if not self.running:
            return True
        alone = job.tool.serial or any(other.tool.serial for other in self.running.values())
        return not alone and len(self.running) < self._cap

    def ended(self, place: int) -> bool:
        """A job is over; False when it was over already (a thread that ends after its timeout)."""
        return self.running.pop(place, None) is not None

    def halt(self) -> list[Done]:
        """Start no further job; gives back those that never began."""
        unbegun = [Done(job.place, began=False) for job in self._waiting]
        self._waiting.clear()
        return unbegun


@dataclass(slots=True)
class Invoke:
    """Call the tool; `timeout` in seconds. The edge throws `TimedOut` where it takes longer."""

    job: Job
    context: ToolContext
    timeout: float | None

    def call(self) -> Any:
        """The tool's value, or an awaitable."""
        return self.job.tool.call(self.job.kwargs, self.context)


@dataclass(slots=True)
class Pause:
    """Wait so many seconds before the next attempt."""

    seconds: float


class TimedOut(Exception):
    """A tool took longer than its timeout, and perhaps still runs."""

    def __init__(self, *, runs_on: bool = False) -> None:
        super().__init__()
        self.runs_on = runs_on


Body: TypeAlias = Generator["Invoke | Pause", Any, Done]


def body(job: Job, context: ToolContext, detailed: bool, timeout: float | None) -> Body:
    """Run one call, with its retries, and make a `Done` of whatever happens. Whatever a tool does is an answer."""
    began = monotonic()
    tool = job.tool
    attempt, told = 0, ""
    while True:
        if attempt and context.cancel.is_set():  # it came in the pause, from which it woke us
            return failed(job, told, monotonic() - began)
        try:
            value = yield Invoke(job, context, timeout)
            break
        except SuspendCall as suspended:
            seconds = monotonic() - began
            return Done(job.place, seconds=seconds, question=suspended.question, expires=suspended.expires)
        except TimedOut as late:
            text = f"{tool.name} ran longer than {timeout:g} s and was left; its effect is unknown"
            return failed(job, text, monotonic() - began, runs_on(tool.name) if late.runs_on else "")
        except ToolError as error:
            return failed(job, _words(error), monotonic() - began)
        except BaseException as error:  # whatever a tool raises is an answer, SystemExit too
            attempt += 1
            again = attempt <= tool.retries and isinstance(error, tool.retry_on) and not context.cancel.is_set()
            told = _told(tool, error, detailed)
            if not again:
                return failed(job, told, monotonic() - began)
        yield Pause(tool.retry_wait)
    try:
        encoded = encode_result(value)
    except Unencodable as error:
        text = f"{tool.name} ran, but its result cannot be given to a model: {error}"
        return failed(job, text, monotonic() - began)
    except BaseException as error:  # a result is the tool's code as well
        text = f"{tool.name} ran, but its result cannot be read: {_told(tool, error, detailed)}"
        return failed(job, text, monotonic() - began)
    return Done(job.place, encoded.content, encoded.is_error, encoded.private, monotonic() - began)


def failed(job: Job, text: str, seconds: float, warning: str = "") -> Done:
    """A job that came to an error."""
    return Done(job.place, (Text(text),), True, "", seconds, warning=warning)


def runs_on(tool: str) -> str:
    """The warning of a call that was left and has not ended."""
    return f"{tool} still runs, though nobody waits for it any more"


def _words(error: BaseException) -> str:
    """The exception's message; nothing where it has none that can be made."""
    try:
        return str(error)
    except (Exception, SystemExit, GeneratorExit):  # its own code, which must end nobody else's thread or loop
        return ""


def _told(tool: Tool, error: BaseException, detailed: bool) -> str:
    """What the model reads of an exception: its class, and a bounded message without secrets."""
    name = type(error).__name__
    text = bounded(redact(_words(error))) if detailed else ""
    return f"{tool.name} failed: {name}: {text}" if text else f"{tool.name} failed: {name}"


def context_of(job: Job, conversation: str, turn: str, deps: Any, cancel: threading.Event) -> ToolContext:
    """What the tool may know of its call."""
    key = f"{conversation}:{turn}:{job.round}:{job.position}"
    return ToolContext(conversation, turn, job.round, job.call, key, deps, cancel, list(job.decisions))


def play(body: Body, begin: Callable[[], None], pause: Callable[[float], object]) -> Done:
    """The sync edge: call the tool on this thread. `begin` is called before each attempt, from which its timeout counts."""
    step = next(body)
    while True:
        try:
            if isinstance(step, Pause):
                pause(step.seconds)
                step = body.send(None)
                continue
            begin()
            try:
                value = step.call()
            except BaseException as error:
                step = body.throw(error)
            else:
                step = body.send(value)
        except StopIteration as stop:
            done: Done = stop.value
            return done
