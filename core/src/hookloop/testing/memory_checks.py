"""Conformance of a memory: what every store that owns histories must do, and what its flags promise.

In a test suite with pytest::

    @pytest.mark.parametrize("check", memory_checks.CHECKS, ids=str)
    def test_my_store(check, tmp_path):
        url = f"mine://{tmp_path}"
        memory_checks.verify(check, lambda: MyMemory(url), reopen=lambda closed: MyMemory(url))

or all at once, without pytest: `print(check_memory(lambda: MyMemory(url)))`. A flag that is declared is proved; a check that
needs a flag which is not declared is skipped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias
from unittest import SkipTest

from hookloop_hookspecs import MemoryCapabilities

from . import memory_contents, memory_sharing
from .memory_contents import Rule
from .memory_subject import Subject

Make: TypeAlias = Callable[[], Any]
Reopen: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Check:
    """One named check; `needs` are the flags without which it says nothing about a store."""

    name: str
    needs: frozenset[str]
    rule: Rule

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Result:
    """What came of one check; `reason` says why it failed or was skipped."""

    check: str
    status: Literal["pass", "fail", "skip"]
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.status}  {self.check}" + (f": {self.reason}" if self.reason else "")


@dataclass(frozen=True, slots=True)
class Report:
    """The results of all checks, in order."""

    results: tuple[Result, ...]

    @property
    def ok(self) -> bool:
        """True when no check failed."""
        return not self.failed

    @property
    def failed(self) -> tuple[Result, ...]:
        """The checks that failed."""
        return tuple(result for result in self.results if result.status == "fail")

    def __str__(self) -> str:
        return "\n".join(map(str, self.results))


def _checks(rules: tuple[Rule, ...], *needs: str) -> list[Check]:
    return [Check(rule.__name__, frozenset(needs), rule) for rule in rules]


def declares_what_it_is(subject: Subject) -> None:
    """The flags are declared in a `MemoryCapabilities`, and hooks and keeper's methods are there."""
    flags = getattr(subject.memory, "capabilities", None)
    assert isinstance(flags, MemoryCapabilities), (
        f"`capabilities` must be MemoryCapabilities, not {type(flags).__name__}"
    )
    missing = [name for name in ("persist_memory", "load_memory") if not _marked(getattr(subject.memory, name, None))]
    assert not missing, f"no @hookimpl: {', '.join(missing)}"
    missing = [name for name in ("conversations", "delete") if not callable(getattr(subject.memory, name, None))]
    assert not missing, f"no keeper's method: {', '.join(missing)}"


CHECKS: tuple[Check, ...] = (
    *_checks((declares_what_it_is, *memory_contents.ANY, *memory_sharing.ANY)),
    *_checks((*memory_contents.INSIDE, *memory_sharing.INSIDE), "tool_messages"),
    *_checks(memory_contents.MEDIA, "tool_messages", "media"),
    *_checks(memory_sharing.VERSIONED, "tool_messages", "versioned"),
    *_checks(memory_sharing.DURABLE, "durable"),
)


def verify(check: Check, make: Make, *, reopen: Reopen | None = None) -> None:
    """Run one check.

    Arguments: `make` gives a memory of its own for the check (the store behind it may be shared); `reopen` gets the closed
    memory and opens the same store anew, which `durable` is proved by. Raises `AssertionError` where the memory fails, and
    `unittest.SkipTest` (a skip to pytest too) where the check needs what the memory does not declare.
    """
    subject = Subject(make, reopen)
    try:
        if check.rule is not declares_what_it_is:
            _require(check, getattr(subject.memory, "capabilities", None))
        check.rule(subject)
    finally:
        subject.close()


def _require(check: Check, flags: object) -> None:
    """Skip a check that says nothing about a store of these flags."""
    if not isinstance(flags, MemoryCapabilities):
        raise SkipTest("it does not say what it is: `capabilities` must be MemoryCapabilities")
    missing = sorted(check.needs - set(flags.flags))
    if missing:
        raise SkipTest(f"needs the flag {', '.join(missing)}, which is not declared")


def check_memory(make: Make, *, reopen: Reopen | None = None) -> Report:
    """Run all checks (see `verify`) and report what came of each."""
    return Report(tuple(_result(check, make, reopen) for check in CHECKS))


def _result(check: Check, make: Make, reopen: Reopen | None) -> Result:
    try:
        verify(check, make, reopen=reopen)
    except SkipTest as reason:
        return Result(check.name, "skip", str(reason))
    except Exception as error:  # whatever a store raises is its failure, and the report says so
        said = str(error) if isinstance(error, AssertionError) else f"{type(error).__name__}: {error}"
        return Result(check.name, "fail", said.split("\n")[0])
    return Result(check.name, "pass")


def _marked(method: object) -> bool:
    return callable(method) and hasattr(method, "hookloop_impl")


__all__ = ["CHECKS", "Check", "Report", "Result", "check_memory", "verify"]
