"""What a tool returned, as parts that a model can be sent."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

from .messages import File, Image, ResultPart, Text, ToolResult
from .quick import quick
from .redact import bounded, redact
from .wellformed import fault

_PARTS: Final = (Text, Image, File)
_ATOMS: Final = frozenset({str, int, float, bool, type(None)})


class Unencodable(Exception):
    """A tool's result has no form that a model can read. The text says what to return instead."""


@quick
@dataclass(frozen=True, slots=True)
class Encoded:
    """A result's parts, its `private` JSON text for programs, and whether the tool itself called it an error."""

    content: tuple[ResultPart, ...]
    private: str = ""
    is_error: bool = False


def encode_result(value: Any) -> Encoded:
    """The parts of a tool's result, by the first rule that fits.

    - Text is itself (the empty text too); bytes are text when they are UTF-8.
    - `Text`, `Image` and `File` parts, and lists of them (strings among them too), pass; so do the content, private
      metadata and error flag of a `ToolResult`.
    - All else is compact JSON: None is `null`, an empty list `[]`. Models, dataclasses, enums, dates, decimals, UUIDs,
      paths, named tuples as pydantic writes them; sets as lists, sorted; NaN and infinities as the texts "NaN",
      "Infinity" and "-Infinity"; numpy values by their `tolist`.

    Raises `Unencodable` for generators and other iterators (which are not consumed), awaitables, bytes that are no text,
    and objects that have no JSON form.
    """
    if isinstance(value, str):
        return Encoded((Text(_text(value)),))
    if isinstance(value, ToolResult):
        return _encoded(value)
    if isinstance(value, _PARTS):
        return Encoded((_part(value),))
    if isinstance(value, list | tuple) and any(isinstance(item, _PARTS) for item in value):
        return Encoded(tuple(map(_part, value)))
    if isinstance(value, bytes | bytearray | memoryview):
        return Encoded((Text(_decoded(bytes(value))),))
    return Encoded((Text(encode_json(value)),))


def _encoded(value: ToolResult) -> Encoded:
    """A tool's own result. Its content may also be a list, or one text, and its private metadata a JSON value; whose result it
    is, is not the tool's to say.
    """
    given: Any = value.content
    content = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else given
    if not isinstance(content, tuple):
        raise Unencodable(
            f"its ToolResult's content is {bounded(repr(given), 60)}; give a tuple of Text, Image and File"
        )
    private = value.private if isinstance(value.private, str) else encode_json(value.private)
    parts = tuple(map(_part, content))
    value = replace(value, call_id="", name="", content=parts, is_error=bool(value.is_error), private=private)
    if trouble := fault(value):
        raise Unencodable(f"of its ToolResult, {trouble}")
    return Encoded(value.content, value.private, value.is_error)


def _text(value: str) -> str:
    """The plain text; half a surrogate pair, which no wire can carry, becomes a replacement character."""
    try:
        str.encode(value, "utf-8")
    except UnicodeEncodeError:
        return str.encode(value, "utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value if type(value) is str else str.__str__(value)


def _part(item: Any) -> ResultPart:
    if isinstance(item, str):
        return Text(_text(item))
    if trouble := fault(item) if isinstance(item, _PARTS) else "":
        raise Unencodable(f"of its {type(item).__name__}, {trouble}")
    if isinstance(item, Text):
        return item if (text := _text(item.text)) is item.text else replace(item, text=text)
    if isinstance(item, _PARTS):
        return item
    raise Unencodable(f"a list of parts holds a {type(item).__name__}; put text, Text, Image and File in it")


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Unencodable(
            f"{len(value)} bytes that are not UTF-8 text; return File.of(data, media_type) or Image.of(data, media_type)"
        ) from error


def encode_json(value: Any) -> str:
    """Compact JSON text of any value, by the rules of `encode_result`. Raises `Unencodable`."""
    try:
        plain = _plain(value)
        return to_json(plain, inf_nan_mode="strings", fallback=_fallback).decode("utf-8")
    except Unencodable:
        raise
    except RecursionError as error:
        raise Unencodable("the result is nested too deeply, or holds itself") from error
    except Exception as error:  # serializers are the users' code, and may raise anything
        return _mended(value, error)


def _mended(value: Any, error: Exception) -> str:
    """The JSON where only half a surrogate pair was in the way."""
    if "surrogates not allowed" not in str(error):
        raise Unencodable(f"{_reason(error)}; {_ADVICE}") from error
    plain = to_jsonable_python(_joined(_plain(value)), inf_nan_mode="strings", fallback=_fallback)
    return json.dumps(_joined(plain), ensure_ascii=False, separators=(",", ":"))


def _joined(value: Any) -> Any:
    """A plain value with no half of a surrogate pair in its texts."""
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, dict):
        return {_joined(key): _joined(inner) for key, inner in value.items()}
    return [_joined(inner) for inner in value] if isinstance(value, list) else value


_ADVICE: Final = "return text, numbers, lists, dicts, dataclasses or pydantic models of them"


def _reason(error: Exception) -> str:
    if "invalid utf-8" in str(error):
        return "the result holds bytes that are not UTF-8 text"
    text = str(error).removeprefix("Error serializing to JSON: ")
    return f"the result has no JSON form ({bounded(redact(text), 200)})"


def _plain(value: Any) -> Any:
    """Containers with sets sorted; finds iterators, which pydantic would consume."""
    if type(value) in _ATOMS:
        return value
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, AbstractSet):
        return [_plain(inner) for inner in _in_order(value)]
    if isinstance(value, Iterator | AsyncIterator) or inspect.isawaitable(value):
        raise _unread(value)
    if isinstance(value, BaseModel):
        _plain(value.__dict__)  # only looked at: the model knows best how it is written
        return value
    if _is_plain_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return value


def _is_plain_dataclass(value: Any) -> bool:
    kind = type(value)
    return dataclasses.is_dataclass(kind) and not hasattr(kind, "__pydantic_serializer__")


def _in_order(values: AbstractSet[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=lambda value: (type(value).__name__, repr(value)))


def _unread(value: Any) -> Unencodable:
    if inspect.iscoroutine(value):
        value.close()  # nobody will await it now, and Python would warn of that
    if inspect.isawaitable(value):
        return Unencodable(f"the result is a {type(value).__name__} that was not awaited; make the tool `async def`")
    return Unencodable(f"the result is a {type(value).__name__}, which can be read only once; return a list")


def _fallback(value: Any) -> Any:
    """What pydantic does not know, but a model can read."""
    if isinstance(value, Sequence):
        return list(value)
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if callable(listed := getattr(value, "tolist", None)) and not isinstance(value, type | Enum):
        return listed()
    raise TypeError(f"{type(value).__name__} is not serializable")
