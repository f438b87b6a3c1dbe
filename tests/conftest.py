"""Fixtures of the whole tree: distributions that are made on the spot, and the program `hookloop` in a folder of its own."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest


class Distribute(Protocol):
    """Puts a distribution on the path: its modules, and a `.dist-info` with entry points by group."""

    def __call__(
        self,
        name: str,
        points: Mapping[str, Mapping[str, str]],
        modules: Mapping[str, str],
        version: str = "1.0",
        requires: Sequence[str] = (),
    ) -> Path: ...


@pytest.fixture
def distribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Distribute]:
    """A function that makes distributions for this test; their modules are forgotten afterwards."""
    made: list[str] = []

    def make(
        name: str,
        points: Mapping[str, Mapping[str, str]],
        modules: Mapping[str, str],
        version: str = "1.0",
        requires: Sequence[str] = (),
    ) -> Path:
        site = tmp_path / f"site-{name}"
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(head + "".join(f"Requires-Dist: {text}\n" for text in requires), "utf-8")
        groups = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in points.items())
        (info / "entry_points.txt").write_text("\n".join(groups), "utf-8")
        for module, text in modules.items():
            (site / f"{module}.py").write_text(text, "utf-8")
        made.extend(modules)
        monkeypatch.syspath_prepend(str(site))
        return site

    yield make
    for module in made:
        sys.modules.pop(module, None)


@dataclass(frozen=True)
class Done:
    """What a call of the program came to."""

    code: int
    out: str
    err: str

    @property
    def plain(self) -> str:
        """The output without colours."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.out)


class Hookloop:
    """The program `hookloop`, called in this process, in a folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.file = folder / "hookloop.toml"
        self._monkeypatch = monkeypatch
        self._capsys = capsys

    def __call__(self, *arguments: str, stdin: str = "") -> Done:
        from hookloop.cli import main  # only tests of the program load it

        self._monkeypatch.setattr(sys, "argv", ["hookloop", *arguments])
        self._monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = self._capsys.readouterr()
        code = ended.value.code
        return Done(code if isinstance(code, int) else 0, captured.out, captured.err)

    def write(self, text: str, name: str = "hookloop.toml") -> Path:
        """Put a configuration file into the folder."""
        file = self.file.with_name(name)
        file.write_text(text, "utf-8")
        return file

    def read(self) -> str:
        """The text of the configuration file."""
        return self.file.read_text("utf-8")


@pytest.fixture
def hookloop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Hookloop:
    """The program, in an empty working directory and without configuration from outside."""
    folder = tmp_path / "work"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in [name for name in os.environ if name.startswith("HOOKLOOP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOOKLOOP_CONFIG", "")  # the program sets it; this puts it back afterwards
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    return Hookloop(folder, monkeypatch, capsys)
