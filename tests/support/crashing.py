"""Worlds in which turns crash: a store and the effects of tools outlive the process, everything else is forgotten."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from hookloop import Agent, tool
from hookloop.engine.history import check
from hookloop.engine.log import flatten
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop.testing.crash import When, crash, mortal
from hookloop_hookspecs import Approve, Batch, Entry, LoadQuery, Message, ModelRequest, NoOpenTurn, Outcome, hookimpl
from hookloop_hookspecs.codec import dump_entry

REPLIES: dict[str, list[Any]] = {
    "text": [say("done")],
    "one tool": [call("spend", {"n": 1}, id="c1"), say("done")],
    "three rounds": [
        call("spend", {"n": 1}, id="c1"),
        [say("now two"), call("spend", {"n": 2}, id="c2"), call("look", {"n": 3}, id="c3")],
        call("look", {"n": 4}, id="c4"),
        say("done"),
    ],
    "bad calls": [
        [call("nope", id="c1"), call("spend", {"n": "x"}, id="c2"), call("spend", {"n": 5}, id="c3")],
        say("done"),
    ],
    "direct": [call("final", {"n": 6}, id="c1")],
    "approval": [[call("spend", {"n": 7}, id="c1"), call("approved", {"n": 8}, id="c2")], say("done")],
}
"""What the model says, by scenario."""


class Notes:
    """A plugin that contributes at every place it may."""

    name = "notes"

    @hookimpl
    def before_turn(self) -> str:
        return "at the start"

    @hookimpl
    def after_tool(self, call: Any) -> str:
        return f"about {call.id}"

    @hookimpl
    def next_instructions(self) -> str:
        return "go on"

    @hookimpl
    def before_round(self, turn: Any) -> None:
        turn.state["rounds"] = turn.round


class Hands:
    """The tools, with effects in the world at hand. They are made once for many worlds: that costs more than a turn."""

    def __init__(self) -> None:
        self.spent: Counter[int] = Counter()
        self.looked: Counter[int] = Counter()
        self.tools = self._tools()

    def serve(self, world: World) -> list[Any]:
        """The tools, from now on with their effects in this world."""
        self.spent, self.looked = world.spent, world.looked
        return self.tools

    def _tools(self) -> list[Any]:
        @tool
        def spend(n: int) -> str:
            """Have an effect."""
            self.spent[n] += 1
            return f"spent {n}"

        @tool(idempotent=True)
        def look(n: int) -> str:
            """Have none."""
            self.looked[n] += 1
            return f"saw {n}"

        @tool(return_direct=True)
        def final(n: int) -> str:
            """Answer."""
            self.spent[n] += 1
            return f"final {n}"

        @tool(needs_approval=True)
        def approved(n: int) -> str:
            """Ask first."""
            self.spent[n] += 1
            return f"approved {n}"

        return [spend, look, final, approved]


class World:
    """What outlives a crash: the store, and the effects of tools.

    Arguments: `replies`, what the model says; `memory`, gives a memory on the store as a new process opens it (None: one in
    this process); `conversation`; `config`, that of every agent; `hands`, its tools (None: some of its own).
    """

    def __init__(
        self,
        replies: list[Any],
        memory: Callable[[], Any] | None = None,
        conversation: str = "c",
        config: Mapping[str, Any] | None = None,
        hands: Hands | None = None,
    ) -> None:
        kept = InProcessMemory()
        self.memory = memory or (lambda: kept)
        self.replies = replies
        self.conversation = conversation
        self.config = config or {}
        self.hands = hands or Hands()
        self.spent: Counter[int] = Counter()
        self.looked: Counter[int] = Counter()
        self.requests: list[ModelRequest] = []

    def agent(self) -> Agent:
        """A new process."""
        return Agent(
            ScriptedProvider([self.answer] * 40),
            tools=self.hands.serve(self),
            plugins=[Notes()],
            memory=[self.memory()],
            config=self.config,
        )

    def answer(self, request: ModelRequest) -> Any:
        """The model: what it says depends on what it is sent, as a real one's does. Each request must be valid.

        Where a window may cut what it said before, it goes by the number of the round.
        """
        messages = list(request.messages)
        check(messages)
        self.requests.append(request)
        asked = max((at for at, m in enumerate(messages) if m.origin.kind == "user"), default=0)
        said = sum(message.role == "assistant" for message in messages[asked:])
        if "window" in self.config:
            said = request.round - 1
        return self.replies[said] if said < len(self.replies) else say("done")

    def stored(self) -> list[Entry]:
        """The store's whole log."""
        with self._opened() as memory:
            return list(memory.load_memory(self.conversation, LoadQuery()).entries)

    def put(self, entries: Sequence[Entry]) -> None:
        """Let the store hold these."""
        with self._opened() as memory:
            memory.persist_memory(Batch(self.conversation, tuple(entries), 0))

    @contextmanager
    def _opened(self) -> Iterator[Any]:
        memory = self.memory()
        try:
            yield memory
        finally:
            if hasattr(memory, "close"):
                memory.close()


