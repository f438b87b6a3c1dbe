"""Traces: recorded by the plugin, read again, and drawn by `hookloop trace show`."""

from __future__ import annotations

import json
import re
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hookloop import Agent, Limits, tool
from hookloop.testing import ScriptedProvider, call, say
from hookloop.trace import Trace, Traced, TraceOptions, read_trace
from hookloop_hookspecs import CorruptData, Message, Stop, hookimpl

if TYPE_CHECKING:
    from tests.conftest import Hookloop


@tool
def look(what: str) -> str:
    """Look at something."""
    if what == "nothing":
        raise ValueError("there is nothing")
    return f"{what} is fine, password=hunter2"


class Nag:
    name = "nag"

    @hookimpl
    def next_instructions(self) -> str:
        return "Be quick,\nplease."


def recorded(file: Path, *script: Any, pieces: bool = False, **more: Any) -> list[Traced]:
    """The trace of one turn with this script."""
    trace = Trace(TraceOptions(file=str(file), pieces=pieces))
    with Agent(ScriptedProvider(list(script)), tools=[look], plugins=[trace, Nag()], **more) as agent:
        agent.run("Look, api_key=sk-abcdef123456", conversation="c1", turn_id="t1")
    with file.open(encoding="utf-8") as stream:
        return list(read_trace(stream))


def test_a_trace_tells_the_turn(tmp_path: Path) -> None:
    lines = recorded(tmp_path / "t.jsonl", call("look", {"what": "it"}), say("done"))
    kinds = [line.kind for line in lines if line.kind != "stored"]
    assert kinds == [
        *("turn_began", "request_sent", "reply_received", "tool_started", "tool_ended", "contributed"),
        *("request_sent", "reply_received", "turn_finished"),
    ]
    assert {(line.conversation, line.turn) for line in lines} == {("c1", "t1")}
    requests = [line.data for line in lines if line.kind == "request_sent"]
    assert [(data["size"], len(data["messages"])) for data in requests] == [(1, 1), (4, 3)]
    assert requests[0]["tools"] == ["look"]


def test_secrets_are_not_written_and_nobody_else_may_read(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    recorded(file, call("look", {"what": "it"}), say("done"))
    text = file.read_text("utf-8")
    assert "hunter2" not in text
    assert "sk-abcdef" not in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("pieces", [False, True])
def test_streamed_pieces_are_written_when_asked_for(tmp_path: Path, pieces: bool) -> None:
    lines = recorded(tmp_path / "t.jsonl", say("a longer answer"), pieces=pieces)
    assert any(line.kind == "text_piece" for line in lines) is pieces


def test_without_a_file_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with Agent(ScriptedProvider(say("hi")), plugins=[Trace()]) as agent:
        agent.run("hello")
    assert list(tmp_path.iterdir()) == []


def test_a_trace_grows_with_the_conversation_and_not_with_its_square(tmp_path: Path) -> None:
    sizes = []
    for rounds in (20, 80):
        file = tmp_path / f"{rounds}.jsonl"
        recorded(file, *[call("look", {"what": "it"})] * rounds, say("done"), limits=Limits(per_tool=None))
        sizes.append(file.stat().st_size)
    assert sizes[1] < 5 * sizes[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nonsense\n", "trace:1: not a line of a trace: JSONDecodeError"),
        ('{"v": 9}\n', "this version reads traces of version 1"),
        ('{"v": 1}\n', "KeyError"),
        ('[]\n{"v": 1}\n', "trace:1: not a line"),
    ],
)
def test_what_is_no_trace_is_told_with_its_line(text: str, words: str) -> None:
    with pytest.raises(CorruptData) as caught:
        list(read_trace(text.splitlines(keepends=True)))
    assert words in str(caught.value)


def test_a_last_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    whole = recorded(file, say("done"))
    with file.open("a", encoding="utf-8") as stream:
        stream.write('{"v": 1, "at": 3')
    with file.open(encoding="utf-8") as stream:
        assert list(read_trace(stream)) == whole


def test_a_turn_is_drawn_as_a_tree(hookloop: Hookloop, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    recorded(file, [say("Let me look."), call("look", {"what": "it"})], call("look", {"what": "nothing"}), say("done"))
    drawn = [line for line in hookloop("trace", "show", str(file)).out.splitlines() if "stored" not in line]
    plain = [re.sub(r"0\.0\d s", "T", line).replace("│ └", "│ ├") for line in drawn]
    assert plain == [
        "turn t1 of c1",
        "├ round 1  scripted:scripted  1 message",
        "│ ├ reply T, 10 tokens in, 5 out, 1 call  Let me look.",
        "│ ├ look T ←  it is fine, password=[redacted]",
        "│ ├ + nag.next_instructions  Be quick,\\nplease.",
        "├ round 2  scripted:scripted  4 messages, 3 new",
        "│ ├ reply T, 10 tokens in, 5 out, 1 call",
        "│ ├ look T ✗  look failed: ValueError: there is nothing",
        "│ ├ + nag.next_instructions  Be quick,\\nplease.",
        "├ round 3  scripted:scripted  7 messages, 3 new",
        "│ ├ reply T, 10 tokens in, 5 out  done",
        "└ done (end)  3 rounds, 30 tokens in, 15 out",
    ]


@pytest.mark.parametrize("width", [80, 100, 140])
def test_a_long_turn_fits_the_terminal(
    hookloop: Hookloop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    file = tmp_path / "t.jsonl"
    limits = Limits(rounds=None, tool_calls=None, per_tool=None)
    recorded(file, *[call("look", {"what": "it" * 200})] * 200, say("长" * 200), limits=limits)
    begun = time.perf_counter()
    printed = hookloop("trace", "show", str(file)).out.splitlines()
    print(f"{time.perf_counter() - begun:.2f} s for {len(printed)} lines")
    assert sum(line.startswith("├ round ") for line in printed) == 201
    assert max(len(line) + line.count("长") for line in printed) <= width


def test_turns_are_chosen(hookloop: Hookloop, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    trace = Trace(TraceOptions(file=str(file)))
    with Agent(ScriptedProvider(say("one"), say("two")), plugins=[trace]) as agent:
        agent.run("a", turn_id="first")
        agent.run("b", turn_id="second")
    everything = hookloop("trace", "show", str(file)).out
    assert [line.split()[1] for line in everything.splitlines() if line.startswith("turn ")] == ["first", "second"]
    assert "first" not in hookloop("trace", "show", str(file), "--last").out
    assert "second" not in hookloop("trace", "show", str(file), "--turn", "first").out
    data = json.loads(hookloop("trace", "show", str(file), "--turn", "first", "--json").out)
    assert data[-1]["data"]["text"] == "one"
    assert hookloop("trace", "show", str(file), "--turn", "frist").err.endswith(
        "no turn 'frist'; there is for example 'first'\n"
    )


@pytest.mark.parametrize(("name", "words"), [("none.jsonl", "cannot be read"), ("empty.jsonl", "is empty")])
def test_a_file_without_turns_is_told(hookloop: Hookloop, tmp_path: Path, name: str, words: str) -> None:
    (tmp_path / "empty.jsonl").touch()
    done = hookloop("trace", "show", str(tmp_path / name))
    assert (done.code, words in done.err) == (2, True)


def test_an_answer_that_no_reply_gave_is_told(hookloop: Hookloop, tmp_path: Path) -> None:
    class Guard:
        name = "guard"

        @hookimpl
        def after_reply(self) -> Stop:
            return Stop("guarded", "Not that.")

    file = tmp_path / "t.jsonl"
    with Agent(ScriptedProvider(say("done")), plugins=[Trace(TraceOptions(file=str(file))), Guard()]) as agent:
        agent.run("Look", turn_id="t1")
    assert hookloop("trace", "show", str(file)).out.splitlines()[-1] == "└ answer  Not that."


def test_every_kind_of_event_can_be_recorded() -> None:
    from hookloop.trace import dump_event
    from hookloop_hookspecs import ToolCall, events

    asked = ToolCall("c1", "look")
    made: list[events.Event] = [
        events.CallSuspended(1, asked, "really?", 3.0),
        events.Decision("guard", "before_tool", "Deny", "no"),
        events.MessageSent(Message.user("wait")),
        events.LimitReached("rounds", "stop"),
        events.ViewCut(9, 3, "window"),
        events.Warned("odd", "nag", "close"),
        events.ModelFailed(1, "p:m", "broken", "stream", 1),
        events.ReplyDiscarded(1, "asked again"),
        events.ThinkingPiece("hm"),
        events.CallPiece(0, "c1", "look", "{"),
    ]
    lines = list(read_trace([dump_event(event, 1.0, "c", "t") + "\n" for event in made]))
    assert [line.kind for line in lines] == [event.kind for event in made]
    assert lines[0].data["call"]["name"] == "look"
