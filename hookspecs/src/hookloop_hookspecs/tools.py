"""Tools: a Python function, its schema, and what it may be told while it runs."""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final, Protocol, TypeVar, overload, runtime_checkable

from .context import SuspendCall, ToolContext, ToolError
from .entries import ToolSpec
from .errors import ConfigError
from .parameters import innermost
from .schema import ArgumentsError, Signature, describe

__all__ = ["ArgumentsError", "SuspendCall", "Tool", "ToolContext", "ToolError", "Toolset", "as_tool", "tool"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, eq=False, kw_only=True)
class Tool:
    """A function that a model may call.

    `timeout` is in seconds (the effect of a call that ran out of time is unknown); `retries` more attempts are made on
    the exceptions of `retry_on`, `retry_wait` seconds apart; `idempotent` tools may be run again after a crash;
    `return_direct` makes the results the answer (if every call of the reply has it and succeeded); `needs_approval`
    suspends each call until somebody decides; `serial` tools never run beside others; `strict` asks for the provider's
    strict schema mode.
    """

    name: str
    description: str
    signature: Signature
    function: Callable[..., Any]
    is_async: bool
    timeout: float | None = None
    retries: int = 0
    retry_on: tuple[type[Exception], ...] = (Exception,)
    retry_wait: float = 0.0
    idempotent: bool = False
    return_direct: bool = False
    needs_approval: bool = False
    serial: bool = False
    strict: bool = False

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(self.name, self.description, self.signature.schema, self.strict)

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the function, as Python values. Raises `ArgumentsError`, which lists every fault."""
        return self.signature.validate(arguments)

    def call(self, kwargs: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the function with validated arguments; the value, or an awaitable where the tool is async."""
        injected = dict.fromkeys(self.signature.injected, context)
        return self.signature.invoke(self.function, {**kwargs, **injected})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The plain function, for use outside a turn."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool:
        """In a class body: the tool of one object, bound as a method is."""
        if not self.signature.unbound or (instance is None and not isinstance(self.function, classmethod)):
            return self
        bound = self.function.__get__(instance, owner)
        return replace(self, function=bound, signature=replace(self.signature, unbound=False))


@runtime_checkable
class Toolset(Protocol):
    """Tools that share something to open and close: a connection, a process, a temporary folder.

    `tools` is read after `open`; both may be `def` or `async def`.
    """

    @property
    def tools(self) -> Sequence[Tool | Callable[..., Any]]:
        """The tools, or functions to make them of."""
        ...

    def open(self) -> Awaitable[None] | None:
        """Called once per turn, before the tools are read."""
        ...

    def close(self) -> Awaitable[None] | None:
        """Called when the turn ends, whatever happened."""
        ...


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(function: None = None, /, **options: Any) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, sync or async."""
    if function is None:
        return lambda f: _made(f, **options)
    return _made(function, **options)


def _made(
    function: Any, *, schema: Any = None, name: str | None = None, description: str | None = None, **options: Any
) -> Tool:
    signature = describe(function, schema=schema)
    return Tool(
        name=name or innermost(function).__name__,
        description=signature.description if description is None else description,
        signature=signature,
        function=function,
        is_async=is_async(function),
        **options,
    )


def as_tool(thing: object) -> Tool:
    """A tool as it is, or one made of a function. Raises `ConfigError` for anything else."""
    if isinstance(thing, Tool):
        return thing
    if callable(thing):
        return _made(thing)
    raise ConfigError(f"not a tool: {thing!r}")


def is_async(function: Any) -> bool:
    """Whether calling it gives an awaitable; sees through partials, methods and callable objects."""
    while isinstance(function, functools.partial):
        function = function.func
    if isinstance(function, staticmethod | classmethod):
        function = function.__func__
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )
