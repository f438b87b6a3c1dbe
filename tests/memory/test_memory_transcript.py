"""Transcripts: what people read, what a crash leaves, what cannot be forged."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop_hookspecs import (
    Batch,
    ConfigError,
    Conflict,
    ContractError,
    CorruptData,
    Entry,
    LoadQuery,
    Message,
    Said,
    TurnEnded,
    TurnStarted,
)
from hookloop_hookspecs.entries import Body
from hookloop_transcript import TranscriptMemory
from hookloop_transcript.names import safe_name

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def exchange(user: str, answer: str, turn: str = "t1", start: int = 0) -> tuple[Entry, ...]:
    """What the engine gives a memory outside: the user's message and the answer."""
    return (Entry(start, turn, Said(Message.user(user))), Entry(start + 1, turn, Said(Message.assistant(answer))))


@pytest.fixture
def memory(tmp_path: Path) -> TranscriptMemory:
    return TranscriptMemory(f"transcript://{tmp_path}/chats")


def said(memory: TranscriptMemory, conversation: str = "c1") -> list[str]:
    bodies = [entry.body for entry in memory.load_memory(conversation, LoadQuery()).entries]
    return [body.message.text for body in bodies if isinstance(body, Said)]


def test_people_can_read_it(memory: TranscriptMemory, tmp_path: Path) -> None:
    memory.persist_memory(Batch("c1", exchange("Hello", "Hello!\nWhat can I do?"), 0, final=True))
    lines = (tmp_path / "chats" / "chat-c1.txt").read_text("utf-8").split("\n")
    assert lines[:4] == ["hookloop transcript 1", 'conversation "c1"', 'scope ""', ""]
    assert lines[4].startswith('turn "t1" 20')
    assert lines[5:] == ["user", "    Hello", "assistant", "    Hello!", "    What can I do?", "end", ""]


def test_it_loads_back_closed_turns(memory: TranscriptMemory) -> None:
    for at in range(3):
        memory.persist_memory(Batch("c1", exchange(f"U{at}", f"A{at}", f"t{at}", 7 * at), -1, final=True))
    loaded = memory.load_memory("c1", LoadQuery())
    assert loaded.version == 12
    assert [entry.number for entry in loaded.entries] == list(range(12))
    start, user, answer, end = loaded.entries[4:8]
    assert isinstance(start.body, TurnStarted)
    assert start.body.at > 1_700_000_000
    assert isinstance(user.body, Said)
    assert user.body.message.origin.kind == "user"
    assert isinstance(answer.body, Said)
    assert (answer.body.message.origin.kind, answer.body.stop) == ("model", "end")
    assert end == Entry(7, "t1", TurnEnded("done", "end", "A1"))


def test_a_window_is_whole_turns_with_the_asked_one(memory: TranscriptMemory) -> None:
    for at in range(9):
        memory.persist_memory(Batch("c1", exchange(f"U{at}", f"A{at}", f"t{at}"), -1, final=True))
    loaded = memory.load_memory("c1", LoadQuery(messages=3, turn_id="t2"))
    assert [entry.number for entry in loaded.entries] == [8, 9, 10, 11, *range(28, 36)]
    assert loaded.version == 36


def test_only_texts_are_kept(memory: TranscriptMemory) -> None:
    bodies: tuple[Body, ...] = (
        TurnStarted("o", "n"),
        Said(Message.user("U")),
        Said(Message.assistant("")),
        TurnEnded("done", "end"),
    )
    memory.persist_memory(Batch("c1", tuple(Entry(at, "t", body) for at, body in enumerate(bodies)), 0))
    memory.persist_memory(Batch("c2", (Entry(0, "t", TurnStarted("o", "n")),), 0))
    memory.persist_memory(Batch("c2", (), 0, "me", 5.0))
    assert said(memory) == ["U"]
    assert [info.conversation for info in memory.conversations()] == ["c1"]


def test_a_turn_that_says_something_else_conflicts(memory: TranscriptMemory) -> None:
    memory.persist_memory(Batch("c1", exchange("U", "A"), 0))
    with pytest.raises(Conflict, match="says something else"):
        memory.persist_memory(Batch("c1", exchange("U", "B"), 0))
    assert said(memory) == ["U", "A"]


