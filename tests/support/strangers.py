"""The distributions under tests/stranger: their modules, and a server that speaks Parrot."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from hookloop.testing import LocalEndpoint, provider_checks
from hookloop_hookspecs import Reply

STRANGERS = Path(__file__).parents[1] / "stranger"
ENDS = {"end": "said", "calls": "uses", "length": "full"}


def source(name: str) -> Path:
    """The one module of a stranger's distribution."""
    return STRANGERS / name / "src" / f"acme_{name}" / "__init__.py"


def load(name: str) -> ModuleType:
    """The module of a stranger's distribution, which is not installed here."""
    module = f"acme_{name}"
    if module not in sys.modules:
        spec = importlib.util.spec_from_file_location(module, source(name))
        assert spec is not None
        assert spec.loader is not None
        sys.modules[module] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[module])
    return sys.modules[module]


def parrot_says(reply: Reply, body: Mapping[str, Any]) -> Any:
    """A reply as a Parrot server gives it: lines as they come, or one with everything."""
    uses: list[dict[str, Any]] = [
        {"slot": at, "id": one.id, "tool": one.name, "input": one.raw} for at, one in enumerate(reply.calls)
    ]
    end = {"end": ENDS[reply.stop], "spent": {"in": reply.usage.input, "out": reply.usage.output}}
    if not body["live"]:
        return {"said": reply.text, "uses": uses, **end}
    said = [{"said": reply.text[at : at + 7]} for at in range(0, len(reply.text), 7)]
    pieces = [
        {**use, "input": use["input"][at : at + 7]} for use in uses for at in range(0, max(1, len(use["input"])), 7)
    ]
    return [json.dumps(line) + "\n" for line in (*said, *({"uses": [piece]} for piece in pieces), end)]


def parrot_server() -> LocalEndpoint:
    """A Parrot server for one check."""
    return LocalEndpoint(parrot_says)


def ask_parrot(url: str, transport: str) -> Any:
    """The provider of the example, without a fault."""
    return made(load("parrot").Parrot, url, transport)


def made(kind: Any, url: str, transport: str) -> Any:
    """A provider of this class that asks this server."""
    options = load("parrot").ParrotOptions(base_url=url, transport=transport, api_key=provider_checks.SECRET)
    return kind("p1", options)
