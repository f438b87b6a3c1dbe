"""The worker threads: a call that raises ends no thread, and whoever waits behind it is served."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

import pytest

from hookloop.drivers.workers import Task, Workers


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What threads did not handle."""
    seen: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", seen.append)
    return seen


@pytest.mark.parametrize("error", [ValueError("raised"), SystemExit(1), KeyboardInterrupt()], ids=repr)
def test_a_thread_outlives_a_call_that_raises(told: list[Any], error: BaseException) -> None:
    def raises() -> None:
        raise error

    workers = Workers(1)
    done: SimpleQueue[tuple[int, int]] = SimpleQueue()
    for at in range(5):
        workers.submit(raises, "raises")
        workers.submit(lambda at=at: done.put((at, threading.get_ident())), "notes")  # type: ignore[misc]  # at is bound
    served = [done.get(timeout=20) for _ in range(5)]
    assert [at for at, _ in served] == [0, 1, 2, 3, 4]
    assert len({thread for _, thread in served}) == 1
    assert workers.close(20) == []
    assert [seen.exc_value for seen in told] == [error] * 5


def test_a_call_that_raises_after_it_was_given_up_is_not_counted_any_more(told: list[Any]) -> None:
    begun, end = threading.Event(), threading.Event()

    def raises() -> None:
        begun.set()
        end.wait(20)
        raise ValueError("late")

    workers = Workers(1)
    task = workers.submit(raises, "raises")
    assert begun.wait(20)
    assert workers.give_up(task)
    assert workers.running_on == ["raises"]
    done: SimpleQueue[str] = SimpleQueue()
    workers.submit(lambda: done.put("served"), "notes")
    assert done.get(timeout=20) == "served"
    end.set()
    assert workers.close(20) == []
    assert len(told) == 1


def test_where_there_can_be_no_thread_nothing_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    workers = Workers(1)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none)
        with pytest.raises(RuntimeError, match="can't start"):
            workers.submit(lambda: None, "never")
    done: SimpleQueue[str] = SimpleQueue()
    workers.submit(lambda: done.put("served"), "notes")
    assert done.get(timeout=20) == "served"
    assert workers.close(20) == []


def test_a_call_that_is_over_cannot_be_given_up() -> None:
    workers = Workers(1)
    done: SimpleQueue[str] = SimpleQueue()
    task = workers.submit(lambda: done.put("first"), "first")
    assert done.get(timeout=20) == "first"
    workers.submit(lambda: done.put("second"), "second")
    assert done.get(timeout=20) == "second"  # so the thread is done with the first one
    assert not workers.give_up(task)
    assert workers.running_on == []
    assert workers.close(20) == []


def test_while_a_call_rests_another_one_takes_its_place_and_the_limit_holds_when_it_is_back() -> None:
    workers = Workers(1)
    tasks: list[Task] = []
    ready, rest, back = threading.Event(), threading.Event(), threading.Event()
    room: SimpleQueue[bool] = SimpleQueue()

    def carries() -> None:
        ready.wait(20)
        workers.rest(tasks[0])
        rest.set()
        back.wait(20)
        room.put(workers.resume(tasks[0]))

    begun, end = threading.Event(), threading.Event()

    def other() -> None:
        begun.set()
        end.wait(20)

    workers.submit(carries, "carries", tasks.append)
    workers.submit(other, "waits while the first one does not rest")
    assert not begun.wait(0.05)
    ready.set()
    assert rest.wait(20)
    assert begun.wait(20)
    back.set()
    assert not room.get(timeout=20)
    end.set()
    assert workers.close(20) == []
