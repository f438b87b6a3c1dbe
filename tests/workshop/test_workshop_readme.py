"""Each code block of the README is run as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hookloop.config import load_config
from hookloop.testing import call, say
from hookloop.testing.server import StrictServer

ROOT = Path(__file__).parents[2]
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
KINDS = {"python", "toml", "console"}


def blocks(kind: str) -> list[str]:
    """The blocks of one language."""
    return [code for language, code in BLOCKS if language == kind]


def test_every_block_is_of_a_kind_that_is_run_here() -> None:
    assert {language for language, _ in BLOCKS} == KINDS


@pytest.mark.parametrize("at", range(len(blocks("python"))))
def test_the_python_of_the_readme_runs(at: int, tmp_path: Path) -> None:
    script: list[Any] = [
        call("weather", {"city": "Beijing"}, id="w1"),
        say("sunny"),
        call("weather", {"city": "Shanghai"}, id="w2"),
        say("sunny"),
    ]
    with StrictServer(script=script) as server:
        environment = {**os.environ, "OPENAI_API_KEY": "key", "OPENAI_BASE_URL": f"{server.url}/v1"}
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", blocks("python")[at]],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert server.refusals == []


@pytest.mark.parametrize("at", range(len(blocks("toml"))))
def test_the_configuration_of_the_readme_is_valid(at: int, tmp_path: Path) -> None:
    path = tmp_path / "hookloop.toml"
    path.write_text(blocks("toml")[at], "utf-8")
    config = load_config(path, {})
    assert config.limits.tool_calls == 80
    assert set(config.plugins) == {"prompt-log", "feedback"}


def test_the_commands_of_the_readme_run_on_its_configuration(tmp_path: Path) -> None:
    (tmp_path / "hookloop.toml").write_text(blocks("toml")[0], "utf-8")
    commands = [line[2:] for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    assert commands
    for command in commands:
        program = Path(sys.executable).with_name("hookloop")
        done = subprocess.run([program, *shlex.split(command)[1:]], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout
