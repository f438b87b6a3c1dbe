"""The engine by itself: a generator driven with plain lists, no event loop, no threads, no store, no plugin manager."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hookloop.engine.effects import (
    Ask,
    CallHook,
    CloseTools,
    Done,
    Emit,
    Facts,
    Inbox,
    Load,
    Next,
    NextResult,
    Now,
    Post,
    Returned,
    Start,
    StopJobs,
    Store,
    Time,
)
from hookloop.engine.history import check
from hookloop.engine.run import MemoryFacts, Request, Setup
from hookloop.engine.turn import turn
from hookloop_hookspecs import (
    Batch,
    Loaded,
    MemoryCapabilities,
    Message,
    Outcome,
    ProviderError,
    Reply,
    Text,
    TextDelta,
    ToolCall,
    tool,
)
from hookloop_hookspecs.errors import Cancelled

FACTS = Facts("test:model", "test", "model", "model")
INSIDE = MemoryFacts(
    "store", MemoryCapabilities(tool_messages=True, versioned=True, durable=True, media=True), "inside", True
)


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class World:
    """Answers effects from lists and notes them."""

    def __init__(self, replies: list[Any], hooks: dict[str, list[Any]] | None = None) -> None:
        self.replies = iter(replies)
        self.hooks = hooks or {}
        self.pieces: Iterator[Any] = iter(())
        self.jobs: list[Any] = []
        self.batches: list[Batch] = []
        self.requests: list[Any] = []
        self.kinds: list[str] = []
        self.post = Post()
        self.clock = 0.0

    def answer(self, effect: Any) -> Any:
        """The answer to one effect; an exception in a list is raised."""
        self.kinds.append(type(effect).__name__)
        match effect:
            case Load():
                return Loaded()
            case Store(_, batch):
                self.batches.append(batch)
                return None
            case Now():
                self.clock += 1.0
                return Time(1000.0 + self.clock, self.clock)
            case Inbox():
                post, self.post = self.post, Post()
                return post
            case CallHook(hook):
                return [Returned("plugin", "1", value) for value in self.hooks.get(hook, [])]
            case Ask(request):
                self.requests.append(request)
                self.pieces = iter(next(self.replies))
                return None
            case Next():
                piece = next(self.pieces)
                if isinstance(piece, BaseException):
                    raise piece
                return piece
            case Start(jobs):
                self.jobs = list(jobs)
                return None
            case NextResult():
                job = self.jobs.pop()
                return Done(job.place, (Text(str(job.tool.call(job.kwargs, None))),))
            case StopJobs():
                return []
            case CloseTools():
                return ()
            case Emit():
                return None
        raise AssertionError(effect)


def drive(world: World, **setup: Any) -> Outcome:
    """Drive a turn to its end."""
    flow = turn(
        Setup(FACTS, "me", tools=(add,), memories=(INSIDE,), **setup), Request("c", "t", "n", Message.user("go"))
    )
    answer: Any = None
    error: BaseException | None = None
    while True:
        try:
            effect = flow.send(answer) if error is None else flow.throw(error)
        except StopIteration as stop:
            outcome: Outcome = stop.value
            return outcome
        answer = error = None
        try:
            answer = world.answer(effect)
        except (Exception, Cancelled) as raised:
            error = raised


def calls(*pairs: tuple[int, int]) -> list[Any]:
    """One reply's pieces: calls of `add`, all with the same id, as rude servers send them."""
    return [Reply(tuple(ToolCall("x", "add", f'{{"a":{a},"b":{b}}}') for a, b in pairs), "calls")]


def said(text: str) -> list[Any]:
    """One reply's pieces: text in two deltas."""
    return [TextDelta(text[:1]), TextDelta(text[1:]), Reply((Text(text),))]


