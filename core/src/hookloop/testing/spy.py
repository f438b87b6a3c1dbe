"""A plugin that remembers each hook call, and returns or raises what a test tells it to."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from hookloop_hookspecs import hookimpl, hooks
from hookloop_hookspecs.events import Event

OF_MEMORIES = frozenset({"load_memory", "persist_memory"})
"""Hooks that only memories implement."""
WATCHED = tuple(
    name for name, spec in vars(hooks).items() if hasattr(spec, "hookloop_spec") and name not in OF_MEMORIES
)
"""The hooks that a spy implements where a test names none."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One call of one hook: whose, with which arguments (`seen["call"]`), in which conversation, turn and round."""

    plugin: str
    hook: str
    arguments: Mapping[str, Any]
    conversation: str = ""
    turn: str = ""
    round: int = 0

    def __getitem__(self, name: str) -> Any:
        return self.arguments[name]


class Spy:
    """A hook plugin for tests.

    Arguments: `hooks`, the names of those it implements (none: all but a memory's; among these is `after_reply`, which
    holds streamed pieces back); `name`; `calls`, a list that several spies share, to see their order among each other;
    `is_async`, whether its hooks are coroutines.
    Attributes: `calls`, a `Seen` for each call, in order. Raises `ValueError` for a name that is no hook.
    """

    def __init__(
        self,
        *hooks: str,
        name: str = "spy",
        version: str = "",
        calls: list[Seen] | None = None,
        is_async: bool = False,
    ) -> None:
        self.name = name
        self.version = version
        self.calls: list[Seen] = [] if calls is None else calls
        self.hooks = hooks or WATCHED
        self._next: dict[str, deque[Any]] = {hook: deque() for hook in self.hooks}
        self._always: dict[str, Any] = {}
        for hook in self.hooks:
            setattr(self, hook, as_hook(hook, self._later(hook) if is_async else self._at_once(hook)))

    def returns(self, hook: str, *values: Any) -> Self:
        """Return these values from the next calls of a hook, one each. A function is called with the `Seen`."""
        self._queue(hook).extend(values)
        return self

    def always(self, hook: str, value: Any) -> Self:
        """Return this whenever nothing else was asked for. A function is called with the `Seen`."""
        self._queue(hook)
        self._always[hook] = value
        return self

    def fails(self, hook: str, error: BaseException | None = None, times: int = 1) -> Self:
        """Raise `error` (a `RuntimeError` by default) from the next calls of a hook."""
        self._queue(hook).extend([error or RuntimeError(f"{self.name} was told to fail")] * times)
        return self

    def of(self, *hooks: str) -> list[Seen]:
        """The calls of these hooks, in order."""
        return [seen for seen in self.calls if seen.hook in hooks and seen.plugin == self.name]

    def events(self, *kinds: str) -> list[Event]:
        """The events that `on_event` got, of these kinds or all."""
        events: list[Event] = [seen["event"] for seen in self.of("on_event")]
        return [event for event in events if not kinds or event.kind in kinds]

    @property
    def order(self) -> list[str]:
        """The names of the hooks that were called, events aside, in order."""
        return [seen.hook for seen in self.calls if seen.plugin == self.name and seen.hook != "on_event"]

    def _queue(self, hook: str) -> deque[Any]:
        if hook not in self._next:
            raise ValueError(f"the spy {self.name!r} does not implement {hook}; it has {', '.join(self.hooks)}")
        return self._next[hook]

    def _at_once(self, hook: str) -> Callable[[dict[str, Any]], Any]:
        return lambda arguments: self._called(hook, arguments)

    def _later(self, hook: str) -> Callable[[dict[str, Any]], Any]:
        async def called(arguments: dict[str, Any]) -> Any:
            return self._called(hook, arguments)

        return called

    def _called(self, hook: str, arguments: dict[str, Any]) -> Any:
        seen = self._seen(hook, arguments)
        self.calls.append(seen)
        planned = self._next[hook].popleft() if self._next[hook] else self._always.get(hook)
        if isinstance(planned, BaseException):
            raise planned
        return planned(seen) if callable(planned) else planned

    def _seen(self, hook: str, arguments: dict[str, Any]) -> Seen:
        turn = arguments.get("turn")
        if turn is None:
            return Seen(self.name, hook, arguments)
        return Seen(self.name, hook, arguments, turn.conversation, turn.id, turn.round)


def as_hook(hook: str, does: Callable[[dict[str, Any]], Any], **options: Any) -> Callable[..., Any]:
    """A marked implementation of a hook that takes all its arguments, as one dict.

    Arguments: `options` are those of `hookimpl`. Raises `ValueError` for a name that is no hook.
    """
    spec = getattr(hooks, hook, None)
    if spec is None or not hasattr(spec, "hookloop_spec"):
        raise ValueError(f"{hook!r} is no hook; there are {', '.join(WATCHED)}")
    names = tuple(inspect.signature(spec).parameters)

    def implementation(*given: Any) -> Any:
        return does(dict(zip(names, given, strict=True)))

    implementation.__name__ = implementation.__qualname__ = hook
    implementation.__wrapped__ = spec  # type: ignore[attr-defined]  # pluggy reads the arguments' names there
    marked: Callable[..., Any] = hookimpl(**options)(implementation)
    return marked


__all__ = ["OF_MEMORIES", "WATCHED", "Seen", "Spy", "as_hook"]
