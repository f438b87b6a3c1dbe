"""Strangers' distributions, from their wheels, with wheels of ours: found, configured, switched, used, broken.

All of it is shown in an environment that takes other packages from the workshop's, and in long runs in a fresh one too.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from environments import CORE, STRANGE, Environment, Room, fresh, linked, wheels
from strangers import parrot_server

from hookloop.testing import say

TURN = """
import json, sys
from hookloop import Agent, tool
from hookloop.testing import ScriptedProvider, call, say

@tool
def edit(path: str) -> str:
    "Edit a file."
    return f"edited {path}"

provider = ScriptedProvider(call("edit", {"path": "a"}, id="c1"), say("done"))
with Agent.from_config("hookloop.toml", model=provider, tools=[edit]) as agent:
    agent.run("Edit.")
print(json.dumps({
    "texts": [message.text for message in provider.requests[1].messages],
    "imported": "acme_tally" in sys.modules,
}))
"""
TOGETHER = """
model = "parrot:p1"
memory = ["drawer:chats.db"]
[provider]
base_url = "{url}"
[plugins.tally]
"""
NAMES = {"plugins": "tally", "memories": "drawer", "providers": "parrot"}


@pytest.fixture(scope="module", params=["linked", pytest.param("fresh", marks=pytest.mark.soak)])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Environment:
    """An environment with wheels of the contract, of the core, and of the three strangers."""
    build: Callable[..., Environment] = {"linked": linked, "fresh": fresh}[request.param]
    return build(tmp_path_factory.mktemp("environment"), wheels((*CORE, *STRANGE), tmp_path_factory.mktemp("wheels")))


@pytest.fixture
def room(environment: Environment, tmp_path: Path) -> Room:
    return Room(environment, tmp_path)


@pytest.fixture
def spoilt(environment: Environment) -> Iterator[Callable[..., None]]:
    """A function that changes the installed plugin's source or metadata; undone afterwards."""
    kept: dict[Path, str] = {}

    def spoil(pattern: str, replacement: str, where: str = "acme_tally/__init__.py") -> None:
        file = next(environment.site.glob(where))
        kept.setdefault(file, file.read_text("utf-8"))
        text = re.sub(pattern, replacement, file.read_text("utf-8"), count=1)
        assert text != file.read_text("utf-8")
        rewritten(file, text)

    yield spoil
    for file, text in kept.items():
        rewritten(file, text)


def rewritten(file: Path, text: str) -> None:
    """Change a file, and drop what Python compiled of it: it goes by size and second alone, and both may be the same."""
    file.write_text(text, "utf-8")
    for compiled in file.parent.glob("__pycache__/*.pyc"):
        compiled.unlink()


def turn(room: Room) -> dict[str, object]:
    """What came of a turn of an agent that is made from the configuration."""
    said: dict[str, object] = json.loads(room("python", "-c", TURN))
    return said


def test_all_are_found(room: Room) -> None:
    told = json.loads(room("hookloop", "plugins", "--json"))
    for group, name in NAMES.items():
        (found,) = [one for one in told[group] if one["name"] == name]
        assert (found["distribution"], found["version"]) == (f"acme-{name}", "2.1")
    states = [one["state"] for group in ("memories", "providers") for one in told[group]]
    assert states == ["installed"] * 3
    assert told["errors"] == []


@pytest.mark.parametrize(
    ("target", "lines"),
    [
        ("tally", ["pass  is_a_plugin", "pass  tells_its_time"]),
        ("drawer:chats.db", ["pass  texts_come_back", "pass  one_writer_wins", "pass  reopened_is_the_same"]),
        ("parrot", ["pass  streams", "skip  keeps the contract", "an API that the strict server does not know"]),
    ],
)
def test_they_are_checked(room: Room, target: str, lines: list[str]) -> None:
    report = room("hookloop", "check", target)
    assert [line for line in lines if line not in report] == []
    assert "fail  " not in report


