"""Conformance of a provider: what it must do, whichever API it speaks.

All at once: `print(check_provider(make, serve=serve))`, where `make(url, transport)` gives a provider that asks a server at
`url` (without retries of its own, with `provider_checks.SECRET` as its key), and `serve()` gives that server: `StrictServer`
for the APIs that it speaks, a `LocalEndpoint` for any other. In a test suite with pytest, one test for each check::

    @pytest.mark.parametrize("check", provider_checks.CHECKS, ids=str)
    def test_my_provider(check):
        provider_checks.verify(check, make, serve=serve)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from . import provider_failing, provider_mapping
from .endpoint import Endpoint
from .provider_subject import SECRET, Make, ProviderSubject
from .report import Report, judged
from .server.strict import StrictServer

Rule: TypeAlias = Callable[[ProviderSubject], "str | None"]


@dataclass(frozen=True, slots=True)
class Check:
    """One named check."""

    name: str
    rule: Rule

    def __str__(self) -> str:
        return self.name


CHECKS: Final = tuple(Check(rule.__name__, rule) for rule in (*provider_mapping.RULES, *provider_failing.RULES))


def verify(
    check: Check,
    make: Make,
    *,
    serve: Callable[[], Endpoint] = StrictServer,
    transports: Sequence[str] = ("stream", "whole"),
) -> str | None:
    """Run one check, from code that is not async.

    Arguments: `make` gives a provider from a server's URL and one of `transports`; `serve` gives the server. Raises
    `AssertionError` where the provider fails, and `unittest.SkipTest` where there is nothing to look at.
    """
    return check.rule(ProviderSubject(make, serve, transports))


def check_provider(
    make: Make, *, serve: Callable[[], Endpoint] = StrictServer, transports: Sequence[str] = ("stream", "whole")
) -> Report:
    """Run all checks (see `verify`) and report what came of each."""
    subject = ProviderSubject(make, serve, transports)
    return Report(tuple(judged(check.name, lambda check=check: check.rule(subject)) for check in CHECKS))  # type: ignore[misc]  # the default binds it


__all__ = ["CHECKS", "SECRET", "Check", "check_provider", "verify"]
