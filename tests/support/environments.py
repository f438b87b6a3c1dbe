"""Environments into which distributions are really installed, from wheels or editable, and programs that run in them.

A linked environment takes what the distributions depend on from the workshop's, so it needs no network, and knows nothing
of what the workshop has installed of hookloop. A fresh one takes everything from the package index.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strangers import STRANGERS

ROOT = Path(__file__).parents[2]
CORE = (ROOT / "hookspecs", ROOT / "core")
STRANGE = tuple(STRANGERS / name for name in ("tally", "drawer", "parrot"))
FIXED = {"NO_COLOR": "1", "COLUMNS": "120", "PYTHONDONTWRITEBYTECODE": "1"}
SECONDS = 600.0


def ran(command: Iterable[object], folder: Path, code: int = 0, stdin: str = "") -> str:
    """What a program prints. Fails with all that it said where it does not end with `code`."""
    told = {name: value for name, value in os.environ.items() if not name.startswith(("HOOKLOOP_", "PYTHON"))}
    done = subprocess.run(
        [*map(str, command)],
        cwd=folder,
        env={**told, **FIXED},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@dataclass(frozen=True)
class Environment:
    """A virtual environment."""

    place: Path

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.place / "bin" / "python"

    @property
    def site(self) -> Path:
        """Where its packages are."""
        return next(self.place.glob("lib/python*/site-packages"))

    def pip(self, *arguments: object) -> None:
        """Let the workshop's pip work on it."""
        pip = (sys.executable, "-m", "pip", "--python", self.python, "--disable-pip-version-check")
        ran((*pip, *arguments), self.place)


@dataclass(frozen=True)
class Room:
    """An environment, and an empty folder to work in."""

    environment: Environment
    folder: Path

    def __call__(self, program: str, *arguments: object, code: int = 0, stdin: str = "") -> str:
        """Run a program of the environment; what it prints."""
        return ran((self.environment.place / "bin" / program, *arguments), self.folder, code, stdin)

    def configure(self, text: str) -> None:
        """Write the configuration."""
        (self.folder / "hookloop.toml").write_text(text, "utf-8")

    def plugins(self, code: int = 0) -> dict[str, Any]:
        """What `hookloop plugins` says, by name; its errors under "errors"."""
        data = json.loads(self("hookloop", "plugins", "--json", code=code))
        return {**{one["name"]: one for one in data["plugins"]}, "errors": data["errors"]}


def wheels(sources: Iterable[Path], folder: Path) -> list[Path]:
    """Wheels of distributions, built from copies of their folders."""
    copies = [shutil.copytree(source, folder / "sources" / source.name) for source in sources]
    ran((sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "-w", folder, *copies), folder)
    built = sorted(folder.glob("*.whl"))
    assert len(built) == len(copies)
    return built


def linked(folder: Path, built: Iterable[Path]) -> Environment:
    """An environment with these wheels; what they need is taken from the workshop's."""
    made = _made(folder, "--without-pip")
    links = folder / "dependencies"
    links.mkdir()
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if entry.suffix != ".pth" and not entry.name.startswith(("hookloop", "_editable", "__pycache__")):
            (links / entry.name).symlink_to(entry)
    (made.site / "dependencies.pth").write_text(f"{links}\n", "utf-8")
    made.pip("install", "--no-index", "--no-deps", *built)
    return made


def fresh(folder: Path, built: Iterable[Path]) -> Environment:
    """An environment with these wheels and all that they ask for."""
    made = _made(folder)
    made.pip("install", "-c", ROOT / "constraints.txt", *built)
    return made


def _made(folder: Path, *options: str) -> Environment:
    ran((sys.executable, "-m", "venv", *options, folder / "venv"), folder)
    return Environment(folder / "venv")


__all__ = ["CORE", "STRANGE", "Environment", "Room", "fresh", "linked", "ran", "wheels"]
