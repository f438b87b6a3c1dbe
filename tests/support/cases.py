"""Playing a case of a tool loop's faults: the scripted model in all ways, and the real SDKs against the strict server.

A `Stage` is one conversation in one place (provider, way, transport). Each turn is played by a fresh agent over the same
store, so a history that the store does not give back whole shows at the next turn. Leaving the stage checks what every
case must hold: the canonical history, what the store gives back, each request, and one more turn of the user.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Self

from scenarios import Hooked
from ways import TRANSPORTS, WAYS
from wires import CHAT, MESSAGES, RESPONSES, Wire

from hookloop import Agent, Outcome
from hookloop.discovery.building import build
from hookloop.discovery.installed import PROVIDERS, load_one
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, say
from hookloop.testing.server import Recorded, StrictServer
from hookloop_hookspecs import HookloopError, LoadQuery, Message, ModelRequest
from hookloop_hookspecs.messages import Image, Part, Text, Thinking, ToolCall, ToolResult, json_text

factory = cache(partial(load_one, PROVIDERS))
"""What makes a provider, by its name; looked up once, since there are thousands of agents here."""

Line = tuple[str, str]
"""One block of a request: ("user", text), ("assistant", text), ("thinking", text), ("call", "name {…}"), ("result", text)."""


@dataclass(frozen=True)
class Place:
    """Where a case is played. `wire` None is the scripted provider."""

    wire: Wire | None
    way: str
    transport: str

    def __str__(self) -> str:
        return f"{self.wire.name if self.wire else 'scripted'}-{self.way}-{self.transport}"

    def stage(self, *script: Any, **agent: Any) -> Stage:
        """A stage in this place. `script` are the model's steps, `agent` the parameters of every agent on it."""
        return Stage(self, script, agent)


def places(wire: Wire | None) -> tuple[Place, ...]:
    """All ways and transports of one provider."""
    return tuple(Place(wire, way, transport) for way in WAYS for transport in TRANSPORTS)


def few(wire: Wire | None) -> tuple[Place, ...]:
    """Both transports in a sync and in an async way, each way once."""
    pairs = zip(WAYS, ("whole", "stream", "stream", "whole"), strict=True)
    return tuple(Place(wire, way, transport) for way, transport in pairs)


SCRIPTED = places(None)
ON_WIRES = (Place(CHAT, "arun", "stream"), Place(RESPONSES, "stream", "whole"), Place(MESSAGES, "astream", "stream"))
ON_EACH_WIRE = (*places(CHAT), *places(RESPONSES), *places(MESSAGES))
EVERYWHERE = (*SCRIPTED, *ON_WIRES)
THROUGHOUT = (*SCRIPTED, *ON_EACH_WIRE)
FEW = (*few(None), Place(CHAT, "run", "whole"))


