"""Does a value hold what its type says? Python does not look, and a wrong value that enters history is met too late: by the
store that cannot read it back, or by the provider that refuses it in every turn to come.

What must live here: the look, and its words. What must never be known here: whose fault it is (whoever asks says so).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Final, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from .media import medium_of
from .messages import File, Image
from .redact import bounded, redact

_PLAIN: Final = (str, bool, int, float, type(None))

Check: TypeAlias = Callable[[Any], str]
"""Gives the fault of a value, written to stand behind its name (" is 5, not str"); empty where there is none."""


def fault(value: Any) -> str:
    """What is wrong with a message, a part, a reply, a verdict, in words that name the field; empty where nothing is.

    Looks at the type of every field, down to the last part, and at the data of pictures and files: base64, or a URL.
    """
    kind: Any = value.__class__
    if _sound(kind)(value):
        return ""
    for name, check in _checks(kind):
        if trouble := check(getattr(value, name)):
            return f"{name}{trouble}"
    return _medium(value) if isinstance(value, Image | File) else ""


@cache
def _checks(kind: Any) -> tuple[tuple[str, Check], ...]:
    """Each field with its check."""
    if not is_dataclass(kind):
        return ()
    hints = get_type_hints(kind)
    return tuple((spec.name, _check(hints[spec.name])) for spec in fields(kind))


@cache
def _sound(kind: Any) -> Callable[[Any], bool]:
    """Does a value of this class certainly hold what it should? One expression over its fields, since nearly all values do, and
    a look is taken at each piece of each reply. False where it must be looked at closely.
    """
    if not is_dataclass(kind) or kind in (Image, File):
        return lambda value: False
    hints, names = get_type_hints(kind), dict[str, Any](sound=_sound)
    terms = [_term(f"value.{spec.name}", hints[spec.name], names) for spec in fields(kind)]
    look: Callable[[Any], bool] = eval(f"lambda value: {' and '.join(terms) or 'True'}", names)
    return look


def _all_sound(items: tuple[Any, ...]) -> bool:
    return all(map(_is_sound, items))


def _is_sound(item: Any) -> bool:
    return _sound(item.__class__)(item)


def _term(held: str, hint: Any, names: dict[str, Any]) -> str:
    """The expression that a field is certainly as its annotation says; `names` are what it refers to."""
    known = f"k{len(names)}"
    if hint is Any or hint is object:
        return "True"
    if get_origin(hint) is Literal:
        names[known] = frozenset(get_args(hint))
        return f"{held}.__class__ is str and {held} in {known}"
    members = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if all(member in _PLAIN for member in members):
        names[known] = frozenset(members)
        return f"{held}.__class__ in {known}"
    if get_origin(hint) is tuple:
        names[known] = _all_sound
        inner = get_args(get_args(hint)[0]) or get_args(hint)[:1]
        names[f"{known}s"] = frozenset(inner)
        return f"{held}.__class__ is tuple and {known}s.issuperset(map(type, {held})) and {known}({held})"
    if is_dataclass(hint):
        known_kind: Any = hint
        names[known], names[f"{known}s"] = hint, _sound(known_kind)
        return f"{held}.__class__ is {known} and {known}s({held})"
    return "False"


def _check(hint: Any) -> Check:
    """The check of one annotation."""
    if isinstance(hint, TypeVar) or hint is Any or hint is object:
        return _anything
    if get_origin(hint) is Literal:
        return _one_of(get_args(hint))
    if get_origin(hint) in (Union, UnionType):
        return _any_of(get_args(hint))
    if get_origin(hint) is tuple:
        return _tuple_of(_check(get_args(hint)[0]))
    return _of(get_origin(hint) or hint)


def _anything(_: Any) -> str:
    return ""


def _one_of(values: tuple[Any, ...]) -> Check:
    names = ", ".join(map(repr, values))
    return lambda value: "" if isinstance(value, str) and value in values else f" is {_a(value)}, not one of {names}"


def _tuple_of(check: Check) -> Check:
    def checked(value: Any) -> str:
        if not isinstance(value, tuple):
            return f" is {_a(value)}, not a tuple"
        for at, item in enumerate(value):
            trouble = check(item)
            if trouble:
                return f"[{at}]{trouble}"
        return ""

    return checked


_NUMBERS: Final = {int: (int,), float: (int, float)}
"""What counts as a number of a kind; a bool is none."""


def _of(kind: type[Any]) -> Check:
    kinds = _NUMBERS.get(kind, (kind,))

    def checked(value: Any) -> str:
        if not isinstance(value, kinds) or (kind in _NUMBERS and isinstance(value, bool)):
            return f" is {_a(value)}, not {kind.__name__}"
        inner = fault(value) if is_dataclass(kind) else ""
        return f".{inner}" if inner else ""

    return checked


def _any_of(hints: tuple[Any, ...]) -> Check:
    """Any member of a union; a value of a member's own class has that one's fault."""
    members = [(get_origin(hint) or hint, _check(hint)) for hint in hints]
    names = ", ".join("None" if kind is type(None) else getattr(kind, "__name__", str(kind)) for kind, _ in members)

    def checked(value: Any) -> str:
        for kind, check in members:
            if kind is type(value):
                return check(value)
        if any(not check(value) for _, check in members):
            return ""
        return f" is {_a(value)}, not one of {names}"

    return checked


def _medium(value: Image | File) -> str:
    """Is there something to show?"""
    if value.url and not value.data:
        return ""
    if not value.data:
        return "data is empty, and there is no url"
    try:
        medium_of(value)
    except ValueError:
        return f"data is not base64; {type(value).__name__}.of(…) makes it of bytes"
    return ""


def _a(value: Any) -> str:
    """A value in a few words; one that cannot be shown is named by its class."""
    try:
        return bounded(redact(repr(value)), 60)
    except Exception:
        return f"a {type(value).__name__}"