def test_all_take_part_in_a_conversation_of_two_processes(room: Room) -> None:
    with parrot_server() as server:
        server.play(say("Hello Ada."), say("You are Ada."))
        room.configure(TOGETHER.format(url=server.url))
        assert "Hello Ada." in room("hookloop", "run", "-C", "c", "I am Ada.")
        assert "You are Ada." in room("hookloop", "run", "-C", "c", "Who am I?")
        talk = server.requests[1].body["talk"]
    assert [(one["who"], one["text"]) for one in talk] == [
        ("user", "I am Ada."),
        ("assistant", "Hello Ada."),
        ("user", "Who am I?"),
    ]
    assert "on     1.  tally" in room("hookloop", "plugins")


def test_the_plugin_is_off_until_it_is_named(room: Room) -> None:
    tally = room.plugins()["tally"]
    assert (tally["state"], tally["distribution"], tally["version"]) == ("off", "acme-tally", "2.1")
    assert tally["why"] == "installed, but not named; auto is false"
    room.configure("[plugins.tally]\n")
    tally = room.plugins()["tally"]
    assert (tally["state"], tally["position"], tally["why"]) == ("on", 1, "named at hookloop.toml:1")


def test_it_is_configured(room: Room) -> None:
    room.configure('[plugins.tally]\noptions = { word = "so far" }\n')
    tally = room.plugins()["tally"]
    assert (tally["state"], tally["position"], tally["hooks"]) == ("on", 1, ["before_tool", "next_instructions"])
    assert turn(room) == {"texts": ["Edit.", "", "edited a", "so far: 1 calls"], "imported": True}
    room.configure('[plugins.tally]\noptions = { forbidden = ["edit"] }\n')
    assert turn(room)["texts"] == ["Edit.", "", "denied: edit is forbidden", "tally: 1 calls"]


def test_a_wrong_option_is_told_with_its_place(room: Room) -> None:
    room.configure('[plugins.tally]\noptions = { wrod = "so far" }\n')
    found = room.plugins(code=2)
    assert found["tally"]["state"] == "failed"
    (error,) = found["errors"]
    assert error.startswith("hookloop.toml:2")
    assert "'word'" in error


def test_switched_off_it_takes_part_in_no_turn(room: Room) -> None:
    room.configure("auto = true\n[plugins.tally]\nenabled = false\n")
    tally = room.plugins()["tally"]
    assert (tally["state"], tally["why"]) == ("off", "disabled at hookloop.toml:3")
    assert turn(room) == {"texts": ["Edit.", "", "edited a"], "imported": False}


def test_switched_off_it_is_not_imported_by_the_program(room: Room, spoilt: Callable[..., None]) -> None:
    spoilt(r"\Z", '\nopen("imported", "w").close()\n')
    room.configure("auto = true\n[plugins.tally]\nenabled = false\n")
    assert room.plugins()["tally"]["state"] == "off"
    assert not (room.folder / "imported").exists()
    room.configure("auto = true\n")
    assert room.plugins()["tally"]["state"] == "on"
    assert (room.folder / "imported").exists()


def test_it_is_switched_on_and_off_by_the_program(room: Room) -> None:
    room.configure("# my settings\n")
    room("hookloop", "plugins", "enable", "tally")
    assert room.plugins()["tally"]["state"] == "on"
    room("hookloop", "plugins", "disable", "tally")
    assert room.plugins()["tally"]["state"] == "off"
    assert "# my settings" in (room.folder / "hookloop.toml").read_text("utf-8")


def test_one_hook_of_it_is_switched_off(room: Room) -> None:
    room.configure('[plugins.tally]\nhooks.next_instructions = false\noptions = { forbidden = ["edit"] }\n')
    tally = room.plugins()["tally"]
    assert (tally["state"], tally["switched_off"]) == ("on", ["next_instructions"])
    assert turn(room)["texts"] == ["Edit.", "", "denied: edit is forbidden"]


@pytest.mark.parametrize("order", [["trace", "tally"], ["tally", "trace"]])
def test_it_is_put_in_order(room: Room, order: list[str]) -> None:
    room.configure(f"order = {json.dumps(order)}\n[plugins.trace]\n[plugins.tally]\nhooks.before_tool = false\n")
    found = room.plugins()
    assert [found[name]["position"] for name in order] == [1, 2]
    assert found["tally"]["switched_off"] == ["before_tool"]


BROKEN = {
    "it does not parse": (r"class Tally:", "class Tally", "SyntaxError"),
    "it imports what is not there": (
        r"from pydantic",
        "from pydantik",
        "ModuleNotFoundError: No module named 'pydantik'",
    ),
    "it ends the program": (
        r"class Tally:",
        "raise SystemExit(1)\n\nclass Tally:",
        "tried to end the program (SystemExit: 1)",
    ),
    "its class has another name": (r"class Tally:", "class Tallly:", "has no attribute 'Tally'"),
    "it cannot be made": (r"self.options = options.*", "raise OSError('no disk')", "cannot be made: OSError: no disk"),
    "it marks no hook": (r"(?s)    @hookimpl\n(.*)    @hookimpl\n", r"\1", "has no hooks"),
    "it misspells a hook": (r"def before_tool", "def before_tol", "did you mean 'before_tool'?"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_it_is_told_how(room: Room, spoilt: Callable[..., None], what: str) -> None:
    pattern, replacement, words = BROKEN[what]
    spoilt(pattern, replacement)
    room.configure("[plugins.trace]\n[plugins.tally]\n")
    found = room.plugins(code=2)
    tally = found["tally"]
    assert (tally["state"], tally["distribution"], tally["version"]) == ("failed", "acme-tally", "2.1")
    assert words in tally["why"]
    assert found["trace"]["state"] == "on", "another plugin is on all the same"
    assert found["errors"] == [f"hookloop.toml:2: {tally['why']}"]
    room.configure("strict = false\n[plugins.tally]\n")
    assert room.plugins()["errors"] == []


@pytest.mark.soak
@pytest.mark.parametrize("what", BROKEN)
def test_broken_it_keeps_an_agent_from_being_made(room: Room, spoilt: Callable[..., None], what: str) -> None:
    pattern, replacement, words = BROKEN[what]
    spoilt(pattern, replacement)
    room.configure("[plugins.tally]\n")
    told = room(
        "python", "-c", f"try:\n  exec({TURN!r})\nexcept Exception as error: print(type(error).__name__, error)"
    )
    assert told.startswith("ConfigError ")
    assert "tally" in told
    assert words in told


def test_it_needs_another_contract(room: Room, spoilt: Callable[..., None]) -> None:
    spoilt(r"hookloop-hookspecs==0\.1\.0", "hookloop-hookspecs>=9", "acme_tally-*.dist-info/METADATA")
    room.configure("[plugins.tally]\n")
    tally = room.plugins(code=2)["tally"]
    assert tally["state"] == "failed"
    assert tally["why"] == "plugin 'tally' (acme-tally 2.1): needs hookloop-hookspecs>=9; 0.1.0 is installed"


def test_two_distributions_claim_its_name(room: Room) -> None:
    other = room.environment.site / "acme_other-1.0.dist-info"
    other.mkdir()
    try:
        (other / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-other\nVersion: 1.0\n", "utf-8")
        (other / "entry_points.txt").write_text("[hookloop.plugins]\ntally = acme_other:Tally\n", "utf-8")
        room.configure("[plugins.tally]\n")
        tally = room.plugins(code=2)["tally"]
    finally:
        shutil.rmtree(other)
    assert tally["state"] == "failed"
    assert "acme-other 1.0" in tally["why"]
    assert "acme-tally 2.1" in tally["why"]


@pytest.mark.soak
def test_the_kit_looks_at_it_from_the_wheel(room: Room) -> None:
    text = "from acme_tally import Tally; from hookloop.testing import check_plugin; print(check_plugin(Tally).ok)"
    assert room("python", "-c", text) == "True\n"
