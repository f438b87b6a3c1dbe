"""Annotations that pydantic does not read as a tool's author means them.

`typing.TypedDict` (on Python 3.11 pydantic reads only the one of typing_extensions), iterables (pydantic would check
them only while the function reads them), and bare texts in `Annotated`.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NotRequired, Required, Union, get_args, get_origin

from pydantic import Field, GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

_ANNOTATED: Final[Any] = Annotated
_UNION: Final[Any] = Union
_ITERABLES: Final = {Iterable, Iterator}


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a typed dictionary."""

    name: str
    annotation: Any
    required: bool


def is_typed_dict(annotation: Any) -> bool:
    """Whether it is a TypedDict class, whosever."""
    return isinstance(annotation, type) and issubclass(annotation, dict) and hasattr(annotation, "__required_keys__")


def keys_of(typed: Any, names: Mapping[str, Any]) -> list[Key]:
    """The keys of a TypedDict; `names` helps to resolve annotations that are texts."""
    hints = typing.get_type_hints(typed, localns=dict(names), include_extras=True)
    return [_key(name, hint, name in typed.__required_keys__) for name, hint in hints.items()]


def _key(name: str, annotation: Any, required: bool) -> Key:
    if get_origin(annotation) is Annotated and get_origin(get_args(annotation)[0]) in {Required, NotRequired}:
        qualified, *meta = get_args(annotation)
        return _key(name, get_origin(qualified)[_ANNOTATED[(get_args(qualified)[0], *meta)]], required)
    if get_origin(annotation) in {Required, NotRequired}:
        return Key(name, get_args(annotation)[0], get_origin(annotation) is Required)
    return Key(name, annotation, required)


def readable(annotation: Any, names: Mapping[str, Any], around: tuple[Any, ...] = ()) -> Any:
    """The annotation with every `typing.TypedDict` in it readable for pydantic, and every iterable a list.

    `around` are the typed dictionaries that it stands in. Raises `TypeError` when one of them is in it again.
    """
    if is_typed_dict(annotation) and type(annotation).__module__ == "typing":
        if annotation in around:
            raise TypeError(f"{annotation.__name__} refers to itself: make it a TypedDict of typing_extensions")
        return _ANNOTATED[dict[str, Any], _AsSchema(annotation, names, (*around, annotation))]
    arguments = get_args(annotation)
    if not arguments or get_origin(annotation) is Literal:
        return annotation
    if get_origin(annotation) is Annotated:
        return _ANNOTATED[(readable(arguments[0], names, around), *arguments[1:])]
    changed = tuple(readable(argument, names, around) for argument in arguments)
    same = changed == arguments and get_origin(annotation) not in _ITERABLES
    return annotation if same else _rebuilt(annotation, changed)


def _rebuilt(annotation: Any, arguments: tuple[Any, ...]) -> Any:
    origin = get_origin(annotation)
    if origin in {Union, types.UnionType}:
        return _UNION[arguments]
    return types.GenericAlias(list if origin in _ITERABLES else origin, arguments)


@dataclass(frozen=True, eq=False)
class _AsSchema:
    typed: Any
    names: Mapping[str, Any]
    around: tuple[Any, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        fields = {key.name: self._field(key, handler) for key in keys_of(self.typed, self.names)}
        closed = getattr(self.typed, "__pydantic_config__", {}).get("extra", "forbid")
        return core_schema.typed_dict_schema(fields, extra_behavior=closed)

    def _field(self, key: Key, handler: GetCoreSchemaHandler) -> core_schema.TypedDictField:
        schema = handler.generate_schema(described(readable(key.annotation, self.names, self.around)))
        return core_schema.typed_dict_field(schema, required=key.required)


def described(annotation: Any, words: str = "", **more: Any) -> Any:
    """The annotation as pydantic's field: a bare text in `Annotated` (or a `Doc`) describes it, else `words` does."""
    base, *meta = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    words = next((text for text in map(_text, meta) if text), words)
    return _ANNOTATED[(base, Field(description=words or None, **more), *meta)]


def _text(meta: Any) -> str:
    return meta if isinstance(meta, str) else str(getattr(meta, "documentation", "") or "")
