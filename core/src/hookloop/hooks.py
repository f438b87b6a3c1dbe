"""The hook façade: the only place that calls pluggy. pluggy keeps the registered implementations; asking them is ours.

A dispatcher here is a generator that yields what must be waited for (`Awaiting`, `Blocking`) and comes to the attributed
returns, so that sync and async runs are two small trampolines over one logic.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal, TypeAlias

import pluggy

from hookloop_hookspecs import ConfigError, PluginError
from hookloop_hookspecs import hooks as specs
from hookloop_hookspecs._markers import PROJECT
from hookloop_hookspecs.verdicts import Replace

from .engine.effects import Returned
from .engine.merge import reply_of, result_of

OnError: TypeAlias = Literal["raise", "skip", "disable"]
OBSERVERS = frozenset({"on_event", "after_turn", "close", "recall"})
"""Hooks whose failure never ends a turn."""
CLOSED = frozenset({"before_tool", "after_reply"})
"""Hooks that fail closed, whatever the plugin's policy says."""
HOOKS = tuple(name for name in vars(specs) if hasattr(getattr(specs, name), f"{PROJECT}_spec"))
"""The names of all hooks, in the order of the contract."""

_FOLDS: Mapping[str, Callable[[Any, Any, str, str], object]] = {"reply": reply_of, "result": result_of}


STORED = frozenset({"load_memory", "persist_memory"})
"""Hooks that belong to a memory; nothing stands around them."""


def _no_wrapper(plugin: str, hook: str) -> str:
    if hook in STORED:
        return f"plugin {plugin!r} wraps {hook}, which belongs to a memory alone"
    return f"plugin {plugin!r}: the wrapper around {hook} must be a plain generator function, not an async one"


@dataclass(frozen=True, slots=True)
class Awaiting:
    """A coroutine of a plugin, with the plugin's timeout in seconds."""

    awaitable: Awaitable[Any]
    timeout: float | None = None


@dataclass(frozen=True, slots=True)
class Blocking:
    """A plain call that may block (a store): async runs make it in a thread."""

    function: Callable[[], Any]


Waits: TypeAlias = Generator["Awaiting | Blocking", Any, Any]
Asked: TypeAlias = Generator["Awaiting | Blocking", Any, list[Returned]]


@dataclass(slots=True, eq=False)
class Registered:
    """A plugin as it is registered: its object, and what config says of it. `place` is its rank in plugin order."""

    name: str
    plugin: object
    version: str = ""
    on_error: OnError = "raise"
    disable_after: int = 1
    timeout: float | None = None
    off: frozenset[str] = frozenset()
    failures: int = 0
    disabled: bool = False
    hooks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Implementation:
    """One function of one plugin for one hook."""

    owner: Registered
    function: Callable[..., Any]
    names: tuple[str, ...]
    first: int = 0

    def call(self, arguments: Mapping[str, object]) -> Any:
        """Call it with the arguments it names."""
        return self.function(*[arguments[name] for name in self.names])


@dataclass(slots=True)
class Chain:
    """A hook's implementations in the order they are asked, and its wrappers, outermost first."""

    plain: list[Implementation] = field(default_factory=list)
    wrappers: list[Implementation] = field(default_factory=list)


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
        self._plain: dict[tuple[str, str], Callable[[Mapping[str, object]], Any] | None] = {}
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

    def ask(self, hook: str, arguments: Mapping[str, object], view: Callable[[str], object], fold: str = "") -> Asked:
        """Ask every implementation, in order.

        Arguments: `view` makes a plugin's own `turn` argument; `fold` names the argument that a `Replace` changes for the
        next. Failures come back in the list; nothing is raised but what wrappers make of it.
        """
        chain = self._chains[hook]
        plain = _plain(chain.plain, hook, arguments, view, fold)
        if not chain.wrappers:
            return (yield from plain)
        return (yield from _wrapped(chain.wrappers, plain, hook, arguments, view))

    def one(self, plugin: str, hook: str, arguments: Mapping[str, object]) -> Waits:
        """Ask one plugin's implementation (a memory's) and give back its value; what it raises is raised."""
        return (yield from _stored(self._of(plugin, hook), arguments))

    def plain(self, plugin: str, hook: str) -> Callable[[Mapping[str, object]], Any] | None:
        """One plugin's implementation as a plain call, where it waits for nothing; else None."""
        key = (plugin, hook)
        if key not in self._plain:
            one = self._of(plugin, hook)
            waits = inspect.iscoroutinefunction(one.function) or getattr(one.owner.plugin, "blocking", True)
            self._plain[key] = None if waits else one.call
        return self._plain[key]

    def _of(self, plugin: str, hook: str) -> Implementation:
        for implementation in self._chains[hook].plain:
            if implementation.owner.name == plugin:
                return implementation
        raise ConfigError(f"plugin {plugin!r} does not implement {hook}")