def begin(world: World, at: int, when: When) -> bool:
    """A process begins the turn "go" and crashes there; False when the turn ended before."""
    agent = mortal(world.agent())
    return crash(agent, lambda: agent.stream("go", conversation=world.conversation, turn_id="t1"), at, when)


def suspended(world: World) -> None:
    """A process plays the turn up to where it waits for an approval."""
    with world.agent() as agent:
        assert agent.run("go", conversation=world.conversation, turn_id="t1").status == "suspended"


def approve(world: World, at: int, when: When) -> bool:
    """A process resumes the waiting turn and crashes there."""
    agent = mortal(world.agent())
    return crash(agent, lambda: agent.resume_stream(world.conversation, {"c2": Approve()}), at, when)


def finish(world: World) -> str:
    """A new process takes the turn up, or begins it where nothing was stored, and approves what waits."""
    with world.agent() as agent:
        try:
            outcome = agent.resume(world.conversation)
        except NoOpenTurn:
            outcome = agent.run("go", conversation=world.conversation, turn_id="t1")
        return _approved(world, agent, outcome)


def repeat(world: World) -> str:
    """A new process is given the same message under the same turn id, and approves what waits."""
    with world.agent() as agent:
        outcome = agent.run("go", conversation=world.conversation, turn_id="t1")
        return _approved(world, agent, outcome)


def _approved(world: World, agent: Agent, outcome: Outcome) -> str:
    if outcome.status == "suspended":
        outcome = agent.resume(world.conversation, {pending.id: Approve() for pending in outcome.pending})
    assert outcome.status == "done", outcome
    return outcome.text


def texts(messages: list[Message]) -> Counter[str]:
    """How often each message stands in a history; results by their call."""
    return Counter(f"{m.role}:{m.text}:{[c.id for c in m.calls]}{[r.call_id for r in m.results]}" for m in messages)


def assert_paired(world: World) -> list[Entry]:
    """The store holds a valid history, no number twice; what cannot be repeated ran at most once, the rest where it says so.

    Gives back all that is stored.
    """
    stored = world.stored()
    assert [entry.number for entry in stored] == sorted({entry.number for entry in stored})
    messages = list(flatten(stored))
    check(messages)
    assert all(n == 1 for n in world.spent.values()), world.spent
    for entry in stored:
        dump_entry(entry)
    _assert_true(world, messages)
    return stored


def _assert_true(world: World, messages: Sequence[Message]) -> None:
    """No result says that something happened which did not."""
    for message in messages:
        word, _, number = message.text.partition(" ")
        if message.role == "tool" and word == "saw":
            assert world.looked[int(number)] >= 1
        elif message.role == "tool" and word in ("spent", "final", "approved"):
            assert world.spent[int(number)] == 1


def assert_whole(world: World) -> None:
    """The user's message stands once, with everything that came of it, and nothing stands twice."""
    messages = list(flatten(entry for entry in assert_paired(world) if entry.turn == "t1"))
    doubled = {text: n for text, n in texts(messages).items() if n > 1 and not text.startswith("user:go on")}
    assert not doubled
    assert sum(m.text == "go" for m in messages) == 1
    assert all(result.text for message in messages for result in message.results)


def assert_superseded(world: World) -> None:
    """A new message closes what was left open, and is answered."""
    world.replies = [say("done")] * 9
    with world.agent() as agent:
        outcome = agent.run("something else", conversation=world.conversation)
    assert outcome.status == "done"
    messages = list(flatten(assert_paired(world)))
    assert sum(m.text == "something else" for m in messages) == 1
    assert sum(m.text == "go" for m in messages) <= 1


def sampled(play: Callable[[int, When], bool], step: int, first: int = 0) -> Iterator[tuple[int, When]]:
    """As `crash_points`, but every nth point alone, from the first-th on."""
    whens: tuple[When, ...] = ("before", "after")
    points = ((at, when) for at in itertools.count(1) for when in whens)
    for point in itertools.islice(points, first, None, step):
        if not play(*point):
            return
        yield point