def test_every_crash_point_of_an_append_keeps_what_was_whole(tmp_path: Path) -> None:
    """Cut the file after each byte of the first and of the last turn: nothing before is lost, and the chat goes on."""
    memory = TranscriptMemory(f"transcript://{tmp_path}")
    file = tmp_path / "chat-c1.txt"
    memory.persist_memory(Batch("c1", exchange("U1 🌍", "A1\nend\n\nturn", "t1"), 0))
    first = len(file.read_bytes())
    memory.persist_memory(Batch("c1", exchange("Ü2", "end\nA2 ß", "t2"), 4))
    whole = file.read_bytes()
    turns = [(first - 1, ["U1 🌍", "A1\nend\n\nturn"]), (len(whole) - 1, ["Ü2", "end\nA2 ß"])]
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        kept = [text for needed, texts in turns if size >= needed for text in texts]
        assert said(memory) == kept, whole[:size]
        memory.persist_memory(Batch("c1", exchange("U3", "A3", "t3"), len(kept)))
        assert said(memory) == [*kept, "U3", "A3"], whole[:size]


def test_a_full_disk_leaves_the_file_usable(memory: TranscriptMemory, monkeypatch: pytest.MonkeyPatch) -> None:
    memory.persist_memory(Batch("c1", exchange("U1", "A1"), 0))
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda handle: (_ for _ in ()).throw(OSError("full")))
        with pytest.raises(OSError, match="full"):
            memory.persist_memory(Batch("c1", exchange("U2", "A2", "t2"), 4))
    memory.persist_memory(Batch("c1", exchange("U2", "A2", "t2"), 4))
    assert said(memory) == ["U1", "A1", "U2", "A2"]


def test_threads_append_whole_turns(memory: TranscriptMemory) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(
            pool.map(
                lambda at: memory.persist_memory(Batch("c1", exchange(f"U{at}", f"A{at}", f"t{at}"), -1)), range(40)
            )
        )
    found = said(memory)
    assert sorted(found) == sorted([f"U{at}" for at in range(40)] + [f"A{at}" for at in range(40)])
    assert all(user[1:] == answer[1:] for user, answer in zip(found[::2], found[1::2], strict=True))


@given(TEXT, TEXT, st.text(st.characters(exclude_categories=["Cs"])))
def test_no_text_forges_another_turn(user: str, answer: str, turn: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        memory = TranscriptMemory(f"transcript://{folder}")
        forged = Path(folder, "chat-c1.txt")
        memory.persist_memory(Batch("c1", exchange(user, answer, turn), 0))
        memory.persist_memory(Batch("c1", exchange(forged.read_text("utf-8") or "x", "A", f"{turn}'"), 4))
        loaded = memory.load_memory("c1", LoadQuery())
        assert [entry.turn for entry in loaded.entries] == [turn] * 4 + [f"{turn}'"] * 4
        assert said(memory)[:2] == [user, answer]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=500), min_size=2, unique=True))
def test_no_two_ids_share_a_file_on_any_file_system(names: list[str]) -> None:
    files = [safe_name(name) for name in names]
    assert len({file.casefold() for file in files}) == len(names)
    assert all(file.isascii() and len(file) < 200 and not set(file) & set('/\\:*?"<>|. \0') for file in files)


@pytest.mark.parametrize("text", ["what\nis this\n", 'hookloop transcript 2\nconversation "c1"\nscope ""\n\n'])
def test_another_file_is_left_alone(text: str, memory: TranscriptMemory, tmp_path: Path) -> None:
    file = tmp_path / "chats" / "chat-c1.txt"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(CorruptData):
        memory.persist_memory(Batch("c1", exchange("U", "A"), 0))
    assert file.read_text() == text
    assert memory.conversations() == []


def test_a_broken_line_is_told(memory: TranscriptMemory, tmp_path: Path) -> None:
    memory.persist_memory(Batch("c1", exchange("U", "A"), 0))
    file = tmp_path / "chats" / "chat-c1.txt"
    sound = file.read_text()
    for old, new in (("    U", "  U"), ("user", "system"), ('turn "t1"', "turn t1"), ('turn "t1"', 'turn "\\x"')):
        file.write_text(sound.replace(old, new, 1))
        with pytest.raises(CorruptData):
            memory.load_memory("c1", LoadQuery())


def test_a_lone_surrogate_is_refused_and_leaves_nothing(memory: TranscriptMemory, tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="no storable text"):
        memory.persist_memory(Batch("c1", exchange("U", "\udc97"), 0))
    assert not list(tmp_path.rglob("*.txt"))


@pytest.mark.parametrize("url", ["transcript:", "transcript://chats/a", "transcript:chats?x=1", "transcript:chats#1"])
def test_a_url_names_a_folder(url: str) -> None:
    with pytest.raises(ConfigError, match="names a folder"):
        TranscriptMemory(url)


