"""Checks of what a memory gives back: kinds, order, windows, odd texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias
from unittest import mock

from hookloop_hookspecs import Entry, HookloopError, Loaded, Message, Said, State, Summary, TurnEnded, TurnStarted
from hookloop_hookspecs.entries import Body

from .memory_subject import POISON, UNSTORABLE, Dialogue, Subject, every_kind, media, numbered

Rule: TypeAlias = Callable[[Subject], None]


def unknown_is_empty(subject: Subject) -> None:
    """A conversation that was never seen loads empty, and reading does not make it."""
    assert subject.load("never") == Loaded(), "an unknown conversation must load as Loaded()"
    assert not subject.delete("never"), "delete must say False for an unknown conversation"


def texts_come_back(subject: Subject) -> None:
    """What user and assistant said comes back in order, in closed turns that the engine can go on from."""
    for turn in range(3):
        subject.say(f"Frage {turn}: 你好?\n\n  zwei", f"answer {turn} 🌍")
    expected = [("user", "Frage {}: 你好?\n\n  zwei"), ("assistant", "answer {} 🌍")]
    wanted = [(role, text.format(turn)) for turn in range(3) for role, text in expected]
    assert subject.texts() == wanted, f"stored three turns, loaded {subject.texts()}"
    entries = subject.load().entries
    numbers = [entry.number for entry in entries]
    assert numbers == sorted(set(numbers)), f"entries must come ordered by number, not {numbers}"
    starts = sum(isinstance(entry.body, TurnStarted) for entry in entries)
    ends = sum(isinstance(entry.body, TurnEnded) for entry in entries)
    assert starts == ends == 3, f"three closed turns, but {starts} starts and {ends} ends came back"


def version_counts_entries(subject: Subject) -> None:
    """The version is the number of entries stored, whatever part was loaded."""
    assert subject.load().version == 0, "nothing stored is version 0"
    for _ in range(6):
        subject.say("question", "answer")
    everything = subject.load()
    part = subject.load(messages=2)
    assert everything.version == len(everything.entries), f"{len(everything.entries)} entries, {everything.version=}"
    assert part.version == everything.version, "the version must not depend on how much is loaded"


def every_kind_comes_back(subject: Subject) -> None:
    """Every kind of entry comes back equal, to the last field."""
    stored = numbered(every_kind(), "turn ü")
    subject.append(stored, 0)
    _same(subject.load().entries, stored)


def media_come_back(subject: Subject) -> None:
    """Images and files come back byte for byte."""
    stored = numbered(media(), "t")
    subject.append(stored, 0)
    _same(subject.load().entries, stored)


def order_is_the_number(subject: Subject) -> None:
    """Results are stored as they end; they come back by number, also when the clock stands still or goes back."""
    entries = next(Dialogue(1).entries())
    with mock.patch("time.time", side_effect=[1000.0 - step for step in range(1000)]):
        subject.append(entries[:3], 0)
        subject.append([entries[6], entries[5]], 3)
        subject.append([entries[4]], 5)
        subject.append([entries[3]], 6)
    for _ in range(3):
        _same(subject.load().entries, entries)
        _same(subject.load(messages=1).entries, entries)


def large_batch_keeps_order(subject: Subject) -> None:
    """A batch of two hundred entries, and one more behind it, come back as they were stored."""
    entries = numbered([Said(Message.user(f"{at}")) for at in range(201)], "t")
    subject.append(entries[:200], 0)
    subject.append(entries[200:], 200)
    _same(subject.load().entries, entries)


def window_is_whole_turns(subject: Subject) -> None:
    """A window holds at least the messages asked for, begins with a turn, and holds no turn too many."""
    talk = Dialogue(12)
    _store(subject, talk)
    every = subject.load().entries
    for messages in (0, 1, 3, 4, 5, 8, 9, 40, 48, 49, 1000):
        turns = min(talk.turns, max(1, -(-messages // talk.messages)))
        found = subject.load(messages=messages).entries
        assert isinstance(found[0].body, TurnStarted), f"window of {messages}: begins with {found[0].body.kind}"
        _same(found, every[-turns * talk.size :])


def window_needs_no_marks(subject: Subject) -> None:
    """Turns that a memory got without their marks, with gaps between their numbers, are cut as whole turns too."""
    turns = [numbered([Said(Message.user("q")), Said(Message.assistant("a"))], f"t{at}", 7 * at) for at in range(12)]
    for turn in turns:
        subject.append(turn, -1, final=True)
    for messages, kept in ((1, 1), (2, 1), (3, 2), (20, 10), (24, 12)):
        _same(subject.load(messages=messages).entries, [entry for turn in turns[-kept:] for entry in turn])


def window_is_flat(subject: Subject) -> None:
    """A window costs the same however long the conversation is."""
    _store(subject, Dialogue(10))
    early = len(subject.load(messages=8).entries)
    _store(subject, Dialogue(80), first=10)
    late = len(subject.load(messages=8).entries)
    assert early == late, f"a window of 8 messages was {early} entries of 10 turns, and {late} of 80 turns"


def open_turn_is_whole(subject: Subject) -> None:
    """All entries from the start of the last turn come, however few messages are asked for."""
    _store(subject, Dialogue(5))
    rounds = [Said(Message.user(f"more {at}")) for at in range(30)]
    opened = numbered([TurnStarted("o", "n"), *rounds], "open", 35)
    subject.append(opened, 35)
    _same(subject.load(messages=1).entries, opened)


def marks_come_with_a_window(subject: Subject) -> None:
    """Each plugin's newest state and the newest summary come with any window, in the order of their numbers."""
    marks: list[Body] = [State("a", "1"), State("b", "1"), State("a", "2"), Summary(Message.user("old"), 1)]
    newest: list[Body] = [State("a", "3"), Summary(Message.user("new"), 2)]
    stored = numbered([TurnStarted("o", "n"), *marks, *newest, TurnEnded("done", "end")], "marks")
    subject.append(stored, 0)
    talk = [Entry(entry.number + 8, entry.turn, entry.body) for turn in Dialogue(5).entries() for entry in turn]
    subject.append(talk, 8)
    found = subject.load(messages=4).entries
    _same(found, [stored[2], stored[5], stored[6], *talk[-7:]])


