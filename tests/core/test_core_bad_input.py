"""Bad input: a clear error that says what, where, the nearest right name, and what to do, before any request is sent."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from going import go
from scenarios import EDIT, Hooked, tools

from hookloop import Agent, Limits, provider, tool
from hookloop.testing import ScriptedProvider, say
from hookloop_hookspecs import Answer, ConfigError, Deny, Message, PluginError, Retry, ToolCall, hookimpl


class Misspelt:
    """Its author meant before_tool."""

    @hookimpl
    def before_tol(self) -> None:
        return None


class WrongArgument:
    """Its author meant `call`."""

    @hookimpl
    def before_tool(self, cal: Any) -> None:
        return None


class Unmarked:
    """Its author forgot the mark."""

    def before_tool(self, call: Any) -> None:
        return None


class OldWrapper:
    """An old-style wrapper."""

    @hookimpl(hookwrapper=True)
    def before_tool(self) -> Any:
        yield


def unannotated(path):  # type: ignore[no-untyped-def]  # the fault that is tested
    """No annotation."""
    return path


def scripted(**parameters: Any) -> Agent:
    return Agent(ScriptedProvider([say("x")]), **parameters)


@tool(name="edit")
def other_edit(path: str) -> str:
    """Another tool of the same name."""
    return path


BAD: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "unknown model prefix": (lambda: Agent("opnai:gpt-4.1"), ["opnai", "openai"]),
    "model without a prefix": (lambda: Agent("gpt-4.1"), ["gpt-4.1", "openai:gpt-4.1"]),
    "no model": (lambda: Agent(), ["no model"]),
    "no provider": (lambda: Agent(42), ["42", "stream"]),
    "misspelt hook": (lambda: scripted(plugins=[Misspelt()]), ["before_tol", "before_tool"]),
    "misspelt argument": (lambda: scripted(plugins=[WrongArgument()]), ["WrongArgument", "cal"]),
    "unmarked hook": (lambda: scripted(plugins=[Unmarked()]), ["Unmarked", "hookimpl"]),
    "old-style wrapper": (lambda: scripted(plugins=[OldWrapper()]), ["OldWrapper", "wrapper=True"]),
    "two plugins of one name": (
        lambda: scripted(plugins=[Hooked("a", recall=lambda: None), Hooked("a", recall=lambda: None)]),
        ["'a'"],
    ),
    "misspelt limit": (lambda: scripted(config={"limits": {"tool_cals": 3}}), ["tool_cals", "tool_calls"]),
    "negative limit": (lambda: Limits(rounds=-1), ["rounds", "-1"]),
    "unknown breach mode": (lambda: Limits(on_breach="halt"), ["halt", "stop"]),  # type: ignore[arg-type]  # the fault
    "misspelt key": (lambda: scripted(config={"instrutions": "x"}), ["instrutions", "instructions"]),
    "parameter and config": (
        lambda: scripted(instructions="a", config={"instructions": "b"}),
        ["instructions", "parameter"],
    ),
    "unknown memory": (lambda: scripted(memory=["sqlight:///x.db"]), ["sqlight", "sqlite"]),
    "memory that is no URL": (lambda: scripted(memory=["chat.db"]), ["chat.db", "URL"]),
    "memory without capabilities": (
        lambda: scripted(memory=[Hooked("m", load_memory=lambda: None)]),
        ["'m'", "capabilities"],
    ),
    "tool without annotations": (lambda: scripted(tools=[unannotated]), ["unannotated", "path"]),
    "two tools of one name": (lambda: scripted(tools=[*tools([]), other_edit]), ["edit"]),
    "not a tool": (lambda: scripted(tools=["edit"]), ["edit"]),
    "unknown provider option": (
        lambda: provider("openai:gpt-4.1", api_key="k", base_ulr="x"),
        ["base_ulr", "base_url"],
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_refused_in_words(name: str) -> None:
    act, words = BAD[name]
    with pytest.raises(ConfigError) as caught:
        act()
    for word in words:
        assert word in str(caught.value)


def test_a_missing_key_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for reference, variable in (
        ("openai:gpt-4.1", "OPENAI_API_KEY"),
        ("anthropic:claude-sonnet-4-6", "ANTHROPIC_API_KEY"),
    ):
        with pytest.raises(ConfigError, match=variable):
            Agent(reference)


RUNS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "empty conversation": ({}, {"conversation": ""}, ["conversation"]),
    "blank conversation": ({}, {"conversation": "  "}, ["conversation"]),
    "NUL in the conversation": ({}, {"conversation": "a\0b"}, ["NUL"]),
    "assistant prompt": ({}, {"prompt": Message.assistant("x")}, ["assistant"]),
    "call in the prompt": ({}, {"prompt": Message("user", ToolCall.of("edit"))}, ["user"]),
    "no prompt": ({}, {"prompt": 7}, ["int"]),
    "required without tools": ({"tool_choice": "required"}, {}, ["required", "none"]),
    "choice of an unknown tool": ({"tool_choice": "edlt", "tools": tools([])}, {}, ["edlt", "edit"]),
    "output that is no type": ({}, {"output": lambda: 1}, ["output"]),
    "two givers of one tool": (
        {"tools": tools([]), "plugins": [Hooked("giver", register_tools=lambda: [other_edit])]},
        {},
        ["edit", "giver", "tools="],
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_bad_runs_are_refused_before_any_request(name: str) -> None:
    parameters, run, words = RUNS[name]
    model = ScriptedProvider([say("x")])
    with Agent(model, **parameters) as agent, pytest.raises(ConfigError) as caught:
        agent.run(**{"prompt": "go", **run})
    for word in words:
        assert word in str(caught.value)
    assert model.requests == []


WRONG: dict[str, tuple[str, Any]] = {
    "a verdict": ("next_instructions", Deny()),
    "an answer where none may be": ("after_reply", Answer("x")),
    "a retry": ("review_answer", Retry()),
    "a number": ("before_round", 5),
    "an assistant message": ("next_instructions", Message.assistant("I said so")),
    "a system message": ("next_instructions", Message.system("obey")),
    "a list with a number": ("before_turn", ["fine", 5]),
    "a mapping": ("recall", {"text": "x"}),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_hook_may_not_return_is_a_plugin_error_with_plugin_and_hook(name: str) -> None:
    hook, value = WRONG[name]
    with Agent(
        ScriptedProvider([EDIT, say("x")]), tools=tools([]), plugins=[Hooked("culprit", **{hook: lambda: value})]
    ) as agent:
        with pytest.raises(PluginError) as caught:
            agent.run("go")
        assert (caught.value.plugin, caught.value.hook) == ("culprit", hook)
        assert caught.value.outcome is not None
        assert caught.value.outcome.status == "failed"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Limits(tool_call=3), "Limits takes no 'tool_call'; did you mean 'tool_calls'?"),  # type: ignore[call-arg]
        (lambda: Agent(ScriptedProvider([]), tols=[]), "Agent takes no 'tols'; did you mean 'tools'?"),  # type: ignore[call-arg]
        (lambda: Limits(per_tool_overrides={"edit": -1}), "per_tool_overrides['edit'] is -1"),
        (lambda: Limits(per_tool_overrides={"edit": "x"}), "per_tool_overrides['edit'] is 'x'"),  # type: ignore[dict-item]
        (lambda: Limits(per_tool_overrides=["edit"]), "give numbers by tool name"),  # type: ignore[arg-type]
    ],
)
def test_a_misspelt_parameter_or_limit_names_the_nearest_right_one(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        make()


@pytest.mark.parametrize("way", ["run", "stream", "arun", "astream"])
def test_a_misspelt_argument_of_a_turn_names_the_nearest_right_one(way: str) -> None:
    provider = ScriptedProvider([])
    with (
        Agent(provider) as agent,
        pytest.raises(ConfigError, match="takes no 'conversaton'; did you mean 'conversation'"),
    ):
        go(agent, way, "go", conversaton="c")
    assert provider.requests == []


def test_an_override_for_nearly_a_tool_is_an_error_and_for_another_a_warning() -> None:
    provider = ScriptedProvider([say("done")])
    with Agent(provider, tools=tools([]), limits=Limits(per_tool_overrides={"edlt": 1})) as agent:
        with pytest.raises(ConfigError, match="names the tool 'edlt'; did you mean 'edit'"):
            agent.run("go")
    with Agent(provider, tools=tools([]), limits=Limits(per_tool_overrides={"deploy": 1})) as agent:
        assert ["'deploy'" in warning for warning in agent.run("go").warnings] == [True]
