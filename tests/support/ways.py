"""Running one scenario in all ways: run, stream, arun, astream, each with both transports, and comparing what is seen."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hookloop import Agent, Outcome
from hookloop.engine.history import check
from hookloop.testing import ScriptedProvider, say
from hookloop_hookspecs import LoadQuery, Message, ModelRequest
from hookloop_hookspecs.events import CallPiece, Event, RequestSent, TextPiece, ThinkingPiece

WAYS = ("run", "stream", "arun", "astream")
STREAMS = ("stream", "astream")
TRANSPORTS = ("stream", "whole")
AGAIN = "and again"


@dataclass
class Scenario:
    """One conversation with a scripted model.

    `script` makes the model's steps; `agent` makes the agent's parameters, given the list that tools and plugins note into;
    `resume` gives the decisions of each resume that follows, from the outcome before it. `leave` is the kind of event at
    which a stream is left early; only streams can be. `pieces` says that the cuts of deltas change what happens, so that
    transports cannot be compared with each other. `expected` is what the last outcome must be.
    """

    name: str
    script: Callable[[], list[Any]]
    agent: Callable[[list[Any]], dict[str, Any]] = lambda notes: {}
    run: dict[str, Any] = field(default_factory=dict)
    resume: Sequence[Callable[[Outcome], Any]] = ()
    prompt: Any = "go"
    leave: str = ""
    pieces: bool = False
    expected: Expected | None = None

    @property
    def ways(self) -> Sequence[str]:
        """The ways that can play it."""
        return STREAMS if self.leave else WAYS


@dataclass(frozen=True)
class Expected:
    """What a scenario must come to; `requests` to the model, and `ran` tools (what notes hold), are counted."""

    status: str
    stop_reason: str
    requests: int | None = None
    ran: int | None = None
    text: str | None = None

    def assert_met(self, seen: Seen) -> None:
        """Look at what a way showed. The request of the turn that came after does not count."""
        outcome = seen.outcome
        assert (outcome.status, outcome.stop_reason) == (self.status, self.stop_reason)
        assert self.requests in (None, sum(isinstance(e, tuple) and e[0] == "request_sent" for e in seen.events) - 1)
        assert self.ran in (None, len(seen.notes)), seen.notes
        assert self.text in (None, outcome.text)


@dataclass
class Seen:
    """What a way showed: requests, events, notes, the outcomes, errors, the stored log."""

    requests: list[Any]
    events: list[Any]
    notes: list[Any]
    outcomes: list[Outcome]
    errors: list[BaseException]
    stored: list[Any]
    next_request: list[Message]
    raw: list[Any]

    @property
    def outcome(self) -> Outcome:
        """The last outcome."""
        return self.outcomes[-1]


class Ear:
    """Notes every event."""

    name = "ear"

    def __init__(self) -> None:
        self.events: list[Event] = []

    from hookloop_hookspecs import hookimpl as _hookimpl

    @_hookimpl
    def on_event(self, event: Event) -> None:
        self.events.append(event)


def play(scenario: Scenario, way: str, transport: str = "stream") -> Seen:
    """Play a scenario in one way, then one more turn, whose request must be valid whatever happened before."""
    notes: list[Any] = []
    ear = Ear()
    parameters = scenario.agent(notes)
    plugins = [ear, *parameters.pop("plugins", [])]
    provider = ScriptedProvider([*scenario.script()], transport=transport)
    agent = Agent(provider, plugins=plugins, **parameters)
    for part in [*plugins, *notes]:
        if hasattr(part, "agent"):
            part.agent = agent
    outcomes, errors = asyncio.run(_async(scenario, agent, way)) if way.startswith("a") else _sync(scenario, agent, way)
    for part in plugins:
        if hasattr(part, "broken"):
            part.broken = False
    provider.steps = [*provider.steps[: len(provider.requests)], say("next answer")]
    before = len(provider.requests)
    if getattr(parameters.get("limits"), "seconds", None) == 0:  # no turn of this agent ever asks
        more = Agent(provider, plugins=plugins, **{**parameters, "limits": None, "memory": agent.memories[0]})
    else:
        more = agent
    asked = more.run(AGAIN, conversation="c")
    check(asked.messages)
    next_request = list(provider.requests[before].messages)
    check(next_request)
    events = ear.events
    more.close()
    agent.close()
    stored = agent.memories[0].load_memory("c", LoadQuery()).entries
    return Seen(
        [plain_request(request) for request in provider.requests],
        plain_events(events),
        [note for note in notes if not hasattr(note, "agent")],
        outcomes,
        errors,
        [_plain_entry(entry) for entry in stored],
        next_request,
        list(stored),
    )


def _sync(scenario: Scenario, agent: Agent, way: str) -> tuple[list[Outcome], list[BaseException]]:
    outcomes: list[Outcome] = []
    errors: list[BaseException] = []

    def one(stream: Any) -> None:
        try:
            if way == "run":
                outcomes.append(stream.result())
                return
            with stream as events:
                for event in events:
                    if event.kind == scenario.leave:
                        break
            outcomes.append(events.outcome)
        except Exception as error:
            errors.append(error)
            outcomes.append(error.outcome)  # type: ignore[attr-defined]  # every error that leaves a turn has one

    one(agent.stream(scenario.prompt, conversation="c", turn_id="t1", **scenario.run))
    for decide in scenario.resume:
        one(agent.resume_stream("c", decide(outcomes[-1])))
    return outcomes, errors


async def _async(scenario: Scenario, agent: Agent, way: str) -> tuple[list[Outcome], list[BaseException]]:
    outcomes: list[Outcome] = []
    errors: list[BaseException] = []

    async def one(stream: Any) -> None:
        try:
            if way == "arun":
                outcomes.append(await stream.result())
                return
            async with stream as events:
                async for event in events:
                    if event.kind == scenario.leave:
                        break
            outcomes.append(events.outcome)
        except Exception as error:
            errors.append(error)
            outcomes.append(error.outcome)  # type: ignore[attr-defined]  # every error that leaves a turn has one

    await one(agent.astream(scenario.prompt, conversation="c", turn_id="t1", **scenario.run))
    for decide in scenario.resume:
        await one(agent.aresume_stream("c", decide(outcomes[-1])))
    return outcomes, errors


def all_ways(scenario: Scenario) -> Seen:
    """Play a scenario in four ways and two transports, compare all with the first, and give that back."""
    first = play(scenario, scenario.ways[0])
    for transport in TRANSPORTS:
        model = play(scenario, scenario.ways[0], transport) if scenario.pieces else first
        for way in scenario.ways:
            same(model, play(scenario, way, transport), f"{way}/{transport}")
    if scenario.expected is not None:
        scenario.expected.assert_met(first)
    for outcome in first.outcomes:
        check(outcome.messages, tail=any(one.pending for one in first.outcomes))
    return first


def same(first: Seen, other: Seen, way: str) -> None:
    """Requests, history, events, notes and outcomes are equal, times and delta cuts aside."""
    assert other.requests == first.requests, way
    assert other.events == first.events, way
    assert other.notes == first.notes, way
    assert other.stored == first.stored, way
    assert [plain_outcome(o) for o in other.outcomes] == [plain_outcome(o) for o in first.outcomes], way
    assert [repr(e) for e in other.errors] == [repr(e) for e in first.errors], way


def plain_request(request: ModelRequest) -> Any:
    """A request as comparable data."""
    return (
        request.model,
        request.system,
        [_unnamed(message) for message in request.messages],
        request.tools,
        request.tool_choice,
        request.allowed,
        request.settings,
        request.output,
        request.round,
        request.epoch,
    )


def _unnamed(message: Message) -> Message:
    """A message without its turn's id, which is new in each run of the turn that comes after."""
    return replace(message, origin=replace(message.origin, turn=""))


