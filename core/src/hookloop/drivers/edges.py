"""The async edges that both drivers use. Apart, so that a sync program loads no event loop."""

from __future__ import annotations

import asyncio
from typing import Any

from hookloop_hookspecs import ModelRequest, Reply

from .base import whole
from .jobs import Invoke, TimedOut


async def complete(provider: Any, request: ModelRequest) -> Reply:
    """Read a provider's async stream to its reply."""
    reply = None
    async for piece in provider.astream(request):
        reply = piece
    return whole(provider, reply)


async def call_async(step: Invoke) -> Any:
    """Await an async tool, within its timeout."""
    limit = asyncio.timeout(step.timeout)
    try:
        async with limit:
            return await step.call()
    except TimeoutError:
        if limit.expired():
            raise TimedOut from None
        raise


async def sleep_async(seconds: float) -> None:
    """Wait between attempts."""
    await asyncio.sleep(seconds)
