"""`hookloop check`: what an author is told about a plugin, a memory, a provider."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Distribute, Hookloop

PARTS = """
from pydantic import BaseModel
from hookloop.memory import InProcessMemory
from hookloop_hookspecs import hookimpl

class Good:
    @hookimpl
    def after_tool(self): ...

class Loose:
    class Options(BaseModel):
        tool: str = ""

    def __init__(self, options): ...

    @hookimpl
    def after_tool(self): ...

class Silent:
    pass

class Needs:
    class Options(BaseModel, extra="forbid"):
        what: str

    def __init__(self, options): ...

    @hookimpl
    def after_tool(self): ...

class Meddles:
    @hookimpl
    def on_event(self, event):
        return 3

class Forgets(InProcessMemory):
    @hookimpl
    def load_memory(self, conversation, query):
        return None

class Mute:
    def __init__(self, model): ...
"""


@pytest.fixture(autouse=True)
def installed(distribute: Distribute) -> None:
    names = {"hlgood": "hl_chk:Good", "hlloose": "hl_chk:Loose", "hlsilent": "hl_chk:Silent", "hlgone": "hl_gone:X"}
    names |= {"hlneeds": "hl_chk:Needs", "hlmeddles": "hl_chk:Meddles"}
    memories, providers = {"hlforgets": "hl_chk:Forgets"}, {"hlmute": "hl_chk:Mute"}
    groups = {"hookloop.plugins": names, "hookloop.memory": memories, "hookloop.providers": providers}
    distribute("hl-chk", groups, {"hl_chk": PARTS})


@pytest.mark.parametrize(
    ("target", "code", "lines"),
    [
        ("hlgood", 0, ["pass  is_a_plugin", "pass  leaves_its_arguments_alone"]),
        ("hlloose", 1, ["fail  options are strict", "- a misspelt option would be ignored"]),
        ("hlsilent", 1, ["fail  is_a_plugin"]),
        ("hlneeds", 1, ["fail  is_a_plugin", "what: is missing"]),
        ("hlmeddles", 1, ["fail  returns_what_it_may"]),
        ("hlgone", 1, ["fail  loads", "ModuleNotFoundError"]),
        ("hlmute", 1, ["fail  streams", "neither stream nor astream"]),
        ("hlforgets", 0, ["skip  keeps what it is given"]),
        ("memory:", 0, ["pass  texts_come_back", "pass  one_writer_wins"]),
        ("hlforgets:", 1, ["fail  texts_come_back"]),
    ],
)
def test_it_says_what_holds_and_what_does_not(hookloop: Hookloop, target: str, code: int, lines: list[str]) -> None:
    done = hookloop("check", target)
    assert done.code == code, done.out
    for line in lines:
        assert line in done.out


def test_the_report_as_json(hookloop: Hookloop) -> None:
    data = json.loads(hookloop("check", "hlsilent", "--json").out)
    assert [(line["check"], line["status"]) for line in data[:3]] == [
        ("loads", "pass"),
        ("options are strict", "skip"),
        ("is_a_plugin", "fail"),
    ]


def test_configured_options_are_used(hookloop: Hookloop) -> None:
    hookloop.write("[plugins.hlneeds]\noptions = { what = 'x' }\n")
    assert "pass  is_a_plugin" in hookloop("check", "hlneeds").out


def test_a_folder_is_checked_by_its_entry_points(hookloop: Hookloop) -> None:
    hookloop("new", "plugin", "hlfresh")
    done = hookloop("check", "hookloop-hlfresh")
    assert (done.code, done.err) == (
        2,
        "error: plugin 'hlfresh' of hookloop-hlfresh is not installed; pip install -e hookloop-hlfresh\n",
    )
    folder = hookloop.file.parent / "hookloop-hlfresh"
    project = folder / "pyproject.toml"
    project.write_text(project.read_text("utf-8").replace("hlfresh =", "hlgood ="), "utf-8")
    assert "pass  is_a_plugin" in hookloop("check", "hookloop-hlfresh").out


def test_an_unknown_name_gets_the_nearest(hookloop: Hookloop) -> None:
    done = hookloop("check", "hlgod")
    assert (done.code, done.err) == (
        2,
        "error: no plugin, memory or provider is named 'hlgod'; did you mean 'hlgood'?\n",
    )
