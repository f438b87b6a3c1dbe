"""The names that a function's annotations may use, and the function below what is wrapped around it."""

from __future__ import annotations

import functools
import inspect
import sys
import types
import typing
from collections import ChainMap
from collections.abc import Iterator, MutableMapping
from typing import Any

from .errors import ConfigError


def innermost(function: Any) -> Any:
    """The plain function below partials, bound methods, static and class methods, wrappers and callable objects."""
    while True:
        if isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, staticmethod | classmethod) or inspect.ismethod(function):
            function = function.__func__
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif inspect.isroutine(function) or inspect.isclass(function):
            return function
        else:
            function = type(function).__call__


def label_of(function: Any) -> str:
    """How messages name a function."""
    inner = innermost(function)
    return str(getattr(inner, "__qualname__", None) or repr(inner))


class Scope:
    """The names that a function's annotations may use."""

    def __init__(self, inner: Any, label: str) -> None:
        self.label = label
        self._globals = _globals(inner)
        self.names = ChainMap(*_enclosing(inner, self._globals))

    def evaluate(self, annotation: Any) -> Any:
        """The type that an annotation stands for; raises whatever its evaluation raises."""
        holder = types.SimpleNamespace(__annotations__={"it": annotation})
        return typing.get_type_hints(holder, self._globals, self.names, include_extras=True)["it"]

    def resolve(self, name: str, annotation: Any) -> Any:
        """As `evaluate`, with a `ConfigError` that says which parameter it was."""
        try:
            return self.evaluate(annotation)
        except Exception as error:
            raise ConfigError(
                f"{self.label}: the annotation {annotation!r} of parameter '{name}' cannot be resolved "
                f"({type(error).__name__}: {error}); import the name at run time, not only for type checkers"
            ) from error


def _globals(inner: Any) -> dict[str, Any]:
    own = getattr(inner, "__globals__", None)
    if own is None:
        own = getattr(sys.modules.get(getattr(inner, "__module__", None) or ""), "__dict__", {})
    return typing.cast("dict[str, Any]", own)


def _enclosing(inner: Any, names: dict[str, Any]) -> Iterator[MutableMapping[str, Any]]:
    """Names of the functions and classes around `inner`: what it closes over, and the locals of those still running."""
    yield _closure(inner)
    qualname = getattr(inner, "__qualname__", "")
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        around = frame.f_code.co_qualname
        if frame.f_globals is names and qualname.startswith((f"{around}.", f"{around}.<locals>.")):
            yield dict(frame.f_locals)


def _closure(inner: Any) -> dict[str, Any]:
    code, cells = getattr(inner, "__code__", None), getattr(inner, "__closure__", None) or ()
    found = {}
    for name, cell in zip(getattr(code, "co_freevars", ()), cells, strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # the enclosing function has not assigned it yet
            continue
    return found