class Stage:
    """One conversation, played turn by turn; a context manager that makes the checks of every case when it is left.

    `outcome` and `error` are those of the last run; `outcomes` are all; `sent` are the requests as lines; `raw` are they as
    the provider or the server got them. patience` is how many seconds a turn may take.
    """

    def __init__(self, place: Place, script: Sequence[Any], agent: Mapping[str, Any]) -> None:
        self.place = place
        self.parameters = dict(agent)
        self.options: dict[str, Any] = self.parameters.pop("options", {})
        demands = {"profile": place.wire.demands} if place.wire is not None else {}
        self.server_options: dict[str, Any] = demands | self.parameters.pop("server", {})
        self.memory: Any = self.parameters.pop("memory", None)
        self.outcomes: list[Outcome] = []
        self.errors: list[BaseException | None] = []
        self.server: StrictServer | None = None
        self.scripted: list[ModelRequest] = []
        self.patience: float = self.parameters.pop("patience", 30.0)
        self._script = list(script)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self.memory is None:
            on_disk = (self.place.wire, self.place.way, self.place.transport) == (None, "astream", "stream")
            self.memory = self._database() if on_disk else InProcessMemory()
        if self.place.wire is not None:
            self.server = self._stack.enter_context(StrictServer(self._script, **self.server_options))
        return self

    def _database(self) -> str:
        folder = self._stack.enter_context(tempfile.TemporaryDirectory())
        return f"sqlite:///{folder}/case.db"

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._stack:
            if kind is None:
                self.check()

    def say(self, *steps: Any) -> None:
        """Append steps to the model's script."""
        if self.server is not None:
            self.server.play(*steps)
        else:
            self._script.extend(steps)

    @contextmanager
    def agent(self, **more: Any) -> Iterator[Agent]:
        """A fresh agent over the same store, closed afterwards; for what `run` and `resume` cannot play."""
        provider = self._provider()
        made = Agent(provider, memory=[self.memory], **{**self.parameters, **more})
        try:
            yield made
        finally:
            made.close()
            self._took(provider)

    def _provider(self) -> Any:
        if self.place.wire is None:
            return ScriptedProvider([*self._script], transport=self.place.transport)
        assert self.server is not None
        wire = self.place.wire
        prefix, _, model = wire.reference.partition(":")
        address = {"api_key": "key", "base_url": self.server.url + wire.path, "transport": self.place.transport}
        options = {**address, "retries": 0, **dict(wire.options), **self.options}
        return build(factory(prefix), model, options=options, label=prefix)

    def _took(self, provider: Any) -> None:
        if self.place.wire is None:
            self.scripted += provider.requests
            del self._script[: len(provider.requests)]

    def run(self, prompt: Any = "go", *, with_: Mapping[str, Any] | None = None, **arguments: Any) -> Outcome:
        """One turn, by a fresh agent; an error that it raises is kept in `error`."""
        turn = {"conversation": "c", **arguments}
        return self._play(lambda agent: agent.stream(prompt, **turn), lambda a: a.astream(prompt, **turn), with_ or {})

    def resume(self, decisions: Any = None, *, with_: Mapping[str, Any] | None = None, of: str = "c") -> Outcome:
        """One resume, by a fresh agent. `decisions` may be one, which is taken for every call that waits."""
        if decisions is not None and not isinstance(decisions, Mapping):
            decisions = {call.id: decisions for call in self.outcome.pending}
        return self._play(
            lambda agent: agent.resume_stream(of, decisions),
            lambda agent: agent.aresume_stream(of, decisions),
            with_ or {},
        )

    def _play(self, sync: Callable[[Agent], Any], later: Callable[[Agent], Any], with_: Mapping[str, Any]) -> Outcome:
        provider = self._provider()
        agent = Agent(provider, memory=[self.memory], **{**self.parameters, **with_})
        self.errors.append(None)
        try:
            if self.place.way.startswith("a"):
                self.outcomes.append(asyncio.run(self._later(agent, later)))
            else:
                with agent, self._patience(agent):
                    self.outcomes.append(self._at_once(sync(agent)))
        finally:
            self._took(provider)
        return self.outcome

    @contextmanager
    def _patience(self, agent: Agent) -> Iterator[None]:
        """A turn that hangs is ended, so that its case fails instead of the whole suite."""
        dog = threading.Timer(self.patience, agent.close)
        dog.daemon = True
        dog.start()
        try:
            yield
        finally:
            dog.cancel()
            dog.join()

    def _at_once(self, stream: Any) -> Any:
        try:
            if self.place.way == "run":
                return stream.result()
            with stream as events:
                for _ in events:
                    pass
            return events.outcome
        except HookloopError as error:
            self.errors[-1] = error
            return error.outcome

    async def _later(self, agent: Agent, later: Callable[[Agent], Any]) -> Any:
        async with agent:
            stream = later(agent)
            try:
                if self.place.way == "arun":
                    return await stream.result()
                async with stream as events:
                    async for _ in events:
                        pass
                return events.outcome
            except HookloopError as error:
                self.errors[-1] = error
                return error.outcome

    @property
    def outcome(self) -> Outcome:
        """The last outcome."""
        return self.outcomes[-1]

    @property
    def error(self) -> Any:
        """What the last run raised, or None."""
        return self.errors[-1]

    @property
    def raw(self) -> list[Any]:
        """The requests as they came: `ModelRequest`, or what the server recorded."""
        return list(self.server.requests) if self.server is not None else list(self.scripted)

    @property
    def sent(self) -> list[list[Line]]:
        """Each request's conversation as lines, the same for every provider."""
        return [lines(request) for request in self.raw]

    @property
    def left(self) -> int:
        """Steps of the script that no request took."""
        return self.server.left if self.server is not None else len(self._script)

    def stored(self) -> list[Message]:
        """The conversation as the store gives it back, flattened."""
        with self._opened() as memory:
            return list(flatten(memory.load_memory("c", LoadQuery()).entries))

    def entries(self) -> list[Any]:
        """The bodies of all stored entries, by number."""
        with self._opened() as memory:
            return [entry.body for entry in memory.load_memory("c", LoadQuery()).entries]

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        with Agent(ScriptedProvider(), memory=[self.memory]) as agent:
            yield agent.memories[0]

    def check(self) -> None:
        """What every case must hold, with one more turn of the user."""
        assert self.left == 0, f"{self.left} steps of the script were not asked for"
        last = next((one for one in reversed(self.outcomes) if one.conversation == "c"), self.outcome)
        waits = last.status == "suspended"
        before = list(last.messages)
        check(before, tail=waits)
        stored = self.stored()
        *closed, newest = _exchanges(
            stored
        )  # ids are unique in a request; a turn out of view may have had the same ones
        for exchange in closed:
            check(exchange)
        check(newest, tail=waits)
        if last.new:
            assert stored[-len(before) :] == before  # the outcome holds what was loaded, which a window bounds
        self.say(say("the next answer"))
        after = self.run("and now?", with_={"limits": None, "plugins": (), "tool_choice": "auto"})
        assert (after.text, self.error) == ("the next answer", None)
        check(after.messages)
        kept = [m.content for m in after.messages if m in before or _renamed(m, before)]
        assert waits or len(kept[-len(last.new) :]) == len(before[-len(last.new) :])
        assert waits or [m for m in after.messages if m in before][-1:] == before[-1:]
        assert self.sent[-1][-1] == ("user", "and now?")
        for request in self.raw:
            if isinstance(request, ModelRequest):
                check(request.messages)
        assert self.refusals == []

    @property
    def refusals(self) -> list[str]:
        """What the server refused, in its words."""
        return [refusal.message for refusal in self.server.refusals] if self.server is not None else []


def _exchanges(messages: Sequence[Message]) -> list[list[Message]]:
    """Stored messages, cut before each that the user said."""
    exchanges: list[list[Message]] = [[]]
    for message in messages:
        if message.role == "user" and message.origin.kind == "user":
            exchanges.append([])
        exchanges[-1].append(message)
    return exchanges


def hooked(hook: str, function: Callable[..., Any], name: str = "hooked") -> Hooked:
    """A plugin with one hook, named by a table."""
    return Hooked(name, **{hook: function})


def shown(messages: Sequence[Message]) -> list[Line]:
    """Canonical messages as lines."""
    return [_part(message.role, part) for message in messages for part in message.content]


def lines(request: ModelRequest | Recorded) -> list[Line]:
    """A request as lines, whatever the API; the system text is left out."""
    if isinstance(request, ModelRequest):
        return shown(request.messages)
    body = request.body
    if request.api == "responses":
        return [line for item in body["input"] for line in _item(item)]
    return [line for message in body["messages"] for line in _message(message)]


def _part(role: str, part: Part) -> Line:
    match part:
        case Text():
            return role, part.text
        case ToolCall():
            return "call", f"{part.name} {_json(part.raw)}"
        case ToolResult():
            return "result", part.text
        case Thinking():
            return "thinking", part.text
        case Image():
            return "image", part.url
    return part.type, ""


def _json(arguments: Any) -> str:
    """Arguments, however they are written, in one form; text that is no JSON stays as it is."""
    try:
        return json_text(json.loads(arguments) if isinstance(arguments, str) else arguments)
    except ValueError:
        return str(arguments)


def _item(item: Mapping[str, Any]) -> list[Line]:
    match item.get("type", "message"):
        case "function_call":
            return [("call", f"{item['name']} {_json(item['arguments'])}")]
        case "function_call_output":
            return [("result", _text(item["output"]))]
        case "reasoning":
            return [("thinking", "")]
    return [(item["role"], _text(item["content"]))]


def _message(message: Mapping[str, Any]) -> list[Line]:
    role = message["role"]
    if role == "tool":
        return [("result", _text(message["content"]))]
    if role in ("system", "developer"):
        return []
    content = message.get("content") or []
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    calls = [call["function"] for call in message.get("tool_calls") or []]
    return [_block(role, block) for block in blocks] + [
        ("call", f"{call['name']} {_json(call['arguments'])}") for call in calls
    ]


def _block(role: str, block: Mapping[str, Any]) -> Line:
    match block["type"]:
        case "tool_use":
            return "call", f"{block['name']} {_json(block['input'])}"
        case "tool_result":
            return "result", _text(block.get("content", ""))
        case "thinking":
            return "thinking", block["thinking"]
        case "text":
            return role, block["text"]
    return block["type"], ""


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


__all__ = [
    "EVERYWHERE",
    "FEW",
    "ON_EACH_WIRE",
    "ON_WIRES",
    "SCRIPTED",
    "THROUGHOUT",
    "Line",
    "Place",
    "Stage",
    "few",
    "hooked",
    "lines",
    "places",
    "shown",
]


def _renamed(message: Message, before: list[Message]) -> bool:
    """Is this a message of before whose ids were made unique, as they are where they repeat beyond a window?"""
    return any((message.role, message.text, message.origin) == (m.role, m.text, m.origin) for m in before)
