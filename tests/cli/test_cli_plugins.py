"""`hookloop plugins`: the list, the reasons, and switching in the file."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Distribute, Hookloop

PLUGIN = """
from hookloop_hookspecs import hookimpl

class Plugin:
    @hookimpl
    def after_tool(self, call): ...

    @hookimpl
    def before_round(self): ...

    @hookimpl
    def next_instructions(self): ...

    @hookimpl
    def review_answer(self): ...
"""
LONG = "hl-a-plugin-with-a-very-long-name-that-fills-nearly-a-whole-line"


@pytest.fixture(autouse=True)
def installed(distribute: Distribute) -> None:
    names = {"hlone": "hl_cli_one:Plugin", LONG: "hl_cli_one:Plugin", "hlbad": "hl_cli_bad:Plugin"}
    distribute("hl-cli", {"hookloop.plugins": names}, {"hl_cli_one": PLUGIN, "hl_cli_bad": "raise ValueError('odd')"})


def test_the_list_says_the_truth(hookloop: Hookloop) -> None:
    hookloop.write("strict = false\n[plugins.hlone]\nhooks.before_round = false\n[plugins.hlbad]\n")
    done = hookloop("plugins")
    assert done.code == 0
    lines = [line for line in done.out.splitlines() if line.strip()]
    assert [re.sub("(?<=hlone)  +|(?<=hlbad)  +", "  ", line) for line in lines[:7]] == [
        "plugins",
        "on     1.  hlone  hl-cli 1.0",
        "           hooks: before_round (off), after_tool, next_instructions,",
        "                  review_answer",
        "           named at hookloop.toml:2",
        "failed     hlbad  hl-cli 1.0",
        "           ValueError: odd",
    ]
    at = lines.index(f"off        {LONG}")
    assert lines[at + 1 : at + 3] == [
        "           from: hl-cli 1.0",
        "           installed, but not named; auto is false",
    ]


@pytest.mark.parametrize("width", [80, 140])
@pytest.mark.parametrize("colour", [False, True])
def test_no_line_is_wider_than_the_terminal_and_no_name_is_cut(
    hookloop: Hookloop, monkeypatch: pytest.MonkeyPatch, width: int, colour: bool
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("FORCE_COLOR" if colour else "NO_COLOR", "1")
    hookloop.write(f"[plugins.hlbad]\n[plugins.{LONG}]\n")
    done = hookloop("plugins")
    assert max(map(len, done.plain.splitlines())) <= width
    for name in ("hlone", "hlbad", LONG, "next_instructions"):
        assert name in done.plain
    assert ("\x1b[" in done.out) is colour


def test_the_list_as_json(hookloop: Hookloop) -> None:
    hookloop.write("[plugins.hlone]\n")
    data = json.loads(hookloop("plugins", "list", "--json").out)
    states = {plugin["name"]: (plugin["state"], plugin["position"]) for plugin in data["plugins"]}
    assert (states["hlone"], states["hlbad"]) == (("on", 1), ("off", None))


def test_an_unknown_plugin_in_the_file_ends_with_two_and_the_rest_is_listed(hookloop: Hookloop) -> None:
    hookloop.write("[plugins.hlnoe]\n[plugins.hlone]\n")
    done = hookloop("plugins")
    assert done.code == 2
    assert "on     1.  hlone" in done.out
    assert " ".join(done.out.split()).count("hookloop.toml:1: plugin 'hlnoe': is not known; did you mean 'hlone'?") == 1


def test_why_tells_of_one(hookloop: Hookloop) -> None:
    done = hookloop("plugins", "why", "hlone")
    assert done.out.splitlines()[1].strip() == "installed, but not named; auto is false"
    assert "hl_cli_one" not in sys.modules
    wrong = hookloop("plugins", "why", "hloen")
    assert (wrong.code, wrong.err) == (2, "error: plugin 'hloen' is not known; did you mean 'hlone'?\n")


FILE = """# my agent
model = "a:b"  # the model

[plugins.hlone]  # mine
hooks.after_tool = false  # noisy

