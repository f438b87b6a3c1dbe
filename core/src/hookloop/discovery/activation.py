"""Which hook plugins are on, in which order, and the truth about the others.

What must live here: reading the configuration's wishes, loading what they ask for, and reporting. What must never be
known here: how hooks are called.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from hookloop.config import Config
from hookloop.config_file import Keys
from hookloop.config_tables import PluginTable
from hookloop.hiding import told
from hookloop.names import alike, suggest
from hookloop_hookspecs import ConfigError, HookloopError

from .building import BuildError, build
from .installed import PLUGINS, Found, available, distribution_for, load
from .objects import fault_of, implemented, name_of, version_of
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

    `errors` are faults of the configuration (a name that is not known, a wrong option), and plugins that were named and
    cannot be loaded; `warnings` are plugins that `auto` alone switches on and that cannot be loaded. `strict` in the
    configuration makes all plugins that cannot be loaded the one or the other.
    """

    active: tuple[Active, ...]
    report: LoadReport
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    cause: BaseException | None = field(default=None, repr=False)

    def check(self) -> None:
        """Raise `ConfigError` for the errors, with what the first plugin that failed raised as its cause."""
        if self.errors:
            raise ConfigError("\n".join(self.errors)) from self.cause


def activate(config: Config, given: Sequence[object] = (), *, look: bool = True) -> Activation:
    """Load the plugins that are on.

    Arguments: `given` are the plugins of a program: objects, or names of entry points. On are these, those that the
    configuration names, and with `auto = true` every installed one; off is what it disables, which is not imported.
    `look` off: what is installed is not looked at (for a program that names nothing by name), which saves milliseconds.
    Raises nothing about plugins: see `Activation.check`.
    """
    return _Activating(config, given, look).run()


