"""Asking plugins: who they are, what their failure means, and the walk through a hook's implementations and wrappers.

A dispatcher here is a generator that yields what must be waited for (`Awaiting`, `Blocking`) and comes to the attributed
returns, so that sync and async runs are two small trampolines over one logic. Nothing here knows how plugins were found.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from hookloop_hookspecs import Batch, HookloopError, Loaded, PluginError
from hookloop_hookspecs.redact import words
from hookloop_hookspecs.verdicts import Replace

from .engine.effects import Returned
from .engine.merge import reply_of, result_of

OnError: TypeAlias = Literal["raise", "skip", "disable"]
OBSERVERS = frozenset({"on_event", "after_turn", "close", "recall"})
"""Hooks whose failure never ends a turn."""
CLOSED = frozenset({"before_tool", "after_reply"})
"""Hooks that fail closed, whatever the plugin's policy says: they are asked of a plugin that is switched off too."""

_FOLDS: Mapping[str, Callable[[Any, Any, str, str], object]] = {"reply": reply_of, "result": result_of}


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
View: TypeAlias = Callable[[str], object]


@dataclass(slots=True, eq=False)
class Registered:
    """A plugin as it is registered: its object, and what config says of it.

    `failures` counts all failures of all its hooks since the agent was made; one that goes well takes none of them back.
    With `on_error` "disable" it is `disabled` once there are `disable_after` of them.
    """

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

    def silent(self, hook: str) -> bool:
        """Is it left out of this hook, as it was switched off by its failures?"""
        return self.disabled and hook not in CLOSED

    def failed(self, hook: str, error: BaseException) -> Returned:
        """Count a failure; gives back what the plugin's policy makes of it."""
        if hook in CLOSED:
            return Returned(self.name, self.version, error=error)
        self.failures += 1
        off = self.on_error == "disable" and self.failures >= self.disable_after and not self.disabled
        self.disabled = self.disabled or off
        skip = hook in OBSERVERS or self.on_error != "raise"
        return Returned(self.name, self.version, error=error, skip=skip, off=off)


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


def ask(chain: Chain, hook: str, arguments: Mapping[str, object], view: View, fold: str) -> Asked:
    """Ask every implementation of a hook, inside its wrappers."""
    plain = _plain(chain.plain, hook, arguments, view, fold)
    return _wrapped(chain.wrappers, plain, hook, arguments, view) if chain.wrappers else plain


def _plain(chain: Sequence[Implementation], hook: str, arguments: Mapping[str, object], view: View, fold: str) -> Asked:
    returned: list[Returned] = []
    given = dict(arguments)
    for one in chain:
        owner = one.owner
        if owner.disabled and owner.silent(hook):
            continue
        given["turn"] = view(owner.name) if "turn" in one.names else None
        try:
            value = one.call(given)
            if value is not None and not isinstance(value, str):
                value = yield from _settled(one, value)
            if fold and value is not None:
                _fold(given, fold, value, owner.name, hook)
        except Exception as raised:
            error = RuntimeError("it raised StopIteration") if isinstance(raised, StopIteration) else raised
            returned.append(owner.failed(hook, error))
            if not returned[-1].skip:
                break
        else:
            if value is not None:
                returned.append(Returned(owner.name, owner.version, value))
    return returned


def _settled(one: Implementation, value: Any) -> Waits:
    """What an implementation returned, waited for where it is a coroutine, and listed where it comes in pieces."""
    if inspect.isawaitable(value):
        value = yield Awaiting(value, one.owner.timeout)
    return list(value) if isinstance(value, Iterator) else value


def _fold(given: dict[str, object], fold: str, value: object, plugin: str, hook: str) -> None:
    """Let the next implementation see what this one made of the thing at hand."""
    for item in value if isinstance(value, list | tuple) else (value,):
        if isinstance(item, Replace):
            given[fold] = _FOLDS[fold](item.value, given[fold], plugin, hook)


@dataclass(frozen=True, slots=True)
class _Entered:
    """A wrapper that waits at its yield."""

    one: Implementation
    generator: Generator[None, Any, Any]


def _wrapped(
    wrappers: Sequence[Implementation], plain: Asked, hook: str, arguments: Mapping[str, object], view: View
) -> Asked:
    """Run the plain implementations inside the wrappers. Each wrapper that was entered is torn down, whatever the others
    raise, and at once where the dispatch itself is ended from outside (by a cancel, by Ctrl-C, by being closed).
    """
    entered: list[_Entered] = []
    try:
        returned = _enter(wrappers, hook, arguments, view, entered)
        if not returned or returned[-1].skip:
            returned += yield from plain
        while entered:
            returned = _torn_down(entered.pop(), hook, returned)
        return returned
    except BaseException as error:
        _abandon(entered, hook, error)
        raise


