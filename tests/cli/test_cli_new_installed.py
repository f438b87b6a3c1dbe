"""What `hookloop new` makes, installed with `pip install -e` into an environment of its own, listed, checked, and used."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from environments import CORE, Room, linked, wheels
from scaffolded import endpoint

from hookloop.testing import call, say

MADE = {"lint-feedback": "plugin", "file-tools": "plugin", "asks": "provider", "keeps": "memory"}
LISTED = {"lint-feedback": "plugins", "file-tools": "plugins", "asks": "providers", "keeps": "memories"}
TOOLS = '''
from hookloop_hookspecs import hookimpl, tool

@tool
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"

class FileTools:
    @hookimpl
    def register_tools(self):
        return [edit]
'''
SETTINGS = """
model = "asks:small"
memory = ["keeps:chats"]
[provider]
base_url = "{url}"
[plugins.file-tools]
"""
NOTE = "lint-feedback: check what edit did."


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Room:
    """An environment of the core and of all kinds that `hookloop new` makes, and the folder in which they were made."""
    built = wheels(CORE, tmp_path_factory.mktemp("wheels"))
    room = Room(linked(tmp_path_factory.mktemp("environment"), built), tmp_path_factory.mktemp("shelf"))
    for name, kind in MADE.items():
        room("hookloop", "new", kind, name)
    folders = [f"--editable={room.folder / f'hookloop-{name}'}" for name in MADE]
    room.environment.pip("install", "--no-index", "--no-deps", "--no-build-isolation", *folders)
    return room


@pytest.fixture
def room(shelf: Room, tmp_path: Path) -> Room:
    return Room(shelf.environment, tmp_path)


@pytest.fixture
def tools(shelf: Room) -> None:
    """Gives the model a tool: what is installed editable is what stands in its folder."""
    (shelf.folder / "hookloop-file-tools/src/hookloop_file_tools/__init__.py").write_text(TOOLS, "utf-8")


def told(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Role and text of all that the model was sent."""
    return [(message["role"], message["text"]) for message in body["messages"]]


def test_all_kinds_are_listed(room: Room) -> None:
    data = json.loads(room("hookloop", "plugins", "--json"))
    for name, group in LISTED.items():
        (found,) = [one for one in data[group] if one["name"] == name]
        state = "off" if group == "plugins" else "installed"
        assert (found["state"], found["distribution"], found["version"]) == (state, f"hookloop-{name}", "0.1.0")
    assert data["errors"] == []


@pytest.mark.parametrize("target", ["lint-feedback", "asks", "keeps:try-out"])
def test_all_kinds_pass_their_checks(room: Room, target: str) -> None:
    report = room("hookloop", "check", target)
    assert "pass  loads" in report
    assert "fail  " not in report


def test_a_folder_is_checked_as_what_is_installed_from_it(shelf: Room) -> None:
    assert "pass  works" in shelf("hookloop", "check", "hookloop-lint-feedback")


@pytest.mark.usefixtures("tools")
def test_chat_uses_the_first_plugin_and_the_others(room: Room) -> None:
    with endpoint() as server:
        server.play(call("edit", {"path": "a.py"}, id="e1"), say("It is done."), say("I edited a.py."))
        room.configure(SETTINGS.format(url=server.url))
        room("hookloop", "plugins", "enable", "lint-feedback")
        why = room("hookloop", "plugins", "why", "lint-feedback")
        shown = room("hookloop", "chat", "-C", "c", stdin="Edit a.py\n/quit\n")
        room("hookloop", "chat", "-C", "c", stdin="What did you do?\n")
        first, second, third = (told(request.body) for request in server.requests)
    assert "on     2.  lint-feedback  hookloop-lint-feedback 0.1.0\n" in why
    assert NOTE in shown
    assert "It is done." in shown
    assert first == [("user", "Edit a.py")]
    assert second == [*first, ("assistant", ""), ("tool", "edited a.py"), ("user", NOTE)]
    assert third == [*second, ("assistant", "It is done."), ("user", "What did you do?")]


@pytest.mark.usefixtures("tools")
def test_switched_off_it_says_nothing(room: Room) -> None:
    with endpoint() as server:
        server.play(call("edit", {"path": "a.py"}, id="e1"), say("It is done."))
        room.configure(SETTINGS.format(url=server.url))
        room("hookloop", "plugins", "enable", "lint-feedback")
        room("hookloop", "plugins", "disable", "lint-feedback")
        shown = room("hookloop", "chat", stdin="Edit a.py\n")
        assert told(server.requests[1].body)[-1] == ("tool", "edited a.py")
    assert "lint-feedback" not in shown