[limits]
rounds = 3
"""


def test_switching_keeps_everything_else(hookloop: Hookloop) -> None:
    hookloop.write(FILE)
    assert hookloop("plugins", "disable", "hlone").code == 0
    assert hookloop("plugins", "disable", "hlone", "--hook", "before_round").code == 0
    assert hookloop("plugins", "enable", "hlone", "--hook", "after_tool").code == 0
    text = hookloop.read()
    for comment in ("# my agent", "# the model", "# mine", "# noisy"):
        assert comment in text
    hooks = {"after_tool": True, "before_round": False}
    assert tomllib.loads(text) == {
        "model": "a:b",
        "plugins": {"hlone": {"hooks": hooks, "enabled": False}},
        "limits": {"rounds": 3},
    }
    assert hookloop("plugins", "enable", "hlone").out == "hlone is now on in " + str(hookloop.file) + "\n"
    assert tomllib.loads(hookloop.read())["plugins"]["hlone"]["enabled"] is True


def test_switching_without_a_file_makes_one(hookloop: Hookloop) -> None:
    assert hookloop("plugins", "enable", "hlone").code == 0
    assert tomllib.loads(hookloop.read()) == {"plugins": {"hlone": {"enabled": True}}}
    assert "on     1.  hlone" in hookloop("plugins").out


def test_a_hook_of_a_plugin_that_is_off_is_switched_without_turning_it_on(hookloop: Hookloop) -> None:
    hookloop("plugins", "disable", "hlone", "--hook", "after_tool")
    assert tomllib.loads(hookloop.read()) == {"plugins": {"hlone": {"enabled": False, "hooks": {"after_tool": False}}}}


def test_what_comes_before_the_file_is_told(hookloop: Hookloop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOKLOOP_PLUGINS__HLONE__ENABLED", "true")
    done = hookloop("plugins", "disable", "hlone")
    assert "but environment variable HOOKLOOP_PLUGINS__HLONE__ENABLED says otherwise" in " ".join(done.err.split())
    assert hookloop("plugins", "enable", "hlone").err == ""


def test_switching_on_what_cannot_be_loaded_says_so(hookloop: Hookloop) -> None:
    done = hookloop("plugins", "enable", "hlbad")
    assert done.code == 0
    assert done.out.splitlines()[1:] == ["failed     hlbad  hl-cli 1.0", "           ValueError: odd"]


def test_strict_makes_a_broken_plugin_an_error(hookloop: Hookloop) -> None:
    hookloop.write("strict = true\n[plugins.hlbad]\n")
    done = hookloop("plugins")
    assert (done.code, done.out.count("ValueError: odd")) == (2, 1)


PART = """
from pydantic import BaseModel
from hookloop.memory import InProcessMemory

class Strict(BaseModel, extra="forbid"):
    size: int = 1

class Store(InProcessMemory):
    Options = Strict

    def __init__(self, url, options):
        raise OSError("it is not made to be listed")
