"""What the provider that `hookloop new` makes speaks: one JSON body for each request."""

from __future__ import annotations

from typing import Any

from hookloop.testing import LocalEndpoint
from hookloop_hookspecs import Reply


def says(reply: Reply, _body: Any) -> dict[str, Any]:
    """A reply as the new provider's endpoint gives it."""
    calls = [{"id": one.id, "name": one.name, "arguments": one.arguments} for one in reply.calls]
    tokens = {"input_tokens": reply.usage.input, "output_tokens": reply.usage.output}
    return {"text": reply.text, "calls": calls, "stop": reply.stop, **tokens}


def endpoint() -> LocalEndpoint:
    """A server for it."""
    return LocalEndpoint(says)


__all__ = ["endpoint"]
