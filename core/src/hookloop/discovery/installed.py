"""What is installed, and loading it: the only module that knows stevedore.

What must live here: which names the entry-point groups hold, from which distributions, and importing one of them. What
must never be known here: options (`building`), which plugins are switched on (`activation`), what plugins do.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from hookloop.hiding import told
from hookloop.names import nearest, suggest
from hookloop_hookspecs import ConfigError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from stevedore import NamedExtensionManager

Group: TypeAlias = Literal["hookloop.plugins", "hookloop.memory", "hookloop.providers", "hookloop.commands"]
PLUGINS: Final[Group] = "hookloop.plugins"
MEMORY: Final[Group] = "hookloop.memory"
PROVIDERS: Final[Group] = "hookloop.providers"
COMMANDS: Final[Group] = "hookloop.commands"

NOUNS: Final[dict[Group, str]] = {
    PLUGINS: "plugin",
    MEMORY: "memory scheme",
    PROVIDERS: "provider prefix",
    COMMANDS: "command",
}
CONTRACT: Final = "hookloop-hookspecs"

SHIPPED: Final[dict[Group, dict[str, tuple[str, ...]]]] = {
    PROVIDERS: {
        "hookloop-openai": (
            *("openai", "azure", "deepseek", "mistral", "gemini", "ollama"),
            *("vllm", "llamacpp", "groq", "openrouter", "together", "xai"),
        ),
        "hookloop-anthropic": ("anthropic",),
        "hookloop-booking": ("offline",),
    },
    MEMORY: {
        "hookloop-sql": ("sqlite", "postgresql", "mysql", "mariadb"),
        "hookloop-redis": ("redis", "rediss"),
        "hookloop-transcript": ("transcript",),
    },
    PLUGINS: {f"hookloop-{name}": (name,) for name in ("feedback", "prompt-log", "booking", "fallback")},
    COMMANDS: {"hookloop-booking": ("demo",), "hookloop-web": ("web",)},
}
"""Which distribution to install for a name that is not there. Only words for an error; nothing is loaded by it."""


@dataclass(frozen=True, slots=True)
class Found:
    """An entry point: its name and group, `value` ("package.module:object"), and where it comes from."""

    name: str
    group: Group
    value: str
    distribution: str
    version: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a name cannot be used: `cause` in words, `error` where one was raised."""

    name: str
    group: Group
    distribution: str
    version: str
    cause: str
    error: BaseException | None = field(default=None, compare=False)

    def __str__(self) -> str:
        source = f" ({self.distribution} {self.version})" if self.distribution else ""
        return f"{NOUNS[self.group]} {self.name!r}{source}: {self.cause}"


def survey(group: Group) -> tuple[dict[str, Found], list[Problem]]:
    """What is installed in a group, and the names that two distributions claim. Imports nothing."""
    by_name: defaultdict[str, list[EntryPoint]] = defaultdict(list)
    for point in _points(group):
        by_name[point.name].append(point)
    found = {name: _found(points[0], group) for name, points in sorted(by_name.items())}
    return found, [_duplicate(group, points) for points in by_name.values() if len(points) > 1]


def available(group: Group) -> dict[str, Found]:
    """What is installed in a group, by name. Imports nothing."""
    return survey(group)[0]


def known_problems(group: Group) -> dict[str, Problem]:
    """What can be told to be wrong with the entry points of a group by their metadata alone. Imports nothing."""
    found, duplicates = survey(group)
    wrong = {problem.name: problem for problem in duplicates}
    for name in found.keys() - wrong.keys():
        if cause := _metadata_fault(found[name]):
            wrong[name] = _problem(found[name], cause)
    return wrong


def load(group: Group, names: Collection[str]) -> tuple[dict[str, object], list[Problem]]:
    """Import the named entry points of a group, and no other.

    Returns what could be imported by name, and a problem for each name that is not installed, is claimed twice, needs
    another contract, or raises while it is imported, whatever it is but Ctrl-C.
    """
    found, duplicates = survey(group)
    problems = [problem for problem in duplicates if problem.name in names]
    wrong = {problem.name for problem in problems}
    objects: dict[str, object] = {}
    for name in (name for name in names if name not in wrong):
        loaded = _load(found[name]) if name in found else _missing(group, name, found)
        if isinstance(loaded, Problem):
            problems.append(loaded)
        else:
            objects[name] = loaded.plugin
    return objects, problems