"""


@pytest.fixture
def parts(distribute: Distribute) -> None:
    points = {
        "hookloop.memory": {"hlstore": "hl_part:Store", "hlgone": "hl_part_gone:Store", "hltwice": "hl_part:Store"},
        "hookloop.providers": {"hlmodel": "hl_part:Store", "hlidle": "hl_part_idle:Idle", "hlodd": "hl_part:Store()"},
    }
    distribute("hl-part", points, {"hl_part": PART, "hl_part_idle": "raise SystemExit('imported')"})
    distribute("hl-twin", {"hookloop.memory": {"hltwice": "hl_part:Store"}}, {})
    new = {"hookloop.providers": {"hlnew": "hl_part:Store"}}
    distribute("hl-new", new, {}, requires=["hookloop-hookspecs>=99"])


def part_of(hookloop: Hookloop, kind: str, code: int = 0) -> dict[str, dict[str, str]]:
    done = hookloop("plugins", "--json")
    assert done.code == code, done.out
    return {one["name"]: one for one in json.loads(done.out)[kind] if one["name"].startswith("hl")}


@pytest.mark.usefixtures("parts")
def test_memories_and_providers_are_listed_by_their_metadata_alone(hookloop: Hookloop) -> None:
    stores, models = part_of(hookloop, "memories"), part_of(hookloop, "providers")
    assert {name: one["state"] for name, one in stores.items()} == {
        **{"hlgone": "installed", "hlstore": "installed", "hltwice": "failed"}
    }
    assert "is claimed by " in stores["hltwice"]["why"]
    assert {name: one["state"] for name, one in models.items()} == {
        **{"hlidle": "installed", "hlmodel": "installed", "hlnew": "failed", "hlodd": "failed"}
    }
    assert models["hlnew"]["why"].endswith("needs hookloop-hookspecs>=99; 0.1.0 is installed")
    assert "must be written like package.module:Class" in models["hlodd"]["why"]
    assert (models["hlidle"]["distribution"], models["hlidle"]["version"]) == ("hl-part", "1.0")
    assert not {"hl_part", "hl_part_idle"} & set(sys.modules)


@pytest.mark.usefixtures("parts")
def test_what_the_configuration_uses_is_loaded_and_not_made(hookloop: Hookloop) -> None:
    hookloop.write("model = 'hlmodel:m'\nmemory = ['hlstore://u:s3cret@h']\n")
    stores, models = part_of(hookloop, "memories"), part_of(hookloop, "providers")
    assert (stores["hlstore"]["state"], stores["hlstore"]["why"]) == ("used", "hlstore://u:***@h at hookloop.toml:2")
    assert (models["hlmodel"]["state"], models["hlmodel"]["why"]) == ("used", "hlmodel:m at hookloop.toml:1")
    assert models["hlidle"]["state"] == "installed"
    assert "used       hlstore" in hookloop("plugins", "why", "hlstore").out


BROKEN_PARTS = [
    ("memory = 'hlgone://x'", "memories", "hlgone", "hookloop.toml:1: memory scheme 'hlgone' (hl-part 1.0): ModuleNot"),
    ("memory = 'hltwice:'", "memories", "hltwice", "hookloop.toml:1: memory scheme 'hltwice': is claimed by "),
    ("memory = 'hlstor:'", "memories", "hlstor", "hookloop.toml:1: memory scheme 'hlstor': is not known; did you mean"),
    ("memory = 'hl-no-url'", "memories", "hl-no-url", "hookloop.toml:1: memory 'hl-no-url' is no URL"),
    (
        "model = 'hlidle:m'",
        "providers",
        "hlidle",
        "hookloop.toml:1: provider prefix 'hlidle' (hl-part 1.0): its module",
    ),
    ("model = 'hl-no-prefix'", "providers", "hl-no-prefix", "hookloop.toml:1: model 'hl-no-prefix' has no provider"),
    (
        "model = 'hlmodel:m'\n[provider]\nsiz = 3",
        *("providers", "hlmodel", "hookloop.toml:3: provider 'hlmodel': unknown option 'siz'; did you mean 'size'?"),
    ),
    (
        "[[memory]]\nurl = 'hlstore:'\noptions = { siz = 3 }",
        *("memories", "hlstore", "hookloop.toml:3: memory 'hlstore:': unknown option 'siz'; did you mean 'size'?"),
    ),
]


@pytest.mark.usefixtures("parts")
@pytest.mark.parametrize(("toml", "kind", "name", "words"), BROKEN_PARTS)
def test_what_the_configuration_uses_and_is_broken_is_an_error(
    hookloop: Hookloop, toml: str, kind: str, name: str, words: str
) -> None:
    hookloop.write(toml + "\n")
    found = part_of(hookloop, kind, code=2)[name]
    assert found["state"] == "failed"
    assert found["why"].startswith(words)
    assert found["why"] in json.loads(hookloop("plugins", "--json").out)["errors"]


def test_switching_in_pyproject(hookloop: Hookloop) -> None:
    file = hookloop.write("[project]\nname = 'x'\n\n[tool.hookloop]\nmodel = 'a:b'\n\n[tool.z]\n", "pyproject.toml")
    hookloop("plugins", "enable", "hlone")
    data = tomllib.loads(file.read_text("utf-8"))
    assert data["tool"] == {"hookloop": {"model": "a:b", "plugins": {"hlone": {"enabled": True}}}, "z": {}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["enable", "hloen"], "plugin 'hloen' is not known; did you mean 'hlone'?"),
        (["disable", "hlone", "--hook", "after_tol"], "unknown hook 'after_tol'; did you mean 'after_tool'?"),
    ],
)
def test_a_wrong_name_changes_nothing(hookloop: Hookloop, arguments: list[str], words: str) -> None:
    hookloop.write(FILE)
    done = hookloop("plugins", *arguments)
    assert (done.code, done.err) == (2, f"error: {words}\n")
    assert hookloop.read() == FILE
