"""Parameters of an agent: those of a wrong kind are told with what to give; settings come from either place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from going import each_way, go

from hookloop import Agent, Limits, tool
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, say
from hookloop_hookspecs import ConfigError, Settings, hookimpl


class Guard:
    """A plugin."""

    @hookimpl
    def before_turn(self) -> None: ...


@dataclass
class Equal:
    """A plugin whose objects are equal."""

    strict: bool = True

    @hookimpl
    def before_turn(self) -> None: ...


class Both(InProcessMemory):
    """A memory that is a plugin too."""

    @hookimpl
    def before_turn(self) -> None: ...


@tool
def edit() -> str:
    """Edit."""
    return ""


BOTH, GUARD = Both(), Guard()
WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "limits": ({"limits": {"rounds": 3}}, "limits is {'rounds': 3}; give Limits(rounds=20), or the table in config="),
    "instructions": ({"instructions": 5}, "instructions is 5; give text"),
    "settings": ({"settings": {"seed": 1}}, "settings is {'seed': 1}; give Settings(temperature=0), or the table in"),
    "scope": ({"scope": None}, "scope is None; give the tenant as text, or leave it out"),
    "on_pending": ({"on_pending": "zzz"}, "on_pending is 'zzz'; it is one of supersede, refuse"),
    "tool_choice": ({"tool_choice": None}, 'tool_choice is None; give "auto", "none", "required" or a tool\'s name'),
    "config": ({"config": "hookloop.toml"}, "config is 'hookloop.toml'; give a table, or a file to Agent.from_config"),
    "one tool": ({"tools": edit}, "give a list: tools=[…]"),
    "no tools": ({"tools": None}, "tools is None; give a list: tools=[…]"),
    "one plugin": ({"plugins": GUARD}, "give a list: plugins=[…]"),
    "one name": ({"plugins": "guard"}, "plugins is 'guard'; give a list: plugins=[…]"),
    "class of a plugin": ({"plugins": [GUARD, Guard]}, "plugins[1] is the class Guard; give an object of it: Guard(…)"),
    "class of a memory": ({"memory": InProcessMemory}, "memory[0] is the class InProcessMemory; give an object of it"),
    "classes of memories": (
        {"memory": ["memory:", Both]},
        "memory[1] is the class Both; give an object of it: Both(…)",
    ),
    "one plugin twice": ({"plugins": [GUARD, GUARD]}, "plugins[0] and plugins[1] are the same Guard; give it once"),
    "one memory twice": ({"memory": [BOTH, BOTH]}, "memory[0] and memory[1] are the same Both; give it once"),
    "plugin and memory": (
        {"plugins": [BOTH], "memory": BOTH},
        "plugins[0] and memory[0] are the same Both; give it once",
    ),
    "equal plugins": (
        {"plugins": [Equal(), Equal()]},
        "plugins[0] and plugins[1] are equal Equals; let them compare by",
    ),
    "settings twice": (
        {"settings": Settings(seed=1), "config": {"settings": {"seed": 2}}},
        "settings is given as a parameter and at config; keep one of the two",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_parameter_of_a_wrong_kind_is_told_with_what_to_give(name: str) -> None:
    parameters, words = WRONG[name]
    with pytest.raises(ConfigError) as caught:
        Agent(ScriptedProvider(), **parameters)
    assert words in str(caught.value)


@pytest.mark.parametrize("value", ["3", float("nan"), [3], True])
def test_a_limit_is_a_number(value: Any) -> None:
    with pytest.raises(ConfigError, match="limit tool_calls is"):
        Limits(tool_calls=value)


def test_different_objects_of_one_class_are_not_the_same() -> None:
    unequal = [Equal(strict=True), Equal(strict=False)]
    with Agent(ScriptedProvider(), plugins=[Guard(), Guard(), *unequal], memory=[Both(), Both()]) as agent:
        assert [plugin.name for plugin in agent.report.on] == ["Guard", "Guard-2", "Equal", "Equal-2"]


def test_a_generator_may_give_tools_and_plugins() -> None:
    with Agent(ScriptedProvider(say("x")), tools=(one for one in [edit]), plugins=iter([GUARD])) as agent:  # type: ignore[arg-type]  # no sequences
        assert agent.run("Hello.").text == "x"
        assert [plugin.name for plugin in agent.report.on] == ["Guard"]


@each_way
def test_settings_of_the_configuration_are_sent(way: str, tmp_path: Path) -> None:
    file = tmp_path / "hookloop.toml"
    file.write_text('[settings]\nmax_tokens = 9\nstop = ["END"]\nextra = { user = "me" }\n', "utf-8")
    provider = ScriptedProvider(say("x"), say("y"))
    with Agent.from_config(file, model=provider) as agent:
        go(agent, way, "Hello.")
    assert provider.requests[0].settings == Settings(max_tokens=9, stop=("END",), extra={"user": "me"})
    with Agent(provider, settings=Settings(seed=4)) as agent:
        go(agent, way, "Hello.")
    assert provider.requests[1].settings == Settings(seed=4)
    with pytest.raises(ConfigError, match=r"settings is given as a parameter and at .*hookloop\.toml:1"):
        Agent.from_config(file, model=provider, settings=Settings(seed=4))


def test_urls_in_the_configuration_of_a_program_are_filled_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HL_FOLDER", str(tmp_path))
    with Agent(ScriptedProvider(say("x")), config={"memory": "sqlite:///${HL_FOLDER}/x.db"}) as agent:
        agent.run("Hello.")
    assert (tmp_path / "x.db").is_file()
    with pytest.raises(ConfigError, match=r"memory: environment variable HL_NOWHERE is not set"):
        Agent(ScriptedProvider(), config={"memory": "sqlite:///${HL_NOWHERE}/x.db"})
