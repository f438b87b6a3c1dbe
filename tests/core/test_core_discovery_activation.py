"""Which plugins are on, in which order, and what is told of the others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hookloop.config import Config, config_from, load_config
from hookloop.discovery import Activation, activate, implemented, name_of
from hookloop_hookspecs import ConfigError, hookimpl

if TYPE_CHECKING:
    from tests.conftest import Distribute

PLUGIN = """
from pydantic import BaseModel, ConfigDict
from hookloop_hookspecs import hookimpl

class Plugin:
    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")
        tool: str = "edit"

    def __init__(self, options):
        self.options = options

    @hookimpl
    def after_tool(self, call):
        return "noted"

    @hookimpl(specname="before_tool", tryfirst=True)
    def judge(self, call):
        return None
"""


@pytest.fixture(autouse=True)
def installed(distribute: Distribute) -> None:
    for letter in "abc":
        points = {"hookloop.plugins": {f"hl{letter}": f"hl_act_{letter}:Plugin"}}
        distribute(f"hl-act-{letter}", points, {f"hl_act_{letter}": PLUGIN}, version=f"1.{ord(letter) - 97}")


def states(activation: Activation) -> dict[str, str]:
    """The states of the plugins of this test, in the report's order."""
    return {report.name: report.state for report in activation.report.plugins if report.name.startswith("hl")}


def from_file(folder: Path, text: str) -> Config:
    (folder / "hookloop.toml").write_text(text, "utf-8")
    return load_config(folder / "hookloop.toml", {})


def why(activation: Activation, name: str) -> str:
    report = activation.report.plugin(name)
    assert report is not None
    return report.why


def test_nothing_is_on_that_is_not_named() -> None:
    activation = activate(config_from({}))
    assert activation.active == ()
    assert states(activation) == {"hla": "off", "hlb": "off", "hlc": "off"}
    assert why(activation, "hla") == "installed, but not named; auto is false"
    assert not {"hl_act_a", "hl_act_b", "hl_act_c"} & set(sys.modules)


def test_what_the_file_names_is_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    activation = activate(from_file(tmp_path, '[plugins.hlb]\noptions = { tool = "read" }\n'))
    (active,) = activation.active
    assert (active.name, active.version, active.distribution) == ("hlb", "1.1", "hl-act-b")
    assert getattr(active.plugin, "options").tool == "read"  # noqa: B009 - the type is made on the spot
    assert why(activation, "hlb") == "named at hookloop.toml:1"
    assert "hl_act_a" not in sys.modules


def test_auto_turns_on_all_but_the_disabled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    activation = activate(from_file(tmp_path, "auto = true\n[plugins.hlb]\nenabled = false\n"))
    assert {name: state for name, state in states(activation).items() if state == "on"}.keys() == {"hla", "hlc"}
    assert why(activation, "hla") == "auto = true at hookloop.toml:1"
    assert why(activation, "hlb") == "disabled at hookloop.toml:3"
    assert "hl_act_b" not in sys.modules


def test_a_program_may_give_names_and_objects() -> None:
    class Mine:
        @hookimpl
        def after_turn(self) -> None: ...

    activation = activate(config_from({}), ["hlc", Mine(), "hla"])
    assert [active.name for active in activation.active] == ["hlc", "Mine", "hla"]
    report = activation.report.plugin("Mine")
    assert report is not None
    assert (report.why, report.position, report.hooks) == ("given to the agent", 2, ("after_turn",))


def test_order_comes_from_the_list_then_from_the_program_then_by_name() -> None:
    config = config_from({"auto": True, "order": ["hlc"], "plugins": {"hlb": {}}})
    order = [active.name for active in activate(config, ["hlb"]).active if active.name.startswith("hl")]
    assert order == ["hlc", "hlb", "hla"]


def test_switched_off_hooks_are_reported() -> None:
    config = config_from({"plugins": {"hla": {"hooks": {"after_tool": False, "before_tool": True, "close": False}}}})
    report = activate(config).report.plugin("hla")
    assert report is not None
    assert report.hooks == ("before_tool", "after_tool")
    assert report.switched_off == ("after_tool",)


def test_a_plugin_of_the_program_may_be_switched_off_by_the_file() -> None:
    class Mine:
        name = "mine"

        @hookimpl
        def after_turn(self) -> None: ...

    activation = activate(config_from({"plugins": {"mine": {"enabled": False}}}), [Mine()])
    assert activation.active == ()
    assert why(activation, "mine") == "disabled at config"


