"""`hookloop run` and `hookloop chat`, with a model that follows a script and a real tool behind a plugin."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Distribute, Hookloop

PARTS = '''
import sys, threading
from hookloop.testing import ScriptedProvider, call, say, reply
from hookloop_hookspecs import ProviderError, Retry, hookimpl, tool

def slow(request):
    print("WAITING", flush=True)
    threading.Event().wait(60)

def echo(request):
    return say("You said: " + request.messages[-1].text)

SCRIPTS = {
    "hello": lambda: [say("Hello **there**, \\x1b[31mfriend\\x07.")],
    "tool": lambda: [[say("Let me look."), call("look", {"what": "it"})], say("It is fine.")],
    "fails": lambda: [call("look", {"what": "nothing"}), say("Gone.")],
    "echo": lambda: [echo] * 9,
    "broken": lambda: [ProviderError("no luck, api_key=sk-abcdef123456", provider="hlscript", status=500)],
    "flaky": lambda: [ProviderError(text, provider="hlscript") for text in ("not now", "not yet")] + [say("At last.")],
    "endless": lambda: [call("look", {"what": "it"})] * 9,
    "pay": lambda: [call("pay", {"amount": 5}), say("Settled.")],
    "slow": lambda: [slow, echo, echo],
    "long": lambda: [say("word " * 60 + "\\n" + "长" * 90 + " " + "x" * 200)],
}

class Script(ScriptedProvider):
    name = "hlscript"

    def __init__(self, model):
        super().__init__(SCRIPTS[model](), model=model)

@tool
def look(what: str) -> str:
    """Look at something."""
    if what == "nothing":
        raise ValueError("there is nothing")
    return f"{what} is\\nfine"

@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"

class Retries:
    @hookimpl
    def on_model_error(self):
        return Retry()

class Tools:
    @hookimpl
    def register_tools(self):
        return [look, pay]

    @hookimpl
    def next_instructions(self, results):
        return "Be quick." if results[0].name == "look" else None
'''


@pytest.fixture(autouse=True)
def site(distribute: Distribute, hookloop: Hookloop) -> Path:
    groups = {
        "hookloop.providers": {"hlscript": "hl_talk:Script"},
        "hookloop.plugins": {"hltools": "hl_talk:Tools", "hlretry": "hl_talk:Retries"},
    }
    hookloop.write("[plugins.hltools]\n")
    return distribute("hl-talk", groups, {"hl_talk": PARTS})


def test_the_answer_comes_on_stdout_and_what_the_loop_does_on_stderr(hookloop: Hookloop) -> None:
    done = hookloop("run", "-m", "hlscript:tool", "Look", "at it")
    assert done.code == 0
    assert done.out == "Let me look.\nIt is fine.\n"
    assert done.err.splitlines() == [
        '→ look(what="it")',
        "← look: it is\\nfine",
        "+ hltools.next_instructions: Be quick.",
    ]


def test_quiet_leaves_the_answer_alone(hookloop: Hookloop) -> None:
    done = hookloop("run", "-q", "-m", "hlscript:tool", "Look")
    assert (done.out, done.err) == ("Let me look.\nIt is fine.\n", "")


def test_control_characters_of_a_model_do_nothing(hookloop: Hookloop) -> None:
    assert hookloop("run", "-m", "hlscript:hello", "Hi").out == "Hello **there**, \\x1b[31mfriend\\x07.\n"


@pytest.mark.parametrize("arguments", [[], ["-"]])
def test_the_prompt_may_be_piped_in(hookloop: Hookloop, arguments: list[str]) -> None:
    done = hookloop("run", "-m", "hlscript:echo", *arguments, stdin="from a pipe")
    assert done.out == "You said: from a pipe\n"


def test_the_outcome_as_json(hookloop: Hookloop) -> None:
    done = hookloop("run", "--json", "-m", "hlscript:fails", "-C", "c7", "Look")
    data = json.loads(done.out)
    assert (done.code, done.err) == (0, "")
    assert (data["status"], data["stop_reason"], data["text"], data["conversation"]) == ("done", "end", "Gone.", "c7")
    assert [entry["size"] for entry in data["rounds"]] == [1, 4]


ENDS = [
    (["hlscript:broken"], 1, "error: no luck, api_key=[redacted]"),
    (["hlscript:endless"], 3, "limit (rounds)"),
    (["hlscript:pay"], 4, ""),
    (["hlnone:x"], 2, "error: option --model: provider prefix 'hlnone': is not known"),
    (["opnai:x"], 2, "error: option --model: provider prefix 'opnai': is not known; did you mean 'openai'?"),
    ([""], 2, "error: no model is given; write model = "),
]


@pytest.mark.parametrize(("model", "code", "words"), ENDS)
def test_the_exit_code_says_how_it_ended(
    hookloop: Hookloop, monkeypatch: pytest.MonkeyPatch, model: list[str], code: int, words: str
) -> None:
    monkeypatch.setenv("HOOKLOOP_LIMITS__ROUNDS", "2")
    done = hookloop("run", "-m", *model, "Go")
    assert done.code == code
    assert words in done.err
    assert "sk-abc" not in done.err


def test_a_failed_attempt_is_told_where_the_turn_goes_on(hookloop: Hookloop) -> None:
    hookloop.write("[plugins.hlretry]\n")
    done = hookloop("run", "-m", "hlscript:flaky", "Go")
    assert (done.code, done.out) == (0, "At last.\n"), done.err
    assert [line for line in done.err.splitlines() if "attempt" in line] == [
        "attempt 1 failed: not now",
        "attempt 2 failed: not yet",
    ]


def test_the_environment_is_left_as_it_was(hookloop: Hookloop) -> None:
    before = dict(os.environ)
    hookloop("run", "-m", "hlscript:hello", "Hi")
    assert dict(os.environ) == before


def test_nothing_to_say_is_wrong_usage(hookloop: Hookloop) -> None:
    assert "nothing to say" in hookloop("run", "-m", "hlscript:echo", stdin=" \n").err


def lines(text: str) -> list[str]:
    """What a chat printed behind its first lines."""
    return text.splitlines()[2:]


def test_a_chat_goes_on_with_its_conversation(hookloop: Hookloop) -> None:
    done = hookloop("chat", "-m", "hlscript:echo", stdin="one\n\ntwo\n/help\n/quit\nthree\n")
    assert done.code == 0
    assert lines(done.out)[:2] == ["You said: one", "You said: two"]
    assert "three" not in done.out


def test_a_chat_says_which_conversation_it_is(hookloop: Hookloop) -> None:
    done = hookloop("chat", "-m", "hlscript:echo", "-C", "c1", stdin="/new\n")
    first, help_, second, _ = done.out.splitlines()
    assert (first, help_) == ("conversation c1", "/quit ends, /new starts another, Ctrl-C cancels the turn")
    assert second.startswith("conversation chat-")


def test_an_unknown_command_of_a_chat_is_told(hookloop: Hookloop) -> None:
    done = hookloop("chat", "-m", "hlscript:echo", stdin="/bogus words\n")
    assert lines(done.out)[0] == "there is no command /bogus"


def test_a_chat_ends_with_its_input(hookloop: Hookloop) -> None:
    assert lines(hookloop("chat", "-m", "hlscript:echo", stdin="one\n").out) == ["You said: one"]


def test_a_chat_survives_a_failing_turn(hookloop: Hookloop) -> None:
    done = hookloop("chat", "-m", "hlscript:broken", stdin="one\n/new\n/quit\n")
    assert done.code == 0
    assert "attempt 1" not in done.out, "a failure is told once"
    assert lines(done.out)[0] == "ProviderError: no luck, api_key=[redacted]"


@pytest.mark.parametrize(
    ("answer", "words"),
    [("y", "← pay: paid 5"), ("too dear", "✗ pay: denied: too dear"), ("", "✗ pay: denied: by the user")],
)
def test_a_chat_asks_for_approval(hookloop: Hookloop, answer: str, words: str) -> None:
    done = hookloop("chat", "-m", "hlscript:pay", stdin=f"pay\n{answer}\n/quit\n")
    assert words in done.out
    assert "Settled." in done.out


@pytest.mark.parametrize("width", [80, 140])
def test_no_line_of_a_chat_is_wider_than_the_terminal(
    hookloop: Hookloop, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    done = hookloop("chat", "-m", "hlscript:long", stdin="go\n")
    printed = done.out.splitlines()
    assert max(len(line) + line.count("长") for line in printed) <= width
    joined = "".join(printed)
    assert (joined.count("word"), joined.count("长"), joined.count("x")) == (60, 90, 200)


@contextmanager
def interrupted(site: Path, *arguments: str, text: str) -> Iterator[subprocess.Popen[str]]:
    """The program in a process of its own, interrupted while the model is slow."""
    command = [sys.executable, "-m", "hookloop.cli", *arguments, "-m", "hlscript:slow"]
    environ = {**os.environ, "PYTHONPATH": str(site)}
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with subprocess.Popen(command, env=environ, text=True, stdin=pipe, stdout=pipe, stderr=both) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        program.stdin.write(text)
        program.stdin.flush()
        while "WAITING" not in program.stdout.readline():
            assert program.poll() is None
        program.send_signal(signal.SIGINT)
        yield program


def test_an_interrupt_cancels_the_turn_and_not_the_program(site: Path) -> None:
    with interrupted(site, "chat", text="one\n") as program:
        rest, _ = program.communicate("two\n/quit\n", timeout=30)
    assert program.returncode == 0
    assert "cancelled" in rest
    assert "You said: two" in rest


def test_an_interrupt_ends_a_run_with_its_code(site: Path) -> None:
    with interrupted(site, "run", "one", text="") as program:
        rest, _ = program.communicate(timeout=30)
    assert program.returncode == 130
    assert "Traceback" not in rest
