"""Checking a provider: its API is found out by pointing it at the strict local server and looking at what it calls.

What must never be known here: which providers there are. A provider whose API the server does not speak is told of.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from hookloop.discovery import build
from hookloop_hookspecs import ConfigError

if TYPE_CHECKING:
    from hookloop.testing import Report

ADDRESS: Final = "base_url"
"""The option by which a provider is told whom to ask."""
ROOTS: Final = ("/v1", "")
"""What stands between a server and the endpoints that SDKs add."""
OWN_TESTS: Final = "check it in its own tests: hookloop.testing.check_provider with a LocalEndpoint that speaks its API"


APIS: Final = {"messages": "Messages", "chat": "Chat Completions", "responses": "Responses"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """What came of looking: a report and what was asked how, or the reason why there is no report, and what to do."""

    told: str
    report: Report | None = None


class Maker:
    """Makes a provider that asks a server of this machine.

    Arguments: `factory`, what its entry point gives; `model`, whom it asks; `options`, those that the user has for it.
    Its options for address, key, transport and retries are set where it has them.
    """

    def __init__(self, factory: object, model: str, options: Mapping[str, Any], label: str) -> None:
        self.factory = factory
        self.model = model
        self.options = dict(options)
        self.label = label
        self.known: Mapping[str, Any] = getattr(getattr(factory, "Options", None), "model_fields", {})

    def __call__(self, url: str, transport: str) -> Any:
        """A provider. Raises `ConfigError`."""
        from hookloop.testing.provider_checks import SECRET

        told = {ADDRESS: url, "api_key": SECRET, "transport": transport, "retries": 0}
        mine = {name: value for name, value in told.items() if name in self.known and value != ""}
        return build(self.factory, self.model, options={**self.options, **mine}, label=self.label)

    @property
    def transports(self) -> tuple[str, ...]:
        """The transports that it lets be chosen; one without a name where it has no such option."""
        return tuple(filter(self._takes, ("stream", "whole"))) or ("",)

    def _takes(self, transport: str) -> bool:
        if "transport" not in self.known:
            return False
        with suppress(ConfigError):
            close(self("http://127.0.0.1:9", transport))
            return True
        return False


def close(provider: Any) -> None:
    """Free what a provider holds."""
    if callable(getattr(provider, "close", None)):
        provider.close()


def look(make: Maker, profile: str) -> Verdict:
    """Check a provider as far as it can be checked from outside.

    Arguments: `profile` is the name of a server whose demands are added, where the strict server knows one of that name.
    """
    if ADDRESS not in make.known:
        return Verdict(f"it has no option {ADDRESS}, so it cannot be pointed at a local server; {OWN_TESTS}")
    with direct():
        found = _found(make, profile)
        if isinstance(found, str):
            return Verdict(f"{found}; {OWN_TESTS}")
        transports = " and ".join(filter(None, make.transports))
        told = f"{APIS[found.api]} of the strict local server" + (f", {transports}" if transports else "")
        return Verdict(told, _checked(make, profile, found.root))


def _checked(make: Maker, profile: str, root: str) -> Report:
    from hookloop.testing import check_provider

    def made(url: str, transport: str) -> Any:
        return make(url + root, transport)

    return check_provider(made, serve=lambda: server(profile), transports=make.transports)


@dataclass(frozen=True, slots=True)
class _Found:
    """Where a provider asks, and what it speaks."""

    root: str
    api: str


def _found(make: Maker, profile: str) -> _Found | str:
    """The root at which it asks for an endpoint that the server speaks; else what it did, in words."""
    called: list[str] = []
    failure = ""
    for root in ROOTS:
        with server(profile) as there:
            failure = _asked(make, there, root) or failure
            if there.requests:
                return _Found(root, there.requests[0].api)
            called += there.elsewhere
    if called:
        return f"it speaks an API that the strict server does not know (it asked for {called[-1]})"
    return f"it sent no request to the {ADDRESS} that it was given" + (f" ({failure})" if failure else "")


def _asked(make: Maker, there: Any, root: str) -> str:
    """Ask it once; what it raised, in words."""
    from hookloop.testing import reply
    from hookloop.testing.provider_subject import ProviderSubject, asks

    there.play(reply("ok"))
    subject = ProviderSubject(make, lambda: there, make.transports)
    error: BaseException | None
    try:
        error = subject.ask_at(there.url + root, asks()).error
    except AssertionError as hung:
        error = hung
    return f"{type(error).__name__}: {error}" if error else ""


def server(profile: str) -> Any:
    """The strict server, with the demands of a compatible server of that name where there are some."""
    from hookloop.testing.server import StrictServer
    from hookloop.testing.server.rules import PROFILES

    return StrictServer(profile=next((name for name in PROFILES if _plain(name) == _plain(profile)), None))


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name.lower()))


@contextmanager
def direct() -> Iterator[None]:
    """A proxy of the environment is not asked for servers of this machine."""
    names = ("no_proxy", "NO_PROXY")
    before = {name: os.environ.get(name) for name in names}
    for name in names:
        os.environ[name] = ",".join(filter(None, (before[name], "127.0.0.1")))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