BROKEN = {
    "import": ("import hl_none", "ModuleNotFoundError: No module named 'hl_none'"),
    "exit": ("import sys; sys.exit('bye')", "its module tried to end the program (SystemExit: bye)"),
    "init": (
        "class Plugin:\n    def __init__(self): raise RuntimeError('x')",
        "plugin 'hlx' cannot be made: RuntimeError: x",
    ),
    "no hooks": ("class Plugin: pass", "plugin 'hlx' has no hooks; mark its methods with @hookimpl"),
    "misspelt": (
        "from hookloop_hookspecs import hookimpl\nclass Plugin:\n    @hookimpl\n    def after_tol(self): ...",
        "plugin 'hlx' implements no known hook with 'after_tol'; did you mean 'after_tool'?",
    ),
    "no class": ("Plugin = 3", "its entry point names 3, which is no class or function"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_plugin_is_a_warning_and_an_error_when_strict(distribute: Distribute, kind: str) -> None:
    source, words = BROKEN[kind]
    distribute("hl-act-x", {"hookloop.plugins": {"hlx": "hl_act_x:Plugin"}}, {"hl_act_x": source})
    activation = activate(config_from({"plugins": {"hla": {}, "hlx": {}}}))
    assert states(activation) == {"hla": "on", "hlx": "failed", "hlb": "off", "hlc": "off"}
    assert words in why(activation, "hlx")
    activation.check(strict=False)
    with pytest.raises(ConfigError, match="hlx"):
        activation.check(strict=True)


def test_a_duplicate_and_one_of_another_contract_are_warnings(distribute: Distribute) -> None:
    again = {"hookloop.plugins": {"hla": "hl_act_z:Plugin", "hly": "hl_act_z:Plugin"}}
    distribute("hl-act-z", again, {"hl_act_z": PLUGIN}, requires=["hookloop-hookspecs>=5"])
    activation = activate(config_from({"plugins": {"hla": {}, "hly": {}, "hlb": {}}}))
    assert states(activation) == {"hlb": "on", "hla": "failed", "hly": "failed", "hlc": "off"}
    assert "is claimed by hl-act-" in why(activation, "hla")
    assert "needs hookloop-hookspecs>=5" in why(activation, "hly")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[plugins.hlla]\n", "hookloop.toml:1: plugin 'hlla': is not known; did you mean 'hla'?"),
        ("[plugins.hlla]\nenabled = false\n", "hookloop.toml:1: unknown plugin 'hlla'; did you mean 'hla'?"),
        (
            "[plugins.hla.options]\ntol = 'x'\n",
            "hookloop.toml:2: plugin 'hla': unknown option 'tol'; did you mean 'tool'?",
        ),
        ("order = ['hla', 'hlbb']\n", "hookloop.toml:1: order names an unknown plugin 'hlbb'; did you mean 'hlb'?"),
    ],
)
def test_a_wrong_name_or_option_is_an_error_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    activation = activate(from_file(tmp_path, text))
    assert activation.errors == (words,)
    with pytest.raises(ConfigError, match="did you mean"):
        activation.check(strict=False)


def test_objects_of_one_class_are_told_apart_unless_they_say_their_name() -> None:
    class Mine:
        def __init__(self, name: str = "") -> None:
            self.name = name

        @hookimpl
        def after_turn(self) -> None: ...

    activation = activate(config_from({}), [Mine(), Mine(), Mine()])
    assert [active.name for active in activation.active] == ["Mine", "Mine-2", "Mine-3"]
    assert len({id(active.plugin) for active in activation.active}) == 3
    named = activate(config_from({}), [Mine("a"), Mine("b"), Mine("a")])
    assert named.errors == ("two plugins are named 'a'; give one of them another name",)


def test_options_for_an_object_are_an_error() -> None:
    class Mine:
        @hookimpl
        def after_turn(self) -> None: ...

    activation = activate(config_from({"plugins": {"Mine": {"options": {"a": 1}}}}), [Mine()])
    assert activation.errors == ("config: plugin 'Mine' was given as an object, so it takes no options here",)


def test_hooks_are_read_from_all_kinds_of_methods() -> None:
    class Base:
        @hookimpl
        def close(self) -> None: ...

    class Mine(Base):
        @staticmethod
        @hookimpl
        def on_event(event: object) -> None: ...

        @hookimpl
        async def before_turn(self) -> None: ...

        @property
        def trap(self) -> str:
            raise AssertionError("not read")

    assert implemented(Mine()) == ("before_turn", "on_event", "close")
    assert name_of(Mine()) == "Mine"
