"""What a tool's name and options may be."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from .errors import ConfigError

NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
"""Names that every provider accepts."""

_FLAGS: Final = ("idempotent", "return_direct", "needs_approval", "serial", "strict")


def check_options(name: Any, options: Any) -> None:
    """Look at a tool's name and options (attributes of `options`). Raises `ConfigError` for the first that cannot be."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise ConfigError(
            f"tool name {name!r} cannot be: providers accept 1 to 64 letters, digits, _ and -, not beginning with a "
            "digit or -; give another with @tool(name=…)"
        )
    problem = _text(options) or _times(options) or _retrying(options) or _flags(options)
    if problem:
        raise ConfigError(f"tool {name!r}: {problem}")


def _text(options: Any) -> str:
    return "" if isinstance(options.description, str) else f"description is {options.description!r}, not a str"


def _times(options: Any) -> str:
    if options.timeout is not None and not (_number(options.timeout) and options.timeout > 0):
        return f"timeout is {options.timeout!r}; it is a number of seconds above 0, or None"
    if not (_number(options.retry_wait) and options.retry_wait >= 0):
        return f"retry_wait is {options.retry_wait!r}; it is a number of seconds, 0 or more"
    return ""


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _retrying(options: Any) -> str:
    if not isinstance(options.retries, int) or isinstance(options.retries, bool) or options.retries < 0:
        return f"retries is {options.retries!r}; it is a whole number, 0 or more"
    kinds = options.retry_on
    if isinstance(kinds, tuple) and all(isinstance(kind, type) and issubclass(kind, Exception) for kind in kinds):
        return ""
    return f"retry_on is {kinds!r}; it is an exception class or a tuple of them"


def _flags(options: Any) -> str:
    for flag in _FLAGS:
        if not isinstance(value := getattr(options, flag), bool):
            return f"{flag} is {value!r}; it is True or False"
    return ""