class _Activating:
    """One activation under way. `keys` are the plugins that the configuration names, with the keys at which it does."""

    def __init__(self, config: Config, given: Sequence[object], look: bool) -> None:
        self.config = config
        self.objects: dict[str, object] = {}
        self.asked: list[str] = []
        self.installed = available(PLUGINS) if look else {}
        self.active: list[Active] = []
        self.reports: list[PluginReport] = []
        self.errors: list[str] = []
        self.warnings: list[str] = []
        self.causes: list[BaseException] = []
        for item in given:
            self._ask(item)
        self.keys = {self._meant(key): key for key in config.plugins}

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

    def _meant(self, key: str) -> str:
        """The plugin that a key means: that of its name, but environment variables can write neither `-` nor capitals."""
        known = [*self.asked, *self.installed]
        if key in known or not self.config.variable("plugins", key):
            return key
        return next((name for name in known if alike(name, key)), key)

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
        report = LoadReport(tuple(self.reports), warnings=tuple(self.warnings))
        cause = next(iter(self.causes), None)
        return Activation(tuple(self.active), report, tuple(self.errors), tuple(self.warnings), cause)

    def _candidates(self) -> list[str]:
        return list(dict.fromkeys([*self.asked, *self.keys, *self.installed]))

    def _settings(self, name: str) -> PluginTable:
        return self.config.plugins[self.keys[name]] if name in self.keys else PluginTable()

    def _where(self, name: str, *keys: str | int) -> str:
        return self.config.where("plugins", self.keys.get(name, name), *keys)

    def _named(self, name: str) -> bool:
        return name in self.asked or name in self.keys

    def _wanted(self, name: str) -> bool:
        return (self._named(name) or self.config.auto) and self._settings(name).enabled

    def _why_on(self, name: str) -> str:
        if name in self.asked:
            return "given to the agent"
        if name in self.keys:
            return f"named at {self._where(name)}"
        return f"auto = true at {self.config.where('auto')}"

    def _off(self, name: str) -> None:
        found = self.installed.get(name)
        if name not in self.keys:
            why = "installed, but not named; auto is false"
        else:
            why = f"disabled at {self._where(name, 'enabled')}"
        if found is None and name not in self.objects:
            why += "; not installed"
            hint = suggest(name, self.installed)
            if "did you mean" in hint and distribution_for(PLUGINS, name) is None:
                self.errors.append(f"{self._where(name)}: unknown plugin {name!r}{hint}")
        self._report(name, "off", why, found)

    def _load(self, names: Iterable[str]) -> None:
        chosen = list(names)
        if not chosen:
            return
        factories, problems = load(PLUGINS, chosen)
        for problem in problems:
            found = self.installed.get(problem.name)
            if found is None:
                self._wrong(problem.name, self._placed(problem.name, str(problem)), None)
            else:
                self._broken(problem.name, str(problem), found if problem.distribution else None, problem.error)
        for name, factory in factories.items():
            self._make(name, factory, self.installed[name])

    def _make(self, name: str, factory: object, found: Found) -> None:
        label, options = f"plugin {name!r}", self._settings(name).options

        def where(keys: Keys) -> str:
            return self._where(name, "options", *keys)

        try:
            plugin = build(factory, options=options, label=label, where=where if self._named(name) else None)
        except ConfigError as error:
            if isinstance(error, BuildError):
                self._broken(name, str(error), found, error.__cause__)
            elif self._named(name):
                self._wrong(name, str(error), found)
            else:
                faults = str(error).replace(f"\n{label}: ", "; ")
                self._broken(name, f"{faults}; set its options under [plugins.{name}], or enabled = false there", found)
        except HookloopError as error:
            self._broken(name, told(f"{label} cannot be made: {type(error).__name__}: {error}"), found, error)
        else:
            self._take(name, plugin, found)

    def _take(self, name: str, plugin: object, found: Found | None) -> None:
        settings = self._settings(name)
        fault = fault_of(name, plugin)
        if found is None and settings.options:
            place = self._where(name, "options")
            self._wrong(name, f"{place}: plugin {name!r} was given as an object, so it takes no options here", None)
        elif fault and found is None:
            self._wrong(name, fault, None)
        elif fault:
            self._broken(name, fault, found)
        else:
            version = version_of(plugin) or (found.version if found else "")
            hooks = implemented(plugin)
            self.active.append(Active(name, plugin, version, found.distribution if found else "", settings))
            off = tuple(hook for hook in hooks if hook in settings.off)
            self._report(name, "on", self._why_on(name), found, hooks=hooks, switched_off=off, version=version)

    def _wrong(self, name: str, words: str, found: Found | None) -> None:
        """A fault of whoever wrote the configuration or the program."""
        self.errors.append(words)
        self._report(name, "failed", words, found)

    def _broken(self, name: str, words: str, found: Found | None, cause: BaseException | None = None) -> None:
        """A fault of the plugin. Nobody who named it may miss it; who said `auto` is not stopped by it."""
        words = _sourced(name, words, found)
        strict = self._named(name) if self.config.strict is None else self.config.strict
        (self.errors if strict else self.warnings).append(self._placed(name, words))
        if strict and cause is not None:
            self.causes.append(cause)
        self._report(name, "failed", words, found)

    def _placed(self, name: str, words: str) -> str:
        """Words about a plugin, behind the place that switched it on."""
        if name in self.keys:
            return f"{self._where(name)}: {words}"
        return words if name in self.asked else f"{self.config.where('auto')}: {words}"

    def _report(self, name: str, state: Any, why: str, found: Found | None, **more: Any) -> None:
        if found is not None:
            more = {"distribution": found.distribution, "version": found.version, **more}
        self.reports.append(PluginReport(name, state, why, **more))

    def _check_order(self, names: Sequence[str]) -> None:
        for at, name in enumerate(self.config.order):
            place = self.config.where("order", at)
            if name not in names:
                self.errors.append(f"{place}: order names an unknown plugin {name!r}{suggest(name, names)}")
            elif name in self.config.order[:at]:
                self.errors.append(f"{place}: order names {name!r} twice; keep one of them")

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


def _sourced(name: str, words: str, found: Found | None) -> str:
    """Words about a plugin that say of which distribution it is."""
    label = f"plugin {name!r}"
    source = f"{label} ({found.distribution} {found.version})" if found else label
    return words if words.startswith(source) else f"{source}: {words.removeprefix(label).lstrip(': ')}"
