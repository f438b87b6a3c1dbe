"""A store that raises what no reader of ours knows: callers get one family of errors, with plugin, hook and cause."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from going import each_way, go

from hookloop import Agent
from hookloop.keeper import Keeper
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, say
from hookloop_hookspecs import (
    Batch,
    Conflict,
    ContractError,
    CorruptData,
    HookloopError,
    Loaded,
    LoadQuery,
    PluginError,
    hookimpl,
)


class DriverError(Exception):
    """What a database's driver raises."""


class Store:
    """A memory whose hooks raise `error`: `at` the load, or at the write with that number."""

    name = "store"

    def __init__(self, error: BaseException, at: str | int) -> None:
        self.memory, self.error, self.at, self.writes = InProcessMemory(), error, at, 0
        self.capabilities = self.memory.capabilities

    def _load(self, conversation: str, query: LoadQuery) -> Loaded:
        if self.at == "load":
            raise self.error
        return self.memory.load_memory(conversation, query)

    def _persist(self, batch: Batch) -> None:
        self.writes += 1
        if self.writes == self.at:
            raise self.error
        self.memory.persist_memory(batch)


class Blocking(Store):
    """Called in threads by async runs."""

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        return self._load(conversation, query)

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        self._persist(batch)


class Quick(Blocking):
    """Called where the run is."""

    blocking = False


class Async(Store):
    """With async hooks."""

    @hookimpl
    async def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        await asyncio.sleep(0)
        return self._load(conversation, query)

    @hookimpl
    async def persist_memory(self, batch: Batch) -> None:
        await asyncio.sleep(0)
        self._persist(batch)


kinds = pytest.mark.parametrize("kind", [Blocking, Quick, Async])
places = pytest.mark.parametrize(
    ("at", "hook"), [("load", "load_memory"), (1, "persist_memory"), (2, "persist_memory")]
)


@each_way
@kinds
@places
def test_a_drivers_error_is_a_plugins_error_without_secrets(
    way: str, kind: Callable[..., Store], at: str | int, hook: str
) -> None:
    error = DriverError("no route to postgresql://me:hunter2@db/chat " + "x" * 9000)
    with Agent(ScriptedProvider(say("ok")), memory=kind(error, at)) as agent, pytest.raises(PluginError) as caught:
        go(agent, way, "Hello.", conversation="c")
    assert (caught.value.plugin, caught.value.hook, caught.value.__cause__) == ("store", hook, error)
    text = str(caught.value)
    assert text.startswith(f"plugin 'store', hook {hook}: DriverError: no route to postgresql://me:[redacted]@db/chat")
    assert len(text) < 2200
    assert caught.value.outcome is not None
    assert caught.value.outcome.stop_reason == ("end" if at == 2 else "PluginError")


@each_way
@kinds
@pytest.mark.parametrize("error", [Conflict("held"), CorruptData("spoilt"), ContractError("no text")])
def test_errors_of_our_family_are_raised_as_they_are(
    way: str, kind: Callable[..., Store], error: HookloopError
) -> None:
    for at in ("load", 1):
        with Agent(ScriptedProvider(say("ok")), memory=kind(error, at)) as agent:
            with pytest.raises(type(error)) as caught:
                go(agent, way, "Hello.", conversation="c")
            assert caught.value is error


@each_way
@kinds
def test_a_stop_iteration_of_a_store_is_its_failure(way: str, kind: Callable[..., Store]) -> None:
    for at in ("load", 1):
        with Agent(ScriptedProvider(say("ok")), memory=kind(StopIteration("no more"), at)) as agent:
            with pytest.raises(PluginError, match="StopIteration"):
                go(agent, way, "Hello.", conversation="c")


@each_way
def test_an_exception_without_words_is_told_by_its_class(way: str) -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    with Agent(ScriptedProvider(say("ok")), memory=Quick(Mute(), 1)) as agent:
        with pytest.raises(PluginError, match=r"hook persist_memory: Mute$"):
            go(agent, way, "Hello.", conversation="c")


@pytest.mark.parametrize("kind", [Quick, Async])
def test_the_keepers_errors_are_of_the_family_too(kind: Callable[..., Store]) -> None:
    keeper = Keeper(kind(DriverError("password=hunter2"), "load"), "store")
    for ask in (lambda: keeper.messages("c"), lambda: keeper.restore(EXPORT), lambda: keeper.fork("c", "d")):
        with pytest.raises(PluginError, match=r"'store', hook load_memory: DriverError: password=\[redacted\]"):
            ask()
    with pytest.raises(PluginError, match="hook conversations: AttributeError"):
        keeper.list()
    with pytest.raises(PluginError, match="hook delete: AttributeError"):
        keeper.delete("c")


def _export() -> str:
    with Agent(ScriptedProvider(say("ok"))) as agent:
        agent.run("Hello.", conversation="c")
        return agent.keeper.export("c")


EXPORT: Any = _export()
