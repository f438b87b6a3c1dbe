"""The import rules of the rooms, read from the sources; and a planted violation of each, found."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CORE = Path("core/src/hookloop")
LOOP = CORE / "engine"
NOT_IN_THE_LOOP = {"asyncio", "time", "random", "pluggy", "stevedore", "threading", "anyio", "concurrent", "datetime"}
ONLY_IN = {
    "stevedore": (CORE / "discovery",),
    "pluggy": (CORE / "hooks.py",),
    "typer": (CORE / "cli",),
    "rich": (CORE / "cli",),
    "tomlkit": (CORE / "cli",),
}


@dataclass(frozen=True)
class Import:
    """One imported module: where the statement stands, and the module's absolute dotted name."""

    file: Path
    line: int
    module: str

    @property
    def top(self) -> str:
        return self.module.partition(".")[0]

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.module}"


def sources(root: Path, folder: Path | str) -> list[Path]:
    return sorted(path.relative_to(root) for path in (root / folder).rglob("*.py"))


def package_of(file: Path) -> list[str]:
    """The dotted package in which relative imports of `file` start (everything behind `src/`)."""
    parts = file.parts[file.parts.index("src") + 1 :] if "src" in file.parts else ()
    return list(parts[:-1])


def absolute(node: ast.ImportFrom, file: Path) -> Iterator[str]:
    package = package_of(file)
    base = package[: len(package) - node.level + 1] if node.level else []
    module = ".".join([*base, node.module or ""]).strip(".")
    for alias in node.names:
        yield f"{module}.{alias.name}"


def by_name(node: ast.Call) -> Iterator[str]:
    """`import_module("x")` and `__import__("x")`."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    first = node.args[0] if node.args else None
    if name in ("import_module", "__import__") and isinstance(first, ast.Constant) and isinstance(first.value, str):
        yield first.value


def imports(root: Path, file: Path) -> Iterator[Import]:
    for node in ast.walk(ast.parse((root / file).read_text("utf-8"))):
        names: Iterator[str] = iter(())
        if isinstance(node, ast.Import):
            names = (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names = absolute(node, file)
        elif isinstance(node, ast.Call):
            names = by_name(node)
        yield from (Import(file, getattr(node, "lineno", 0), name) for name in names)


def foreign(root: Path, folder: Path | str) -> Iterator[Import]:
    """The imports below `folder` that are not of the standard library."""
    for file in sources(root, folder):
        yield from (found for found in imports(root, file) if found.top not in sys.stdlib_module_names)


def plugin_folders(root: Path) -> list[Path]:
    return sorted(path.parent for path in root.glob("plugins/*/pyproject.toml"))


def plugin_packages(root: Path) -> set[str]:
    return {path.parent.name for path in root.glob("plugins/*/src/*/__init__.py")}


def contract_faults(root: Path) -> Iterator[str]:
    allowed = {"hookloop_hookspecs", "pluggy", "pydantic", "pydantic_core"}  # the last one is pydantic's own half
    for found in foreign(root, "hookspecs/src"):
        if found.top not in allowed:
            yield f"{found}; the contract imports the standard library, pluggy and pydantic"


def core_faults(root: Path) -> Iterator[str]:
    plugins = plugin_packages(root)
    for found in foreign(root, CORE):
        if found.top in plugins or (found.top.startswith("hookloop_") and found.top != "hookloop_hookspecs"):
            yield f"{found}; core finds plugins by entry point only"
        homes = ONLY_IN.get(found.top, ())
        if homes and not any(found.file.is_relative_to(home) for home in homes):
            yield f"{found}; only {', '.join(map(str, homes))} may"


def module_file(root: Path, module: str) -> Path | None:
    """The file in core that holds `module`, or the module of which it is a name."""
    parts = module.split(".")
    while len(parts) > 1:
        stem = Path("core/src", *parts)
        for file in (stem.with_suffix(".py"), stem / "__init__.py"):
            if (root / file).is_file():
                return file
        parts.pop()
    return None


def loop_files(root: Path) -> set[Path]:
    """The loop's modules, and whatever in core they reach."""
    seen: set[Path] = set()
    todo = sources(root, LOOP)
    while todo:
        file = todo.pop()
        if file not in seen:
            seen.add(file)
            reached = (module_file(root, found.module) for found in imports(root, file) if found.top == "hookloop")
            todo += [path for path in reached if path is not None]
    return seen


def loop_faults(root: Path) -> Iterator[str]:
    for file in sorted(loop_files(root)):
        for found in imports(root, file):
            if found.top in NOT_IN_THE_LOOP:
                yield f"{found}; the loop knows no clock, chance, thread or event loop"


def command_modules(project: dict[str, object], source: Path) -> set[Path]:
    """The files behind the distribution's `hookloop.commands` entry points."""
    points = project.get("entry-points", {})
    values = points.get("hookloop.commands", {}).values() if isinstance(points, dict) else ()
    stems = [source.joinpath(*value.partition(":")[0].split(".")) for value in values]
    return {file for stem in stems for file in (stem.with_suffix(".py"), stem / "__init__.py")}


