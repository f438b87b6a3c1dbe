"""What an agent loaded, from where, in which order, and why: plain data for people and programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

PluginState: TypeAlias = Literal["on", "off", "failed"]
PartState: TypeAlias = Literal["used", "installed", "failed"]


@dataclass(frozen=True, slots=True)
class PluginReport:
    """One hook plugin. `why` says what switched it on or off, or how it failed; `position` counts from 1, outermost
    first, and is None unless it is on; `hooks` are those it implements, `switched_off` those of them that are off."""

    name: str
    state: PluginState
    why: str
    distribution: str = ""
    version: str = ""
    position: int | None = None
    hooks: tuple[str, ...] = ()
    switched_off: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """One memory: its URL without password, the capability flags it declares, where it stands in the loop, and why."""

    url: str
    flags: tuple[str, ...] = ()
    placement: str = ""
    why: str = ""
    distribution: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class PartReport:
    """A memory scheme or a provider prefix: `used` by the configuration and loaded, or `installed` and not imported, or
    `failed`. `why` says what uses it, or how it failed; `needed` says whether the configuration asks for it."""

    name: str
    state: PartState
    why: str = ""
    distribution: str = ""
    version: str = ""
    needed: bool = False


@dataclass(frozen=True, slots=True)
class LoadReport:
    """All plugins that an agent knows of, those that are on first and in order, and its memories.

    `warnings` tell of plugins that were to be on and could not be loaded.
    """

    plugins: tuple[PluginReport, ...] = ()
    memories: tuple[MemoryReport, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def on(self) -> tuple[PluginReport, ...]:
        """The plugins that are on, in order."""
        return tuple(plugin for plugin in self.plugins if plugin.state == "on")

    @property
    def failed(self) -> tuple[PluginReport, ...]:
        """The plugins that could not be loaded."""
        return tuple(plugin for plugin in self.plugins if plugin.state == "failed")

    def plugin(self, name: str) -> PluginReport | None:
        """The report of one plugin."""
        return next((plugin for plugin in self.plugins if plugin.name == name), None)
