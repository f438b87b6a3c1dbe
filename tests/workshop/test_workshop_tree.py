"""What holds for the tree as a whole: distributions, pins, test files, texts."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DISTRIBUTIONS = [
    ROOT / "hookspecs",
    ROOT / "core",
    *sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml")),
]
NAMES = [str(path.relative_to(ROOT)) for path in DISTRIBUTIONS]
REGISTRIES = ["py" + "pi.org", "python" + "hosted.org", "registry." + "npmjs"]
MACHINE_PATH = re.compile(r"(?<![\w.)}\]>-])/(work|root|home|opt|Users)/")


def project(folder: Path) -> dict[str, object]:
    data: dict[str, object] = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))
    return data


def texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the tree that is ours."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name == ".ci" or not name.startswith((".", "__pycache__"))]
        for file in (Path(folder, name) for name in files):
            if file.suffix not in {".png", ".db", ".pyc", ".whl", ".gz"} and not file.name.endswith(("-wal", "-shm")):
                yield file.relative_to(ROOT), file.read_text("utf-8")


@pytest.mark.parametrize("folder", DISTRIBUTIONS, ids=NAMES)
def test_a_distribution_is_whole(folder: Path) -> None:
    data = project(folder)
    table = data["project"]
    assert isinstance(table, dict)
    package = table["name"].replace("-", "_")
    assert data["build-system"] == {"requires": ["hatchling"], "build-backend": "hatchling.build"}
    assert (table["license"], table["requires-python"]) == ("MIT", ">=3.11")
    assert (folder / "src" / package / "py.typed").is_file()
    assert len((folder / "README.md").read_text("utf-8").split()) > 40
    assert table["readme"] == "README.md"


@pytest.mark.parametrize("folder", DISTRIBUTIONS[2:], ids=NAMES[2:])
def test_a_plugin_depends_on_the_contract_of_its_version(folder: Path) -> None:
    table = project(folder)["project"]
    assert isinstance(table, dict)
    assert "hookloop-hookspecs==0.1.0" in table["dependencies"]
    assert "hookloop" not in {re.split(r"[^\w-]", name, maxsplit=1)[0] for name in table["dependencies"]} or any(
        group == "hookloop.commands" for group in table["entry-points"]
    )


def test_every_distribution_is_installed_for_development() -> None:
    lines = (ROOT / "requirements-dev.txt").read_text("utf-8").splitlines()
    installed = [line.removeprefix("-e ./").partition("[")[0] for line in lines if line.startswith("-e ")]
    assert sorted(installed) == sorted(NAMES)


def test_the_type_checker_knows_every_distribution() -> None:
    tool = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]
    sources = [path for path in tool["mypy"]["mypy_path"] if not path.startswith("tests/")]
    assert sorted(sources) == sorted(f"{name}/src" for name in NAMES)


def test_pins_are_exact_and_name_no_address() -> None:
    lines = [line for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines() if line[:1] not in ("#", "")]
    assert lines
    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []


def _words(file: Path) -> tuple[str, ...]:
    """What the names of a room's tests may begin with: the room, in the kit's room also the part of the kit."""
    room = file.parent.name
    return (room, "kit", "server") if room == "testing" else (room,)


def test_what_tests_import_is_pinned() -> None:
    pins = {_normal(line.partition("==")[0]) for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()}
    makers = packages_distributions()
    missing = {
        name
        for name in _imported(ROOT / "tests")
        if name in makers and not name.startswith("hookloop") and not {_normal(made) for made in makers[name]} & pins
    }
    assert missing == set()


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _imported(folder: Path) -> set[str]:
    """The top names of what the modules below a folder import."""
    found = set()
    for file in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add(str(node.module).partition(".")[0])
    return found


def test_test_files_have_unique_names_that_say_their_room() -> None:
    files = list((ROOT / "tests").rglob("test_*.py"))
    assert [name for name, count in Counter(path.name for path in files).items() if count > 1] == []
    misplaced = [path for path in files if not path.name.startswith(tuple(f"test_{word}_" for word in _words(path)))]
    assert misplaced == []
    assert [path for path in (ROOT / "tests").rglob("__init__.py") if "src" not in path.parts] == []


def test_texts_name_no_registry_and_no_path_of_a_machine() -> None:
    faults = []
    for path, text in texts():
        faults += [f"{path}: {host}" for host in REGISTRIES if host in text]
        if path.name != "compose.yaml":  # its paths are those of its containers
            faults += [f"{path}: {match.group()}" for match in MACHINE_PATH.finditer(text)]
    assert faults == []


def test_a_machine_path_would_be_seen() -> None:
    assert MACHINE_PATH.search("see " + "/home" + "/me/x")
    assert MACHINE_PATH.search('"' + "/opt" + '/thing"')
    assert not MACHINE_PATH.search("plugins/opt/x and ./home/x")


def test_the_root_refuses_to_be_installed_and_says_what_to_install(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", str(tmp_path), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "pip install ./hookspecs ./core" in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []
