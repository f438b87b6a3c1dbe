"""Looking at the object of a plugin: its name, its hooks, and what an agent would refuse it for."""

from __future__ import annotations

import inspect

from hookloop.hiding import told
from hookloop.hooks import Hooks, Registered
from hookloop.names import hook_names, suggest
from hookloop_hookspecs import ConfigError


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


def version_of(plugin: object) -> str:
    """The version that a plugin object says it has; empty for none."""
    return str(getattr(plugin, "version", "") or "")


def fault_of(name: str, plugin: object) -> str:
    """What an agent would refuse this plugin for, in words; empty for nothing."""
    try:
        version_of(plugin)
        return _misspelt(name, plugin) or _refused(name, plugin)
    except Exception as error:  # properties of its own may raise anything when they are looked at
        return told(f"plugin {name!r} cannot be looked at: {type(error).__name__}: {error}")


def _misspelt(name: str, plugin: object) -> str:
    hooks = implemented(plugin)
    if not hooks:
        return _no_hooks(name, plugin)
    unknown = next((hook for hook in hooks if hook not in hook_names()), None)
    if unknown is None:
        return ""
    return f"plugin {name!r} implements no known hook with {unknown!r}{suggest(unknown, hook_names())}"


def _no_hooks(name: str, plugin: object) -> str:
    unmarked = [hook for hook in hook_names() if callable(getattr(plugin, hook, None))]
    if unmarked:
        return f"plugin {name!r} has no hooks; put @hookimpl on {', '.join(unmarked)}"
    return f"plugin {name!r} has no hooks; mark its methods with @hookimpl"


def _refused(name: str, plugin: object) -> str:
    try:
        Hooks([Registered(name, plugin)])
    except ConfigError as error:
        return str(error)
    return ""