def asked_turn_comes_with_a_window(subject: Subject) -> None:
    """The entries of the turn `turn_id` come with any window; an unknown turn adds nothing."""
    _store(subject, Dialogue(9))
    every = list(subject.load().entries)
    _same(subject.load(messages=1, turn_id="turn 2").entries, every[14:21] + every[-7:])
    _same(subject.load(messages=1, turn_id="turn 8").entries, every[-7:])
    _same(subject.load(messages=1, turn_id="turn 77").entries, every[-7:])


def poison_is_kept_or_refused(subject: Subject) -> None:
    """Odd texts come back equal, or are refused with a clear error that leaves nothing behind."""
    for what, text in POISON.items():
        name = f"poison {what}"
        subject.say("before", "fine", name)
        good = subject.texts(name)
        refused = _refused(subject, text, name)
        assert what in UNSTORABLE or not refused, f"{what} must be stored, not refused: {refused}"
        wanted = good if refused else [*good, ("user", text), ("assistant", text)]
        assert subject.texts(name) == wanted, f"{what} was {'refused, but left something' if refused else 'changed'}"
        subject.say("after", "fine", name)
        assert subject.texts(name)[-1] == ("assistant", "fine"), f"after {what} the conversation cannot go on"


def _refused(subject: Subject, text: str, name: str) -> HookloopError | None:
    try:
        subject.say(text, text, name)
    except HookloopError as error:
        return error
    return None


def _store(subject: Subject, talk: Dialogue, first: int = 0) -> None:
    for turn in talk.entries(first):
        subject.append(turn, turn[0].number)


def _same(found: Sequence[Entry], wanted: Sequence[Entry]) -> None:
    numbers = [entry.number for entry in found]
    assert numbers == [entry.number for entry in wanted], f"expected numbers {_span(wanted)}, got {_span(found)}"
    for one, other in zip(found, wanted, strict=True):
        assert one == other, f"entry {other.number} was stored as {other!r} and came back as {one!r}"


def _span(entries: Sequence[Entry]) -> str:
    return str([entry.number for entry in entries])[:200]


ANY: tuple[Rule, ...] = (unknown_is_empty, texts_come_back, version_counts_entries, poison_is_kept_or_refused)
INSIDE: tuple[Rule, ...] = (
    every_kind_comes_back,
    order_is_the_number,
    large_batch_keeps_order,
    window_is_whole_turns,
    window_needs_no_marks,
    window_is_flat,
    open_turn_is_whole,
    marks_come_with_a_window,
    asked_turn_comes_with_a_window,
)
MEDIA: tuple[Rule, ...] = (media_come_back,)