def plain_outcome(outcome: Outcome) -> Any:
    """An outcome as comparable data."""
    return (
        outcome.status,
        outcome.stop_reason,
        outcome.text,
        outcome.output,
        outcome.new,
        list(outcome.messages),
        outcome.usage,
        [replace(r, seconds=0.0) for r in outcome.rounds],
        [replace(one, expires=one.expires and 1.0) for one in outcome.pending],
        outcome.warnings,
    )


def plain_events(events: Sequence[Event]) -> list[Any]:
    """Events as comparable data: pieces joined, times and random ids out."""
    plain: list[Any] = []
    for event in events:
        if isinstance(event, TextPiece | ThinkingPiece | CallPiece):
            text = event.raw if isinstance(event, CallPiece) else event.text
            key = (event.kind, event.round, event.index if isinstance(event, CallPiece) else 0)
            if plain and isinstance(plain[-1], tuple) and plain[-1][0] == key:
                plain[-1] = (key, plain[-1][1] + text)
            else:
                plain.append((key, text))
        elif isinstance(event, RequestSent):
            plain.append((event.kind, event.round, plain_request(event.request), event.fresh, event.attempt))
        else:
            plain.append(_plain_event(event))
    return plain


def _plain_event(event: Any) -> Any:
    changes: dict[str, Any] = {}
    for name in ("seconds", "turn"):
        if hasattr(event, name):
            changes[name] = type(getattr(event, name))()
    if getattr(event, "expires", None):
        changes["expires"] = 1.0
    if hasattr(event, "outcome"):
        return (event.kind, event.status, event.stop_reason, event.text)
    if isinstance(getattr(event, "message", None), Message):
        changes["message"] = _unnamed(event.message)
    return replace(event, **changes)


def _plain_entry(entry: Any) -> Any:
    body = entry.body
    for name in ("seconds", "at"):
        if hasattr(body, name):
            body = replace(body, **{name: 0.0})
    if hasattr(body, "nonce"):
        body = replace(body, nonce="", owner="")
    if getattr(body, "expires", None):
        body = replace(body, expires=1.0)
    if hasattr(body, "message"):
        body = replace(body, message=_unnamed(body.message), behind=tuple(_unnamed(m) for m in body.behind))
    return (entry.number, entry.turn if entry.turn == "t1" else "", body)
