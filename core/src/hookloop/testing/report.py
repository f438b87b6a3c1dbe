"""What a conformance suite comes to: one result for each check, in words that the author of a plugin can act on."""

from __future__ import annotations

from collections.abc import Callable
from unittest import SkipTest

from .memory_checks import Report, Result


def judged(name: str, check: Callable[[], str | None]) -> Result:
    """Run one check. What it returns is told with the pass; `SkipTest` skips it; whatever else it raises fails it."""
    try:
        told = check()
    except SkipTest as reason:
        return Result(name, "skip", str(reason))
    except Exception as error:  # whatever a plugin raises is its failure, and the report says so
        said = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        return Result(name, "fail", said.split("\n")[0])
    return Result(name, "pass", told or "")


__all__ = ["Report", "Result", "judged"]