def _enter(
    wrappers: Sequence[Implementation],
    hook: str,
    arguments: Mapping[str, object],
    view: View,
    entered: list[_Entered],
) -> list[Returned]:
    """Enter the wrappers, outermost first; gives back the failures. One that fails is left out as if it were not there, where
    its failure is skipped; else nothing inside it is asked, and its failure is the last of the list.
    """
    failures: list[Returned] = []
    for one in wrappers:
        if one.owner.silent(hook):
            continue
        generator = one.call({**arguments, "turn": view(one.owner.name)})
        try:
            next(generator)
        except Exception as error:
            failures.append(_fault(one, hook, error))
            if not failures[-1].skip:
                break
        else:
            entered.append(_Entered(one, generator))
    return failures


def _fault(one: Implementation, hook: str, error: Exception) -> Returned:
    """A failing wrapper, with what its plugin's policy says."""
    if isinstance(error, StopIteration):
        error = PluginError(one.owner.name, hook, "a wrapper yields exactly once")
    return one.owner.failed(hook, error)


def _torn_down(wrapper: _Entered, hook: str, returned: list[Returned]) -> list[Returned]:
    """Let one wrapper see the returns (or the failure) and change them; what it changes is attributed to it. Failures that
    were skipped inside it stay told; where its own is skipped, what was returned inside it stands.
    """
    owner, generator = wrapper.one.owner, wrapper.generator
    skipped = [got for got in returned if got.error is not None and got.skip]
    failed = next((got.error for got in returned if got.error is not None and not got.skip), None)
    kept = [got for got in returned if got.error is None]
    error: Exception = StopIteration()
    try:
        if failed is not None:
            generator.throw(failed)
        else:
            generator.send([got.value for got in kept])
        generator.close()
    except StopIteration as stop:
        return [*skipped, *_attributed(owner, kept, stop.value)]
    except Exception as raised:
        if raised is failed:
            return returned
        error = raised
    fault = _fault(wrapper.one, hook, error)
    return [*(returned if fault.skip else skipped), fault]


def _abandon(entered: list[_Entered], hook: str, error: BaseException) -> None:
    """The dispatch ends by `error`: let every wrapper see it, innermost first. None can stop it; one that fails meanwhile
    cannot be told in the turn any more, so that is a warning.
    """
    ends, troubles = error, []
    while entered:
        wrapper = entered.pop()
        try:
            wrapper.generator.throw(ends)
            wrapper.generator.close()
        except StopIteration:
            continue
        except Exception as raised:
            if raised is not ends:
                owner = wrapper.one.owner
                troubles.append(f"{owner.name}.{hook}: {words(owner.failed(hook, raised).error or raised)}")
        except BaseException as raised:
            ends = raised
    if troubles:
        warnings.warn("; ".join(troubles), RuntimeWarning, stacklevel=2)
    if ends is not error:
        raise ends


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


def stored(one: Implementation, hook: str, arguments: Mapping[str, object]) -> Waits:
    """Ask a memory's implementation. Raises the errors of our family as they are, and any other as `PluginError`."""
    blocking = getattr(one.owner.plugin, "blocking", True)
    try:
        if inspect.iscoroutinefunction(one.function) or not blocking:
            value = one.call(arguments)
            return (yield Awaiting(value, one.owner.timeout)) if inspect.isawaitable(value) else value
        return (yield Blocking(lambda: one.call(arguments)))
    except HookloopError:
        raise
    except Exception as error:
        raise broken(one.owner.name, hook, error) from error


def stored_plainly(one: Implementation) -> Callable[[Batch], Any]:
    """`persist_memory` as a plain call that raises the same, for an implementation that waits for nothing."""
    alone, function = one.names == ("batch",), one.function

    def store(batch: Batch) -> Any:
        try:
            return function(batch) if alone else one.call({"batch": batch, "conversation": batch.conversation})
        except HookloopError:
            raise
        except Exception as error:
            raise broken(one.owner.name, "persist_memory", error) from error

    return store


def loaded_of(value: Any) -> Loaded:
    """What a memory's `load_memory` returned: a `Loaded`, entries alone, or None for nothing."""
    if isinstance(value, Loaded):
        return value
    entries = tuple(value or ())
    return Loaded(entries, len(entries))


def broken(plugin: str, hook: str, error: Exception) -> PluginError:
    """What a foreign exception of a plugin becomes for callers; chain it. Drivers put addresses and passwords into theirs."""
    return PluginError(plugin, hook, words(error))
