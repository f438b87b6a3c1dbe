"""A stranger's plugin, from its wheel in a fresh environment with wheels of ours: found, configured, switched, broken."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
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


@dataclass
class Fresh:
    """A fresh environment, and an empty folder to work in."""

    environment: Path
    folder: Path

    def __call__(self, *command: str, code: int = 0) -> str:
        """Run a program of the environment; its output."""
        program = str(self.environment / "bin" / command[0])
        done = subprocess.run([program, *command[1:]], cwd=self.folder, capture_output=True, text=True, timeout=600)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def configure(self, text: str) -> None:
        """Write the configuration."""
        (self.folder / "hookloop.toml").write_text(text, "utf-8")

    def plugins(self, code: int = 0) -> dict[str, Any]:
        """What `hookloop plugins` says, by name; its errors under "errors"."""
        data = json.loads(self("hookloop", "plugins", "--json", code=code))
        return {**{one["name"]: one for one in data["plugins"]}, "errors": data["errors"]}

    def turn(self) -> dict[str, Any]:
        """A turn of an agent that is made from the configuration."""
        said: dict[str, Any] = json.loads(self("python", "-c", TURN))
        return said

    @property
    def site(self) -> Path:
        """Where the packages are."""
        return next(self.environment.glob("lib/python*/site-packages"))


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh environment, with wheels of the contract, the core and the stranger's plugin."""
    wheels, place = tmp_path_factory.mktemp("wheels"), tmp_path_factory.mktemp("fresh") / "venv"
    sources = [ROOT / "hookspecs", ROOT / "core", ROOT / "tests" / "stranger" / "tally"]
    copies = [shutil.copytree(path, tmp_path_factory.mktemp("source") / path.name) for path in sources]
    run = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", str(wheels), *map(str, copies)]
    subprocess.run(run, check=True, timeout=600)
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True, timeout=600)
    found = sorted(map(str, wheels.glob("*.whl")))
    assert len(found) == 3
    subprocess.run([str(place / "bin" / "python"), "-m", "pip", "install", "-q", *found], check=True, timeout=600)
    return place


@pytest.fixture
def fresh(environment: Path, tmp_path: Path) -> Fresh:
    return Fresh(environment, tmp_path)


@pytest.fixture
def spoilt(fresh: Fresh) -> Iterator[Callable[[str, str], None]]:
    """A function that changes the installed plugin's source or metadata; undone afterwards."""
    kept: dict[Path, str] = {}

    def spoil(pattern: str, replacement: str, where: str = "acme_tally/__init__.py") -> None:
        file = next(fresh.site.glob(where))
        kept.setdefault(file, file.read_text("utf-8"))
        text = re.sub(pattern, replacement, file.read_text("utf-8"), count=1)
        assert text != file.read_text("utf-8")
        file.write_text(text, "utf-8")

    yield spoil
    for file, text in kept.items():
        file.write_text(text, "utf-8")


def test_it_is_found_and_off_until_it_is_named(fresh: Fresh) -> None:
    tally = fresh.plugins()["tally"]
    assert (tally["state"], tally["distribution"], tally["version"]) == ("off", "acme-tally", "2.1")
    assert tally["why"] == "installed, but not named; auto is false"
    assert fresh.plugins()["errors"] == []


def test_it_is_configured(fresh: Fresh) -> None:
    fresh.configure('[plugins.tally]\noptions = { word = "so far" }\n')
    tally = fresh.plugins()["tally"]
    assert (tally["state"], tally["position"], tally["hooks"]) == ("on", 1, ["before_tool", "next_instructions"])
    assert fresh.turn() == {"texts": ["Edit.", "", "edited a", "so far: 1 calls"], "imported": True}
    fresh.configure('[plugins.tally]\noptions = { forbidden = ["edit"] }\n')
    assert fresh.turn()["texts"][2] == "denied: edit is forbidden"


def test_a_wrong_option_is_told_with_its_place(fresh: Fresh) -> None:
    fresh.configure('[plugins.tally]\noptions = { wrod = "so far" }\n')
    found = fresh.plugins(code=2)
    assert found["tally"]["state"] == "failed"
    (error,) = found["errors"]
    assert error.startswith("hookloop.toml:2")
    assert "'word'" in error


def test_it_is_switched_off_and_then_not_imported(fresh: Fresh) -> None:
    fresh.configure("auto = true\n[plugins.tally]\nenabled = false\n")
    tally = fresh.plugins()["tally"]
    assert (tally["state"], tally["why"]) == ("off", "disabled at hookloop.toml:3")
    assert fresh.turn() == {"texts": ["Edit.", "", "edited a"], "imported": False}


