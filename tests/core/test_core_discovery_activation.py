"""Which plugins are on, in which order, and what is told of the others."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hookloop import Agent
from hookloop.config import Config, config_from, load_config
from hookloop.discovery import Activation, activate, implemented, name_of
from hookloop.testing import ScriptedProvider, say
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
        "cannot be made: RuntimeError: x",
    ),
    "no hooks": ("class Plugin: pass", "has no hooks; mark its methods with @hookimpl"),
    "misspelt": (
        "from hookloop_hookspecs import hookimpl\nclass Plugin:\n    @hookimpl\n    def after_tol(self): ...",
        "implements no known hook with 'after_tol'; did you mean 'after_tool'?",
    ),
    "no class": ("Plugin = 3", "its entry point names 3, which is no class or function"),
    "skip": ("import pytest\npytest.skip('not here', allow_module_level=True)", "Skipped: not here"),
    "other options": (f"{PLUGIN}\nPlugin.Options = dict", "its Options is <class 'dict'>, which is no pydantic model"),
    "needs options": (PLUGIN.replace('tool: str = "edit"', "tool: str"), "tool: is missing; set its options under"),
    "failing options": (
        PLUGIN.replace("class Options(", "@classmethod\n    def never(cls): ...\n\n    class Options(").replace(
            'tool: str = "edit"', "tool: 'Nowhere' = 1"
        ),
        "its Options cannot be used: PydanticUserError",
    ),
    "provider error": (
        "from hookloop_hookspecs import NoOpenTurn\nclass Plugin:\n    def __init__(self): raise NoOpenTurn('x')",
        "cannot be made: NoOpenTurn: x",
    ),
    "argument": (PLUGIN.replace("self, call", "self, cal", 1), "cal"),
    "old wrapper": (PLUGIN.replace("tryfirst", "hookwrapper"), "wrapper=True"),
    "no yield": (PLUGIN.replace("tryfirst", "wrapper"), "generator"),
    "property": (
        f"{PLUGIN}\n    @property\n    def version(self): raise LookupError('odd')",
        "cannot be looked at: LookupError: odd",
    ),
}


NAMED = [kind for kind in BROKEN if kind != "needs options"]
"""Who names a plugin without the options that it needs has made a fault of his own."""


def broken(distribute: Distribute, kind: str) -> str:
    """Install the plugin `hlx`, which cannot be loaded; the words about it."""
    source, words = BROKEN[kind]
    distribute("hl-act-x", {"hookloop.plugins": {"hlx": "hl_act_x:Plugin"}}, {"hl_act_x": source})
    return words


@pytest.mark.parametrize("kind", NAMED)
def test_a_broken_plugin_that_is_named_is_an_error(
    distribute: Distribute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.chdir(tmp_path)
    words = broken(distribute, kind)
    activation = activate(from_file(tmp_path, "[plugins.hla]\n[plugins.hlx]\n"))
    assert states(activation) == {"hla": "on", "hlx": "failed", "hlb": "off", "hlc": "off"}
    (error,) = activation.errors
    assert error == f"hookloop.toml:2: {why(activation, 'hlx')}"
    assert error.startswith("hookloop.toml:2: plugin 'hlx' (hl-act-x 1.0): ")
    assert words in error
    with pytest.raises(ConfigError, match="hlx"):
        activation.check()


@pytest.mark.parametrize("kind", NAMED)
def test_with_strict_false_it_is_a_warning_that_is_told(distribute: Distribute, kind: str) -> None:
    words = broken(distribute, kind)
    activation = activate(config_from({"strict": False, "plugins": {"hla": {}, "hlx": {}}}))
    activation.check()
    (warning,) = activation.warnings
    assert warning.startswith("config: plugin 'hlx' (hl-act-x 1.0): ")
    assert words in warning
    assert activation.report.warnings == (warning,)


def test_one_that_the_program_names_is_an_error_too(distribute: Distribute) -> None:
    broken(distribute, "import")
    activation = activate(config_from({"auto": True}), ["hlx"])
    assert activation.errors == ("plugin 'hlx' (hl-act-x 1.0): ModuleNotFoundError: No module named 'hl_none'",)


@pytest.mark.parametrize("kind", BROKEN)
def test_one_that_auto_alone_switches_on_stops_nobody(distribute: Distribute, kind: str) -> None:
    words = broken(distribute, kind)
    activation = activate(config_from({"auto": True}))
    activation.check()
    assert states(activation) == {"hla": "on", "hlb": "on", "hlc": "on", "hlx": "failed"}
    (warning,) = [text for text in activation.warnings if "hlx" in text]
    assert warning.startswith("config: plugin 'hlx' (hl-act-x 1.0): ")
    assert words in warning
    strict = activate(config_from({"auto": True, "strict": True}))
    assert warning in strict.errors
    assert strict.warnings == ()


def test_auto_leaves_out_what_needs_options_and_says_which() -> None:
    activation = activate(config_from({"auto": True}))
    activation.check()
    assert why(activation, "fallback").split(": ", 1)[1] == (
        "providers: is missing; set its options under [plugins.fallback], or enabled = false there"
    )
    named = activate(config_from({"auto": True, "strict": False, "plugins": {"fallback": {}}}))
    assert named.errors == ("config: plugin 'fallback': providers: is missing",)


def test_an_interrupt_while_a_plugin_is_made_is_not_swallowed(distribute: Distribute) -> None:
    source = "class Plugin:\n    def __init__(self): raise KeyboardInterrupt"
    distribute("hl-act-x", {"hookloop.plugins": {"hlx": "hl_act_x:Plugin"}}, {"hl_act_x": source})
    with pytest.raises(KeyboardInterrupt):
        activate(config_from({"auto": True}))


def test_an_agent_logs_and_reports_what_it_goes_without(
    distribute: Distribute, caplog: pytest.LogCaptureFixture
) -> None:
    source = "raise OSError('no licence at postgresql://u:hunter2@h\\n2026 INFO all is well')"
    distribute("hl-act-x", {"hookloop.plugins": {"hlx": "hl_act_x:Plugin"}}, {"hl_act_x": source})
    config = {"strict": False, "plugins": {"hla": {}, "hlx": {}}}
    with Agent(ScriptedProvider(say("x")), config=config) as agent:
        (warning,) = agent.report.warnings
        assert [plugin.name for plugin in agent.report.on] == ["hla"]
    assert [record.levelname for record in caplog.records if record.name == "hookloop"] == ["WARNING"]
    (logged,) = [record.getMessage() for record in caplog.records if record.name == "hookloop"]
    assert logged == warning.replace("\n", "\\n")
    assert "no licence" in logged
    assert "hunter2" not in logged
    with pytest.raises(ConfigError, match=r"config: plugin 'hlx' \(hl-act-x 1\.0\): OSError: no licence") as caught:
        Agent(ScriptedProvider(say("x")), config={"plugins": {"hlx": {}}})
    assert "hunter2" not in str(caught.value)
    assert isinstance(caught.value.__cause__, OSError)


def test_a_duplicate_and_one_of_another_contract_fail(distribute: Distribute) -> None:
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
        ("order = ['hla', 'hlb', 'hla']\n", "hookloop.toml:1: order names 'hla' twice; keep one of them"),
        ("order = ['hla', 'hlbb']\n", "hookloop.toml:1: order names an unknown plugin 'hlbb'; did you mean 'hlb'?"),
    ],
)
def test_a_wrong_name_or_option_is_an_error_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    activation = activate(from_file(tmp_path, text))
    assert activation.errors == (words,)
    with pytest.raises(ConfigError, match=r"hookloop\.toml:"):
        activation.check()


def test_a_plugin_that_is_disabled_need_not_be_installed() -> None:
    names = {"prompt_logs": {"enabled": False}, "hl-nowhere-else": {"enabled": False}}
    activation = activate(config_from({"plugins": names}))
    assert why(activation, "hl-nowhere-else") == "disabled at config; not installed"
    (error,) = activation.errors
    assert error == "config: unknown plugin 'prompt_logs'; did you mean 'prompt-log'?"


def test_a_variable_reaches_a_plugin_whose_name_it_cannot_write(distribute: Distribute) -> None:
    points = {"hookloop.plugins": {"hl-My-One": "hl_act_my:Plugin", "hl-my_two": "hl_act_my:Plugin"}}
    distribute("hl-act-my", points, {"hl_act_my": PLUGIN})
    environ = {
        "HOOKLOOP_PLUGINS__HL_MY_ONE__OPTIONS__TOOL": "read",
        "HOOKLOOP_PLUGINS__HL_MY_TWO__ENABLED": "false",
        "HOOKLOOP_PLUGINS__HLA__ENABLED": "false",
    }
    activation = activate(load_config(None, environ, start=Path("/")))
    (active,) = activation.active
    assert (active.name, active.settings.options) == ("hl-My-One", {"tool": "read"})
    assert states(activation) == {"hl-My-One": "on", "hl-my_two": "off", "hla": "off", "hlb": "off", "hlc": "off"}
    variable = "environment variable HOOKLOOP_PLUGINS__HL_MY_ONE__OPTIONS__TOOL"
    assert why(activation, "hl-My-One") == f"named at {variable}"
    wrong = activate(load_config(None, {"HOOKLOOP_PLUGINS__HL_MY_ONE__OPTIONS__TOL": "read"}, start=Path("/")))
    assert wrong.errors[0].startswith(
        "environment variable HOOKLOOP_PLUGINS__HL_MY_ONE__OPTIONS__TOL: plugin 'hl-My-One'"
    )


def test_a_file_writes_names_as_they_are(distribute: Distribute) -> None:
    points = {"hookloop.plugins": {"hl-my-one": "hl_act_my:Plugin"}}
    distribute("hl-act-my", points, {"hl_act_my": PLUGIN})
    (error,) = activate(config_from({"plugins": {"hl_my_one": {}}})).errors
    assert error == "config: plugin 'hl_my_one': is not known; did you mean 'hl-my-one'?"


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
