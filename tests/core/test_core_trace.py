"""Traces: one line for each event, linear in the turn, whole again when they are read."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from going import each_way, go
from pydantic import TypeAdapter

from hookloop import Agent, Limits, tool
from hookloop.testing import ScriptedProvider, Spy, call, say
from hookloop.trace import Trace, Traced, TraceOptions, read_trace, whole_requests
from hookloop_hookspecs import Message, ProviderError, Retry

FREE = Limits(rounds=None, tool_calls=None, per_tool=None)


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


def tracer(tmp_path: Path, **options: Any) -> Trace:
    return Trace(TraceOptions(file=str(tmp_path / "t.jsonl"), **options))


def read(tmp_path: Path) -> list[Traced]:
    with (tmp_path / "t.jsonl").open(encoding="utf-8") as stream:
        return list(read_trace(stream))


def edits(count: int) -> list[Any]:
    return [call("edit", {"path": f"{at}"}, id=f"c{at}") for at in range(count)]


@each_way
def test_every_event_of_a_turn_is_a_line(way: str, tmp_path: Path) -> None:
    eye = Spy("on_event", name="eye")
    with Agent(
        ScriptedProvider(*edits(2), say("done")), tools=[edit], plugins=[eye, tracer(tmp_path, pieces=True)]
    ) as agent:
        go(agent, way, "Edit.", conversation="c", turn_id="t")
    lines = read(tmp_path)
    assert [line.kind for line in lines] == [event.kind for event in eye.events()]
    assert {(line.conversation, line.turn) for line in lines} == {("c", "t")}
    assert [line.at for line in lines] == sorted(line.at for line in lines)


@each_way
def test_the_requests_of_a_trace_are_those_that_were_sent(way: str, tmp_path: Path) -> None:
    broken = ProviderError("no luck", provider="scripted", retryable=True)
    provider = ScriptedProvider(edits(1)[0], broken, *edits(3)[1:], say("done"), say("again"), say("third"))
    spy = (
        Spy("next_instructions", "on_model_error")
        .always("next_instructions", "go on")
        .always("on_model_error", Retry())
    )
    config = {"window": {"messages": 12}}
    with Agent(provider, tools=[edit], plugins=[spy, tracer(tmp_path)], config=config) as agent:
        for at in range(3):
            go(agent, way, f"Edit {at}.", conversation="c")
    restored = [messages for _, messages in whole_requests(read(tmp_path))]
    sent = [[_plain(message) for message in request.messages] for request in provider.requests]
    assert restored == sent


_MESSAGE = TypeAdapter(Message)


def _plain(message: Message) -> Any:
    return _MESSAGE.dump_python(message, mode="json")


def test_a_trace_grows_with_the_rounds_and_not_with_their_square(tmp_path: Path) -> None:
    sizes = []
    for rounds in (50, 200):
        folder = tmp_path / str(rounds)
        folder.mkdir()
        with Agent(
            ScriptedProvider(*edits(rounds), say("done")), tools=[edit], plugins=[tracer(folder)], limits=FREE
        ) as agent:
            agent.run("Edit them all.")
        sizes.append((folder / "t.jsonl").stat().st_size)
    assert sizes[1] < 4.2 * sizes[0]


def test_a_long_turn_is_restored_and_read_quickly(tmp_path: Path) -> None:
    with Agent(
        ScriptedProvider(*edits(200), say("done")), tools=[edit], plugins=[tracer(tmp_path)], limits=FREE
    ) as agent:
        agent.run("Edit them all.")
    begun = time.perf_counter()
    requests = [messages for _, messages in whole_requests(read(tmp_path))]
    print(f"{time.perf_counter() - begun:.3f} s for {len(requests)} requests")
    assert [len(messages) for messages in requests] == [2 * at + 1 for at in range(201)]


def test_turns_that_run_at_once_share_a_file_line_by_line(tmp_path: Path) -> None:
    provider = ScriptedProvider([lambda request: say(request.messages[-1].text * 300)] * 40)
    with Agent(provider, plugins=[tracer(tmp_path)]) as agent:
        threads = [threading.Thread(target=agent.run, args=(f"I am {at}.",)) for at in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    lines = read(tmp_path)
    assert len({line.turn for line in lines}) == 40
    assert sum(line.kind == "turn_finished" for line in lines) == 40


def test_two_agents_append_to_one_file(tmp_path: Path) -> None:
    for text in ("one", "two"):
        with Agent(ScriptedProvider(say(text)), plugins=[tracer(tmp_path)]) as agent:
            agent.run("Hello.")
    assert [line.data["text"] for line in read(tmp_path) if line.kind == "turn_finished"] == ["one", "two"]


@each_way
@pytest.mark.parametrize("place", ["/nowhere/t.jsonl", "."])
def test_a_trace_that_cannot_be_written_is_a_warning(way: str, place: str, tmp_path: Path) -> None:
    file = tmp_path / place if place == "." else Path(place)
    with Agent(ScriptedProvider(say("ok")), plugins=[Trace(TraceOptions(file=str(file)))]) as agent:
        outcome = go(agent, way, "Hello.")
    assert outcome.status == "done"
    assert [warning.split(":")[0] for warning in outcome.warnings] == ["Trace.on_event"]


def test_a_line_is_plain_json_whatever_is_in_it(tmp_path: Path) -> None:
    odd = 'a\u2028b\x00\x1b[0m\ud800 🌍 "quoted"'
    with Agent(ScriptedProvider(say(odd)), plugins=[tracer(tmp_path)]) as agent:
        agent.run(odd)
    for line in (tmp_path / "t.jsonl").read_bytes().decode("utf-8").split("\n")[:-1]:
        assert isinstance(json.loads(line), dict)
