"""The program: its exit codes, its help, its configuration commands, and commands of other distributions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from hookloop.config import schema

if TYPE_CHECKING:
    from tests.conftest import Distribute, Hookloop


def test_help_names_every_command_and_the_exit_codes(hookloop: Hookloop) -> None:
    done = hookloop("--help")
    assert done.code == 0
    for name in ("chat", "run", "plugins", "config", "Exit codes"):
        assert name in done.out


def test_the_version_is_that_of_both_distributions(hookloop: Hookloop) -> None:
    assert hookloop("--version").out == "hookloop 0.1.0, contract 0.1.0\n"


@pytest.mark.parametrize("arguments", [["nope"], ["plugins", "--nope"], ["plugins", "why"]])
def test_wrong_usage_ends_with_two(hookloop: Hookloop, arguments: list[str]) -> None:
    assert hookloop(*arguments).code == 2


def test_a_fault_of_the_file_is_one_line_each_and_ends_with_two(hookloop: Hookloop) -> None:
    hookloop.write("modle = 'x'\n[limits]\nround = 3\n")
    done = hookloop("config", "show")
    assert done.code == 2
    assert done.err.splitlines() == [
        "error: hookloop.toml:1: unknown key 'modle'; did you mean 'model'?",
        "error: hookloop.toml:3: unknown key 'round' in limits; did you mean 'rounds'?",
    ]


def test_config_show_says_where_each_key_was_set(hookloop: Hookloop, monkeypatch: pytest.MonkeyPatch) -> None:
    hookloop.write("model = 'a:b'\nmemory = 'x://u:s3cret@h'\n[plugins.p]\nenabled = false\n")
    monkeypatch.setenv("HOOKLOOP_LIMITS__ROUNDS", "7")
    done = hookloop("config", "show")
    assert 'model = "a:b"  # hookloop.toml:1' in done.out
    assert "plugins.p.enabled = false  # hookloop.toml:4" in done.out
    assert "limits.rounds = 7  # environment variable HOOKLOOP_LIMITS__ROUNDS" in done.out
    assert "limits.tool_calls = 150\n" in done.out
    assert tomllib.loads(done.out)["memory"] == [{"url": "x://u:***@h"}]
    assert "s3cret" not in done.out


def test_config_show_as_json(hookloop: Hookloop) -> None:
    hookloop.write("[limits]\nper_tool_overrides = { edit = 2 }\n[window]\nmessages = 9\n")
    data = json.loads(hookloop("config", "show", "--json").out)
    assert data["config"]["limits"]["per_tool_overrides"] == {"edit": 2}
    assert data["config"]["window"] == {"messages": 9, "tokens": None, "slack": 0}
    assert Path(data["file"]).name == "hookloop.toml"


def test_config_schema_is_the_schema(hookloop: Hookloop) -> None:
    assert json.loads(hookloop("config", "schema").out) == schema()


def test_a_command_that_is_not_installed_says_what_to_install(
    hookloop: Hookloop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [path for path in sys.path if "site-packages" not in path])
    done = hookloop("demo")
    assert (done.code, done.err) == (2, "error: command 'demo' is not installed; pip install hookloop-booking\n")


@pytest.mark.parametrize(
    ("words", "completions"),
    [
        ("hookloop plugins enable prompt-", ["prompt-log"]),
        ("hookloop plugins disable trace --hook before_t", ["before_turn", "before_tool"]),
        ("hookloop check anthr", ["anthropic"]),
        ("hookloop conv", ["conversations"]),
    ],
)
def test_a_shell_completes_commands_plugins_and_hooks(words: str, completions: list[str]) -> None:
    asked = {"_HOOKLOOP_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    command = [sys.executable, "-c", "import sys; sys.argv = ['hookloop']; from hookloop.cli import main; main()"]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == completions


def test_another_file_may_be_named(hookloop: Hookloop, tmp_path: Path) -> None:
    file = tmp_path / "other.toml"
    file.write_text("model = 'c:d'\n", "utf-8")
    assert 'model = "c:d"' in hookloop("--config", str(file), "config", "show").out


COMMANDS = '''
import typer

def greet(name: str, loud: bool = False) -> None:
    """Greet somebody."""
    print(f"hello {name}{'!' if loud else ''}")

def fail() -> None:
    raise typer.Exit(7)

group = typer.Typer()

@group.command()
def one() -> None:
    print("one")

@group.command()
def two() -> None:
    print("two")
'''


@pytest.fixture
def commands(distribute: Distribute) -> None:
    names = {"hlgreet": "hl_cmd:greet", "hlfail": "hl_cmd:fail", "hlgroup": "hl_cmd:group", "run": "hl_cmd:greet"}
    distribute("hl-cmd", {"hookloop.commands": {**names, "hlbad": "hl_cmd_bad:x"}}, {"hl_cmd": COMMANDS})


@pytest.mark.usefixtures("commands")
def test_help_lists_added_commands_without_importing_them(hookloop: Hookloop) -> None:
    done = hookloop("--help")
    assert "hlgreet" in done.out
    assert "From hl-cmd 1.0." in done.out
    assert "hl_cmd" not in sys.modules


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (["hlgreet", "you", "--loud"], 0, "hello you!"),
        (["hlgreet", "--help"], 0, "Greet somebody."),
        (["hlfail"], 7, ""),
        (["hlgroup", "two"], 0, "two"),
    ],
)
def test_an_added_command_is_called(hookloop: Hookloop, arguments: list[str], code: int, text: str) -> None:
    done = hookloop(*arguments)
    assert done.code == code
    assert text in done.out


@pytest.mark.usefixtures("commands")
def test_an_added_command_with_wrong_usage_ends_with_two(hookloop: Hookloop) -> None:
    done = hookloop("hlgreet", "you", "--nope")
    assert done.code == 2
    assert "hookloop hlgreet" in done.err


@pytest.mark.usefixtures("commands")
def test_an_added_command_that_cannot_be_loaded_says_whose_it_is(hookloop: Hookloop) -> None:
    done = hookloop("hlbad")
    assert done.code == 2
    assert "command 'hlbad' (hl-cmd 1.0): ModuleNotFoundError" in done.err


@pytest.mark.usefixtures("commands")
def test_an_added_command_replaces_none_of_the_program(hookloop: Hookloop) -> None:
    assert "Ask once" in hookloop("run", "--help").out


def test_the_library_loads_no_cli_library() -> None:
    check = "import sys, hookloop; assert not {'typer', 'rich', 'tomlkit'} & set(sys.modules), sorted(sys.modules)"
    subprocess.run([sys.executable, "-c", check], check=True)


def test_the_program_runs_as_a_module() -> None:
    command = [sys.executable, "-m", "hookloop.cli", "--version"]
    done: Any = subprocess.run(command, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("hookloop ")
