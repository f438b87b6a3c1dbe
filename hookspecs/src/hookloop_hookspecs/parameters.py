"""Reading a function: its parameters, their types, and how it wants to be called.

Sees through partials, bound methods, wrappers and callable objects. Annotations are resolved one by one, so a name that
exists only for type checkers spoils nothing but its own parameter.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Union, Unpack, get_args, get_origin

from .annotations import is_typed_dict, keys_of, readable
from .context import ToolContext
from .docstrings import Docs, read_docstring
from .errors import ConfigError
from .scope import Scope, innermost, label_of

EMPTY: Final = inspect.Parameter.empty
_Kind = inspect.Parameter
_CONTEXT_NAMES: Final = {"ctx", "context"}
_RECEIVERS: Final = {"self", "cls"}


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter that the model fills. `default` is `EMPTY` where there is none."""

    name: str
    annotation: Any
    default: Any = EMPTY
    description: str = ""


@dataclass(frozen=True, slots=True)
class Layout:
    """How to call a function with keyword arguments: `positional` go by place (name and default), then `variadic`."""

    positional: tuple[tuple[str, Any], ...] = ()
    variadic: str = ""

    def call(self, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
        """Call it. Raises `TypeError` as the function itself would."""
        if not self.positional and not self.variadic:
            return function(**kwargs)
        rest = dict(kwargs)
        more = rest.pop(self.variadic, ()) if self.variadic else ()
        return function(*self._by_place(rest, bool(more)), *more, **rest)

    def _by_place(self, rest: dict[str, Any], every: bool) -> list[Any]:
        last = max((i for i, (name, _) in enumerate(self.positional) if every or name in rest), default=-1)
        values = []
        for name, default in self.positional[: last + 1]:
            value = rest.pop(name, default)
            if value is EMPTY:
                raise TypeError(f"missing argument {name!r}")
            values.append(value)
        return values


@dataclass(frozen=True, slots=True)
class Reading:
    """What a function's signature says.

    `injected` are the parameters that receive the context; `reserved` names are not the model's to use; `extra` is the
    type of further keyword arguments (`EMPTY` where the function takes none); `unbound` is true for a method's function
    that still waits for its object.
    """

    label: str
    docs: Docs
    parameters: tuple[Parameter, ...]
    injected: tuple[str, ...]
    reserved: frozenset[str]
    extra: Any
    unbound: bool
    layout: Layout


def name_of(function: Any) -> str:
    """The name a tool gets when none is given: the function's, or for a callable object its class's."""
    while isinstance(function, functools.partial | classmethod | staticmethod):
        function = function.func if isinstance(function, functools.partial) else function.__func__
    return str(getattr(function, "__name__", None) or type(function).__name__)


def read_function(function: Any, declared: frozenset[str] | None = None) -> Reading:
    """Read a function's signature and docstring.

    `declared` are the arguments of a schema that the caller brought along: then annotations matter only for what is
    injected. Raises `ConfigError` for a parameter that a model could not be told about.
    """
    raw, unbound = _parameters(function)
    scope = Scope(innermost(function), label_of(function))
    docs = read_docstring(_docstring(function))
    injected = tuple(p.name for p in raw if _is_injected(p, scope, declared))
    bound = frozenset(function.keywords) if isinstance(function, functools.partial) else frozenset()
    reserved = bound | frozenset(injected)
    open_ = [p for p in raw if p.name not in reserved]
    filled = _declared(open_) if declared is not None else [f for p in open_ for f in _filled(p, scope, docs)]
    return Reading(
        scope.label, docs, tuple(filled), injected, reserved, _extra(open_, scope, declared), unbound, _layout(raw)
    )


def _declared(raw: list[inspect.Parameter]) -> list[Parameter]:
    return [
        Parameter(p.name, Any, () if p.kind is _Kind.VAR_POSITIONAL else p.default)
        for p in raw
        if p.kind is not _Kind.VAR_KEYWORD
    ]


def _parameters(function: Any) -> tuple[list[inspect.Parameter], bool]:
    target = function.__func__ if isinstance(function, classmethod | staticmethod) else function
    try:
        raw = list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{label_of(function)} tells no signature; wrap it in a function with annotations") from error
    unbound = isinstance(function, classmethod) or _awaits_object(function, raw)
    return (raw[1:] if unbound else raw), unbound


def _awaits_object(function: Any, raw: list[inspect.Parameter]) -> bool:
    if not inspect.isfunction(function) or not raw:
        return False
    return raw[0].name in _RECEIVERS and raw[0].annotation is EMPTY and raw[0].default is EMPTY


def _docstring(function: Any) -> str | None:
    inner = innermost(function)
    if inner.__doc__ or inspect.isroutine(function) or isinstance(function, functools.partial):
        return getattr(inner, "__doc__", None)
    return type(function).__doc__


def _layout(raw: list[inspect.Parameter]) -> Layout:
    variadic = next((p.name for p in raw if p.kind is _Kind.VAR_POSITIONAL), "")
    kinds = {_Kind.POSITIONAL_ONLY, _Kind.POSITIONAL_OR_KEYWORD} if variadic else {_Kind.POSITIONAL_ONLY}
    return Layout(tuple((p.name, p.default) for p in raw if p.kind in kinds), variadic)


def _extra(raw: list[inspect.Parameter], scope: Scope, declared: frozenset[str] | None) -> Any:
    for p in raw:
        if p.kind is _Kind.VAR_KEYWORD and (declared is not None or p.annotation is EMPTY):
            return Any
        if p.kind is _Kind.VAR_KEYWORD:
            annotation = scope.resolve(p.name, p.annotation)
            return EMPTY if get_origin(annotation) is Unpack else annotation
    return EMPTY


def _filled(p: inspect.Parameter, scope: Scope, docs: Docs) -> Iterator[Parameter]:
    """The model's parameters that come of one in the signature."""
    description = docs.parameters.get(p.name, "")
    if p.kind is _Kind.VAR_KEYWORD:
        yield from _unpacked(p, scope)
    elif p.kind is _Kind.VAR_POSITIONAL:
        yield Parameter(p.name, list_of(_annotated(p, scope)), (), description)
    else:
        yield Parameter(p.name, _annotated(p, scope), p.default, description)


def _unpacked(p: inspect.Parameter, scope: Scope) -> Iterator[Parameter]:
    """The keys of `**kwargs: Unpack[SomeTypedDict]`."""
    if p.annotation is EMPTY:
        return
    annotation = scope.resolve(p.name, p.annotation)
    if get_origin(annotation) is Unpack and is_typed_dict(typed := get_args(annotation)[0]):
        for key in keys_of(typed, scope.names):
            yield Parameter(key.name, readable(key.annotation, scope.names), EMPTY if key.required else ABSENT)


class _Absent:
    """The default of an argument that is simply not passed on."""


ABSENT: Final = _Absent()


def _annotated(p: inspect.Parameter, scope: Scope) -> Any:
    if p.annotation is not EMPTY:
        return readable(scope.resolve(p.name, p.annotation), scope.names)
    if p.default is not EMPTY:
        return type(p.default) if type(p.default) in {bool, int, float, str, list, dict} else Any
    star = "*" if p.kind is _Kind.VAR_POSITIONAL else ""
    kind = "ToolContext" if p.name in _CONTEXT_NAMES else "str"
    raise ConfigError(
        f"{scope.label}: parameter '{star}{p.name}' has no annotation, so the model cannot be told what it takes; "
        f"write for example '{star}{p.name}: {kind}'"
    )


def list_of(kind: Any) -> Any:
    """`list[kind]`, for a type that is known only at run time."""
    return list.__class_getitem__(kind)


def _is_injected(p: inspect.Parameter, scope: Scope, declared: frozenset[str] | None) -> bool:
    if p.kind in {_Kind.VAR_POSITIONAL, _Kind.VAR_KEYWORD}:
        return False
    if p.annotation is EMPTY:
        return declared is not None and p.name in _CONTEXT_NAMES - declared
    try:
        return _is_context(scope.evaluate(p.annotation))
    except Exception:  # an annotation is any expression, and may fail in any way
        return p.name in _CONTEXT_NAMES or bool(re.search(r"\bToolContext\b", str(p.annotation)))


def _is_context(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        return _is_context(get_args(annotation)[0])
    if get_origin(annotation) in {Union, types.UnionType}:
        return all(_is_context(kind) for kind in get_args(annotation) if kind is not types.NoneType)
    return isinstance(annotation, type) and issubclass(annotation, ToolContext)