def declared(project: dict[str, object]) -> set[str]:
    """The distributions that a project names, optional ones too, in normal form."""
    wanted = list(project.get("dependencies", ()))  # type: ignore[call-overload]  # a parsed TOML list
    for extra in project.get("optional-dependencies", {}).values():  # type: ignore[attr-defined]  # a parsed TOML table
        wanted += extra
    return {normal(re.split(r"[^\w.-]", name, maxsplit=1)[0]) for name in wanted}


def normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def plugin_faults(root: Path) -> Iterator[str]:
    known = packages_distributions()
    for folder in plugin_folders(root):
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        source = folder.relative_to(root) / "src"
        commands, allowed = command_modules(project, source), declared(project)
        own = {path.parent.name for path in (root / source).glob("*/__init__.py")}
        for found in foreign(root, source):
            if found.top == "hookloop":
                if found.file not in commands:
                    yield f"{found}; a plugin imports hookloop_hookspecs, only a command's module hookloop"
            elif found.top not in own and not {normal(name) for name in known.get(found.top, [found.top])} & allowed:
                yield f"{found}; {folder.name}/pyproject.toml does not declare it"


RULES: dict[str, Callable[[Path], Iterator[str]]] = {
    "contract": contract_faults,
    "core": core_faults,
    "loop": loop_faults,
    "plugins": plugin_faults,
}


@pytest.mark.parametrize("rule", RULES)
def test_the_rooms_keep_their_import_rules(rule: str) -> None:
    assert list(RULES[rule](ROOT)) == []


PLANTED = [
    ("contract", "hookspecs/src/hookloop_hookspecs/a.py", "import anyio"),
    ("contract", "hookspecs/src/hookloop_hookspecs/a.py", "from hookloop import Agent"),
    ("core", "core/src/hookloop/a.py", "import hookloop_openai"),
    ("core", "core/src/hookloop/a.py", "def f():\n    from hookloop_booking.tools import x"),
    ("core", "core/src/hookloop/a.py", "from importlib import import_module\nimport_module('hookloop_sql')"),
    ("core", "core/src/hookloop/agent.py", "from stevedore import named"),
    ("core", "core/src/hookloop/agent.py", "import pluggy._hooks"),
    ("core", "core/src/hookloop/config.py", "import tomlkit"),
    ("core", "core/src/hookloop/testing/a.py", "from rich.console import Console"),
    ("loop", "core/src/hookloop/engine/a.py", "import asyncio"),
    ("loop", "core/src/hookloop/engine/phases/a.py", "def f():\n    from time import monotonic"),
    ("loop", "core/src/hookloop/engine/a.py", "from ..clock import now"),
    ("plugins", "plugins/p/src/hookloop_p/a.py", "from hookloop.agent import Agent"),
    ("plugins", "plugins/p/src/hookloop_p/a.py", "import sqlalchemy"),
    ("plugins", "plugins/p/src/hookloop_p/a.py", "import hookloop_q"),
]

CLEAN = {
    "core/src/hookloop/discovery/installed.py": "import stevedore\nimport typing",
    "core/src/hookloop/hooks.py": "import pluggy",
    "core/src/hookloop/clock.py": "import time",
    "core/src/hookloop/cli/app.py": "import typer, rich, tomlkit\nfrom .. import agent",
    "core/src/hookloop/engine/b.py": "from hookloop_hookspecs import Message\nfrom ..log import Log",
    "core/src/hookloop/log.py": "import json",
    "hookspecs/src/hookloop_hookspecs/b.py": "import pluggy\nfrom pydantic import BaseModel\nfrom .c import d",
    "plugins/p/src/hookloop_p/__init__.py": "from hookloop_hookspecs import hookimpl\nfrom . import b\nimport pytest",
    "plugins/p/src/hookloop_p/cmd.py": "from hookloop import Agent",
    "plugins/p/pyproject.toml": (
        '[project]\nname = "hookloop-p"\ndependencies = ["hookloop-hookspecs==0.1.0", "pytest>=8"]\n'
        '[project.entry-points."hookloop.commands"]\ndemo = "hookloop_p.cmd:demo"\n'
    ),
}


def plant(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, "utf-8")


@pytest.mark.parametrize("rule", RULES)
def test_a_clean_tree_has_no_fault(tmp_path: Path, rule: str) -> None:
    plant(tmp_path, CLEAN)
    assert list(RULES[rule](tmp_path)) == []


@pytest.mark.parametrize(("rule", "file", "text"), PLANTED)
def test_a_planted_violation_is_found(tmp_path: Path, rule: str, file: str, text: str) -> None:
    plant(tmp_path, CLEAN | {file: text})
    faults = list(RULES[rule](tmp_path))
    assert len(faults) == 1
    assert "imports" in faults[0]
