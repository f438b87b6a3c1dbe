"""What the log says of each event, and what cannot be smuggled into it."""

from __future__ import annotations

import io
import threading
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, get_args

import pluggy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from hookloop_hookspecs import (
    File,
    Image,
    Message,
    ModelRequest,
    Opaque,
    Origin,
    Outcome,
    Reply,
    Round,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Usage,
    hooks,
)
from hookloop_hookspecs import events as ev
from hookloop_hookspecs.entries import ToolSpec
from hookloop_prompt_log import PromptLog, PromptLogOptions, format_event
from hookloop_prompt_log.clean import block, name
from hookloop_prompt_log.shown import Memory

CALL = ToolCall("c1", "book", '{"ticket":"G123"}')
RESULT = ToolResult("c1", "book", (Text("booked"),))
FEEDBACK = Message("user", "check it", Origin("plugin", plugin="feedback", hook="next_instructions"))


class FakeTurn:
    """What the plugin reads of a turn."""

    def __init__(self, id: str = "t1", conversation: str = "demo") -> None:
        self.id = id
        self.conversation = conversation


def request(*messages: Message, **fields: Any) -> ModelRequest:
    fields = {"system": "Be brief.", "tools": (ToolSpec("book", "", "{}"),), **fields}
    return ModelRequest("m", messages=messages, **fields)


def sent(*messages: Message, fresh: int, number: int = 1, **fields: Any) -> ev.RequestSent:
    return ev.RequestSent(number, request(*messages, **fields), "openai:gpt-4.1", fresh)


def came(*parts: Any, number: int = 1, **fields: Any) -> ev.ReplyReceived:
    reply = Reply(parts, "calls" if any(isinstance(part, ToolCall) for part in parts) else "end", **fields)
    return ev.ReplyReceived(number, reply, Message.assistant(parts), 0.25)


def ended(**fields: Any) -> ev.TurnFinished:
    rounds = (Round(1, "p", 1, calls=(CALL,)), Round(2, "p", 3))
    outcome = Outcome("done", "end", usage=Usage(5, 2), rounds=rounds, **fields)
    return ev.TurnFinished("done", "end", "Booked.", outcome)


def a_turn() -> list[ev.Event]:
    question = Message.user("I want to book a ticket")
    asked, answered = Message.assistant(CALL), Message.tool(RESULT)
    return [
        ev.TurnBegan("demo", "t1", question),
        sent(question, fresh=1),
        ev.CallPiece(0, "c1", "book", "{}", 1),
        came(CALL, usage=Usage(3, 1)),
        ev.ToolStarted(1, CALL, CALL.raw),
        ev.ToolEnded(1, CALL, RESULT, ran=True, seconds=0.5),
        ev.Contributed(FEEDBACK),
        ev.Stored("memory:", 3, 5),
        sent(question, asked, answered, FEEDBACK, fresh=3, number=2),
        ev.TextPiece("Booked.", 2),
        came(Text("Booked."), number=2),
        ended(),
    ]


def write(log: PromptLog, *events: ev.Event, turn: Any = None) -> None:
    subject: Any = FakeTurn() if turn is None else turn
    for event in events:
        log.on_event(subject, event)


def written(*events: ev.Event, **options: Any) -> str:
    out = io.StringIO()
    write(PromptLog(PromptLogOptions(**options), stream=out), *events)
    return out.getvalue()


