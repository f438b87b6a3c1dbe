"""Reading JSON that nobody vouches for, and texts that must become valid UTF-8. Nothing here raises on a bad shape."""

from __future__ import annotations

import json
from typing import Any, TypeAlias

from pydantic_core import from_json

Json: TypeAlias = dict[str, Any]


def parsed(data: bytes | str) -> Any:
    """The value of a JSON text. Raises `ValueError` where it is none.

    The fast parser refuses halves of surrogate pairs, which servers do send (a pair cut over two events); the standard
    one takes them.
    """
    try:
        return from_json(data)
    except (ValueError, TypeError):  # a text with a lone surrogate is a TypeError to the fast parser
        text = data.decode("utf-8", "replace") if isinstance(data, bytes) else data
        return _standard(text)


def _standard(text: str, **options: Any) -> Any:
    try:
        return json.loads(text, **options)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def string(value: object) -> str:
    """The value if it is a string, else nothing."""
    return value if isinstance(value, str) else ""


def mapping(value: object) -> Json:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """The value if it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def whole(value: object) -> int | None:
    """The value if it is a whole number (true and false are none)."""
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def is_json(text: str) -> bool:
    """True where the text is one whole JSON value."""
    try:
        parsed(text)
    except ValueError:
        return False
    return True


def is_object(text: str) -> bool:
    """True where the text is a JSON object, complete, nothing behind it, and without NaN or Infinity."""
    if not text.rstrip().endswith("}"):
        return False
    try:
        return isinstance(from_json(text, allow_inf_nan=False), dict)
    except (ValueError, TypeError):
        return _is_standard_object(text)


def _is_standard_object(text: str) -> bool:
    try:
        return isinstance(_standard(text, parse_constant=_refuse), dict)
    except ValueError:
        return False


def utf8(text: str) -> str:
    """The text as it can be encoded: surrogate pairs become their character, lone halves the replacement character."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def dumps(value: object) -> bytes:
    """The value as compact JSON in valid UTF-8. Raises `ValueError` where JSON cannot say it."""
    return utf8(json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)).encode()


class Pairs:
    """Joins surrogate pairs that a server cut into two pieces, so that every piece that leaves is valid UTF-8."""

    __slots__ = ("half",)

    def __init__(self) -> None:
        self.half = ""

    def join(self, piece: str) -> str:
        """The piece as far as it is whole; half a pair at its end waits for the next one."""
        if not self.half and (piece.isascii() or not "\ud800" <= piece[-1] <= "\udbff"):
            return utf8(piece)
        text = self.half + piece
        self.half = text[-1] if "\ud800" <= text[-1] <= "\udbff" else ""
        return utf8(text[:-1] if self.half else text)

    def rest(self) -> str:
        """What is still waiting, as the replacement character."""
        half, self.half = self.half, ""
        return utf8(half)
