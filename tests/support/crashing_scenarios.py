"""Crashes of the scenarios of the parity table: everything is forgotten but a store in memory and what tools noted."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from scenarios import Notes
from ways import AGAIN, Scenario

from hookloop import Agent, Outcome
from hookloop.drivers.sync import SyncRun
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, say
from hookloop.testing.crash import When, crash, mortal
from hookloop_hookspecs import Entry, LoadQuery, ModelRequest, NoOpenTurn, TurnEnded
from hookloop_hookspecs.codec import dump_entry

MOST = 60
"""Requests that a turn and its repetitions may make."""


class Model:
    """What a scenario's model says, as a real one would after a crash: it goes by the round that it is asked for. Errors come
    once in each process, before the reply they stand before; those behind the last reply come for ever.
    """

    def __init__(self, script: Sequence[Any]) -> None:
        self.script = script
        self.replies = [step for step in script if not isinstance(step, BaseException)]
        self.errors: dict[int, list[BaseException]] = {}
        self.begin()

    def begin(self) -> None:
        """Another process asks."""
        self.errors.clear()
        at = 0
        for step in self.script:
            if isinstance(step, BaseException):
                self.errors.setdefault(at, []).append(step)
            else:
                at += 1

    def answer(self, request: ModelRequest) -> Any:
        """The reply to a request, which must be valid, and hold the question."""
        check(request.messages)
        assert any(message.origin.kind == "user" for message in request.messages)
        at = request.round - 1
        errors = self.errors.get(at)
        if errors:
            raise errors[0] if at >= len(self.replies) else errors.pop(0)
        step = self.replies[at] if at < len(self.replies) else say("done")
        return step(request) if callable(step) else step


class World:
    """What outlives a crash of a scenario: the store, and what tools noted. Each process has plugins of its own.

    Arguments: `notes`, emptied; one list serves many worlds, one after the other, since its tools are made once.
    """

    def __init__(self, scenario: Scenario, notes: Notes) -> None:
        self.scenario = scenario
        self.memory = InProcessMemory()
        self.model = Model(scenario.script())
        self.notes = notes
        self.notes.clear()
        self.last: Outcome | None = None

    def agent(self) -> Agent:
        """A new process that knows the scenario."""
        self.model.begin()
        done = list(self.notes)
        parameters = self.scenario.agent(self.notes)
        reaches = [note for note in self.notes[len(done) :] if hasattr(note, "agent")]
        self.notes[:] = done
        agent = self._agent(**parameters)
        for part in [*parameters.get("plugins", ()), *reaches]:
            if hasattr(part, "agent"):
                part.agent = agent
        return agent

    def _agent(self, **parameters: Any) -> Agent:
        return Agent(ScriptedProvider([self._answer] * MOST), memory=self.memory, **parameters)

    def _answer(self, request: ModelRequest) -> Any:
        return self.model.answer(request)

    def stream(self, agent: Agent, leg: int) -> SyncRun:
        """The turn's first run, or one of the resumes behind it."""
        if leg == 0:
            return agent.stream(self.scenario.prompt, conversation="c", turn_id="t1", **self.scenario.run)
        assert self.last is not None
        return self._resumed(agent, self.scenario.resume[leg - 1](self.last))

    def _resumed(self, agent: Agent, decisions: Any) -> SyncRun:
        return agent.resume_stream("c", decisions, output=self.scenario.run.get("output"))

    def play(self, leg: int) -> None:
        """Play one leg to its end, in a process of its own."""
        with self.agent() as agent:
            self.last = _outcome(self.stream(agent, leg))

    def crash(self, leg: int, at: int, when: When) -> bool:
        """Play up to there, in processes of their own; the last one dies. False when the leg ended before."""
        for before in range(leg):
            self.play(before)
        agent = mortal(self.agent())
        return crash(agent, lambda: self.stream(agent, leg), at, when)

    def finish(self, *, again: bool) -> Outcome:
        """A new process takes the turn up, or begins it where nothing of it is open, and is given the decisions it waits for.
        Or (`again`) it is given the same message under the same turn id.
        """
        with self.agent() as agent:
            try:
                outcome = _outcome(self.stream(agent, 0) if again else self._resumed(agent, {}))
            except NoOpenTurn:
                outcome = _outcome(self.stream(agent, 0))
            for decide in self.scenario.resume:
                if outcome.status == "suspended":
                    waiting = {call.id for call in outcome.pending}
                    decisions = {id: one for id, one in decide(outcome).items() if id in waiting}
                    outcome = _outcome(self._resumed(agent, decisions))
        return outcome

    def go_on(self) -> None:
        """The next turn works, whatever became of this one."""
        with Agent(ScriptedProvider([_next]), tools=[], memory=self.memory) as agent:
            outcome = agent.run(AGAIN, conversation="c")
        assert (outcome.status, outcome.text) == ("done", "next answer")
        check(outcome.messages)

    def stored(self) -> list[Entry]:
        """The store's whole log."""
        return list(self.memory.load_memory("c", LoadQuery()).entries)

    def history(self) -> list[Any]:
        """What is stored of the turn, as comparable data: messages, and how it ended."""
        entries = [entry for entry in self.stored() if entry.turn == "t1"]
        said = [
            (m.role, m.text, len(m.calls), m.origin.kind, m.origin.plugin, m.origin.hook, m.origin.round)
            for m in flatten(entries)
        ]
        ends = [body for entry in entries if isinstance(body := entry.body, TurnEnded)]
        return [*said, *((body.status, body.stop_reason, body.text, body.output) for body in ends)]