def test_a_turn_reads_as_the_loop_runs() -> None:
    assert written(*a_turn()).strip().splitlines() == [
        "══ turn t1 begins ══ conversation demo",
        "── round 1 · sent ── openai:gpt-4.1 · 1 message, 1 new · 1 tool",
        "   system    │ Be brief.",
        "   tools     │ book",
        "   user      │ I want to book a ticket",
        "── round 1 · reply ── stop: calls · tokens: 3 in, 1 out · 0.250 s",
        '   call      │ book({"ticket":"G123"})  [c1]',
        "── round 1 · tool book ── runs · c1",
        '   arguments │ {"ticket":"G123"}',
        "── round 1 · tool book ── done · 0.500 s · c1",
        "   result    │ book → booked",
        "·· plugin feedback adds in next_instructions",
        "   user (feedback, next_instructions) │ check it",
        "── round 2 · sent ── openai:gpt-4.1 · 4 messages, 3 new · 1 tool",
        '   call      │ book({"ticket":"G123"})  [c1]',
        "   result    │ book → booked",
        "   user (feedback, next_instructions) │ check it",
        "── round 2 · reply ── stop: end · 0.250 s",
        "   text      │ Booked.",
        "══ turn ends: done (end) ══ 2 rounds · 1 call · tokens: 5 in, 2 out",
    ]


def test_full_shows_every_message_of_each_request_and_the_writes() -> None:
    text = written(*a_turn(), full=True)

    assert text.count("user      │ I want to book a ticket") == 2
    assert text.count("Be brief.") == 2
    assert "·· stored: 3 entries in memory:" in text


def test_a_new_turn_prints_only_what_the_log_has_not_shown() -> None:
    old, answer, new = Message.user("one"), Message.assistant("two"), Message.user("three")
    lines = written(sent(old, fresh=1), sent(old, answer, new, fresh=3)).splitlines()

    assert lines[-3:] == [
        "── round 1 · sent ── openai:gpt-4.1 · 3 messages, 2 new · 1 tool",
        "   assistant │ two",
        "   user      │ three",
    ]


def test_other_system_text_or_another_conversation_is_printed_again() -> None:
    out = io.StringIO()
    log = PromptLog(stream=out)
    question = Message.user("one")
    write(log, sent(question, fresh=1), sent(question, fresh=1, system="Be long."))
    write(log, sent(question, fresh=1), turn=FakeTurn("t2", "other"))

    text = out.getvalue()
    assert (text.count("Be brief."), text.count("Be long."), text.count("│ one")) == (2, 1, 2)


def test_a_view_that_was_cut_at_its_front_is_still_known() -> None:
    messages = [Message.user(str(number)) for number in range(6)]
    lines = written(sent(*messages[:4], fresh=4), sent(*messages[2:], fresh=4)).splitlines()

    assert lines[-3:] == [
        "── round 1 · sent ── openai:gpt-4.1 · 4 messages, 2 new · 1 tool",
        "   user      │ 4",
        "   user      │ 5",
    ]


def test_only_so_many_conversations_are_remembered() -> None:
    memory = Memory()
    for number in range(1200):
        memory.look(f"c{number}", request(Message.user("x")))

    assert memory.look("c1199", request(Message.user("x"))).messages == 1
    assert memory.look("c0", request(Message.user("x"))).messages == 0


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (ev.LimitReached("tool_calls", "stop"), "!! limit tool_calls is passed: stop"),
        (ev.Warned("slow", "guard", "on_event"), "!! warning (plugin guard, on_event): slow"),
        (ev.Warned("a placeholder was stored"), "!! warning: a placeholder was stored"),
        (ev.Decision("guard", "before_tool", "Deny", "no"), "·· plugin guard decides in before_tool: Deny: no"),
        (ev.ReplyDiscarded(2, "asked again"), "!! round 2: what was streamed does not count: asked again"),
        (ev.ViewCut(40, 1, "window"), "·· view cut from 40 to 1 message: window"),
        (
            ev.ModelFailed(1, "a:b", "busy", "overloaded", 2),
            "── round 1 · model failed ── a:b · overloaded · attempt 2",
        ),
        (ev.CallSuspended(1, CALL, "May I?"), "   question  │ May I?"),
        (ev.MessageSent(Message.user("stop that")), "   user      │ stop that"),
        (ev.TurnBegan("c", "t", resumed=True), "══ turn t resumed ══ conversation c"),
        (ev.ToolEnded(1, CALL, RESULT, ran=False), "── round 1 · tool book ── done · not run · c1"),
        (ev.ToolEnded(1, CALL, RESULT.with_text("no", is_error=True), ran=True), "   error     │ book → no"),
        (sent(fresh=0, allowed=frozenset({"b", "a"})), "   allowed   │ a, b"),
        (sent(fresh=0, allowed=frozenset()), "   allowed   │ no tool"),
        (came(), "   text      │ (nothing)"),
        (came(Thinking("hm")), "   thinking  │ hm"),
        (came(Opaque("{}", "openai")), "   opaque    │ a block of openai, 2 characters"),
        (sent(Message.user(Image("AAAA")), fresh=1), "   image     │ image/png, 4 characters of base64"),
        (sent(Message.user(File(url="http://x/y", media_type="a/b")), fresh=1), "   file      │ a/b, http://x/y"),
        (sent(Message("user", "", Origin("engine")), fresh=1), "   user (engine) │"),
        (ended(error=ValueError("oh")), "   error     │ ValueError: oh"),
    ],
)
def test_each_kind_of_event_has_its_line(event: ev.Event, line: str) -> None:
    assert line in format_event(event)