def _stored(one: Implementation, arguments: Mapping[str, object]) -> Waits:
    blocking = getattr(one.owner.plugin, "blocking", True)
    if inspect.iscoroutinefunction(one.function) or not blocking:
        value = one.call(arguments)
        return (yield Awaiting(value, one.owner.timeout)) if inspect.isawaitable(value) else value
    return (yield Blocking(lambda: one.call(arguments)))


def _plain(
    chain: Sequence[Implementation],
    hook: str,
    arguments: Mapping[str, object],
    view: Callable[[str], object],
    fold: str,
) -> Asked:
    returned: list[Returned] = []
    given = dict(arguments)
    for one in chain:
        if one.owner.disabled and hook not in CLOSED:
            continue
        given["turn"] = view(one.owner.name) if "turn" in one.names else None
        got = yield from _asked(one, hook, given, fold)
        if got is None:
            continue
        returned.append(got)
        if got.error is not None and not got.skip:
            break
    return returned


def _asked(
    one: Implementation, hook: str, given: dict[str, object], fold: str
) -> Generator[Awaiting | Blocking, Any, Returned | None]:
    """Ask one implementation; None where it had nothing to say."""
    owner = one.owner
    try:
        value = one.call(given)
        if inspect.isawaitable(value):
            value = yield Awaiting(value, owner.timeout)
        if isinstance(value, Iterator):
            value = list(value)
        if fold and value is not None:
            _fold(given, fold, value, owner.name, hook)
    except Exception as raised:
        error = RuntimeError("it raised StopIteration") if isinstance(raised, StopIteration) else raised
        skip, off = _failed(owner, hook)
        return Returned(owner.name, owner.version, error=error, skip=skip, off=off)
    return Returned(owner.name, owner.version, value) if value is not None else None


def _fold(given: dict[str, object], fold: str, value: object, plugin: str, hook: str) -> None:
    """Let the next implementation see what this one made of the thing at hand."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, Replace):
            given[fold] = _FOLDS[fold](item.value, given[fold], plugin, hook)


def _failed(owner: Registered, hook: str) -> tuple[bool, bool]:
    """Does the failing plugin's policy let the turn go on, and is the plugin switched off by this failure?"""
    if hook in CLOSED:
        return False, False
    owner.failures += 1
    off = owner.on_error == "disable" and owner.failures >= owner.disable_after and not owner.disabled
    owner.disabled = owner.disabled or off
    return hook in OBSERVERS or owner.on_error != "raise", off


def _wrapped(
    wrappers: Sequence[Implementation],
    plain: Asked,
    hook: str,
    arguments: Mapping[str, object],
    view: Callable[[str], object],
) -> Asked:
    """Run the plain implementations inside the wrappers. Every teardown runs, whatever the others raise."""
    opened: list[tuple[Implementation, Generator[None, Any, Any]]] = []
    returned: list[Returned] | None = None
    for one in wrappers:
        generator = one.call({**arguments, "turn": view(one.owner.name)})
        try:
            next(generator)
        except (Exception, StopIteration) as error:
            returned = [_failure(one, hook, error)]
            break
        opened.append((one, generator))
    if returned is None:
        returned = yield from plain
    else:
        plain.close()
    for one, generator in reversed(opened):
        returned = _torn_down(one, hook, generator, returned)
    return returned


def _failure(one: Implementation, hook: str, error: BaseException) -> Returned:
    """A failing implementation, with what its plugin's policy says."""
    owner = one.owner
    if isinstance(error, StopIteration):
        error = PluginError(owner.name, hook, "a wrapper yields exactly once")
    skip, off = _failed(owner, hook)
    return Returned(owner.name, owner.version, error=error, skip=skip, off=off)


def _torn_down(
    one: Implementation, hook: str, generator: Generator[None, Any, Any], returned: list[Returned]
) -> list[Returned]:
    """Let one wrapper see the returns (or the failure) and change them; what it changes is attributed to it. Failures that
    were skipped inside it stay told.
    """
    owner = one.owner
    skipped = [got for got in returned if got.error is not None and got.skip]
    failed = next((got.error for got in returned if got.error is not None and not got.skip), None)
    kept = [got for got in returned if got.error is None]
    try:
        if failed is not None:
            generator.throw(failed)
        else:
            generator.send([got.value for got in kept])
    except StopIteration as stop:
        return [*skipped, *_attributed(owner, kept, stop.value)]
    except Exception as error:
        return returned if error is failed else [*skipped, _failure(one, hook, error)]
    generator.close()
    return [*skipped, _failure(one, hook, StopIteration())]


def _attributed(owner: Registered, before: list[Returned], value: object) -> list[Returned]:
    """The wrapper's list with each value's giver: who gave it before, or the wrapper for what is new."""
    values = value if isinstance(value, list) else [] if value is None else [value]
    pool = list(before)
    out: list[Returned] = []
    for item in values:
        same = next((got for got in pool if got.value is item), None)
        if same is not None:
            pool.remove(same)
        out.append(same or Returned(owner.name, owner.version, item))
    return out


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
