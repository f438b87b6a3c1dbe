"""The arguments of a call: from the model's text to a dict, small slips mended, faults put into words.

What must live here: what is the same for every tool, whichever way its schema came about. What must never be known
here: functions, pydantic models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from .redact import bounded

Path: TypeAlias = "tuple[str | int, ...]"

_DECODER = json.JSONDecoder()
SHOWN = 20
"""How many faults the text of an `ArgumentsError` spells out."""


class ArgumentsError(Exception):
    """A call's arguments cannot be used. `problems` lists every fault, in words for a model; none of it was run."""

    def __init__(self, *problems: str) -> None:
        # half surrogate pairs, which a model may write, would break whatever stores or sends this text
        self.problems: tuple[str, ...] = tuple(text.encode("utf-8", "replace").decode("utf-8") for text in problems)
        super().__init__(*self.problems)

    def __str__(self) -> str:
        more = len(self.problems) - SHOWN
        return "; ".join(self.problems[:SHOWN]) + (f"; and {more} more" if more > 0 else "")


def parse_arguments(raw: str) -> dict[str, Any]:
    """The object in a call's JSON text.

    Blank text is an empty object. A JSON string that itself holds an object is unwrapped, once. Of a repeated key the
    last stands; NaN and infinities are read. Raises `ArgumentsError` for anything else, quoting the JSON error.
    """
    if not raw.strip():
        return {}
    value = _decoded(raw)
    if isinstance(value, str):
        value = unwrapped(value)
    if not isinstance(value, dict):
        raise ArgumentsError("arguments must be a JSON object")
    return value


def _decoded(raw: str) -> Any:
    try:
        value, end = _DECODER.raw_decode(raw)
        if end == len(raw):
            return _whole(value) if "\\u" in raw else value
    except (ValueError, RecursionError):
        pass  # white space around it, or a fault, which is put into words below
    try:
        value = json.loads(raw)
    except json.JSONDecodeError as error:
        near = raw[max(0, error.pos - 30) : error.pos + 30]
        raise ArgumentsError(f"arguments are not valid JSON: {bounded(str(error), 200)}, near {near!r}") from error
    except (ValueError, RecursionError) as error:
        raise ArgumentsError(f"arguments are not usable JSON: {bounded(str(error), 200)}") from error
    return _whole(value) if "\\u" in raw else value


def _whole(value: Any) -> Any:
    """A value whose texts hold no half of a surrogate pair, which a model may write as an escape, and no store can keep."""
    if isinstance(value, str):
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list) else value


def unwrapped(text: str) -> Any:
    """The object or array that `text` is the JSON of; otherwise the text itself."""
    if not text.lstrip().startswith(("{", "[")):
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, dict | list) else text


def path_of(location: Iterable[str | int], value: Any) -> Path:
    """The steps of `location` that lead into `value`; union members, other tags and missing keys are left out."""
    path: list[str | int] = []
    for step in location:
        if _leads(step, value):
            path.append(step)
            value = value[step]
    return tuple(path)


def _leads(step: str | int, value: Any) -> bool:
    if isinstance(value, Mapping):
        return step in value
    return isinstance(value, list | tuple) and isinstance(step, int) and step < len(value)


def spelled(path: Sequence[str | int]) -> str:
    """A path as a model reads it: `items[2].name`."""
    text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return text.removeprefix(".")


def quoted(value: Any) -> str:
    """A value as JSON, bounded to what helps to find it."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = type(value).__name__
    return bounded(text, 80)


def without(arguments: Any, path: Path) -> Any:
    """A copy of `arguments` that lacks the key at `path`; what is not on the path is shared."""
    holder = at(arguments, path[:-1])
    return changed(arguments, path[:-1], {key: value for key, value in holder.items() if key != path[-1]})


def changed(arguments: Any, path: Path, value: Any) -> Any:
    """A copy of `arguments` with another `value` at `path`; what is not on the path is shared."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    copy: Any = list(arguments) if isinstance(arguments, list | tuple) else dict(arguments)
    copy[step] = changed(copy[step], rest, value)
    return copy


def at(arguments: Any, path: Path) -> Any:
    """What stands at `path`, which must exist."""
    for step in path:
        arguments = arguments[step]
    return arguments
