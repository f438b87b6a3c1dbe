"""`hookloop check`: what is wrong with an installed plugin, provider or memory, in words its author can act on."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer
from rich.console import Console

from hookloop.config_file import value_of
from hookloop.discovery import (
    MEMORY,
    PLUGINS,
    PROVIDERS,
    BuildError,
    Found,
    Group,
    available,
    build,
    load_one,
    memory,
)
from hookloop.discovery.installed import NOUNS
from hookloop.discovery.resolving import provider_options
from hookloop.names import suggest
from hookloop_hookspecs import ConfigError

from . import check_provider
from .config_commands import AsJson, current
from .terminal import joined, labelled, out, print_json, wrapped

KINDS: tuple[Group, ...] = (PLUGINS, MEMORY, PROVIDERS)
COLOURS = {"pass": "green", "fail": "bold red", "skip": "dim"}


@dataclass(frozen=True)
class Line:
    """One check and what came of it; `asks` says what it asks for, where its name alone does not."""

    of: str
    check: str
    status: Literal["pass", "fail", "skip"]
    reason: str = ""
    asks: str = ""


@dataclass(frozen=True)
class Target:
    """What is to be checked: the name of an entry point, the whole of what was written, and options given by hand."""

    group: Group
    name: str
    text: str
    options: Mapping[str, Any]

    @property
    def of(self) -> str:
        """What it is called in the report."""
        return f"{NOUNS[self.group]} {self.name}"


def check(
    target: Annotated[
        str,
        typer.Argument(
            help="A plugin's name, a memory's URL, a provider's prefix (or prefix:model), or a distribution's folder.",
            autocompletion=lambda incomplete: [
                name for group in KINDS for name in available(group) if name.startswith(incomplete)
            ],
        ),
    ],
    option: Annotated[
        list[str] | None,
        typer.Option("--option", "-o", metavar="NAME=VALUE", help="An option for it; may be given several times."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check an installed plugin, memory or provider, and say what its author should change.

    A provider is pointed at a server of this machine; no model is asked. A memory's URL is written to: give one for
    trying out. Options are those of the configuration, and those given by --option.
    """
    lines = list(checked(target, dict(map(_option, option or ()))))
    if as_json:
        print_json(lines)
    else:
        _print(out(), lines)
    raise typer.Exit(1 if any(line.status == "fail" for line in lines) else 0)


def _option(text: str) -> tuple[str, Any]:
    name, equals, value = text.partition("=")
    if not (name and equals):
        raise ConfigError(f"--option {text!r} is not of the form NAME=VALUE")
    return name.strip(), value_of(value)


def checked(text: str, options: Mapping[str, Any] | None = None) -> Iterator[Line]:
    """All checks of a target. Raises `ConfigError` where it names nothing."""
    for group, name in _named(text):
        yield from _checked(Target(group, name, text, options or {}))


def _checked(target: Target) -> Iterator[Line]:
    name = target.name
    if target.group == PROVIDERS:
        name, _ = provider_options(name, current())
    try:
        loaded = load_one(target.group, name)
    except ConfigError as error:
        yield Line(target.of, "loads", "fail", str(error))
        return
    yield Line(target.of, "loads", "pass")
    yield _options(target.of, loaded)
    yield from _CHECKERS[target.group](target, loaded)


def _named(target: str) -> Iterator[tuple[Group, str]]:
    folder = Path(target)
    if (folder / "pyproject.toml").is_file():
        yield from _of_folder(folder)
        return
    name = target.partition(":")[0]
    names = {group: [*available(group)] for group in KINDS}
    names[PROVIDERS] += current().profiles
    groups = [group for group in KINDS if name in names[group]]
    if not groups:
        known = [known for group in KINDS for known in names[group]]
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


def _plugin(target: Target, loaded: object) -> Iterator[Line]:
    table = current().plugins.get(target.name)
    options = {**(table.options if table else {}), **target.options}
    with _silence():
        report = testing().check_plugin(lambda: build(loaded, options=options, label=target.of))
    yield from _lines(target.of, report, testing().plugin_checks)


@contextmanager
def _silence() -> Iterator[None]:
    """What a plugin prints while it is tried is not the report."""
    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        yield


def _provider(target: Target, loaded: object) -> Iterator[Line]:
    model = target.text.partition(":")[2] or "check"
    options = {**provider_options(target.name, current())[1], **target.options}
    make = check_provider.Maker(loaded, model, options, f"provider {target.name!r}")
    try:
        made = make("http://127.0.0.1:9", make.transports[0])
    except ConfigError as error:
        yield _unmade(target, error)
        return
    ways = [way for way in ("stream", "astream") if callable(getattr(made, way, None))]
    check_provider.close(made)
    if not ways:
        yield Line(target.of, "streams", "fail", "it has neither stream nor astream")
        return
    with _silence():
        verdict = check_provider.look(make, target.name)
    if verdict.report is None:
        yield Line(target.of, "streams", "pass")
        yield Line(target.of, "keeps the contract", "skip", verdict.told)
    else:
        yield Line(target.of, "streams", "pass", verdict.told)
        yield from _lines(target.of, verdict.report, testing().provider_checks)


def _unmade(target: Target, error: ConfigError) -> Line:
    """An option that is missing is the user's to give; whatever else a factory raises is its author's fault."""
    if isinstance(error, BuildError):
        return Line(target.of, "can be made", "fail", str(error))
    if target.options:
        raise error
    words = f"it cannot be made here: {error}; configure it, or give --option NAME=VALUE"
    return Line(target.of, "can be made", "skip", words)


def _memory(target: Target, _loaded: object) -> Iterator[Line]:
    url, of = target.text, target.of
    if not url.startswith(f"{target.name}:"):
        yield Line(of, "keeps what it is given", "skip", f"give a URL that may be written to: {target.name}:…")
        return

    def make(_closed: Any = None) -> Any:
        return memory(url, target.options)

    yield from _lines(of, testing().check_memory(make, reopen=make), testing().memory_checks)


_CHECKERS: Final[Mapping[Group, Callable[[Target, object], Iterator[Line]]]] = {
    PLUGINS: _plugin,
    PROVIDERS: _provider,
    MEMORY: _memory,
}


def testing() -> Any:
    """The testing kit, imported for this command alone."""
    from hookloop import testing as kit

    return kit


def _lines(of: str, report: Any, suite: Any) -> Iterator[Line]:
    asks = {one.name: " ".join((one.rule.__doc__ or "").split("\n\n")[0].split()) for one in suite.CHECKS}
    for result in report.results:
        yield Line(of, result.check, result.status, result.reason, asks[result.check])


def _print(console: Console, lines: list[Line]) -> None:
    for of in dict.fromkeys(line.of for line in lines):
        console.print(of, style="bold", markup=False, soft_wrap=True)
        for line in (line for line in lines if line.of == of):
            console.print(f"  {line.status}  {line.check}", style=COLOURS[line.status], markup=False, soft_wrap=True)
            if line.status == "fail" and line.asks:
                wrapped(console, line.asks, 8, "dim")
            if line.reason:
                labelled(console, "-", line.reason, 8, "" if line.status == "fail" else "dim")
    counts = Counter(line.status for line in lines)
    words = ((counts["pass"], "passed"), (counts["fail"], "failed"), (counts["skip"], "skipped"))
    console.print(joined(f"{count} {word}" for count, word in words if count), style="bold")


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("check")(check)