def _next(request: ModelRequest) -> Any:
    check(request.messages)
    return say("next answer")


def _outcome(stream: SyncRun) -> Outcome:
    """The outcome, also of what raises. `NoOpenTurn` is the caller's matter."""
    try:
        return stream.result()
    except NoOpenTurn:
        raise
    except Exception as error:
        outcome: Outcome = error.outcome  # type: ignore[attr-defined]  # every error that leaves a turn has one
        return outcome


@dataclass
class Whole:
    """What a scenario comes to without a crash."""

    history: list[Any]
    notes: Counter[str]


def uncrashed(scenario: Scenario, notes: Notes) -> Whole:
    """Play a scenario to its end, each leg in a process of its own."""
    world = World(scenario, notes)
    for leg in range(len(scenario.resume) + 1):
        world.play(leg)
    return Whole(world.history(), Counter(map(str, notes)))


def survive(world: World, whole: Whole, *, same: bool, again: bool = False) -> None:
    """After a crash: take the turn up, and see that nothing is lost, doubled or unpaired, and that the next turn works.

    Arguments: `same`, whether the turn must come to the very history that it comes to without a crash, unless a call was
    interrupted whose effect nobody knows; `again`, whether it is taken up by its id.
    """
    before = world.stored()
    check(list(flatten(before)), tail=True)
    outcome = world.finish(again=again)
    stored = world.stored()
    assert [entry for entry in stored if entry.number in {one.number for one in before}] == before
    assert [entry.number for entry in stored] == sorted({entry.number for entry in stored})
    for entry in stored:
        dump_entry(entry)
    check(list(flatten(stored)), tail=outcome.status == "suspended")
    ran = Counter(map(str, world.notes))
    twice = {note: n for note, n in ran.items() if n > max(1, whole.notes[note])}
    assert not twice, twice
    history = world.history()
    if same and not any("interrupted" in str(line) for line in history):
        assert history == whole.history, f"{history}, not {whole.history}"
        assert ran == whole.notes
    else:
        _assert_none_doubled(history, whole.history)
    world.go_on()


def _assert_none_doubled(history: list[Any], wanted: list[Any]) -> None:
    """No line stands more often than without a crash; lines that a crash alone makes stand once."""
    most = Counter(map(str, wanted))
    lines = Counter(str(line) for line in history if "engine" not in line)
    doubled = {line: n for line, n in lines.items() if n > max(1, most[line])}
    assert not doubled, doubled


def points(world: Callable[[], World], leg: int, step: int, first: int) -> Iterator[World]:
    """Crash a leg before and after every effect, or at every nth of these points from the first-th on; each time in a world
    of its own, which is yielded then. `step` must be odd, so that both kinds come.
    """
    whens: tuple[When, ...] = ("before", "after")
    every = ((at, when) for at in itertools.count(1) for when in whens)
    for at, when in itertools.islice(every, first, None, step):
        made = world()
        if made.crash(leg, at, when):
            yield made
        elif when == "before":  # behind an effect that fails there is no crash, and there is more to come
            return
