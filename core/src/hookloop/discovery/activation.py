"""Which hook plugins are on, in which order, and the truth about the others.

What must live here: reading the configuration's wishes, loading what they ask for, and reporting. What must never be
known here: how hooks are called.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from hookloop.config import Config, PluginTable
from hookloop.config_file import Keys
from hookloop.hooks import Hooks, Registered
from hookloop.names import hook_names, suggest
from hookloop_hookspecs import ConfigError

from .building import BuildError, build
from .installed import PLUGINS, Found, available, load
from .report import LoadReport, PluginReport


@dataclass(frozen=True, slots=True)
class Active:
    """A hook plugin that is on: its object, and what the configuration says of it."""

    name: str
    plugin: object
    version: str
    distribution: str
    settings: PluginTable


@dataclass(frozen=True, slots=True)
class Activation:
    """What `activate` came to: the plugins that are on, outermost first, and the report of all.

    `errors` are faults of the configuration (a name that is not known, a wrong option); `warnings` are plugins that are
    installed and cannot be loaded.
    """

    active: tuple[Active, ...]
    report: LoadReport
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def check(self, *, strict: bool) -> None:
        """Raise `ConfigError` for the errors, and with `strict` for the warnings."""
        wrong = self.errors + (self.warnings if strict else ())
        if wrong:
            raise ConfigError("\n".join(wrong))


def activate(config: Config, given: Sequence[object] = (), *, look: bool = True) -> Activation:
    """Load the plugins that are on.

    Arguments: `given` are the plugins of a program: objects, or names of entry points. On are these, those that the
    configuration names, and with `auto = true` every installed one; off is what it disables, which is not imported.
    `look` off: what is installed is not looked at (for a program that names nothing by name), which saves milliseconds.
    Raises nothing about plugins: see `Activation.check`.
    """
    return _Activating(config, given, look).run()


def implemented(plugin: object) -> tuple[str, ...]:
    """The hooks that an object implements, known or not, in the contract's order."""
    names = set()
    for attribute in dir(plugin):
        raw = inspect.getattr_static(plugin, attribute, None)
        marks = getattr(getattr(raw, "__func__", raw), "hookloop_impl", None)
        if isinstance(marks, dict):
            names.add(marks.get("specname") or attribute)
    known = [name for name in hook_names() if name in names]
    return (*known, *sorted(names.difference(known)))


def name_of(plugin: object) -> str:
    """The name of a plugin object that a program gave: its own, else that of its class."""
    name = getattr(plugin, "name", None)
    return name if isinstance(name, str) and name else type(plugin).__name__


def _fault(name: str, plugin: object) -> str:
    """What an agent would refuse this plugin for, in words; empty for nothing."""
    try:
        Hooks([Registered(name, plugin)])
    except ConfigError as error:
        return str(error)
    return ""


def no_hooks(name: str, plugin: object) -> str:
    """What to say of a plugin without hooks."""
    unmarked = [hook for hook in hook_names() if callable(getattr(plugin, hook, None))]
    if unmarked:
        return f"plugin {name!r} has no hooks; put @hookimpl on {', '.join(unmarked)}"
    return f"plugin {name!r} has no hooks; mark its methods with @hookimpl"


