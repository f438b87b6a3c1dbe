"""A function as a model sees it: the JSON Schema of its arguments, and the way back to Python values.

Describing happens once per function; validating is one pass through a validator that was built then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .arguments import ArgumentsError, parse_arguments
from .model_check import ModelCheck
from .parameters import Layout, read_function
from .raw_check import RawCheck, read_schema
from .refs import inline_refs
from .scope import label_of
from .strict import strict_schema

__all__ = ["ArgumentsError", "Signature", "describe", "inline_refs", "parse_arguments", "strict_schema"]


@dataclass(frozen=True, eq=False, slots=True)
class Signature:
    """What a tool's function takes.

    `schema` is compact JSON text of an object schema; `injected` are the parameters that receive the `ToolContext`;
    `description` is the docstring without its sections; `unbound` is true for a method's function before it is bound.
    """

    schema: str
    injected: tuple[str, ...] = ()
    description: str = ""
    unbound: bool = False
    check: Callable[[Mapping[str, Any]], dict[str, Any]] = field(default=dict, repr=False)
    layout: Layout = field(default=Layout(), repr=False)

    @property
    def plain(self) -> bool:
        """Does validating run no code of the tool's author (a validator, a model of their own)?"""
        return bool(getattr(self.check, "plain", True))

    def validate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The keyword arguments for the function, as Python values (models, dataclasses, enums are built).

        Only what was given is in it; the function's own defaults fill the rest. Two slips are mended: JSON text where an
        object or array is wanted, and null where an optional argument cannot be null (it counts as not given, which
        is how models leave out arguments in strict mode). Raises `ArgumentsError` with every fault.
        """
        return self.check(arguments)

    def invoke(self, function: Callable[..., Any], kwargs: Mapping[str, Any]) -> Any:
        """Call `function` with validated arguments; positional-only and variable arguments go where they belong."""
        return self.layout.call(function, kwargs)


def describe(function: Callable[..., Any], *, schema: Mapping[str, Any] | str | None = None) -> Signature:
    """Read a function's signature.

    The schema comes of annotations, defaults and docstring (Google, numpy or Sphinx style); a text in `Annotated` stands
    over the docstring's. A parameter without annotation takes its default's type. What a partial has bound is not
    the model's to fill. Parameters annotated `ToolContext` (also where that name exists only for type checkers), and
    those named `ctx` or `context` whose annotation cannot be resolved, are injected.

    `schema` is a JSON Schema (a mapping, or its text) to use instead, for functions whose arguments only others know.
    Then arguments come as plain JSON values, and are checked for type, required, properties, items, enum and const,
    through anyOf, allOf and local references; bounds, patterns and formats are the function's to check. A `ctx` or
    `context` that the schema does not list is injected, annotated or not.

    Raises `ConfigError` for a parameter that cannot be described, and for a schema that does not fit the function.
    """
    check: ModelCheck | RawCheck
    if schema is None:
        reading = read_function(function)
        check = ModelCheck(reading)
    else:
        given = read_schema(schema, label_of(function))
        reading = read_function(function, frozenset(given["properties"]))
        check = RawCheck(given, reading)
    return Signature(
        schema=json.dumps(check.schema, ensure_ascii=False, separators=(",", ":")),
        injected=reading.injected,
        description=reading.docs.description,
        unbound=reading.unbound,
        check=check,
        layout=reading.layout,
    )
