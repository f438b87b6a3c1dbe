"""Memories and providers: what is installed, what of it the configuration uses, and what of it cannot be used.

What must live here: reporting. Only what the configuration uses is imported, and nothing is made, so that no store is
opened and no key is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hookloop.config import Config
from hookloop.config_file import Keys
from hookloop.hiding import hidden_url
from hookloop_hookspecs import ConfigError

from .building import options_of, validated
from .installed import MEMORY, PROVIDERS, Group, available, known_problems, load_one
from .report import PartReport
from .resolving import memory_place, provider_options, provider_place, scheme_of, split


@dataclass(frozen=True, slots=True)
class _Use:
    """One use of an entry point: which, why, with which options, and where it and they were set."""

    name: str
    why: str
    place: str
    options: Mapping[str, Any]
    label: str
    where: Callable[[Keys], str]


def memories(config: Config) -> list[PartReport]:
    """Every memory scheme: those that are used first, then by name."""
    return _reported(MEMORY, [_memory(config, at) for at in range(len(config.memory))])


def providers(config: Config) -> list[PartReport]:
    """Every provider prefix: that of the model first, then by name."""
    return _reported(PROVIDERS, [_provider(config)] if config.model else [])


def _memory(config: Config, at: int) -> PartReport:
    table, where = config.memory[at], memory_place(at, config)
    url, place = hidden_url(table.url), where(())
    try:
        name = scheme_of(table.url, place)
    except ConfigError as error:
        return PartReport(url, "failed", str(error), needed=True)
    return _tried(MEMORY, _Use(name, f"{url} at {place}", place, table.options, f"memory {url!r}", where))


def _provider(config: Config) -> PartReport:
    place = config.where("model")
    try:
        prefix, _ = split(config.model, config.profiles)
    except ConfigError as error:
        return PartReport(config.model, "failed", f"{place}: {error}", needed=True)
    name, options = provider_options(prefix, config)
    profile = f", as [profiles.{prefix}] says" if prefix in config.profiles else ""
    why = f"{config.model} at {place}{profile}"
    return _tried(PROVIDERS, _Use(name, why, place, options, f"provider {prefix!r}", provider_place(prefix, config)))


def _tried(group: Group, use: _Use) -> PartReport:
    """What comes of importing it and of reading its options."""
    found = available(group).get(use.name)
    source = (found.distribution, found.version) if found else ("", "")
    try:
        model = options_of(load_one(group, use.name, use.place), use.label)
        if model is not None:
            validated(model, use.options, use.label, use.where)
    except ConfigError as error:
        return PartReport(use.name, "failed", str(error), *source, needed=True)
    return PartReport(use.name, "used", use.why, *source, needed=True)


def _reported(group: Group, used: list[PartReport]) -> list[PartReport]:
    seen = {report.name for report in used}
    return [*used, *(report for report in _others(group) if report.name not in seen)]


def _others(group: Group) -> Iterator[PartReport]:
    problems = known_problems(group)
    for name, found in available(group).items():
        if name in problems:
            wrong = problems[name]
            yield PartReport(name, "failed", str(wrong), wrong.distribution, wrong.version)
        else:
            yield PartReport(name, "installed", "", found.distribution, found.version)
