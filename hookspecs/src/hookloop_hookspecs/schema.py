"""A function as a model sees it: the JSON Schema of its arguments, and the way back to Python values.

Describing happens once per function; validating is one pass through a validator that was built then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .arguments import ArgumentsError, parse_arguments
from .errors import ConfigError
from .model_check import ModelCheck
from .parameters import Layout, Reading, read_function
from .strict import inline_refs, strict_schema

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

    The schema comes from annotations, defaults and docstring (Google, numpy or Sphinx style), or is the JSON Schema
    given by `schema`. Raises `ConfigError` where a parameter cannot be described.
    """
    reading = read_function(function)
    model = ModelCheck(reading)
    return Signature(
        json.dumps(model.schema, ensure_ascii=False, separators=(",", ":")), reading.injected,
        reading.docs.description, reading.unbound, model, reading.layout,
    )  # fmt: skip
