"""One turn in each of the four ways to call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hookloop import Agent, Outcome
from hookloop_hookspecs import hookimpl

WAYS = ("run", "stream", "arun", "astream")
each_way = pytest.mark.parametrize("way", WAYS)


class Told:
    """Notes the outcomes that plugins are told."""

    name = "told"

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    @hookimpl
    def after_turn(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)


def go(agent: Agent, way: str, prompt: Any, **arguments: Any) -> Outcome:
    """Run a turn; raises what it raises."""
    if way == "run":
        return agent.run(prompt, **arguments)
    if way == "arun":
        return asyncio.run(agent.arun(prompt, **arguments))
    stream = _sync(agent, prompt, arguments) if way == "stream" else asyncio.run(_async(agent, prompt, arguments))
    assert stream.outcome is not None
    outcome: Outcome = stream.outcome
    return outcome


def _sync(agent: Agent, prompt: Any, arguments: dict[str, Any]) -> Any:
    with agent.stream(prompt, **arguments) as events:
        for _ in events:
            pass
    return events


async def _async(agent: Agent, prompt: Any, arguments: dict[str, Any]) -> Any:
    async with agent.astream(prompt, **arguments) as events:
        async for _ in events:
            pass
    return events