class _Activating:
    """One activation under way."""

    def __init__(self, config: Config, given: Sequence[object], look: bool) -> None:
        self.config = config
        self.objects: dict[str, object] = {}
        self.asked: list[str] = []
        self.installed = available(PLUGINS) if look else {}
        self.active: list[Active] = []
        self.reports: list[PluginReport] = []
        self.errors: list[str] = []
        self.warnings: list[str] = []
        for item in given:
            self._ask(item)

    def _ask(self, item: object) -> None:
        name = item if isinstance(item, str) else name_of(item)
        if name in self.asked:
            if isinstance(item, str) or getattr(item, "name", None) == name:
                self.errors.append(f"two plugins are named {name!r}; give one of them another name")
                return
            name = next(other for at in count(2) if (other := f"{name}-{at}") not in self.asked)
        self.asked.append(name)
        if not isinstance(item, str):
            self.objects[name] = item

    def run(self) -> Activation:
        names = self._candidates()
        wanted = [name for name in names if self._wanted(name)]
        self._load([name for name in wanted if name not in self.objects])
        for name in wanted:
            if name in self.objects:
                self._take(name, self.objects[name], None)
        for name in names:
            if name not in wanted:
                self._off(name)
        self._check_order(names)
        self._sort()
        return Activation(tuple(self.active), LoadReport(tuple(self.reports)), tuple(self.errors), tuple(self.warnings))

    def _candidates(self) -> list[str]:
        return list(dict.fromkeys([*self.asked, *self.config.plugins, *self.installed]))

    def _settings(self, name: str) -> PluginTable:
        return self.config.plugins.get(name) or PluginTable()

    def _wanted(self, name: str) -> bool:
        named = name in self.asked or name in self.config.plugins or self.config.auto
        return named and self._settings(name).enabled

    def _why_on(self, name: str) -> str:
        if name in self.asked:
            return "given to the agent"
        if name in self.config.plugins:
            return f"named at {self.config.where('plugins', name)}"
        return f"auto = true at {self.config.where('auto')}"

    def _off(self, name: str) -> None:
        found = self.installed.get(name)
        named = name in self.config.plugins
        if not named:
            why = "installed, but not named; auto is false"
        else:
            why = f"disabled at {self.config.where('plugins', name, 'enabled')}"
        if found is None and name not in self.objects:
            why += "; not installed"
            hint = suggest(name, self.installed)
            if "did you mean" in hint:
                self.errors.append(self._placed(name, f"unknown plugin {name!r}{hint}"))
        self._report(name, "off", why, found)

    def _load(self, names: Iterable[str]) -> None:
        chosen = list(names)
        if not chosen:
            return
        factories, problems = load(PLUGINS, chosen)
        for problem in problems:
            unknown = problem.name not in self.installed
            self._fail(problem.name, self._placed(problem.name, str(problem)) if unknown else str(problem), unknown)
        for name, factory in factories.items():
            self._make(name, factory)

    def _make(self, name: str, factory: object) -> None:
        by_auto = name not in self.config.plugins and name not in self.asked

        def where(keys: Keys) -> str:
            return self.config.where("auto") if by_auto else self.config.where("plugins", name, "options", *keys)

        label = f"plugin {name!r}" + (", which auto switches on" if by_auto else "")
        try:
            plugin = build(factory, options=self._settings(name).options, label=label, where=where)
        except BuildError as error:
            self._fail(name, str(error))
        except ConfigError as error:
            self._fail(name, str(error), of_config=True)
        else:
            self._take(name, plugin, self.installed[name])

    def _take(self, name: str, plugin: object, found: Found | None) -> None:
        settings = self._settings(name)
        hooks = implemented(plugin)
        unknown = next((hook for hook in hooks if hook not in hook_names()), None)
        if found is None and settings.options:
            place = self.config.where("plugins", name, "options")
            self._fail(name, f"{place}: plugin {name!r} was given as an object, so it takes no options here", True)
        elif not hooks:
            self._fail(name, no_hooks(name, plugin), found is None)
        elif unknown:
            words = f"plugin {name!r} implements no known hook with {unknown!r}{suggest(unknown, hook_names())}"
            self._fail(name, words, found is None)
        elif fault := _fault(name, plugin):
            self._fail(name, fault, True)
        else:
            version = str(getattr(plugin, "version", "") or (found.version if found else ""))
            self.active.append(Active(name, plugin, version, found.distribution if found else "", settings))
            off = tuple(hook for hook in hooks if hook in settings.off)
            self._report(name, "on", self._why_on(name), found, hooks=hooks, switched_off=off, version=version)

    def _fail(self, name: str, words: str, of_config: bool = False) -> None:
        (self.errors if of_config else self.warnings).append(words)
        self._report(name, "failed", words, self.installed.get(name))

    def _placed(self, name: str, words: str) -> str:
        return f"{self.config.where('plugins', name)}: {words}" if name in self.config.plugins else words

    def _report(self, name: str, state: Any, why: str, found: Found | None, **more: Any) -> None:
        if found is not None:
            more = {"distribution": found.distribution, "version": found.version, **more}
        self.reports.append(PluginReport(name, state, why, **more))

    def _check_order(self, names: Sequence[str]) -> None:
        for at, name in enumerate(self.config.order):
            if name not in names:
                place = self.config.where("order", at)
                self.errors.append(f"{place}: order names an unknown plugin {name!r}{suggest(name, names)}")

    def _sort(self) -> None:
        order = {name: at for at, name in enumerate(self.config.order)}
        asked = {name: at for at, name in enumerate(self.asked)}

        def place(name: str) -> tuple[int, int, str]:
            return order.get(name, len(order)), asked.get(name, len(asked)), name

        self.active.sort(key=lambda active: place(active.name))
        rank = {active.name: at for at, active in enumerate(self.active, 1)}
        self.reports = [replace(report, position=rank.get(report.name)) for report in self.reports]
        states = ("on", "failed", "off")
        self.reports.sort(key=lambda r: (states.index(r.state), r.position or 0, r.name))
