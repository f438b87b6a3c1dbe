"""How a rule is written down: a name, a source mark, and a generator that yields what is wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Literal, TypeAlias, TypeVar

from hookloop.testing.server.record import Violation

V = TypeVar("V")
Mark: TypeAlias = Literal["doc", "seen", "sdk", "guess"]
Finding: TypeAlias = "str | Violation"


Check: TypeAlias = Callable[[V], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Rule(Generic[V]):
    """One thing an API refuses.

    `mark` says where it is known from, `about` what it is. A `gate` looks at shapes and types; where one of them finds
    something, the rules that are none are not asked, so that they may rely on those shapes.
    """

    name: str
    mark: Mark
    about: str
    check: Check[V]
    gate: bool = False


class Rulebook(Generic[V]):
    """The rules of one API, in the order in which they are looked at. `V` is what they look at.

    Arguments: rulebooks whose rules come first.
    """

    def __init__(self, *parts: Rulebook[V]) -> None:
        self.rules: dict[str, Rule[V]] = {name: rule for part in parts for name, rule in part.rules.items()}

    def rule(self, name: str, mark: Mark = "seen", *, gate: bool = False) -> Callable[[Check[V]], Check[V]]:
        """Register a check under a name. It yields a message, or a `Violation` where more than the message differs."""

        def register(check: Check[V]) -> Check[V]:
            self.rules[name] = Rule(name, mark, (check.__doc__ or "").strip(), check, gate)
            return check

        return register

    def find(self, view: V, off: Iterable[str] = ()) -> list[Violation]:
        """Everything that is wrong, gates first, in the order of the rules, without the rules that are off."""
        skipped = frozenset(off)
        rules = [rule for rule in self.rules.values() if rule.name not in skipped]
        found = [fault for rule in rules if rule.gate for fault in _named(rule, view)]
        return found or [fault for rule in rules if not rule.gate for fault in _named(rule, view)]

    @property
    def names(self) -> Mapping[str, str]:
        """Each rule's name and what it is about."""
        return {name: rule.about for name, rule in self.rules.items()}


def _named(rule: Rule[V], view: V) -> Iterator[Violation]:
    for finding in rule.check(view):
        yield Violation(rule.name, finding) if isinstance(finding, str) else replace(finding, rule=rule.name)


def fault(message: str, status: int = 400, code: str | None = None, param: str | None = None) -> Violation:
    """A violation whose status, code or param is not the usual one; the registry fills in the rule's name."""
    return Violation("", message, status, "", code, param)


def names(text: str) -> frozenset[str]:
    """The words of a text, for tables that are read more often than changed."""
    return frozenset(text.split())


def doubled(values: Iterable[str]) -> list[str]:
    """The values that stand more than once, in their order."""
    listed = list(values)
    if len(set(listed)) == len(listed):
        return []
    return [value for value, count in Counter(listed).items() if count > 1]