def test_the_generator_runs_a_turn_on_plain_lists() -> None:
    world = World([calls((1, 2), (3, 4)), said("seven")], {"next_instructions": ["think"]})
    outcome = drive(world, hooks=frozenset({"next_instructions"}))
    assert (outcome.status, outcome.text) == ("done", "seven")
    assert [m.text for m in world.requests[1].messages] == ["go", "", "3", "7", "think"]
    check(outcome.messages)


def test_results_take_their_calls_places_whatever_order_they_end_in() -> None:
    world = World([calls((1, 2), (3, 4), (5, 6)), said("ok")])
    outcome = drive(world)
    assert [m.text for m in outcome.new if m.role == "tool"] == ["3", "7", "11"]
    stored = [entry.number for batch in world.batches for entry in batch.entries]
    assert stored == [1, 2, 3, 7, 6, 5, 4, 8, 9]
    assert len({entry.id for batch in world.batches for entry in batch.entries}) == 9


def test_batches_are_written_at_the_fixed_points_only() -> None:
    world = World([calls((1, 2)), said("ok")])
    drive(world)
    kinds = [[type(entry.body).__name__ for entry in batch.entries] for batch in world.batches]
    assert kinds == [["TurnStarted", "Said"], ["Said", "Started"], ["Said"], ["Said", "TurnEnded"]]
    assert [batch.version for batch in world.batches] == [0, 2, 4, 5]
    assert [batch.final for batch in world.batches] == [False, False, False, True]


def test_a_hook_that_nobody_implements_costs_no_effect() -> None:
    world = World([said("ok")])
    drive(world)
    assert "CallHook" not in world.kinds


def test_a_batch_that_failed_goes_again_with_the_next() -> None:
    class Flaky(World):
        failed = False

        def answer(self, effect: Any) -> Any:
            if isinstance(effect, Store) and len(self.batches) == 1 and not self.failed:
                self.failed = True
                raise OSError("disk full")
            return super().answer(effect)

    world = Flaky([calls((1, 2)), said("ok")])
    with pytest.raises(OSError, match="disk full"):
        drive(world)
    kinds = [type(entry.body).__name__ for batch in world.batches for entry in batch.entries]
    assert kinds == ["TurnStarted", "Said", "Said", "Started", "Said", "TurnEnded"]


def test_a_failing_effect_is_thrown_in_where_it_was_asked() -> None:
    broken = ProviderError("no", provider="test", kind="auth")
    world = World([[TextDelta("par"), broken]])
    with pytest.raises(ProviderError) as caught:
        drive(world)
    assert caught.value.outcome is not None
    assert caught.value.outcome.partial == "par"
    assert [type(entry.body).__name__ for batch in world.batches for entry in batch.entries][-1] == "TurnEnded"


@pytest.mark.parametrize("at", range(1, 12))
def test_cancelled_may_be_thrown_in_place_of_any_answer_that_waits(at: int) -> None:
    class Leaver(World):
        waits = 0

        def answer(self, effect: Any) -> Any:
            if isinstance(effect, Ask | Next | Start | NextResult):
                self.waits += 1
                if self.waits == at:
                    raise Cancelled
            return super().answer(effect)

    world = Leaver([calls((1, 2), (3, 4)), said("ok")])
    outcome = drive(world)
    assert outcome.status == ("cancelled" if world.waits >= at else "done")
    check(outcome.messages)
    assert isinstance(world.batches[-1].final, bool)
    assert world.batches[-1].final


def test_what_is_sent_in_stands_behind_the_results_at_hand() -> None:
    class Sender(World):
        def answer(self, effect: Any) -> Any:
            if isinstance(effect, NextResult):
                self.post = Post((Message.user("by the way"),))
            return super().answer(effect)

    world = Sender([calls((1, 2), (3, 4)), said("ok")])
    drive(world)
    assert [m.text for m in world.requests[1].messages] == ["go", "", "3", "7", "by the way"]
    kinds = [type(entry.body).__name__ for entry in world.batches[-1].entries]
    assert kinds == ["Said", "Said", "TurnEnded"]
