"""`hookloop new`: what it makes passes its own checks at once, and what cannot be made is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Hookloop

KINDS = ("plugin", "provider", "memory")
NAMES = ("z", "a-name-as-long-as-they-may-ever-be-z")


def made(hookloop: Hookloop, kind: str, name: str = "hlnew") -> Path:
    done = hookloop("new", kind, name)
    assert done.code == 0, done.err
    return hookloop.file.parent / f"hookloop-{name}"


def check(folder: Path, *command: str) -> str:
    """Run a tool in the new distribution; its output. Fails where the tool does."""
    environ = {**os.environ, "PYTHONPATH": str(folder / "src"), "MYPYPATH": str(folder / "src")}
    python = [sys.executable, "-m", *command]
    done = subprocess.run(python, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_formatted_and_linted_whatever_its_name(hookloop: Hookloop, kind: str, name: str) -> None:
    folder = made(hookloop, kind, name)
    check(folder, "ruff", "format", "--check", ".")
    check(folder, "ruff", "check", ".")


@pytest.mark.parametrize("kind", KINDS)
def test_it_passes_its_own_tests(hookloop: Hookloop, kind: str) -> None:
    assert " passed" in check(made(hookloop, kind), "pytest", "-p", "no:cacheprovider", "-vv")


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_typed(hookloop: Hookloop, kind: str) -> None:
    assert "Success" in check(made(hookloop, kind), "mypy", "src", "tests")


def test_a_folder_that_cannot_be_made_is_told(hookloop: Hookloop) -> None:
    hookloop.write("", "file")
    done = hookloop("new", "plugin", "hlnew", "--into", "file")
    assert (done.code, done.err) == (2, "error: file/hookloop-hlnew: cannot be written: Not a directory\n")


def test_the_plugin_is_ten_lines(hookloop: Hookloop) -> None:
    source = made(hookloop, "plugin") / "src/hookloop_hlnew/__init__.py"
    assert len([line for line in source.read_text("utf-8").splitlines() if line.strip()]) <= 10


def test_it_says_what_to_do_next(hookloop: Hookloop) -> None:
    assert hookloop("new", "plugin", "hookloop-hlnew").out.splitlines() == [
        "hookloop-hlnew is ready. Next:",
        "  pip install -e hookloop-hlnew",
        "  hookloop plugins enable hlnew",
        "  hookloop check hlnew",
    ]


@pytest.mark.parametrize("name", ["Lint", "a--b", "-a", "1a", "a_b", "ä", "a" * 37, "../x"])
def test_a_name_that_cannot_be_is_refused(hookloop: Hookloop, name: str) -> None:
    done = hookloop("new", "plugin", "--", name)
    assert (done.code, list(hookloop.file.parent.iterdir())) == (2, [])
    assert "is no name for a distribution" in done.err


@pytest.mark.parametrize(
    ("name", "instead"), [("Lint_Feedback", "lint-feedback"), ("LintFeedback", "lint-feedback"), ("a--b", "a-b")]
)
def test_a_name_like_it_that_would_do_is_told(hookloop: Hookloop, name: str, instead: str) -> None:
    assert hookloop("new", "plugin", name).err.endswith(f"at most 36; for example {instead!r}\n")


def test_a_folder_that_is_there_is_left_alone(hookloop: Hookloop) -> None:
    folder = made(hookloop, "memory")
    (folder / "README.md").write_text("mine", "utf-8")
    done = hookloop("new", "memory", "hlnew")
    assert (done.code, done.err) == (2, "error: hookloop-hlnew exists already\n")
    assert (folder / "README.md").read_text("utf-8") == "mine"


def test_a_name_that_is_taken_is_refused(hookloop: Hookloop) -> None:
    done = hookloop("new", "memory", "memory")
    assert "memory 'memory' is installed already, from hookloop 0.1.0" in done.err
