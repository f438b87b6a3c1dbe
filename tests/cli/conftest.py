"""The program in a process of its own, at a terminal of a given size, and what it prints compared with stored text.

What must live here: everything that makes an output the same on every machine and in every year. The program sees an
installation of its own (`installation`): the core as version 1.0.0, distributions that are made on the spot, and nothing
of what else is installed; its terminal, folder and environment are given. Nothing is replaced in what it prints but the
escape character, which is stored as "␛".
"""

from __future__ import annotations

import difflib
import fcntl
import os
import pty
import struct
import subprocess
import sys
import sysconfig
import termios
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import distribution
from pathlib import Path

import pytest

import hookloop
import hookloop_hookspecs

SNAPSHOTS = Path(__file__).parent / "snapshots"
UPDATE = "UPDATE_SNAPSHOTS"
"""The environment variable that makes the tests write what the program prints, in place of comparing it."""
PROMPT = "› "
SECONDS = 60.0


@dataclass(frozen=True)
class Installation:
    """What the program is started with: folders of packages, and an empty folder for the rest."""

    path: tuple[Path, ...]
    home: Path

    def environment(self, colour: bool) -> dict[str, str]:
        """All of the environment that the program sees."""
        fixed = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC", "PYTHONUTF8": "1"}
        own = {"PYTHONPATH": os.pathsep.join(map(str, self.path)), "HOME": str(self.home), "PATH": os.environ["PATH"]}
        return {**fixed, **own, "INPUTRC": str(self.home / "inputrc"), **({} if colour else {"NO_COLOR": "1"})}


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """An installation without any plugin but those of the core; what it depends on is linked to."""
    packages, home = tmp_path_factory.mktemp("packages"), tmp_path_factory.mktemp("home")
    for entry in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not _of_hookloop(entry):
            (packages / entry.name).symlink_to(entry)
    for name in ("hookloop", "hookloop-hookspecs"):
        points = distribution(name).read_text("entry_points.txt") or ""
        write_distribution(packages, name, points, {}, "1.0.0")
    (home / "inputrc").write_text("set enable-bracketed-paste off\n", "utf-8")
    sources = (Path(module.__path__[0]).parent for module in (hookloop, hookloop_hookspecs))
    return Installation((packages, *sources), home)


def _of_hookloop(entry: Path) -> bool:
    points = entry / "entry_points.txt"
    return entry.name.startswith("hookloop") or (points.is_file() and "[hookloop." in points.read_text("utf-8"))


def write_distribution(site: Path, name: str, points: str, modules: Mapping[str, str], version: str) -> None:
    """Put a distribution into a folder: its modules and its metadata."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n", "utf-8")
    (info / "entry_points.txt").write_text(points, "utf-8")
    for module, text in modules.items():
        (site / f"{module}.py").write_text(text, "utf-8")


class Terminal:
    """Runs the program as a user does, at a terminal, and as a script does, through pipes."""

    def __init__(self, installation: Installation, site: Path, folder: Path) -> None:
        self.installation = Installation((site, *installation.path), installation.home)
        self.site = site
        self.folder = folder

    def install(self, name: str, points: Mapping[str, Mapping[str, str]], modules: Mapping[str, str]) -> None:
        """Make a distribution that the program finds, as version 1.0."""
        groups = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in points.items())
        write_distribution(self.site, name, "\n".join(groups), modules, "1.0")

    def write(self, name: str, text: str) -> Path:
        """Put a file into the working directory."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")
        return file

    def __call__(self, arguments: Sequence[str], width: int, colour: bool, typed: Sequence[str] = ()) -> str:
        """What a terminal of this width shows; the lines are typed, each when the program waits for one."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        try:
            with self._started(arguments, self.installation.environment(colour), slave) as program:
                os.close(slave)
                shown = _shown(master, list(typed))
                program.wait(SECONDS)
        finally:
            os.close(master)
        return shown.replace("\r\n", "\n").replace("\r", "")

    def piped(self, arguments: Sequence[str], width: int) -> str:
        """What a pipe gets, where the environment says how wide lines are."""
        environment = {**self.installation.environment(colour=True), "COLUMNS": str(width)}
        with self._started(arguments, environment, subprocess.PIPE) as program:
            out, _ = program.communicate(b"", SECONDS)
        return str(out, "utf-8")

    def _started(
        self, arguments: Sequence[str], environment: Mapping[str, str], stream: int
    ) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-P", "-m", "hookloop.cli", *arguments]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdin=stream,
            stdout=stream,
            stderr=stream,
            start_new_session=True,
        )


def _shown(master: int, typed: list[str]) -> str:
    """All that is printed to a terminal until the program ends."""
    shown = b""
    answered = 0
    while piece := _read(master):
        shown += piece
        while typed and shown.count(PROMPT.encode()) > answered:
            answered += 1
            os.write(master, f"{typed.pop(0)}\n".encode())
    return str(shown, "utf-8")


def _read(master: int) -> bytes:
    try:
        return os.read(master, 65536)
    except OSError:  # Linux says so when the last program has left the terminal
        return b""


@pytest.fixture
def terminal(installation: Installation, tmp_path: Path) -> Terminal:
    """The program, in an empty folder."""
    folder, site = tmp_path / "work", tmp_path / "site"
    folder.mkdir()
    site.mkdir()
    return Terminal(installation, site, folder)


@pytest.fixture
def snapshot() -> Callable[[str, str], None]:
    """Compares a text with the stored one of that name, or stores it where `UPDATE_SNAPSHOTS` is set."""

    def compare(name: str, text: str) -> None:
        file = SNAPSHOTS / f"{name}.txt"
        printed = text.replace("\x1b", "␛")
        if os.environ.get(UPDATE):
            file.write_text(printed, "utf-8")
        stored = file.read_text("utf-8") if file.is_file() else ""
        if stored != printed:
            lines = difflib.unified_diff(stored.splitlines(), printed.splitlines(), "stored", "printed", lineterm="")
            told = "\n".join(lines) or "they differ in the ends of their lines"
            how = f"where the new output is right, set {UPDATE}=1 and run this test again"
            pytest.fail(f"{file.name} is not what the program prints; {how}\n{told}", pytrace=False)

    return compare