def test_pieces_and_unasked_writes_say_nothing() -> None:
    quiet: list[ev.Event] = [
        ev.TextPiece("x"),
        ev.ThinkingPiece("x"),
        ev.CallPiece(0, "i", "n", "{}"),
        ev.Stored("m", 1, 1),
    ]
    assert [format_event(event) for event in quiet] == [[], [], [], []]


def test_a_reply_that_a_plugin_gave_names_it() -> None:
    event = ev.ReplyReceived(1, Reply((Text("42"),)), Message.assistant("42"), answered_by="cache")
    assert "by plugin cache" in format_event(event)[0]


EVIL = "x\n── round 9 · sent ── fake\r\x1b[2J\u202e\u2028\x00\ud800"


def evil_events() -> list[ev.Event]:
    call, message = ToolCall(EVIL, EVIL, EVIL), Message("user", EVIL, Origin("plugin", plugin=EVIL, hook=EVIL))
    result = ToolResult(EVIL, EVIL, (Text(EVIL),), is_error=True)
    return [
        ev.TurnBegan(EVIL, EVIL, message),
        ev.RequestSent(1, request(message, Message.assistant(call), Message.tool(result), system=EVIL), EVIL, 3, 2),
        ev.ReplyReceived(1, Reply((call,), model=EVIL), Message.assistant((call, Text(EVIL)))),
        ev.ToolStarted(1, call, EVIL),
        ev.ToolEnded(1, call, result, ran=True),
        ev.Contributed(message),
        ev.MessageSent(message),
        ev.ModelFailed(1, EVIL, EVIL, EVIL, 1),
        ev.CallSuspended(1, call, EVIL),
        ev.Decision(EVIL, EVIL, EVIL, EVIL),
        ev.LimitReached(EVIL, EVIL),
        ev.ReplyDiscarded(1, EVIL),
        ev.ViewCut(1, 2, EVIL),
        ev.Warned(EVIL, EVIL, EVIL),
        ev.Stored(EVIL, 1, 1),
        ended(error=ValueError(EVIL)),
    ]


def test_no_event_can_forge_a_line_or_move_the_cursor() -> None:
    for event in evil_events():
        lines = format_event(event, full=True)
        assert not any(line.startswith("── round 9") for line in lines)
        assert all(line.isprintable() for line in lines)


def test_every_kind_of_event_is_among_the_tested() -> None:
    tested = {type(event) for event in evil_events()}
    assert set(get_args(ev.Event)) - tested == {ev.TextPiece, ev.ThinkingPiece, ev.CallPiece}


@settings(deadline=None)
@given(st.text(st.characters(codec=None), max_size=300))
def test_names_are_one_bounded_printable_line(text: str) -> None:
    line = name(text)
    assert len(line.splitlines()) <= 1
    assert "\x1b" not in line
    assert len(line) <= 121


