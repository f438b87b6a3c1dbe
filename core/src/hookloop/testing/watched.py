"""A plugin under observation: what it is given, what it does to that, what it returns and raises, how long it takes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from time import perf_counter
from typing import Any

from hookloop.discovery import implemented, name_of

from .spy import as_hook


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one hook: `value` is what it returned, `error` what it raised, `changed` the arguments that it wrote
    to; `seconds` is its own time.
    """

    hook: str
    round: int
    value: object = None
    error: Exception | None = None
    changed: tuple[str, ...] = ()
    seconds: float = 0.0


class Watched:
    """A stand-in for `plugin`, with the same hooks, that notes each call in `calls`. Wrappers are let through unseen."""

    def __init__(self, plugin: object) -> None:
        self.name = name_of(plugin)
        self.version = str(getattr(plugin, "version", ""))
        self.calls: list[Call] = []
        for hook in implemented(plugin):
            setattr(self, hook, self._stand_in(hook, _method(plugin, hook)))

    def _stand_in(self, hook: str, method: Any) -> Any:
        marks = method.hookloop_impl
        if marks.get("wrapper"):
            return method
        names = _names(method)
        options = {key: marks[key] for key in ("tryfirst", "trylast")}

        def does(arguments: dict[str, Any]) -> Any:
            given = {name: arguments[name] for name in names}
            return _Running(self, hook, arguments.get("turn"), given).through(method)

        return as_hook(hook, does, **options)

    def of(self, *hooks: str) -> list[Call]:
        """The calls of these hooks."""
        return [call for call in self.calls if call.hook in hooks]

    @property
    def failed(self) -> list[Call]:
        """The calls that raised."""
        return [call for call in self.calls if call.error is not None]


def _method(plugin: object, hook: str) -> Any:
    """The implementation of a hook, which may have another name than the hook."""
    for attribute in dir(plugin):
        marks = getattr(inspect.getattr_static(plugin, attribute), "hookloop_impl", None)
        if marks is None:
            marks = getattr(getattr(plugin, attribute, None), "hookloop_impl", None)
        if isinstance(marks, dict) and (marks.get("specname") or attribute) == hook:
            return getattr(plugin, attribute)
    raise AttributeError(hook)


def _names(method: Callable[..., Any]) -> list[str]:
    """The arguments that an implementation asks for; those with a default are never given."""
    parameters = inspect.signature(method).parameters.values()
    return [one.name for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]


class _Running:
    """One call under way."""

    def __init__(self, watched: Watched, hook: str, turn: Any, given: Mapping[str, Any]) -> None:
        self._watched = watched
        self._hook = hook
        self._round = turn.round if turn is not None else 0
        self._given = given
        self._before = _prints(given)
        self._began = perf_counter()

    def through(self, method: Callable[..., Any]) -> Any:
        """Call the plugin; a coroutine is noted when it ends."""
        try:
            value = method(*self._given.values())
            if inspect.isawaitable(value):
                return self._awaited(value)
            value = list(value) if isinstance(value, Iterator) else value
        except Exception as error:
            self._note(error=error)
            raise
        return self._note(value)

    async def _awaited(self, value: Awaitable[Any]) -> Any:
        try:
            return self._note(await value)
        except Exception as error:
            self._note(error=error)
            raise

    def _note(self, value: object = None, error: Exception | None = None) -> object:
        seconds = perf_counter() - self._began
        now = _prints(self._given)
        changed = tuple(name for name, print_ in now.items() if print_ != self._before[name])
        self._watched.calls.append(Call(self._hook, self._round, value, error, changed, seconds))
        return value


def _prints(given: Mapping[str, Any]) -> dict[str, object]:
    return {name: _print(value) for name, value in given.items() if name != "turn"}


def _print(value: object) -> object:
    """All that can be written to in a value, as plain data."""
    if value is None or isinstance(value, str | bytes | int | float | bool):
        return value
    if isinstance(value, Mapping):
        return [(key, _print(item)) for key, item in value.items()]
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(_print(getattr(value, field.name)) for field in fields(value))]
    if isinstance(value, Sequence | set | frozenset):
        return [_print(item) for item in value]
    return type(value).__name__


__all__ = ["Call", "Watched"]
