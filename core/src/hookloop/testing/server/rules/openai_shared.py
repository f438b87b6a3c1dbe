"""What Chat Completions and Responses refuse in the same way."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hookloop.testing.server.record import Violation

from .registry import fault
from .schemas import root_fault, strict_faults

_NAME = re.compile(r"[a-zA-Z0-9_-]+")
_NAME_LENGTH = 64


def key_faults(headers: Mapping[str, str] | None) -> Iterator[Violation]:
    """A key must be sent."""
    if headers is not None and not ({"authorization", "api-key"} & headers.keys()):
        yield fault("You didn't provide an API key.", 401)


def name_faults(name: Any, path: str) -> Iterator[Violation]:
    """A function's name is 1 to 64 letters, digits, `_` and `-`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        pattern = "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        yield fault(f"Invalid '{path}': string does not match pattern. {pattern}", code="invalid_value", param=path)
    else:
        yield from length_faults(name, path, _NAME_LENGTH)


def length_faults(text: Any, path: str, limit: int) -> Iterator[Violation]:
    """A string is not longer than it may be."""
    if isinstance(text, str) and len(text) > limit:
        message = (
            f"Invalid '{path}': string too long. Expected a string with maximum length {limit}, but got a string with "
            f"length {len(text)} instead."
        )
        yield fault(message, code="string_above_max_length", param=path)


def missing(name: str) -> Violation:
    """A required parameter is not there."""
    return fault(f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name)


def wrong_type(name: str, expected: str, value: Any) -> Violation:
    """A parameter is of another type."""
    got = {bool: "a boolean", dict: "an object", list: "an array", type(None): "null", str: "a string"}
    message = f"Invalid type for '{name}': expected {expected}, but got {got.get(type(value), 'a number')} instead."
    return fault(message, code="invalid_type", param=name)


def empty_array(name: str) -> Violation:
    """An array is empty that must not be."""
    message = f"Invalid '{name}': empty array. Expected an array with minimum length 1, but got an empty array instead."
    return fault(message, code="empty_array", param=name)


def schema_faults(function: Mapping[str, Any], path: str) -> Iterator[Violation]:
    """A function's parameters are an object schema, closed all the way down where `strict` is on."""
    schema = function.get("parameters")
    name = function.get("name")
    faults = [root_fault(schema)] if schema is not None and root_fault(schema) else []
    if function.get("strict") is True and not faults:
        faults = list(strict_faults(schema if schema is not None else {}))
    for why in faults:
        message = f"Invalid schema for function '{name}': {why}"
        yield fault(message, code="invalid_function_parameters", param=path)


def output_faults(output: Any, path: str) -> Iterator[Violation]:
    """A strict schema for the model's output is an object, closed all the way down."""
    if not isinstance(output, Mapping) or output.get("strict") is not True:
        return
    schema = output.get("schema")
    root = root_fault(schema)
    for why in [root] if root else strict_faults(schema):
        yield fault(f"Invalid schema for response_format '{output.get('name')}': {why}", param=path)


def temperature_faults(body: Mapping[str, Any]) -> Iterator[Violation]:
    """A model that reasons takes temperature 1 only."""
    value = body.get("temperature")
    if value not in (None, 1):
        message = (
            f"Unsupported value: 'temperature' does not support {value} with this model. Only the default (1) value is "
            "supported."
        )
        yield fault(message, code="unsupported_value", param="temperature")
