"""The Python code in these plugins' READMEs runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PLUGINS = Path(__file__).parents[2] / "plugins"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(plugin: str) -> list[str]:
    return BLOCK.findall((PLUGINS / plugin / "README.md").read_text(encoding="utf-8"))


@pytest.mark.parametrize("plugin", ["booking", "fallback", "feedback", "prompt-log"])
def test_the_code_of_the_readme_runs(plugin: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks(plugin)

    assert found
    for code in found:
        exec(compile(code, f"{plugin}/README.md", "exec"), {})


def test_the_booking_readme_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(blocks("booking")[-1], "README.md", "exec"), {})

    assert capsys.readouterr().out.splitlines() == [
        "1 booked Beijing-Shanghai G123",
        "taken already booked: 1: Beijing-Shanghai G123",
    ]