def test_it_is_switched_on_and_off_by_the_program(fresh: Fresh) -> None:
    fresh.configure("# my settings\n")
    fresh("hookloop", "plugins", "enable", "tally")
    assert fresh.plugins()["tally"]["state"] == "on"
    fresh("hookloop", "plugins", "disable", "tally")
    assert fresh.plugins()["tally"]["state"] == "off"
    assert "# my settings" in (fresh.folder / "hookloop.toml").read_text("utf-8")


def test_one_hook_of_it_is_switched_off(fresh: Fresh) -> None:
    fresh.configure('[plugins.tally]\nhooks.next_instructions = false\noptions = { forbidden = ["edit"] }\n')
    tally = fresh.plugins()["tally"]
    assert (tally["state"], tally["switched_off"]) == ("on", ["next_instructions"])
    assert fresh.turn()["texts"] == ["Edit.", "", "denied: edit is forbidden"]


@pytest.mark.parametrize("order", [["trace", "tally"], ["tally", "trace"]])
def test_it_is_put_in_order(fresh: Fresh, order: list[str]) -> None:
    fresh.configure(f"order = {json.dumps(order)}\n[plugins.tally]\n[plugins.trace]\n")
    found = fresh.plugins()
    assert [found[name]["position"] for name in order] == [1, 2]


BROKEN = {
    "it does not parse": (r"class Tally:", "class Tally", "SyntaxError"),
    "it imports what is not there": (r"from pydantic", "from pydantik", "ModuleNotFoundError"),
    "it ends the program": (r"class Tally:", "raise SystemExit(1)\n\nclass Tally:", "SystemExit"),
    "its class has another name": (r"class Tally:", "class Tallly:", "Tally"),
    "it cannot be made": (r"self.options = options.*", "raise OSError('no disk')", "OSError: no disk"),
    "it marks no hook": (r"(?s)    @hookimpl\n(.*)    @hookimpl\n", r"\1", "no hooks"),
    "it misspells a hook": (r"def before_tool", "def before_tol", "before_tool"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_it_is_told_how(fresh: Fresh, spoilt: Callable[[str, str], None], what: str) -> None:
    pattern, replacement, words = BROKEN[what]
    spoilt(pattern, replacement)
    fresh.configure("[plugins.trace]\n[plugins.tally]\n")
    found = fresh.plugins(code=2)
    tally = found["tally"]
    assert (tally["state"], tally["distribution"], tally["version"]) == ("failed", "acme-tally", "2.1")
    assert words in tally["why"]
    assert found["trace"]["state"] == "on", "another plugin is on all the same"
    assert found["errors"] == [f"hookloop.toml:2: {tally['why']}"]
    fresh.configure("strict = false\n[plugins.tally]\n")
    assert fresh.plugins()["errors"] == []
    fresh.configure("[plugins.tally]\n")
    assert (
        "tally"
        in subprocess.run(
            [fresh.environment / "bin" / "python", "-c", TURN],
            cwd=fresh.folder,
            capture_output=True,
            text=True,
            timeout=60,
        ).stderr
    )


def test_it_needs_another_contract(fresh: Fresh, spoilt: Callable[..., None]) -> None:
    spoilt(r"hookloop-hookspecs==0\.1\.0", "hookloop-hookspecs>=9", "acme_tally-*.dist-info/METADATA")
    fresh.configure("[plugins.tally]\n")
    tally = fresh.plugins(code=2)["tally"]
    assert tally["state"] == "failed"
    assert "needs hookloop-hookspecs>=9; 0.1.0 is installed" in tally["why"]


def test_two_distributions_claim_its_name(fresh: Fresh) -> None:
    other = fresh.site / "acme_other-1.0.dist-info"
    other.mkdir()
    try:
        (other / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-other\nVersion: 1.0\n", "utf-8")
        (other / "entry_points.txt").write_text("[hookloop.plugins]\ntally = acme_other:Tally\n", "utf-8")
        fresh.configure("[plugins.tally]\n")
        tally = fresh.plugins(code=2)["tally"]
    finally:
        shutil.rmtree(other)
    assert tally["state"] == "failed"
    assert "acme-other 1.0" in tally["why"]
    assert "acme-tally 2.1" in tally["why"]


def test_the_kit_looks_at_it_from_the_wheel(fresh: Fresh) -> None:
    text = "from acme_tally import Tally; from hookloop.testing import check_plugin; print(check_plugin(Tally).ok)"
    assert fresh("python", "-c", text) == "True\n"
