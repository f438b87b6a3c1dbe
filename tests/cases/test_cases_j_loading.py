"""Cases J10, J11, J13: one bad plugin among good ones. What loads, what is told, what stays whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from going import each_way, go

from hookloop import Agent
from hookloop.config import config_from, load_config
from hookloop.discovery import COMMANDS, PLUGINS, activate, load
from hookloop.testing import ScriptedProvider, say
from hookloop_hookspecs import ConfigError, PluginError, hookimpl, tool

if TYPE_CHECKING:
    from tests.conftest import Distribute, Hookloop

GOOD = """
from hookloop_hookspecs import hookimpl

LOADED = []

class Plugin:
    def __init__(self):
        LOADED.append(self)

    @hookimpl
    def before_round(self):
        return __name__
"""
BAD = {
    "importerror": ("import nothing_of_this_name", "ModuleNotFoundError"),
    "systemexit": ("raise SystemExit(3)", "SystemExit"),
    "assertion": ("assert False, 'broken'", "AssertionError"),
    "syntax": ("def broken(:", "SyntaxError"),
    "recursion": ("def f(): f()\nf()", "RecursionError"),
    "attribute": ("x = 1", "Plugin"),
    "making": ("class Plugin:\n    def __init__(self): raise OSError('no disk')", "no disk"),
    "exiting": ("class Plugin:\n    def __init__(self): raise SystemExit(4)", "SystemExit"),
    "hookless": ("class Plugin: pass", "no hooks"),
    "nothing": ("Plugin = 5", "no class or function"),
}
NAMES = ("hjgood1", *(f"hjbad{kind}" for kind in BAD), "hjgood2")


@pytest.fixture(autouse=True)
def installed(distribute: Distribute) -> None:
    points = {name: f"{name}:Plugin" for name in NAMES}
    texts = {name: GOOD if "good" in name else BAD[name.removeprefix("hjbad")][0] for name in NAMES}
    distribute("hl-case-j", {PLUGINS: points}, texts, version="7.1")


def config(*names: str, **more: Any) -> Any:
    return config_from({"plugins": {name: {} for name in names}, **more})


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("lenient", [True, False])
def test_J10_one_plugin_that_cannot_be_loaded_hides_no_other(kind: str, lenient: bool) -> None:
    bad, words = f"hjbad{kind}", BAD[kind][1]
    activation = activate(config("hjgood1", bad, "hjgood2", strict=False if lenient else None))
    assert [active.name for active in activation.active] == ["hjgood1", "hjgood2"]
    (failed,) = activation.report.failed
    assert (failed.name, failed.distribution, failed.version) == (bad, "hl-case-j", "7.1")
    assert words in failed.why
    assert bad in failed.why
    told = f"config: {failed.why}"
    assert (activation.errors, activation.warnings) == (((), (told,)) if lenient else ((told,), ()))


ODD = """
from hookloop_hookspecs import hookimpl

class Plugin:
    @hookimpl{mark}
    def before_round(self{argument}):
        yield
