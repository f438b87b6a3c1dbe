"""Slips that models make in arguments, mended; and what cannot be mended, in words."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from .arguments import ArgumentsError, Path, at, changed, path_of, quoted, spelled, unwrapped, without
from .redact import bounded

T = TypeVar("T")

PASSES: Final = 10
"""How often arguments are mended and checked again; each pass reaches one level deeper."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong. `where` leads to it (union tags may be among the steps); `value` stands there.

    `missing`: the last step is not there; `unknown`: it should not be there; `container`: an object or array is wanted.
    """

    where: Path
    message: str
    value: Any = None
    missing: bool = False
    unknown: bool = False
    container: bool = False


class Faulty(Exception):
    """What a check raises; never leaves `mended`."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(len(faults))
        self.faults = faults


def mended(check: Callable[[Mapping[str, Any]], T], arguments: Mapping[str, Any], known: Sequence[str]) -> T:
    """What `check` makes of the arguments, with slips mended.

    JSON text where an object or array is wanted is decoded; null where null cannot stand is taken away. `known` are the
    names of the arguments. Raises `ArgumentsError` with every fault that is left.
    """
    dropped: set[Path] = set()
    for _ in range(PASSES):
        try:
            return check(arguments)
        except Faulty as faulty:
            faults = faulty.faults
        better = _mend(arguments, faults, dropped)
        if better is arguments:
            break
        arguments = better
    raise ArgumentsError(*_words(arguments, faults, dropped, known))


def _mend(arguments: Mapping[str, Any], faults: Iterable[Fault], dropped: set[Path]) -> Mapping[str, Any]:
    seen: set[Path] = set()
    for fault in faults:
        path = path_of(fault.where, arguments)
        if fault.missing or fault.unknown or path in seen or at(arguments, path) is not fault.value:
            continue
        if fault.container and isinstance(fault.value, str):
            seen.add(path)
            arguments = _decoded(arguments, path, fault.value)
        elif fault.value is None and isinstance(path[-1], str):
            seen.add(path)
            dropped.add(path)
            arguments = without(arguments, path)
    return arguments


def _decoded(arguments: Mapping[str, Any], path: Path, text: str) -> Mapping[str, Any]:
    value = unwrapped(text)
    return arguments if value is text else changed(arguments, path, value)


def _words(arguments: Any, faults: Iterable[Fault], dropped: set[Path], known: Sequence[str]) -> list[str]:
    """One line per place; several complaints about one place (the members of a union) are joined."""
    lines: dict[Path, list[str]] = {}
    for fault in faults:
        path, text = _word(arguments, fault, dropped, known)
        texts = lines.setdefault(path, [])
        if text not in texts:
            texts.append(text)
    return [bounded(f"{spelled(path) or 'arguments'}: {', or '.join(texts)}", 500) for path, texts in lines.items()]


def _word(arguments: Any, fault: Fault, dropped: set[Path], known: Sequence[str]) -> tuple[Path, str]:
    if fault.missing:
        path = (*path_of(fault.where[:-1], arguments), fault.where[-1])
        return path, "required, must not be null" if path in dropped else "required, but missing"
    path = path_of(fault.where, arguments)
    if fault.unknown:
        return path, "unknown argument" + (_nearest(str(path[-1]), known) if len(path) == 1 else "")
    return path, f"{fault.message} (got {quoted(fault.value)})"


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; known are {', '.join(known)}" if known else ""
