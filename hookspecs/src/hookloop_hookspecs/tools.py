"""Tools: a Python function, its schema, and how it may be run."""

from __future__ import annotations

import difflib
import functools
import inspect
import types
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, overload, runtime_checkable

from .context import SuspendCall, ToolContext, ToolError
from .entries import ToolSpec
from .errors import ConfigError
from .parameters import name_of
from .schema import ArgumentsError, Signature, describe
from .scope import label_of
from .tool_options import check_options

__all__ = [
    "ArgumentsError",
    "SuspendCall",
    "Tool",
    "ToolContext",
    "ToolError",
    "Toolset",
    "as_tool",
    "is_async",
    "tool",
]

Retried = type[Exception] | tuple[type[Exception], ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Tool:
    """A function that a model may call.

    `timeout` is in seconds (the effect of a call that ran out of time is unknown); `retries` more attempts are made on
    the exceptions of `retry_on`, `retry_wait` seconds apart; `idempotent` tools may be run again after a crash;
    `return_direct` makes the results the answer (if every call of the reply has it and succeeded); `needs_approval`
    suspends each call until somebody decides; `serial` tools never run beside others; `strict` asks for the provider's
    strict schema mode. Raises `ConfigError` for a name or option that cannot be.

    In a class body a tool binds as a method does: `obj.method` is the tool of that object.
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

    def __post_init__(self) -> None:
        check_options(self.name, self)
        # what inspect and documentation tools look at; an instance's own, since the class has them for itself
        object.__setattr__(self, "__wrapped__", self.function)
        object.__setattr__(self, "__doc__", self.function.__doc__)

    @property
    def spec(self) -> ToolSpec:
        """The tool as a model sees it."""
        return ToolSpec(self.name, self.description, self.signature.schema, self.strict)

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the function, as Python values. Raises `ArgumentsError` with every fault."""
        return self.signature.validate(arguments)

    def call(self, kwargs: Mapping[str, Any], context: ToolContext) -> Any:
        """Call the function with validated arguments; the value, or an awaitable where the tool is async."""
        injected = dict.fromkeys(self.signature.injected, context)
        return self.signature.invoke(self.function, {**kwargs, **injected})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The plain function, for use outside a turn."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool:
        """The tool itself, or the tool of one object where this is a method."""
        of_class = isinstance(self.function, classmethod)
        if not self.signature.unbound or (instance is None and not of_class):
            return self
        bound = self.function.__get__(instance, owner)
        return replace(self, function=bound, signature=replace(self.signature, unbound=False))


@runtime_checkable
class Toolset(Protocol):
    """Tools that share something to open and close: a connection, a process, a temporary folder.

    `tools` (tools, or functions to make them of) is read after `open`, so it may be set there. `open` and `close` may
    each be `def` or `async def`. `isinstance` asks for `open` and `close` only, so that it does not touch `tools`.
    """

    @classmethod
    def __subclasshook__(cls, kind: type, /) -> Any:
        """Whether a class has both methods."""
        if cls is not Toolset:
            return NotImplemented
        return all(callable(getattr(kind, name, None)) for name in ("open", "close"))

    @property
    def tools(self) -> Sequence[Tool | Callable[..., Any]]:
        """The tools, or functions to make them of."""

    def open(self) -> Awaitable[None] | None:
        """Called before the tools are read. What it raises ends the turn."""

    def close(self) -> Awaitable[None] | None:
        """Called when the turn ends, whatever happened; not when `open` raised."""


@overload
def tool(function: Callable[..., Any], /, **options: Any) -> Tool: ...


@overload
def tool(
    function: None = None,
    /,
    *,
    name: str = ...,
    description: str = ...,
    timeout: float | None = ...,
    retries: int = ...,
    retry_on: Retried = ...,
    retry_wait: float = ...,
    idempotent: bool = ...,
    return_direct: bool = ...,
    needs_approval: bool = ...,
    serial: bool = ...,
    strict: bool = ...,
    schema: Mapping[str, Any] | str = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, sync or async: `@tool`, or `@tool(timeout=5)`.

    Arguments: `name` (the function's name) and `description` (its docstring without the parameters) for the model;
    `schema`, a JSON Schema in place of the one made of the annotations (see `describe`); the others as `Tool` says.
    Raises `ConfigError` where a parameter cannot be described, and for names and options that cannot be.
    """
    if unknown := sorted(options.keys() - _OPTIONS):
        raise ConfigError(_unknown_option(unknown[0]))
    if function is None:
        return functools.partial(_made, options=options)
    return _made(function, options)


_FIELDS: Final = frozenset(Tool.__dataclass_fields__) - {"signature", "function", "is_async"}
_OPTIONS: Final = _FIELDS | {"schema"}


def _unknown_option(name: str) -> str:
    close = difflib.get_close_matches(name, sorted(_OPTIONS), n=1)
    return f"@tool has no option {name!r}; " + (
        f"did you mean {close[0]!r}?" if close else f"known: {sorted(_OPTIONS)}"
    )


def _made(function: Any, options: Mapping[str, Any]) -> Tool:
    if isinstance(options.get("retry_on"), type):
        options = {**options, "retry_on": (options["retry_on"],)}
    if isinstance(function, Tool):
        return _remade(function, options)
    if isinstance(function, staticmethod):
        function = function.__func__
    if inspect.isclass(function) or not (callable(function) or isinstance(function, classmethod)):
        raise ConfigError(f"a tool is made of a function, not of {_said(function)}")
    rest = dict(options)
    signature = describe(function, schema=rest.pop("schema", None))
    own = {"name": name_of(function), "description": signature.description}
    return Tool(**{**own, **rest}, signature=signature, function=function, is_async=is_async(function))


def _remade(made: Tool, options: Mapping[str, Any]) -> Tool:
    rest = dict(options)
    if "schema" in rest:
        rest["signature"] = describe(made.function, schema=rest.pop("schema"))
    return replace(made, **rest)


def as_tool(thing: object) -> Tool:
    """A tool as it is, or one made of a function, bound method, partial or callable object.

    Raises `ConfigError` for anything else, and for a method that was taken from its class instead of an object.
    """
    if isinstance(thing, types.MethodType) and isinstance(thing.__func__, Tool):
        thing = thing.__func__.__get__(thing.__self__, type(thing.__self__))
    made = thing if isinstance(thing, Tool) else _made(thing, {})
    if made.signature.unbound:
        raise ConfigError(f"{label_of(made.function)} is a method of a class; give that of an object: obj.{made.name}")
    return made


def _said(thing: object) -> str:
    if inspect.isclass(thing):
        return f"the class {thing.__name__}; give an object or a function"
    if isinstance(thing, Toolset):
        return f"the toolset {type(thing).__name__}; return it from register_tools, or give its tools"
    return f"{type(thing).__name__} {thing!r:.80}"


def is_async(function: Any) -> bool:
    """Whether calling it gives an awaitable; sees through partials, bound methods, tools and callable objects."""
    while isinstance(function, functools.partial | staticmethod | classmethod):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    if isinstance(function, Tool):
        return function.is_async
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)