def load_one(group: Group, name: str, place: str = "") -> object:
    """Import one entry point. Raises `ConfigError` with the problem's words, behind the `place` that asked for it."""
    objects, problems = load(group, [name])
    for problem in problems:
        raise ConfigError(f"{place}: {problem}" if place else str(problem)) from problem.error
    return objects[name]


def distribution_for(group: Group, name: str) -> str | None:
    """The distribution of this project that brings `name`, whether or not it is installed."""
    return next((made for made, names in SHIPPED[group].items() if name in names), None)


@dataclass(frozen=True, slots=True)
class _Loaded:
    plugin: object


def _load(found: Found) -> _Loaded | Problem:
    if cause := _metadata_fault(found):
        return _problem(found, cause)
    failures: list[BaseException] = []
    try:
        manager = _manager()(
            found.group,
            [found.name],
            on_load_failure_callback=lambda _manager, _point, error: failures.append(error),
            on_missing_entrypoints_callback=None,
        )
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a module may end the program, be skipped by a test runner, …
        failures.append(error)
    if failures:
        return _problem(found, _words(failures[0]), failures[0])
    return _Loaded(manager.extensions[0].plugin)


@cache
def _manager() -> type[NamedExtensionManager[Any]]:
    """stevedore's, imported when something is loaded, and reading what is installed now (it keeps a list of its own)."""
    from stevedore import NamedExtensionManager

    class Manager(NamedExtensionManager[Any]):
        def list_entry_points(self) -> list[EntryPoint]:
            return _points(self.namespace)

    return Manager


def _words(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"its module tried to end the program (SystemExit: {error})"
    return told(f"{type(error).__name__}: {error}")


def _found(point: EntryPoint, group: Group) -> Found:
    made = point.dist
    return Found(point.name, group, point.value, made.name if made else "", made.version if made else "")


def _duplicate(group: Group, points: Iterable[EntryPoint]) -> Problem:
    claims = [_found(point, group) for point in points]
    sources = " and ".join(f"{claim.distribution} {claim.version} ({claim.value})" for claim in claims)
    return Problem(claims[0].name, group, "", "", f"is claimed by {sources}; uninstall one of them")


def _missing(group: Group, name: str, known: Iterable[str]) -> Problem:
    return Problem(name, group, "", "", absent(group, name, known))


def absent(group: Group, name: str, known: Iterable[str]) -> str:
    """Why a name that is not `known` is not there: what to install, or the nearest name."""
    if made := distribution_for(group, name):
        return f"is not installed; pip install {made}"
    hint = suggest(name, known)
    ours = {name: made for made, names in SHIPPED[group].items() for name in names}
    if "did you mean" not in hint and (near := nearest(name, ours)):
        return f"is not known; did you mean {near!r}? pip install {ours[near]}"
    return f"is not known{hint}"


def _problem(found: Found, cause: str, error: BaseException | None = None) -> Problem:
    return Problem(found.name, found.group, found.distribution, found.version, cause, error)


def _metadata_fault(found: Found) -> str | None:
    """What is wrong with an entry point, as far as it can be told without importing it."""
    from importlib.metadata import EntryPoint

    if EntryPoint.pattern.fullmatch(found.value) is None:
        return f"its entry point is {found.value!r}; it must be written like package.module:Class"
    return _contract_fault(found)


def _contract_fault(found: Found) -> str | None:
    """What the distribution asks of the contract, where the installed one does not satisfy it."""
    from packaging.requirements import InvalidRequirement, Requirement  # only when something is loaded

    installed = _version(CONTRACT)
    for text in _requires(found):
        try:
            wanted = Requirement(text)
        except InvalidRequirement as error:
            return f"requires {text!r}, which is no requirement: {error}"
        holds_here = wanted.marker is None or wanted.marker.evaluate({"extra": ""})
        if holds_here and not wanted.specifier.contains(installed, prereleases=True):
            return f"needs {CONTRACT}{wanted.specifier}; {installed} is installed"
    return None


def _requires(found: Found) -> list[str]:
    """What it requires of the contract, as its metadata writes it."""
    points = [point for point in _points(found.group) if point.name == found.name]
    texts = [text for point in points if point.dist for text in point.dist.requires or ()]
    return [text for text in texts if re.match(rf"{CONTRACT.replace('-', '[-_.]')}\b(?![-_.])", text, re.IGNORECASE)]


def _points(group: str) -> list[EntryPoint]:
    """All entry points of a group, read anew; importing what reads them waits until it is needed."""
    from importlib.metadata import entry_points

    return list(entry_points(group=group))


def _version(distribution: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        return "0"
