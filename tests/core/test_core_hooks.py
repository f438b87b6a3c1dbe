"""Hooks as plugins write them: async ones, wrappers, order, toolsets, asking the model from within, exceptions of tools."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from typing import Any

import pytest
from scenarios import EDIT, Hooked, scenario, tools
from ways import all_ways

from hookloop import Agent, Limits, tool
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import LimitError, MemoryCapabilities, PluginError, Replace, Reply, Text, hookimpl
from hookloop_hookspecs.events import RequestSent


class Sleepy:
    """Async hooks at every kind of place."""

    name = "sleepy"

    @hookimpl
    async def before_turn(self, turn: Any) -> str:
        await asyncio.sleep(0)
        return "before the turn"

    @hookimpl
    async def after_tool(self, result: Any) -> Any:
        await asyncio.sleep(0)
        return Replace(result.text.upper())

    @hookimpl
    async def next_instructions(self) -> list[str]:
        await asyncio.sleep(0)
        return ["one", "two"]

    @hookimpl
    async def on_event(self, event: Any) -> None:
        await asyncio.sleep(0)

    @hookimpl
    async def after_turn(self) -> None:
        await asyncio.sleep(0)


def test_async_hooks_work_in_all_ways() -> None:
    seen = all_ways(scenario("async hooks", [EDIT, say("ok")], Sleepy))
    assert [m.text for m in seen.outcome.new] == ["go", "before the turn", "", "EDITED A", "one", "two", "ok"]


def test_an_async_hook_past_its_timeout_fails_by_the_plugins_policy() -> None:
    class Stuck:
        name = "stuck"

        @hookimpl
        async def next_instructions(self) -> None:
            await asyncio.sleep(30)

    for policy in ("raise", "skip"):
        config = {"plugins": {"stuck": {"timeout": 0.02, "on_error": policy}}}
        for asynchronous in (False, True):
            with Agent(ScriptedProvider([EDIT, say("ok")]), tools=tools([]), plugins=[Stuck()], config=config) as agent:
                with pytest.raises(PluginError, match="stuck") if policy == "raise" else nullcontext():
                    outcome = asyncio.run(agent.arun("go")) if asynchronous else agent.run("go")
                    assert any("no answer within" in warning for warning in outcome.warnings)


def test_a_broken_plugin_is_disabled_after_so_many_failures() -> None:
    asked: list[int] = []

    def broken() -> None:
        asked.append(1)
        raise ValueError("broken")

    config = {"plugins": {"b": {"on_error": "disable", "disable_after": 2}}}
    script = [call("edit", {"path": str(at)}, id=f"c{at}") for at in range(5)] + [say("ok")]
    plugin = Hooked("b", next_instructions=broken, before_tool=lambda call: None)
    with Agent(ScriptedProvider(script), tools=tools([]), plugins=[plugin], config=config) as agent:
        outcome = agent.run("go")
    assert len(asked) == 2
    assert sum("broken" in warning for warning in outcome.warnings) == 2
    assert any("switched off" in warning for warning in outcome.warnings)


class Wrap:
    """A wrapper that notes when it is entered and left."""

    def __init__(self, name: str, notes: list[str]) -> None:
        self.name = name
        self.notes = notes

    @hookimpl(wrapper=True)
    def next_instructions(self) -> Any:
        self.notes.append(f"{self.name} in")
        values = yield
        self.notes.append(f"{self.name} out {values}")
        return [*values, f"from {self.name}"]


def test_before_in_order_after_reversed_wrappers_outside() -> None:
    notes: list[str] = []
    plain = [
        Hooked(
            name,
            before_tool=lambda name=name: notes.append(f"before {name}"),
            after_tool=lambda name=name: notes.append(f"after {name}"),
            next_instructions=lambda name=name: name,
        )
        for name in "ab"
    ]
    model = ScriptedProvider([EDIT, say("ok")])
    with Agent(model, tools=tools([]), plugins=[Wrap("w", notes), plain[0], Wrap("v", notes), plain[1]]) as agent:
        outcome = agent.run("go")
    assert notes == [
        "before a", "before b", "after b", "after a",
        "w in", "v in", "v out ['a', 'b']", "w out ['a', 'b', 'from v']",
    ]  # fmt: skip
    contributed = [(m.text, m.origin.plugin) for m in outcome.new if m.origin.kind == "plugin"]
    assert contributed == [("a", "a"), ("b", "b"), ("from v", "v"), ("from w", "w")]


class Box:
    """A toolset that notes when it is opened and closed."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes
        self.tools: list[Any] = []

    def open(self) -> None:
        self.notes.append("open")

        @tool
        def boxed() -> str:
            """From the box."""
            return "boxed"

        self.tools = [boxed]

    def close(self) -> None:
        self.notes.append("close")


class AsyncBox(Box):
    """The same with async doors."""

    async def open(self) -> None:  # type: ignore[override]  # the contract allows either
        await asyncio.sleep(0)
        super().open()

    async def close(self) -> None:  # type: ignore[override]  # the contract allows either
        await asyncio.sleep(0)
        super().close()


@pytest.mark.parametrize("box", [Box, AsyncBox])
def test_a_toolset_is_open_during_the_turn_and_closed_whatever_happens(box: type[Box]) -> None:
    notes: list[str] = []

    def plugin() -> Hooked:
        return Hooked("toolset", register_tools=lambda: [box(notes)])

    seen = all_ways(scenario("toolset", [call("boxed", id="c1"), say("ok")], plugin))
    assert [m.text for m in seen.outcome.new] == ["go", "", "boxed", "ok"]
    assert notes[:2] == ["open", "close"]
    assert notes.count("open") == notes.count("close")
    notes.clear()
    with (
        Agent(ScriptedProvider([OSError("down")]), plugins=[plugin()]) as agent,
        pytest.raises(Exception, match="down"),
    ):
        agent.run("go")
    assert notes == ["open", "close"]


