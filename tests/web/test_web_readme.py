"""The README's code runs as it stands there, and the screenshots that it shows are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PLUGINS = Path(__file__).parents[2] / "plugins"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_code_of_the_readme_runs(tmp_path: Path) -> None:
    (code,) = BLOCK.findall((PLUGINS / "web" / "README.md").read_text("utf-8"))
    check = "\nassert '/api/here' in site.app.openapi()['paths'], 'the route is missing'\n"
    command = [sys.executable, "-c", code + check]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_screenshots_of_the_booking_readme_are_there() -> None:
    text = (PLUGINS / "booking" / "README.md").read_text("utf-8")
    shown = set(re.findall(r"\]\((screenshots/[\w-]+\.png)\)", text))
    there = {f"screenshots/{path.name}" for path in (PLUGINS / "booking" / "screenshots").glob("*.png")}
    assert shown == there
    assert len(shown) >= 5
