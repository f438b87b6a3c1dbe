"""What an agent is given as parameters, looked at before anything is made of it: what is wrong is told with what to give.

What must live here: kinds of values. What must never be known here: what an agent does with them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

from hookloop_hookspecs import ConfigError, Settings

from .limits import Limits

KINDS: Final[Mapping[str, tuple[type, str]]] = {
    "instructions": (str, "text"),
    "limits": (Limits, 'Limits(rounds=20), or the table in config={"limits": {"rounds": 20}}'),
    "settings": (Settings, 'Settings(temperature=0), or the table in config={"settings": {"temperature": 0}}'),
    "scope": (str, "the tenant as text, or leave it out"),
    "tool_choice": (str, '"auto", "none", "required" or a tool\'s name'),
}
OPTIONAL: Final = ("instructions", "limits", "settings")
"""Those that may be None."""
PENDING: Final = ("supersede", "refuse")


def check_parameters(parameters: Mapping[str, object]) -> None:
    """Raise `ConfigError` for the first parameter of an agent that is not of its kind; others are not looked at."""
    for name, value in parameters.items():
        kind, wanted = KINDS.get(name, (object, ""))
        if not isinstance(value, kind) and not (value is None and name in OPTIONAL):
            raise ConfigError(f"{name} is {value!r:.60}; give {wanted}")
        if name == "on_pending" and value not in PENDING:
            raise ConfigError(f"on_pending is {value!r:.60}; it is one of {', '.join(PENDING)}")
        if name == "tools":
            listed(name, value)


def listed(name: str, value: Any) -> list[Any]:
    """The items of a parameter that is a list. Raises `ConfigError` for what is none, and for a class in it."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ConfigError(f"{name} is {value!r:.60}; give a list: {name}=[…]")
    items = list(value)
    for at, item in enumerate(items):
        if isinstance(item, type):
            raise ConfigError(f"{name}[{at}] is the class {item.__name__}; give an object of it: {item.__name__}(…)")
    return items


def check_apart(plugins: Sequence[object], memories: Sequence[object]) -> None:
    """Raise `ConfigError` where one object is given twice, or two that are equal, which cannot be told apart."""
    places = [(f"plugins[{at}]", item) for at, item in enumerate(plugins)]
    places += [(f"memory[{at}]", item) for at, item in enumerate(memories)]
    for (one, a), (other, b) in combinations(((place, item) for place, item in places if not isinstance(item, str)), 2):
        if a is b:
            raise ConfigError(f"{one} and {other} are the same {type(a).__name__}; give it once")
        if a == b:
            raise ConfigError(
                f"{one} and {other} are equal {type(a).__name__}s; let them compare by identity (a dataclass: eq=False)"
            )
