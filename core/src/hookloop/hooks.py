"""The hook façade: the only place that calls pluggy. pluggy keeps the registered implementations; asking them is ours."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import pluggy

from hookloop_hookspecs import Batch, ConfigError
from hookloop_hookspecs import hooks as specs
from hookloop_hookspecs._markers import PROJECT

from .dispatch import (
    Asked,
    Awaiting,
    Blocking,
    Chain,
    Implementation,
    Registered,
    View,
    Waits,
    ask,
    stored,
    stored_plainly,
)

HOOKS = tuple(name for name in vars(specs) if hasattr(getattr(specs, name), f"{PROJECT}_spec"))
"""The names of all hooks, in the order of the contract."""
STORED = frozenset({"load_memory", "persist_memory"})
"""Hooks that belong to a memory; nothing stands around them."""


def _no_wrapper(plugin: str, hook: str) -> str:
    if hook in STORED:
        return f"plugin {plugin!r} wraps {hook}, which belongs to a memory alone"
    return f"plugin {plugin!r}: the wrapper around {hook} must be a plain generator function, not an async one"


class Hooks:
    """All plugins of an agent.

    Arguments: `plugins` in plugin order (without tryfirst and trylast, which are applied here); `ordered`, the names whose
    place config fixes.
    Raises `ConfigError` for misspelt hooks and arguments, plugins without hooks, old-style wrappers, and duplicate names.
    """

    def __init__(self, plugins: Sequence[Registered], ordered: Sequence[str] = ()) -> None:
        self.plugins = list(plugins)
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(specs)
        self._by_name: dict[str, Registered] = {}
        self._stores: dict[str, Callable[[Batch], Any] | None] = {}
        for one in plugins:
            self._register(one)
        self._chains = {name: self._chain(name, list(ordered)) for name in HOOKS}
        self.names = frozenset(name for name, chain in self._chains.items() if chain.plain or chain.wrappers)

    def _register(self, one: Registered) -> None:
        if not one.name.isprintable():
            raise ConfigError(f"a plugin is named {one.name!r}; take a name without control characters and surrogates")
        if one.name in self._by_name:
            raise ConfigError(f"two plugins are named {one.name!r}; give one of them another name")
        check_spelling(one)
        try:
            self._manager.register(one.plugin, one.name)
            self._manager.check_pending()
        except pluggy.PluginValidationError as error:
            raise ConfigError(_spelling(one, str(error))) from error
        one.hooks = tuple(call.name for call in self._manager.get_hookcallers(one.plugin) or ())
        if not one.hooks:
            raise ConfigError(_no_hooks(one))
        self._by_name[one.name] = one

    def _chain(self, hook: str, ordered: list[str]) -> Chain:
        chain = Chain()
        rank = {one.name: at for at, one in enumerate(self.plugins)}
        for impl in getattr(self._manager.hook, hook).get_hookimpls():
            owner = self._by_name[impl.plugin_name]
            if hook in owner.off:
                continue
            if impl.hookwrapper:
                raise ConfigError(
                    f"plugin {owner.name!r}: {hook} is an old-style hookwrapper; use hookimpl(wrapper=True)"
                )
            if impl.wrapper and (hook in STORED or not inspect.isgeneratorfunction(impl.function)):
                raise ConfigError(_no_wrapper(owner.name, hook))
            first = -1 if impl.tryfirst else 1 if impl.trylast else 0
            made = Implementation(owner, impl.function, impl.argnames, first)
            (chain.wrappers if impl.wrapper else chain.plain).append(made)

        def key(one: Implementation) -> tuple[int, int, int]:
            name = one.owner.name
            return (ordered.index(name) if name in ordered else len(ordered), one.first, rank[name])

        chain.plain.sort(key=key, reverse=False)
        chain.wrappers.sort(key=key)
        if hook.startswith("after_"):
            chain.plain.reverse()
        return chain

    def order(self, hook: str) -> list[str]:
        """The names of the plugins that implement a hook, in the order they are asked."""
        chain = self._chains[hook]
        return [one.owner.name for one in (*chain.wrappers, *chain.plain)]

    def has(self, hook: str) -> bool:
        """Does any plugin implement this hook?"""
        return hook in self.names

    def ask(self, hook: str, arguments: Mapping[str, object], view: View, fold: str = "") -> Asked:
        """Ask every implementation, in order.

        Arguments: `view` makes a plugin's own `turn` argument; `fold` names the argument that a `Replace` changes for the
        next. Failures come back in the list; nothing is raised but what wrappers make of it.
        """
        return ask(self._chains[hook], hook, arguments, view, fold)

    def one(self, plugin: str, hook: str, arguments: Mapping[str, object]) -> Waits:
        """Ask one plugin's implementation (a memory's) and give back its value.

        Raises the errors of our family (a `Conflict`, `CorruptData`) as they are, any other exception as `PluginError`.
        """
        return stored(self._of(plugin, hook), hook, arguments)

    def store(self, memory: str) -> Callable[[Batch], Any] | None:
        """A memory's `persist_memory` as a plain call that raises as `one` does, where it waits for nothing; else None."""
        if memory not in self._stores:
            one = self._of(memory, "persist_memory")
            waits = inspect.iscoroutinefunction(one.function) or getattr(one.owner.plugin, "blocking", True)
            self._stores[memory] = None if waits else stored_plainly(one)
        return self._stores[memory]

    def _of(self, plugin: str, hook: str) -> Implementation:
        for implementation in self._chains[hook].plain:
            if implementation.owner.name == plugin:
                return implementation
        raise ConfigError(f"plugin {plugin!r} does not implement {hook}")


def check_spelling(one: Registered) -> None:
    """Refuse methods that look like misspelt hooks: marked ones that the contract does not know."""
    for name in dir(one.plugin):
        if name.startswith("__"):
            continue
        method = inspect.getattr_static(one.plugin, name, None)
        marks = getattr(getattr(method, "__func__", method), f"{PROJECT}_impl", None)
        hook = (marks.get("specname") or name) if isinstance(marks, dict) else name
        if marks is not None and hook not in HOOKS:
            raise ConfigError(_unknown_hook(one.name, hook))


def _unknown_hook(plugin: str, name: str) -> str:
    close = get_close_matches(name, HOOKS, n=1, cutoff=0.4)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"plugin {plugin!r} implements {name}, which is no hook{hint} The hooks are: {', '.join(HOOKS)}"


def _spelling(one: Registered, text: str) -> str:
    brief = text.splitlines()[-1] if "Argument" in text else text
    return f"plugin {one.name!r}: {brief}"


def _no_hooks(one: Registered) -> str:
    unmarked = [name for name in HOOKS if callable(getattr(one.plugin, name, None))]
    if unmarked:
        return f"plugin {one.name!r} has no marked hook; put @hookimpl on {', '.join(unmarked)}"
    return f"plugin {one.name!r} implements no hook, so it would never be called"


__all__ = [
    "HOOKS",
    "STORED",
    "Asked",
    "Awaiting",
    "Blocking",
    "Hooks",
    "Implementation",
    "Registered",
    "Waits",
    "check_spelling",
]
