"""What a tool returned, as parts that a model can be sent."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import PydanticSerializationError, to_json

from .messages import File, Image, ResultPart, Text, ToolResult

_PARTS: Final = (Text, Image, File)


class Unencodable(Exception):
    """A tool's result has no form that a model can read. The text says what to return instead."""


@dataclass(frozen=True, slots=True)
class Encoded:
    """A result's parts, its `private` JSON text for programs, and whether the tool itself called it an error."""

    content: tuple[ResultPart, ...]
    private: str = ""
    is_error: bool = False


def encode_result(value: Any) -> Encoded:
    """The parts of a tool's result."""
    if type(value) is str:
        return Encoded((Text(value),))
    if isinstance(value, _PARTS):
        return Encoded((value,))
    if isinstance(value, ToolResult):
        return Encoded(value.content, value.private, value.is_error)
    if isinstance(value, list | tuple) and value and all(isinstance(part, _PARTS) for part in value):
        return Encoded(tuple(value))
    if isinstance(value, bytes):
        try:
            return Encoded((Text(value.decode("utf-8")),))
        except UnicodeDecodeError as error:
            raise Unencodable("bytes that are no text; return File.of(…) or Image.of(…)") from error
    if isinstance(value, Iterator) or inspect.isawaitable(value):
        raise Unencodable(f"a {type(value).__name__} cannot be sent; return a list")
    try:
        return Encoded((Text(to_json(value).decode("utf-8")),))
    except (PydanticSerializationError, ValueError) as error:
        raise Unencodable(str(error)) from error