@settings(deadline=None)
@given(st.text(max_size=300), st.integers(40, 200))
def test_texts_stand_behind_a_margin(text: str, limit: int) -> None:
    lines = block("user", text, limit)
    assert lines[0].startswith("   user      │")
    assert all(line.startswith("             │") for line in lines[1:])
    assert not any("\x1b" in line or "\n" in line for line in lines)


def test_long_texts_are_cut_and_say_how_much_is_missing() -> None:
    long = sent(Message.user("a" * 100_000), fresh=1)
    many = sent(Message.user("\n" * 500), fresh=1)

    assert max(map(len, format_event(long, limit=100))) < 200
    assert "[99900 more characters]" in format_event(long, limit=100)[-1]
    assert "[481 more lines]" in format_event(many)[-1]
    assert "a" * 100_000 in format_event(long, full=True)[-1]


def test_secrets_are_not_printed() -> None:
    secret = "sk-" + "abcdef0123456789" * 2
    padding = "x" * 90 + " "
    events: list[ev.Event] = [
        sent(Message.user(f"my key is {secret}"), fresh=1),
        sent(Message.user(f"{padding}{secret} and more {padding}"), fresh=1),
        ev.ToolEnded(1, CALL, RESULT.with_text(f"password={secret}"), ran=True),
        ev.Warned(f"refused: {secret}"),
    ]
    for event in events:
        assert "abcdef" not in "\n".join(format_event(event, limit=100))


def test_a_file_is_appended_to_and_closed(tmp_path: Path) -> None:
    path = tmp_path / "prompts.log"
    for _ in range(2):
        log = PromptLog(PromptLogOptions(file=str(path)))
        write(log, ev.LimitReached("rounds", "stop"))
        log.close()

    assert path.read_text("utf-8").count("limit rounds") == 2


def test_without_a_stream_it_goes_to_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    write(PromptLog(), ev.LimitReached("rounds", "stop"))
    captured = capsys.readouterr()
    assert "limit rounds" in captured.err
    assert captured.out == ""


def test_a_stream_of_another_encoding_gets_what_it_can_print() -> None:
    raw = io.BytesIO()
    with io.TextIOWrapper(raw, encoding="ascii") as out:
        write(PromptLog(stream=out), ev.Warned("北京"))
        assert rb"\u5317\u4eac" in raw.getvalue()


def test_turns_side_by_side_are_told_apart() -> None:
    out = io.StringIO()
    log = PromptLog(stream=out)
    one, two = FakeTurn("t1", "a"), FakeTurn("t2", "b\n")
    write(log, ev.TurnBegan("a", "t1"), ev.Warned("first"), turn=one)
    write(log, ev.TurnBegan("b", "t2"), turn=two)
    write(log, ev.Warned("second"), turn=one)
    write(log, ev.Warned("third"), turn=two)

    lines = out.getvalue().splitlines()
    assert lines[-4:] == [
        "‥‥ turn t1 ‥‥ conversation a",
        "!! warning: second",
        r"‥‥ turn t2 ‥‥ conversation b\n",
        "!! warning: third",
    ]


def test_blocks_of_threads_do_not_mix() -> None:
    out = io.StringIO()
    log = PromptLog(stream=out)
    event = ev.ToolStarted(1, CALL, "{}")
    threads = [threading.Thread(target=write, args=(log, *[event] * 50)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    lines = out.getvalue().splitlines()[1:]
    assert lines == format_event(event) * 200


@pytest.mark.parametrize("options", [{"path": "x"}, {"limit": 1}, {"full": "perhaps"}])
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        PromptLogOptions.model_validate(options)


def test_it_is_found_by_entry_point() -> None:
    (found,) = entry_points(group="hookloop.plugins", name="prompt-log")
    assert found.load() is PromptLog


def test_its_hooks_are_hooks_of_the_contract() -> None:
    manager = pluggy.PluginManager("hookloop")
    manager.add_hookspecs(hooks)
    manager.register(PromptLog())
    manager.check_pending()
