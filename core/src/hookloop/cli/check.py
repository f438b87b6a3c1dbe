"""`hookloop check`: what is wrong with an installed plugin, provider or memory, in words its author can act on."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console

from hookloop.discovery import (
    MEMORY,
    PLUGINS,
    PROVIDERS,
    Found,
    Group,
    available,
    build,
    load_one,
    memory,
    provider,
)
from hookloop.discovery.installed import NOUNS
from hookloop.names import suggest
from hookloop_hookspecs import ConfigError

from .config_commands import AsJson, current
from .terminal import joined, labelled, out, print_json

KINDS: tuple[Group, ...] = (PLUGINS, MEMORY, PROVIDERS)
COLOURS = {"pass": "green", "fail": "bold red", "skip": "dim"}


@dataclass(frozen=True)
class Line:
    """One check and what came of it."""

    of: str
    check: str
    status: Literal["pass", "fail", "skip"]
    reason: str = ""


def check(
    target: Annotated[
        str, typer.Argument(help="A plugin's name, a memory's URL, a provider's prefix, or a distribution's folder.")
    ],
    as_json: AsJson = False,
) -> None:
    """Check an installed plugin, memory or provider. A memory's URL is written to: give one for trying out."""
    lines = list(checked(target))
    if as_json:
        print_json(lines)
    else:
        _print(out(), lines)
    raise typer.Exit(1 if any(line.status == "fail" for line in lines) else 0)


def checked(target: str) -> Iterator[Line]:
    """All checks of a target. Raises `ConfigError` where it names nothing."""
    for group, name in _named(target):
        yield from _checked(group, name, target)


def _checked(group: Group, name: str, target: str) -> Iterator[Line]:
    of = f"{NOUNS[group]} {name}"
    try:
        loaded = load_one(group, name)
    except ConfigError as error:
        yield Line(of, "loads", "fail", str(error))
        return
    yield Line(of, "loads", "pass")
    yield _options(of, loaded)
    if group == PLUGINS:
        yield from _plugin(of, name, loaded)
    elif group == PROVIDERS:
        yield from _provider(of, name)
    else:
        yield from _memory(of, target if target.startswith(f"{name}:") else None)


def _named(target: str) -> Iterator[tuple[Group, str]]:
    folder = Path(target)
    if (folder / "pyproject.toml").is_file():
        yield from _of_folder(folder)
        return
    name = target.partition(":")[0]
    groups = [group for group in KINDS if name in available(group)]
    if not groups:
        known = [known for group in KINDS for known in available(group)]
        raise ConfigError(f"no plugin, memory or provider is named {name!r}{suggest(name, known)}")
    for group in groups:
        yield group, name


def _of_folder(folder: Path) -> Iterator[tuple[Group, str]]:
    points = tomllib.loads((folder / "pyproject.toml").read_text("utf-8")).get("project", {}).get("entry-points", {})
    found = [(group, name) for group in KINDS for name in points.get(group, ())]
    if not found:
        raise ConfigError(f"{folder}/pyproject.toml has no entry point in {joined(KINDS)}")
    for group, name in found:
        installed: Found | None = available(group).get(name)
        if installed is None:
            raise ConfigError(f"{NOUNS[group]} {name!r} of {folder} is not installed; pip install -e {folder}")
        yield group, name


def _options(of: str, loaded: object) -> Line:
    model: Any = getattr(loaded, "Options", None)
    if model is None:
        return Line(of, "options are strict", "skip", "it takes no options")
    extra = getattr(model, "model_config", {}).get("extra")
    if extra == "forbid":
        return Line(of, "options are strict", "pass")
    reason = f'a misspelt option would be ignored: set model_config = ConfigDict(extra="forbid") on {model.__name__}'
    return Line(of, "options are strict", "fail", reason)


def _plugin(of: str, name: str, loaded: object) -> Iterator[Line]:
    options = _configured(name)
    with _silence():
        report = testing().check_plugin(lambda: build(loaded, options=options, label=of))
    yield from _lines(of, report)


@contextmanager
def _silence() -> Iterator[None]:
    """What a plugin prints while it is tried is not the report."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        yield


def _configured(name: str) -> Mapping[str, Any]:
    """The options that the configuration has for a plugin; some cannot be made without."""
    table = current().plugins.get(name)
    return table.options if table is not None else {}


def _provider(of: str, name: str) -> Iterator[Line]:
    try:
        made = provider(f"{name}:check")
    except ConfigError as error:
        yield Line(of, "streams", "skip", f"it cannot be made here: {error}")
        return
    fine = hasattr(made, "stream") or hasattr(made, "astream")
    yield Line(of, "streams", "pass") if fine else Line(of, "streams", "fail", "it has neither stream nor astream")
    yield Line(
        of, "keeps the contract", "skip", "its tests can: hookloop.testing.check_provider, with a server of its API"
    )


def _memory(of: str, url: str | None) -> Iterator[Line]:
    if url is None:
        yield Line(of, "keeps what it is given", "skip", "give a URL to try it, for example of an empty database")
        return
    yield from _lines(of, testing().check_memory(lambda: memory(url), reopen=lambda _closed: memory(url)))


def testing() -> Any:
    """The testing kit, imported for this command alone."""
    from hookloop import testing as kit

    return kit


def _lines(of: str, report: Any) -> Iterator[Line]:
    for result in report.results:
        yield Line(of, result.check, result.status, result.reason)


def _print(console: Console, lines: list[Line]) -> None:
    for of in dict.fromkeys(line.of for line in lines):
        console.print(of, style="bold", markup=False, soft_wrap=True)
        for line in (line for line in lines if line.of == of):
            console.print(f"  {line.status}  {line.check}", style=COLOURS[line.status], markup=False, soft_wrap=True)
            if line.reason:
                labelled(console, "-", line.reason, 8)


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("check")(check)
