"""One conversation as it is shown and talked to: who looks at it, and which turn runs.

What must live here: starting and following turns in the event loop. What must never be known here: pages, HTTP.
A turn belongs to its room, not to who asked: it goes on when a browser is closed.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from hookloop_hookspecs import Answer, Approve, Deny, HookloopError, NoOpenTurn, Outcome
from hookloop_hookspecs.redact import redact
from hookloop_hookspecs.verdicts import Decision

from .agents import Describe, Running, Talks, Told
from .story import OVER, Op, Story

Listener: TypeAlias = Callable[[Told | None, list[Op]], None]
"""Called with what happened (None: only the room's own state) and what changed in the story."""

_log = logging.getLogger(__name__)


class Busy(Exception):
    """A turn runs in this conversation already, or as many turns run as may."""


class Room:
    """A conversation. Used in one event loop.

    Arguments: `agent`; `id`, the conversation's; `describe`, makes plain data of events; `story`, what is known of it.
    """

    def __init__(self, agent: Talks, id: str, describe: Describe, story: Story) -> None:
        self.id = id
        self.story = story
        self.outcome: Outcome | None = None
        self.trouble = ""
        self._agent = agent
        self._describe = describe
        self._listeners: list[Listener] = []
        self._task: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """Whether a turn runs here now."""
        return self._task is not None

    @property
    def watched(self) -> bool:
        """Whether anybody looks."""
        return bool(self._listeners)

    @property
    def interrupted(self) -> bool:
        """Whether the newest turn was left open by a process that is gone, so that it can go on."""
        last = self.story.last
        return not self.running and last is not None and last["status"] not in (*OVER, "suspended")

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Tell `listener` what happens from now on; gives back a function that ends it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def say(self, text: str) -> None:
        """A message: into the running turn, or as a new one."""
        if self.running:
            try:
                self._agent.send(self.id, text)
                return
            except NoOpenTurn:
                _log.debug("the turn of %s ended just now; what was sent begins a new one", self.id)
                self._follow_on(text)
                return
        self.begin(text)

    def begin(self, text: str) -> asyncio.Task[None]:
        """A new turn. Raises `Busy` where one runs."""
        return self._start(lambda: self._agent.astream(text, conversation=self.id))

    def go_on(self) -> asyncio.Task[None]:
        """Take up a turn that was left open. Raises `Busy`."""
        return self._start(lambda: self._agent.aresume_stream(self.id))

    def decide(self, call: str, decision: Decision) -> asyncio.Task[None]:
        """Decide on a call that waits. Raises `Busy`."""
        return self._start(lambda: self._agent.aresume_stream(self.id, {call: decision}))

    def cancel(self) -> None:
        """End the running turn; nothing where none runs."""
        try:
            self._agent.cancel(self.id)
        except NoOpenTurn:
            _log.debug("nothing to cancel in %s", self.id)

    async def close(self) -> None:
        """Cancel what runs and wait for its end."""
        if self._task is not None:
            self.cancel()
            await asyncio.wait({self._task})

    def _start(self, make: Callable[[], Running]) -> asyncio.Task[None]:
        if self.running:
            raise Busy("a turn runs in this conversation already")
        self._task = asyncio.get_running_loop().create_task(self._follow(make))
        self._tell(None, [])
        return self._task

    def _follow_on(self, text: str) -> None:
        """Begin a turn with `text` as soon as the one that is ending has ended."""
        if self._task is not None:
            self._task.add_done_callback(lambda _: self.begin(text) if not self.running else self.say(text))

    async def _follow(self, make: Callable[[], Running]) -> None:
        """Drive one run to its end; whatever happens to it is shown, and the room can be used again."""
        self.outcome, self.trouble = None, ""
        try:
            run = make()
            try:
                async with run as events:
                    async for event in events:
                        self._take(self._describe(event, self.id, run.turn_id))
            finally:
                self.outcome = run.outcome
        except HookloopError as error:
            self.outcome = self.outcome or error.outcome
            self.trouble = redact(f"{type(error).__name__}: {error}")
        except Exception as error:
            _log.exception("a turn of %s failed", self.id)
            self.trouble = redact(f"{type(error).__name__}: {error}")
        finally:
            self._task = None
            self._tell(None, [])

    def _take(self, told: Told) -> None:
        self._tell(told, self.story.take(told))

    def _tell(self, told: Told | None, ops: list[Op]) -> None:
        for listener in tuple(self._listeners):
            listener(told, ops)


def decision_of(verdict: str, reason: str, arguments: str | None, asked: str) -> Decision:
    """What a person decided. `arguments` are as edited, `asked` as the model wrote them.

    Raises `ValueError` for arguments that are no JSON object, and for a verdict that there is not.
    """
    if verdict == "deny":
        return Deny(reason.strip() or "denied by the user")
    if verdict == "answer":
        return Answer(reason)
    if verdict != "approve":
        raise ValueError(f"there is no verdict {verdict!r}")
    if arguments is None or arguments == asked:
        return Approve()
    return Approve(_object(arguments))


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"these arguments are not JSON: {error}") from error
    if not isinstance(value, dict):
        raise ValueError("arguments are a JSON object")
    return value