"""


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("hjoddargument", ODD.format(mark="", argument=", reqest"), "reqest"),
        ("hjoddwrapper", ODD.format(mark="(hookwrapper=True)", argument=""), "wrapper=True"),
    ],
)
def test_J10_what_an_agent_would_refuse_is_reported_as_failed(
    distribute: Distribute, name: str, text: str, words: str
) -> None:
    distribute(f"hl-case-{name}", {PLUGINS: {name: f"{name}:Plugin"}}, {name: text})
    with pytest.raises(ConfigError, match=words):
        Agent(ScriptedProvider(), config=config(name))
    report = activate(config(name)).report.plugin(name)
    assert report is not None
    assert (report.state, words in report.why) == ("failed", True)


@each_way
def test_J10_an_agent_runs_with_the_good_ones_and_strict_raises(way: str) -> None:
    wanted = ("hjgood1", "hjbadimporterror", "hjbadsystemexit", "hjgood2")
    provider = ScriptedProvider(say("ok"))
    with Agent(provider, config=config(*wanted, strict=False)) as agent:
        go(agent, way, "Hello.")
        assert [name for name in wanted if any(f"'{name}'" in text for text in agent.report.warnings)] == [*wanted[1:3]]
        assert {report.name for report in agent.report.failed} == {"hjbadimporterror", "hjbadsystemexit"}
    added = [m.origin.plugin for m in provider.requests[0].messages if m.origin.kind == "plugin"]
    assert added == ["hjgood1", "hjgood2"]
    for strict in (True, None):
        with pytest.raises(ConfigError) as caught:
            Agent(ScriptedProvider(), config=config(*wanted, strict=strict))
        assert "hjbadimporterror" in str(caught.value)
        assert "hjbadsystemexit" in str(caught.value)


def test_J10_with_auto_an_agent_runs_with_the_good_ones() -> None:
    provider = ScriptedProvider(say("ok"))
    with Agent(provider, config={"auto": True, "plugins": {"booking": {"enabled": False}}}) as agent:
        agent.run("Hello.")
        failed = {report.name for report in agent.report.failed if report.name.startswith("hj")}
    assert failed == {f"hjbad{kind}" for kind in BAD}
    added = [m.origin.plugin for m in provider.requests[0].messages if m.origin.kind == "plugin"]
    assert added == ["hjgood1", "hjgood2"]


def test_J10_the_program_goes_on_too(hookloop: Hookloop, monkeypatch: pytest.MonkeyPatch) -> None:
    hookloop.write("[plugins.hjgood1]\n[plugins.hjbadsystemexit]\n[plugins.hjbadsyntax]\n[plugins.hjgood2]\n")
    done = hookloop("plugins")
    assert done.code == 2
    monkeypatch.setenv("HOOKLOOP_STRICT", "false")
    lenient = hookloop("plugins")
    assert (lenient.code, lenient.out) == (0, done.out)
    for words in ("on     1.  hjgood1", "on     2.  hjgood2", "failed     hjbadsystemexit", "failed     hjbadsyntax"):
        assert words in done.out, done.out


def test_J10_a_command_that_cannot_be_loaded_hides_no_other(distribute: Distribute, hookloop: Hookloop) -> None:
    text = "import typer\ndef add(): print('sum')\n"
    distribute(
        "hl-case-j-commands",
        {COMMANDS: {"hjcbad": "hjcbad:run", "hjcadd": "hjcadd:add"}},
        {"hjcbad": "raise SystemExit(5)", "hjcadd": text},
    )
    assert hookloop("hjcadd").out == "sum\n"


@each_way
def test_J11_what_fails_half_way_through_giving_tools_gave_none(way: str) -> None:
    @tool
    def half() -> str:
        """Half."""
        return "half"

    class Half:
        name = "half"

        @hookimpl
        def register_tools(self) -> Any:
            yield half
            raise RuntimeError("half way")

    provider = ScriptedProvider(say("ok"), say("ok"))
    with Agent(provider, plugins=[Half()]) as agent, pytest.raises(PluginError, match="half way"):
        go(agent, way, "Hello.")
    assert provider.requests == []
    with Agent(provider, plugins=[Half()], config={"plugins": {"half": {"on_error": "skip"}}}) as agent:
        outcome = go(agent, way, "Hello.")
    assert provider.requests[0].tools == ()
    assert any("half way" in warning for warning in outcome.warnings)


@each_way
def test_J11_a_toolset_that_fails_to_open_is_no_tool_and_leaves_nothing_open(way: str) -> None:
    class Good:
        def __init__(self) -> None:
            self.log: list[str] = []
            self.tools = ()

        def open(self) -> None:
            self.log.append("open")

        def close(self) -> None:
            self.log.append("close")

    class Bad(Good):
        def open(self) -> None:
            raise OSError("no socket")

    good = Good()

    class Gives:
        name = "gives"

        @hookimpl
        def register_tools(self) -> Any:
            return [good, Bad()]

    with Agent(ScriptedProvider(), plugins=[Gives()]) as agent, pytest.raises(Exception, match="no socket"):
        go(agent, way, "Hello.")
    assert good.log == ["open", "close"]


def test_J11_a_plugin_that_does_not_register_whole_makes_no_agent() -> None:
    class Twice:
        name = "twice"

        @hookimpl
        def before_round(self) -> None: ...

        @hookimpl
        def after_tol(self) -> None: ...

    with pytest.raises(ConfigError, match="after_tol"):
        Agent(ScriptedProvider(), plugins=[Twice()])


def test_J11_loading_twice_loads_once_for_each_agent_and_registers_nothing_twice() -> None:
    for _ in range(2):
        objects, problems = load(PLUGINS, ["hjgood1"])
        assert (list(objects), problems) == (["hjgood1"], [])
    provider = ScriptedProvider(say("ok"))
    with Agent(provider, config=config("hjgood1"), plugins=["hjgood1"]) as agent:
        agent.run("Hello.")
    assert [m.text for m in provider.requests[0].messages] == ["Hello.", "hjgood1"]
    assert len(sys.modules["hjgood1"].LOADED) == 1


def test_J11_the_same_name_given_twice_is_an_error_and_the_same_class_is_not() -> None:
    class Mine:
        @hookimpl
        def before_round(self) -> str:
            return f"I am {id(self)}"

    class Named(Mine):
        name = "mine"

    with pytest.raises(ConfigError, match="two plugins are named 'mine'"):
        Agent(ScriptedProvider(), plugins=[Named(), Named()])
    both, provider = [Mine(), Mine()], ScriptedProvider(say("ok"))
    with Agent(provider, plugins=both) as agent:
        agent.run("Hello.")
    assert [m.text for m in provider.requests[0].messages[1:]] == [f"I am {id(one)}" for one in both]


@pytest.mark.parametrize("swap", [False, True])
def test_J13_a_bad_entry_point_hides_none_of_its_own_distribution(swap: bool) -> None:
    names = ["hjbadattribute", "hjgood1", "hjbadsyntax", "hjgood2"]
    objects, problems = load(PLUGINS, names[::-1] if swap else names)
    assert sorted(objects) == ["hjgood1", "hjgood2"]
    assert sorted(problem.name for problem in problems) == ["hjbadattribute", "hjbadsyntax"]
    assert {(problem.distribution, problem.version) for problem in problems} == {("hl-case-j", "7.1")}


def test_J13_with_auto_all_that_can_be_loaded_are_on(tmp_path: Path) -> None:
    file = tmp_path / "hookloop.toml"
    file.write_text("auto = true\n[plugins.trace]\nenabled = false\n", "utf-8")
    activation = activate(load_config(file, {}))
    on = [active.name for active in activation.active if active.name.startswith("hj")]
    assert on == ["hjgood1", "hjgood2"]
    failed = {report.name for report in activation.report.failed if report.name.startswith("hj")}
    assert failed == {f"hjbad{kind}" for kind in BAD}
