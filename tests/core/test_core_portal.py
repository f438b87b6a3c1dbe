"""What plugins raise in async code: it is their failure, and no other run's end."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from going import each_way, go
from scenarios import Hooked

from hookloop import Agent
from hookloop.drivers.portal import Portal
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import PluginError


class Odd(BaseException):
    """An exception of a library that is no `Exception`."""


class Raises:
    """A plugin whose async hook raises `error` in the conversation "bad"."""

    name = "p"

    def __new__(cls, hook: str, error: BaseException) -> Any:
        async def implementation(conversation: str) -> None:
            await asyncio.sleep(0)
            if conversation == "bad":
                raise error

        return Hooked("p", **{hook: implementation})


@each_way
@pytest.mark.parametrize("error", [SystemExit(1), Odd("odd"), GeneratorExit(), asyncio.CancelledError()], ids=repr)
def test_whatever_an_async_hook_raises_is_its_failure_and_other_runs_go_on(way: str, error: BaseException) -> None:
    with Agent(ScriptedProvider([say("ok")] * 3), plugins=[Raises("before_round", error)]) as agent:
        assert go(agent, way, "Hello.", conversation="first").status == "done"
        with pytest.raises(PluginError, match="'p', hook before_round: RuntimeError: it ") as caught:
            go(agent, way, "Hello.", conversation="bad")
        assert caught.value.outcome is not None
        assert caught.value.outcome.status == "failed"
        assert go(agent, way, "Hello.", conversation="next").status == "done"


@each_way
@pytest.mark.parametrize("hook", ["recall", "on_event", "after_turn"])
def test_an_async_observer_that_exits_ends_no_turn(way: str, hook: str) -> None:
    with Agent(ScriptedProvider([say("ok")] * 3), plugins=[Raises(hook, SystemExit(1))]) as agent:
        assert go(agent, way, "Hello.", conversation="bad").status == "done"
        assert go(agent, way, "Hello.", conversation="next").status == "done"


@pytest.mark.parametrize("way", ["run", "stream"])
def test_an_interrupt_raised_on_the_portal_is_the_plugins_own(way: str) -> None:
    with Agent(ScriptedProvider([say("ok")] * 2), plugins=[Raises("before_round", KeyboardInterrupt())]) as agent:
        with pytest.raises(PluginError, match="it raised KeyboardInterrupt"):
            go(agent, way, "Hello.", conversation="bad")
        assert go(agent, way, "Hello.", conversation="next").status == "done"


@pytest.mark.parametrize("way", ["arun", "astream"])
def test_an_interrupt_in_the_main_thread_ends_the_turn_in_order(way: str) -> None:
    with Agent(ScriptedProvider([say("ok")] * 2), plugins=[Raises("before_round", KeyboardInterrupt())]) as agent:
        with pytest.raises(KeyboardInterrupt):
            go(agent, way, "Hello.", conversation="bad")
        assert go(agent, way, "Hello.", conversation="next").status == "done"


class Doors:
    """A toolset whose async doors raise."""

    tools: tuple[Any, ...] = ()

    def __init__(self, opening: BaseException | None = None, closing: BaseException | None = None) -> None:
        self.opening, self.closing = opening, closing

    async def open(self) -> None:
        if self.opening is not None:
            raise self.opening

    async def close(self) -> None:
        if self.closing is not None:
            raise self.closing


@each_way
@pytest.mark.parametrize("error", [SystemExit(1), Odd("odd")], ids=repr)
def test_a_toolset_that_exits_while_it_closes_is_warned_of(way: str, error: BaseException) -> None:
    toolsets = [Doors(closing=error), Doors(), Doors()]
    plugin = Hooked("p", register_tools=lambda: toolsets.pop(0))
    with Agent(ScriptedProvider([say("ok")] * 3), plugins=[plugin]) as agent:
        outcome = go(agent, way, "Hello.")
        assert outcome.status == "done"
        assert any(f"it raised {type(error).__name__}" in warning for warning in outcome.warnings)
        assert go(agent, way, "Hello.").warnings == ()


@each_way
@pytest.mark.parametrize("error", [SystemExit(1), Odd("odd")], ids=repr)
def test_a_toolset_that_fails_while_it_opens_fails_the_turn(way: str, error: BaseException) -> None:
    toolsets = [Doors(opening=error), Doors()]
    plugin = Hooked("p", register_tools=lambda: toolsets.pop(0))
    with Agent(ScriptedProvider([say("ok")] * 3), plugins=[plugin]) as agent:
        with pytest.raises(Exception, match=f"it raised {type(error).__name__}"):
            go(agent, way, "Hello.")
        assert go(agent, way, "Hello.").status == "done"


@each_way
def test_a_toolset_with_one_async_door_may_fail_at_the_other(way: str) -> None:
    class Half(Doors):
        def open(self) -> None:  # type: ignore[override]  # the contract allows either
            raise StopIteration("nothing here")

    plugin = Hooked("p", register_tools=lambda: Half())
    with Agent(ScriptedProvider(say("ok")), plugins=[plugin]) as agent:
        with pytest.raises(PluginError, match=r"did not open: RuntimeError: .*StopIteration"):
            go(agent, way, "Hello.")


class Exits:
    """An async provider that exits in the conversation's first request."""

    def __init__(self) -> None:
        self.asked = 0

    async def astream(self, request: Any) -> Any:
        self.asked += 1
        if self.asked == 1:
            raise SystemExit(1)
        async for piece in ScriptedProvider([say("ok")]).astream(request):
            yield piece


@pytest.mark.parametrize("way", ["run", "stream"])
def test_an_async_provider_that_exits_is_a_providers_error(way: str) -> None:
    with Agent(Exits()) as agent:
        with pytest.raises(Exception, match="it raised SystemExit: 1"):
            go(agent, way, "Hello.")
        assert go(agent, way, "Hello.").text == "ok"


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_portal_whose_event_loop_was_ended_gets_another() -> None:
    """A task of somebody's own that exits ends the event loop under everybody; asyncio wants it so."""

    async def ends() -> None:
        raise SystemExit(1)

    async def spoils() -> None:
        task = asyncio.ensure_future(ends())
        await asyncio.Event().wait()
        del task

    async def works() -> str:
        return "fine"

    portal = Portal()
    spoilt = portal.start(spoils)
    with pytest.raises(BaseException):  # noqa: B017, PT011  # of which kind is the event loop's affair
        spoilt.result(20)
    thread = portal._thread
    assert thread is not None
    thread.join(20)
    assert portal.start(works).result(20) == "fine"
    assert portal.close(5.0) == []


def test_tools_on_the_portal_may_exit_too() -> None:
    async def leave() -> str:
        raise SystemExit(1)

    with Agent(ScriptedProvider([call("leave", id="c"), say("ok")] * 2), tools=[leave]) as agent:
        for _ in range(2):
            assert [m.text for m in agent.run("go").new if m.role == "tool"] == ["leave failed: SystemExit: 1"]
