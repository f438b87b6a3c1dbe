"""The engine alone, with a scripted provider: microseconds a round, at 10 and at 1,000 rounds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from hookloop import Agent, Limits, tool
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import hookimpl

FREE = Limits(rounds=None, tool_calls=None, per_tool=None)
ALLOWED = {("sync", 0): 60, ("sync", 5): 130, ("async", 0): 200, ("async", 5): 270}
"""Microseconds a round: sync without and with five contributing plugins, async with an async tool."""


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return path


@tool
async def aedit(path: str) -> str:
    """Edit a file."""
    return path


class Adds:
    """Contributes in every round."""

    def __init__(self, at: int) -> None:
        self.name = f"adds-{at}"

    @hookimpl
    def next_instructions(self) -> str:
        return "a note"


def microseconds(way: str, plugins: int, rounds: int) -> float:
    """CPU of this process for one round."""
    name = "edit" if way == "sync" else "aedit"
    script: list[Any] = [call(name, {"path": "a"}, id=f"c{at}") for at in range(rounds)]
    provider = ScriptedProvider([*script, say("done")], transport="whole")
    with Agent(provider, tools=[edit, aedit], plugins=[Adds(at) for at in range(plugins)], limits=FREE) as agent:
        return _timed(way, agent) / rounds * 1e6


def _timed(way: str, agent: Agent) -> float:
    if way == "sync":
        began = time.process_time()
        agent.run("go")
        return time.process_time() - began

    async def run() -> float:
        began = time.process_time()
        await agent.arun("go")
        return time.process_time() - began

    return asyncio.run(run())


def best(measure: Callable[[], float], times: int = 7) -> float:
    """The least disturbed of several measurements."""
    return min(measure() for _ in range(times))


def import_seconds() -> float:
    """What `import hookloop` takes in a new interpreter."""
    code = "import time; t = time.perf_counter(); import hookloop; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print a table."""
    print("engine alone, microseconds of CPU a round")
    for (way, plugins), allowed in ALLOWED.items():
        ten, thousand = (best(partial(microseconds, way, plugins, rounds)) for rounds in (10, 1000))
        print(f"  {way:5} {plugins} plugins: {ten:6.1f} at 10 rounds, {thousand:6.1f} at 1,000 (allowed {allowed})")
    print(f"import hookloop: {best(import_seconds):.3f} s (allowed 0.2)")


if __name__ == "__main__":
    main()