class Asks:
    """Asks the model from within a hook."""

    name = "asks"

    def __init__(self) -> None:
        self.requests = 0

    @hookimpl
    def on_event(self, event: Any) -> None:
        self.requests += isinstance(event, RequestSent)

    @hookimpl
    def next_instructions(self, turn: Any) -> str:
        said: str = turn.complete("sum it up", system="be short")
        return f"summary: {said}"


class AsksAsync(Asks):
    """The same, async."""

    @hookimpl
    async def next_instructions(self, turn: Any) -> str:  # type: ignore[override]  # the contract allows either
        return f"summary: {await turn.acomplete('sum it up', system='be short')}"


@pytest.mark.parametrize("kind", [Asks, AsksAsync])
def test_a_hook_may_ask_the_model_and_its_tokens_count_with_the_turns(kind: type[Asks]) -> None:
    seen = all_ways(scenario("complete", [EDIT, say("short"), say("ok")], kind))
    assert [m.text for m in seen.outcome.new] == ["go", "", "edited a", "summary: short", "ok"]
    assert seen.outcome.usage.total == 45
    assert len(seen.outcome.rounds) == 2
    assert [request[1] for request in seen.requests[:3]] == ["", "be short", ""]


def test_a_hook_that_asks_past_the_token_limit_is_told() -> None:
    model = ScriptedProvider([EDIT, say("short"), say("ok")])
    agent = Agent(model, tools=tools([]), plugins=[Asks()], limits=Limits(tokens=15))
    with agent, pytest.raises(PluginError) as caught:
        agent.run("go")
    assert isinstance(caught.value.__cause__, LimitError)
    assert len(model.requests) == 1


def test_models_read_only_the_class_of_exceptions_where_config_says_so() -> None:
    @tool
    def leaks() -> str:
        """Fail with a secret."""
        raise ValueError("the key is sk-abcdefghijklmnopqrstuvwxyz123456")

    for detailed, wanted in (
        (True, "leaks failed: ValueError: the key is [redacted]"),
        (False, "leaks failed: ValueError"),
    ):
        config = {"tools": {"detailed_errors": detailed}}
        with Agent(ScriptedProvider([call("leaks", id="c"), say("ok")]), tools=[leaks], config=config) as agent:
            outcome = agent.run("go")
        assert [m.text for m in outcome.new if m.role == "tool"] == [wanted]


def test_a_tool_is_tried_again_as_often_as_it_says() -> None:
    tries: list[int] = []

    @tool(retries=2, retry_on=(OSError,))
    def flaky(n: int) -> str:
        """Fail twice."""
        tries.append(n)
        if len(tries) < 3:
            raise OSError("not yet")
        return "at last"

    with Agent(ScriptedProvider([call("flaky", {"n": 1}, id="c"), say("ok")]), tools=[flaky]) as agent:
        outcome = agent.run("go")
    assert tries == [1, 1, 1]
    assert [m.text for m in outcome.new if m.role == "tool"] == ["at last"]


class Plain:
    """A provider that knows nothing of the contract's base class."""

    def stream(self, request: Any) -> Any:
        yield Reply((Text("from a plain class"),))


class PlainAsync:
    """The same, async only."""

    async def astream(self, request: Any) -> Any:
        yield Reply((Text("from a plain class"),))


class Lists:
    """A memory in eight lines: it keeps batches, and gives back entries alone."""

    capabilities = MemoryCapabilities(tool_messages=True)

    def __init__(self) -> None:
        self.entries: list[Any] = []

    @hookimpl
    def persist_memory(self, batch: Any) -> None:
        self.entries += batch.entries

    @hookimpl
    def load_memory(self, conversation: str) -> list[Any]:
        return sorted(self.entries, key=lambda entry: entry.number)


@pytest.mark.parametrize("provider", [Plain, PlainAsync])
@pytest.mark.parametrize("asynchronous", [False, True])
def test_providers_and_memories_need_no_base_class(provider: type, asynchronous: bool) -> None:
    memory = Lists()
    with Agent(provider(), memory=memory) as agent:
        for _ in range(2):
            outcome = (
                asyncio.run(agent.arun("go", conversation="c")) if asynchronous else agent.run("go", conversation="c")
            )
    assert outcome.text == "from a plain class"
    assert [m.text for m in outcome.messages] == ["go", "from a plain class"] * 2
    assert outcome.rounds[0].provider == provider.__name__.lower()


def test_every_hook_of_a_turn_may_name_what_means_the_same_everywhere() -> None:
    seen: list[str] = []

    def note(turn: Any, conversation: str, view: Any) -> None:
        seen.append(f"{turn.round} {conversation} {len(view)}")

    hooks = (
        "before_turn",
        "before_round",
        "after_reply",
        "before_tool",
        "after_tool",
        "next_instructions",
        "review_answer",
    )
    plugin = Hooked("p", **dict.fromkeys(hooks, note))
    with Agent(ScriptedProvider([EDIT, say("ok")]), tools=tools([]), plugins=[plugin]) as agent:
        agent.run("go", conversation="c")
    assert seen == ["0 c 0", "1 c 1", "1 c 1", "1 c 1", "1 c 1", "1 c 3", "2 c 3", "2 c 3", "2 c 4"]