def test_a_relative_folder_may_hold_spaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    memory = TranscriptMemory("transcript:my%20chats")
    memory.persist_memory(Batch("c1", exchange("U", "A"), 0, scope="S"))
    assert (tmp_path / "my chats" / "scope-%53" / "chat-c1.txt").is_file()


def written(memory: TranscriptMemory, tmp_path: Path) -> Path:
    """A file with two turns."""
    memory.persist_memory(Batch("c1", exchange("U1", "A1\n\nmore"), 0))
    memory.persist_memory(Batch("c1", exchange("U2", "A2", "t2"), 4))
    return tmp_path / "chats" / "chat-c1.txt"


EDITS = {
    "a word": (lambda text: text.replace("A1", "A one"), ["U1", "A one\n\nmore", "U2", "A2"]),
    "blanks trimmed": (lambda text: text.replace("    \n", "\n"), ["U1", "A1\n\nmore", "U2", "A2"]),
    "the last line's end": (lambda text: text.rstrip("\n"), ["U1", "A1\n\nmore", "U2", "A2"]),
    "an empty line at the end": (lambda text: text + "\n\n", ["U1", "A1\n\nmore", "U2", "A2"]),
    "an empty line between turns": (lambda text: text.replace("\nturn", "\n\nturn"), ["U1", "A1\n\nmore", "U2", "A2"]),
}


@pytest.mark.parametrize(("edit", "kept"), EDITS.values(), ids=EDITS)
def test_what_people_and_their_editors_do_is_read(
    edit: Callable[[str], str], kept: list[str], memory: TranscriptMemory, tmp_path: Path
) -> None:
    file = written(memory, tmp_path)
    file.write_bytes(edit(file.read_bytes().decode("utf-8")).encode("utf-8"))
    assert said(memory) == kept
    memory.persist_memory(Batch("c1", exchange("U3", "A3", "t3"), 8))
    assert said(memory) == [*kept, "U3", "A3"]


SPOILED = {
    "no time": lambda text: text.replace(" 20", " x20"),
    "line ends": lambda text: text.replace("\n", "\r\n"),
    "a byte order mark": lambda text: "\ufeff" + text,
    "the last end": lambda text: text[:-4] + "end \n",
    "the last end, no line": lambda text: text[:-4] + "END",
    "a note below": lambda text: text + "see also c2\n",
}


@pytest.mark.parametrize("edit", SPOILED.values(), ids=SPOILED)
def test_an_edit_that_cannot_be_read_is_told_and_loses_nothing(
    edit: Callable[[str], str], memory: TranscriptMemory, tmp_path: Path
) -> None:
    file = written(memory, tmp_path)
    spoiled = edit(file.read_bytes().decode("utf-8")).encode("utf-8")
    file.write_bytes(spoiled)
    with pytest.raises(CorruptData):
        memory.load_memory("c1", LoadQuery())
    with pytest.raises(CorruptData):
        memory.persist_memory(Batch("c1", exchange("U3", "A3", "t3"), 8))
    assert file.read_bytes() == spoiled


def test_a_loss_of_power_may_leave_nuls(memory: TranscriptMemory, tmp_path: Path) -> None:
    file = written(memory, tmp_path)
    with file.open("ab") as appended:
        appended.write(b'\nturn "t3" 2026\0\0\0\0')
    assert said(memory) == ["U1", "A1\n\nmore", "U2", "A2"]
    memory.persist_memory(Batch("c1", exchange("U3", "A3", "t3"), 8))
    assert said(memory)[-2:] == ["U3", "A3"]


def test_one_broken_file_does_not_hide_the_others(memory: TranscriptMemory, tmp_path: Path) -> None:
    file = written(memory, tmp_path)
    for name in ("c2", "c3", "c4"):
        memory.persist_memory(Batch(name, exchange("U", "A"), 0))
    folder = file.parent
    (folder / "chat-c2.txt").write_text((folder / "chat-c2.txt").read_text().replace("    U", "U"))
    (folder / "chat-c3.txt").write_bytes(b"\xff\xfe")
    (folder / "chat-copy.txt").write_bytes(file.read_bytes())
    (folder / "chat-odd.txt").write_text('hookloop transcript 1\nconversation "\\ud800"\nscope ""\n\n')
    listed = {info.conversation: info.entries for info in memory.conversations()}
    assert listed == {"c1": 8, "c2": 0, "c4": 4}
    assert memory.delete("c2")
