"""`hookloop conversations`, on a memory that keeps its conversations over several calls of the program."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from hookloop_hookspecs import Batch, Entry, Message, Origin, Said, ToolCall, ToolResult, TurnEnded, TurnStarted
from hookloop_hookspecs.messages import Text

if TYPE_CHECKING:
    from tests.conftest import Distribute, Hookloop

MEMORY = """
from hookloop.memory import InProcessMemory

KEPT = InProcessMemory()
closed = []

class Kept:
    capabilities = KEPT.capabilities

    def __init__(self, url):
        self.conversations, self.delete = KEPT.conversations, KEPT.delete

    async def persist_memory(self, batch):
        KEPT.persist_memory(batch)

    def load_memory(self, conversation, query):
        return KEPT.load_memory(conversation, query)

    def close(self):
        closed.append(True)
"""

PLUGIN = Origin("plugin", "lint", "1.0", "after_tool", "t1", 1)
ENTRIES = (
    Entry(0, "t1", TurnStarted("here", "n", at=1.0)),
    Entry(1, "t1", Said(Message.user("Look\nat it\x1b[31m"))),
    Entry(2, "t1", Said(Message("assistant", (ToolCall("c1", "look", '{"a":1}'),)), stop="calls")),
    Entry(3, "t1", Said(Message.tool(ToolResult("c1", "look", (Text("fine"),))), behind=(Message("user", "lint it", PLUGIN),))),
    Entry(4, "t1", Said(Message.assistant("It is fine."), stop="end")),
    Entry(5, "t1", TurnEnded("done", "end", "It is fine.")),
)  # fmt: skip


@pytest.fixture(autouse=True)
def kept(distribute: Distribute, hookloop: Hookloop) -> None:
    distribute("hl-kept", {"hookloop.memory": {"hlkept": "hl_kept:Kept"}}, {"hl_kept": MEMORY})
    hookloop.write("memory = 'hlkept:'\n")
    import hl_kept  # type: ignore[import-not-found]  # made on the spot

    hl_kept.KEPT.persist_memory(Batch("c1", ENTRIES, version=0))
    hl_kept.KEPT.persist_memory(Batch("theirs", ENTRIES[:2], version=0, scope="them"))


def test_they_are_listed(hookloop: Hookloop) -> None:
    (line,) = hookloop("conversations", "list").out.splitlines()
    assert line.split()[2:] == ["6", "entries", "c1"]
    assert [info["conversation"] for info in json.loads(hookloop("conversations", "list", "--json").out)] == ["c1"]
    assert "theirs" in hookloop("conversations", "list", "--scope", "them").out


def test_one_is_shown_with_its_origins_and_no_control_characters(hookloop: Hookloop) -> None:
    lines = hookloop("conversations", "show", "c1").out.splitlines()
    assert lines == [
        "user",
        "  Look",
        "  at it\\x1b[31m",
        "assistant",
        '  → look {"a":1}',
        "tool",
        "  fine",
        "user  lint.after_tool",
        "  lint it",
        "assistant",
        "  It is fine.",
    ]
    roles = [message["role"] for message in json.loads(hookloop("conversations", "show", "c1", "--json").out)]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]


@pytest.mark.parametrize("command", [["show"], ["export"], ["delete", "-y"]])
def test_the_nearest_id_is_told(hookloop: Hookloop, command: list[str]) -> None:
    done = hookloop("conversations", *command, "c11")
    assert (done.code, done.err.split("; ")[1]) == (2, "did you mean 'c1'?\n")
    assert "; " not in hookloop("conversations", *command, "quite-another").err


def test_a_file_that_cannot_be_written_is_told(hookloop: Hookloop) -> None:
    done = hookloop("conversations", "export", "c1", "no-folder/c1.jsonl")
    assert (done.code, done.err) == (2, "error: no-folder/c1.jsonl: cannot be written: No such file or directory\n")


def test_an_export_is_imported_equal(hookloop: Hookloop) -> None:
    file = hookloop.file.with_name("c1.jsonl")
    assert hookloop("conversations", "export", "c1", str(file)).code == 0
    done = hookloop("conversations", "import", str(file), "--as", "c2")
    assert done.out == "6 entries are now in c2\n"
    first = hookloop("conversations", "export", "c1").out.splitlines()
    assert hookloop("conversations", "export", "c2").out.splitlines()[1:] == first[1:]
    assert file.read_text("utf-8").splitlines() == first


def test_a_conversation_that_exists_is_not_overwritten(hookloop: Hookloop) -> None:
    file = hookloop.file.with_name("c1.jsonl")
    hookloop("conversations", "export", "c1", str(file))
    done = hookloop("conversations", "import", str(file))
    assert (done.code, done.err) == (
        2,
        "error: conversation 'c1' exists in hlkept:; take another id, or delete it first\n",
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hello", "line 1: not an exported conversation"),
        ('{"format": "other"}', "line 1: not an exported conversation: format is 'other'"),
        ('{"format": "hookloop-conversation", "conversation": "x"}\n\n{"v": 9}', "line 3: "),
    ],
)
def test_a_file_that_is_no_export_is_told_with_its_line(hookloop: Hookloop, text: str, words: str) -> None:
    file = hookloop.file.with_name("bad.jsonl")
    file.write_text(text, "utf-8")
    done = hookloop("conversations", "import", str(file))
    assert done.code == 1
    assert words in done.err


def test_a_fork_is_a_copy(hookloop: Hookloop) -> None:
    assert hookloop("conversations", "fork", "c1", "c1-other").code == 0
    assert hookloop("conversations", "show", "c1-other").out == hookloop("conversations", "show", "c1").out


def test_a_fork_may_end_at_an_entry(hookloop: Hookloop) -> None:
    assert hookloop("conversations", "fork", "c1", "early", "--at", "1").code == 0
    assert "It is fine." not in hookloop("conversations", "show", "early").out
    assert "has no entry 99" in hookloop("conversations", "fork", "c1", "late", "--at", "99").err


def test_deleting_asks_first(hookloop: Hookloop) -> None:
    assert hookloop("conversations", "delete", "c1", stdin="n\n").code == 1
    assert hookloop("conversations", "show", "c1").code == 0
    assert hookloop("conversations", "delete", "c1", "--yes").code == 0
    done = hookloop("conversations", "show", "c1")
    assert (done.code, done.err) == (2, "error: there is no conversation 'c1' in hlkept:\n")


def test_without_a_memory_it_says_what_to_write(hookloop: Hookloop) -> None:
    hookloop.write("")
    assert "no memory keeps conversations" in hookloop("conversations", "list").err


def test_the_memory_is_closed(hookloop: Hookloop) -> None:
    import hl_kept

    hookloop("conversations", "list")
    assert hl_kept.closed == [True]
