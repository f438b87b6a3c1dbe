"""Putting an agent together: parameters and config into plugins, memories, and what every turn is given."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hookloop_hookspecs import ConfigError, MemoryCapabilities

from . import discovery
from .config import Config, config_from
from .config_tables import MemoryTable
from .discovery import LoadReport, MemoryReport
from .engine.run import MemoryFacts, Placement
from .hiding import hidden_url
from .hooks import Registered
from .memory import InProcessMemory
from .names import one_line
from .parameters import check_apart, check_parameters, listed

LOG = logging.getLogger("hookloop")
EITHER = ("model", "memory", "instructions", "limits", "settings")
"""What is given as a parameter or in the configuration, but not as both."""


@dataclass(frozen=True, slots=True)
class Parts:
    """All plugins of an agent in order, the memories among them, and the report of what was loaded."""

    registered: tuple[Registered, ...]
    memories: tuple[MemoryFacts, ...]
    objects: tuple[Any, ...]
    report: LoadReport


def config_of(config: Config | Mapping[str, Any] | None, parameters: Mapping[str, object]) -> Config:
    """The configuration of an agent.

    Raises `ConfigError` for a parameter of a wrong kind, and for a key that is also given as a parameter.
    """
    check_parameters(parameters)
    if not isinstance(config, Config | Mapping | None):
        raise ConfigError(f"config is {config!r:.60}; give a table, or a file to Agent.from_config")
    read = config if isinstance(config, Config) else config_from(config or {}, os.environ)
    for name, value in parameters.items():
        if value is not None and name in EITHER and name in read.given:
            raise ConfigError(f"{name} is given as a parameter and at {read.where(name)}; keep one of the two")
    return read


def assemble(config: Config, plugins: Sequence[object], memory: Any) -> Parts:
    """Load and order what an agent is made of. Raises `ConfigError`."""
    plugins, memories = listed("plugins", plugins), _listed(memory)
    check_apart(plugins, memories or ())
    by_name = bool(config.path or config.auto or config.plugins or config.order) or any(
        isinstance(one, str) for one in plugins
    )
    activation = discovery.activate(config, plugins, look=by_name)
    activation.check()
    for words in activation.warnings:
        LOG.warning("%s", one_line(words))
    hooks = [
        Registered(
            one.name,
            one.plugin,
            one.version,
            one.settings.on_error or "raise",
            one.settings.disable_after,
            one.settings.timeout,
            frozenset(one.settings.off),
        )
        for one in activation.active
    ]
    tables = _tables(config, memories)
    named = _named([found for _, found in tables], {one.name for one in hooks})
    facts = _facts(tables, named)
    stores = [
        Registered(name, found, str(getattr(found, "version", "")))
        for name, (_, found) in zip(named, tables, strict=True)
    ]
    report = replace(activation.report, memories=tuple(_reports(tables, facts)))
    return Parts((*hooks, *stores), facts, tuple(found for _, found in tables), report)


def _listed(memory: Any) -> list[Any] | None:
    """The memories that a program gave, one or several; None for none."""
    if memory is None:
        return None
    several = isinstance(memory, Iterable) and not isinstance(memory, str | type)
    return listed("memory", memory if several else [memory])


def _tables(config: Config, memories: list[Any] | None) -> list[tuple[MemoryTable, Any]]:
    """Each memory with its table; an agent whose memories load nothing gets one of its own."""
    found = discovery.configured_memories(config) if memories is None else [_table(item) for item in memories]
    if not any("load_memory" in discovery.implemented(item) for _, item in found):
        found.insert(0, (MemoryTable(url="memory:"), InProcessMemory()))
    return found


def _table(item: Any) -> tuple[MemoryTable, Any]:
    if isinstance(item, str):
        return MemoryTable(url=item), discovery.memory(item)
    return MemoryTable(url=discovery.name_of(item)), item


def _named(memories: Sequence[Any], taken: set[str]) -> list[str]:
    """A name for each memory, not that of any plugin."""
    names: list[str] = []
    for memory in memories:
        base = name = discovery.name_of(memory)
        count = 1
        while name in taken:
            count += 1
            name = f"{base}-{count}"
        taken.add(name)
        names.append(name)
    return names


def _facts(tables: Sequence[tuple[MemoryTable, Any]], names: Sequence[str]) -> tuple[MemoryFacts, ...]:
    facts: list[MemoryFacts] = []
    owned = False
    for name, (table, memory) in zip(names, tables, strict=True):
        hooks = discovery.implemented(memory)
        owns = "load_memory" in hooks and not owned
        owned = owned or owns
        capabilities = getattr(memory, "capabilities", None)
        if not isinstance(capabilities, MemoryCapabilities):
            raise ConfigError(
                f"memory {name!r} declares no capabilities; set capabilities = MemoryCapabilities(…) on it"
            )
        placement = _placement(name, capabilities, table, owns)
        writes, loads = "persist_memory" in hooks, "load_memory" in hooks
        facts.append(MemoryFacts(name, capabilities, placement, owns, writes, loads))
    return tuple(facts)


def _placement(name: str, capabilities: MemoryCapabilities, table: MemoryTable, owns: bool) -> Placement:
    """Where a memory stands. Inside needs a store that keeps tool messages, and is for the history's owner."""
    if table.placement == "inside" and not capabilities.tool_messages:
        raise ConfigError(
            f"memory {name!r} is to stand inside the loop, but does not declare tool_messages; "
            "take the placement out, or use a memory that keeps every entry kind"
        )
    if table.placement == "inside" and not owns:
        raise ConfigError(
            f"memory {name!r} is to stand inside the loop, but another one owns the history; put it first"
        )
    return table.placement or ("inside" if capabilities.tool_messages and owns else "outside")


def _reports(tables: Sequence[tuple[MemoryTable, Any]], facts: Sequence[MemoryFacts]) -> list[MemoryReport]:
    return [
        MemoryReport(hidden_url(table.url), fact.capabilities.flags, fact.placement, _why(fact, table))
        for (table, _), fact in zip(tables, facts, strict=True)
    ]


def _why(fact: MemoryFacts, table: MemoryTable) -> str:
    if table.placement is not None:
        return f"placed {table.placement} by config"
    if not fact.owns:
        return "another memory owns the history, or it loads none"
    if not fact.capabilities.tool_messages:
        return "does not declare tool_messages"
    if not fact.capabilities.durable:
        return "keeps every entry kind; not durable, so turns that wait or were interrupted go on in this process alone"
    return "keeps every entry kind"
