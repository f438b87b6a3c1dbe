"""Playing one situation with a plugin under watch: all its turns, in one of the ways to call."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hookloop.agent import Agent
from hookloop.limits import Limits
from hookloop_hookspecs import Approve, Message, ModelRequest, Outcome

from .script import say
from .scripted import ScriptedProvider
from .watched import Watched


@dataclass(frozen=True)
class Situation:
    """What a turn meets. `script` is what the model says, reply by reply; once it is used up the model says "done"."""

    name: str
    script: Sequence[Any] = ()
    leave: bool = False
    approve: bool = False
    memory: Callable[[], Any] | None = None
    limits: Limits = field(default_factory=Limits)
    prompts: Sequence[str] = ("Change the file.", "And the other one.")


@dataclass
class Played:
    """What one play showed: the plugin's calls, the requests, the outcome of each turn (None: it raised before one)."""

    watched: Watched
    requests: list[ModelRequest] = field(default_factory=list)
    outcomes: list[Outcome | None] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def contributions(self) -> list[Message]:
        """All that plugins contributed, turn by turn."""
        found = [message for outcome in self.outcomes if outcome is not None for message in outcome.new]
        return [message for message in found if message.origin.kind == "plugin"]


class Play:
    """One play of a situation.

    Arguments: `watched`, the plugin; `agent` makes an agent with it around a provider; `deps` are given to its turns; `way` is
    one of run, stream, arun, astream.
    """

    def __init__(
        self,
        watched: Watched,
        agent: Callable[[ScriptedProvider], Agent],
        deps: Any,
        situation: Situation,
        way: str,
        transport: str,
    ) -> None:
        self._agent = agent
        self._deps = deps
        self._situation = situation
        self._way = way
        self._played = Played(watched)
        self._provider = ScriptedProvider([self._says] * 1000, transport=transport)

    def _says(self, request: ModelRequest) -> Any:
        """The model's next reply: the script begins anew with each message of the user."""
        said = 0
        for message in request.messages:
            said = 0 if message.origin.kind == "user" else said + (message.role == "assistant")
        script = self._situation.script
        first = not any(message.text == self._situation.prompts[-1] for message in request.messages)
        again = first or len(self._situation.prompts) == 1
        return script[said] if again and said < len(script) else say("done")

    def play(self) -> Played:
        """Play it to its end; whatever it raises is in what comes back."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # a failing `close` is among the calls of the plugin
            if self._way.startswith("a"):
                asyncio.run(self._async())
            else:
                self._sync()
        self._played.requests = self._provider.requests
        return self._played

    def _asks(self, at: int) -> dict[str, Any]:
        return {"conversation": "c", "turn_id": f"t{at}", "deps": self._deps}

    def _sync(self) -> None:
        with self._agent(self._provider) as agent:
            for at, prompt in enumerate(self._situation.prompts):
                stream = agent.stream(prompt, **self._asks(at))
                try:
                    self._read(stream)
                    self._over(stream.outcome)
                    if self._situation.approve and self._waits():
                        self._over(agent.resume("c", self._approval()))
                except Exception as error:
                    self._failed(error)

    def _read(self, stream: Any) -> None:
        if self._way == "run" and not self._situation.leave:
            stream.result()
            return
        with stream as events:
            for event in events:
                if self._situation.leave and event.kind == "tool_started":
                    break

    async def _async(self) -> None:
        async with self._agent(self._provider) as agent:
            for at, prompt in enumerate(self._situation.prompts):
                stream = agent.astream(prompt, **self._asks(at))
                try:
                    await self._aread(stream)
                    self._over(stream.outcome)
                    if self._situation.approve and self._waits():
                        self._over(await agent.aresume("c", self._approval()))
                except Exception as error:
                    self._failed(error)

    async def _aread(self, stream: Any) -> None:
        if self._way == "arun" and not self._situation.leave:
            await stream.result()
            return
        async with stream as events:
            async for event in events:
                if self._situation.leave and event.kind == "tool_started":
                    break

    def _over(self, outcome: Outcome | None) -> None:
        self._played.outcomes.append(outcome)

    def _failed(self, error: Exception) -> None:
        self._played.errors.append(f"{type(error).__name__}: {error}")
        self._over(getattr(error, "outcome", None))

    def _waits(self) -> bool:
        last = self._played.outcomes[-1]
        return last is not None and last.status == "suspended"

    def _approval(self) -> dict[str, Any]:
        last = self._played.outcomes[-1]
        return {one.id: Approve() for one in last.pending} if last is not None else {}


__all__ = ["Play", "Played", "Situation"]
