"""Ctrl-C and cancels at any moment of a turn: told once, stored as told, nothing run twice or lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

STORM = Path(__file__).parent.parent / "support" / "storm.py"


@pytest.mark.parametrize(
    ("seed", "turns"), [(1, 120), *(pytest.param(seed, 1500, marks=pytest.mark.soak) for seed in (2, 3, 4))]
)
def test_turns_in_a_storm_of_cancels_and_ctrl_c_end_in_order(seed: int, turns: int) -> None:
    run = subprocess.run([sys.executable, STORM, str(seed), str(turns)], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr[-2000:]
    for way in ("run", "run with a plugin", "stream"):
        assert f"{way}, cancel: nothing, ['cancelled', 'done']" in run.stdout
        assert f"{way}, ctrl-c: ctrl-c, ['cancelled', 'done']" in run.stdout
