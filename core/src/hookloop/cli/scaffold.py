"""`hookloop new`: a complete distribution to begin with, which passes its own tests at once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, Final

import typer

from hookloop.config import variable_for
from hookloop.discovery import MEMORY, PLUGINS, PROVIDERS, Group, available
from hookloop_hookspecs import ConfigError

from .terminal import out, writing

app = typer.Typer(help="Make a new distribution: a plugin, a provider or a memory.", no_args_is_help=True)

LONGEST: Final = 36
Name = Annotated[str, typer.Argument(help="Small letters, digits and dashes, e.g. lint-feedback.")]
Into = Annotated[Path, typer.Option("--into", help="The folder in which the new folder is made.")]


@dataclass(frozen=True)
class Kind:
    """A kind of distribution: its entry-point group, what it says of itself, and what else it imports."""

    word: str
    group: Group
    description: str
    imports: tuple[str, ...] = ()
    next_step: str = ""
    check: str = "hookloop check {name}"


PLUGIN: Final = Kind(
    "plugin", PLUGINS, "Reminds the model to check its work.", next_step="hookloop plugins enable {name}"
)
PROVIDER: Final = Kind(
    "provider", PROVIDERS, "Asks a model over HTTP.", ("pydantic>=2.10",), 'hookloop run --model {name}:MODEL "Hello"'
)
STORE: Final = Kind(
    "memory",
    MEMORY,
    "Keeps conversations in files.",
    next_step='write into hookloop.toml: memory = ["{name}:folder"]',
    check="hookloop check {name}:try-out",
)


@app.command("plugin")
def plugin(name: Name, into: Into = Path()) -> None:
    """Make a hook plugin."""
    _make(PLUGIN, name, into)


@app.command("provider")
def provider(name: Name, into: Into = Path()) -> None:
    """Make a provider; its name is the prefix of model names."""
    _make(PROVIDER, name, into)


@app.command("memory")
def memory(name: Name, into: Into = Path()) -> None:
    """Make a memory; its name is the scheme of URLs."""
    _make(STORE, name, into)


def _make(kind: Kind, name: str, into: Path) -> None:
    name = name.removeprefix("hookloop-")
    _check(kind, name)
    folder = into / f"hookloop-{name}"
    if folder.exists():
        raise ConfigError(f"{folder} exists already")
    with writing(folder):
        for path, text in rendered(kind, name):
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, "utf-8")
    _tell(kind, name, folder)


def _check(kind: Kind, name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or len(name) > LONGEST:
        rule = f"small letters, digits and single dashes, at most {LONGEST}"
        raise ConfigError(f"{name!r} is no name for a distribution: {rule}{_instead(name)}")
    found = available(kind.group).get(name)
    if found is not None:
        raise ConfigError(f"{kind.word} {name!r} is installed already, from {found.distribution} {found.version}")


def _instead(name: str) -> str:
    """A name like it that would do, as a hint."""
    plain = re.sub(r"[^a-z0-9]+", "-", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()).strip("-")
    return f"; for example {plain!r}" if re.match("[a-z]", plain) and len(plain) <= LONGEST else ""


def rendered(kind: Kind, name: str) -> Iterator[tuple[str, str]]:
    """The new distribution's files: path and text."""
    words = _words(kind, name)
    package = words["package"]
    yield "pyproject.toml", _fill("common/pyproject.toml", words)
    yield "README.md", _fill(f"{kind.word}/README.md", words)
    yield f"src/{package}/__init__.py", _fill(f"{kind.word}/__init__.py", words)
    yield f"src/{package}/py.typed", ""
    yield f"tests/test_{package}.py", _fill(f"{kind.word}/test.py", words)


def _words(kind: Kind, name: str) -> dict[str, str]:
    contract = f"hookloop-hookspecs=={version('hookloop-hookspecs')}"
    return {
        "name": name,
        "distribution": f"hookloop-{name}",
        "package": f"hookloop_{name.replace('-', '_')}",
        "cls": "".join(part.capitalize() for part in name.split("-")),
        "group": kind.group,
        "description": kind.description,
        "dependencies": ", ".join(f'"{wanted}"' for wanted in (contract, *kind.imports)),
        "version": version("hookloop"),
        "variable": variable_for(name),
    }


def _fill(template: str, words: dict[str, str]) -> str:
    text = files(__package__).joinpath("templates", f"{template}.tmpl").read_text("utf-8")
    return Template(text).substitute(words)


def _tell(kind: Kind, name: str, folder: Path) -> None:
    steps = (f"pip install -e {folder}", kind.next_step.format(name=name), kind.check.format(name=name))
    out().print("\n  ".join((f"{folder} is ready. Next:", *steps)), markup=False, soft_wrap=True)
