"""Names that people misspell: the nearest right one, and the words that say so."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from functools import cache, wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, cast

from hookloop_hookspecs import ConfigError, hooks

F = TypeVar("F", bound=Callable[..., Any])
K = TypeVar("K")


def nearest(name: str, names: Iterable[str]) -> str | None:
    """The name most like `name`, or None when nothing is near. Case and `-`/`_` make no difference."""
    plain = {_plain(known): known for known in names}
    found = get_close_matches(_plain(name), plain, n=1, cutoff=0.6)
    return plain[found[0]] if found else None


def alike(a: str, b: str) -> bool:
    """Are two names the same but for case and `-`/`_`?"""
    return _plain(a) == _plain(b)


def one_line(text: str) -> str:
    """A text of others as one line of a log, which cannot forge another: what does not print is shown as a code."""
    return "".join(mark if mark.isprintable() else repr(mark)[1:-1] for mark in text)


def suggest(name: str, names: Iterable[str]) -> str:
    """What to add to an error about `name`: the nearest name, else the known ones; it begins with "; "."""
    known = sorted(set(names))
    near = nearest(name, known)
    if near is not None:
        return f"; did you mean {near!r}?"
    return f"; known: {', '.join(known)}" if known else ""


def spelled(what: str) -> Callable[[F], F]:
    """Let an unknown keyword of a function be a `ConfigError` that names the nearest right one, in place of a `TypeError`."""

    def decorate(function: F) -> F:
        named = (Parameter.KEYWORD_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
        names = frozenset(p.name for p in signature(function).parameters.values() if p.kind in named) - {"self"}

        @wraps(function)
        def checked(*args: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in names:
                    raise ConfigError(f"{what} takes no {name!r}{suggest(name, names)}")
            return function(*args, **keywords)

        return cast("F", checked)

    return decorate


def spelled_fields(kind: type[K]) -> type[K]:
    """`spelled` for the fields of a dataclass."""
    made: Any = kind
    made.__init__ = spelled(kind.__name__)(made.__init__)
    return kind


@cache
def hook_names() -> tuple[str, ...]:
    """All hooks of the contract, in the order a turn meets them."""
    return tuple(name for name, value in vars(hooks).items() if hasattr(value, "hookloop_spec"))


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")
