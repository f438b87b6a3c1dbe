"""A stranger's plugin, from its wheel, in a fresh environment with wheels of ours: `hookloop plugins` tells the truth."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.soak


def command(*arguments: object, cwd: Path | None = None) -> str:
    """Run a program; its output. Fails with all it said where it fails."""
    done = subprocess.run([*map(str, arguments)], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with hookloop and the stranger's plugin, all installed from wheels."""
    folder = tmp_path_factory.mktemp("fresh")
    wheels = folder / "wheels"
    for source in ("hookspecs", "core", "tests/stranger/tally"):
        command(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", wheels, ROOT / source)
    command(sys.executable, "-m", "venv", folder / "env")
    pip = (folder / "env/bin/python", "-m", "pip", "install", "-q", "--find-links", wheels)
    command(*pip, "-c", ROOT / "constraints.txt", "hookloop==0.1.0", "acme-tally==2.1")
    return folder / "env"


@pytest.fixture
def plugin(environment: Path) -> Iterator[Path]:
    """The installed module of the stranger's plugin, put back as it was after the test."""
    (module,) = environment.glob("lib/*/site-packages/acme_tally/__init__.py")
    before = module.read_text("utf-8")
    yield module
    module.write_text(before, "utf-8")


def listed(environment: Path, folder: Path, toml: str) -> dict[str, Any]:
    """What `hookloop plugins` says of the stranger's plugin with this configuration."""
    (folder / "hookloop.toml").write_text(toml, "utf-8")
    program = [str(environment / "bin/hookloop"), "plugins", "--json"]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    data = json.loads(done.stdout)
    found: dict[str, Any] = next(plugin for plugin in data["plugins"] if plugin["name"] == "tally")
    return {**found, "errors": data["errors"], "code": done.returncode}


def test_it_is_found_and_off_until_it_is_named(environment: Path, tmp_path: Path) -> None:
    off = listed(environment, tmp_path, "")
    assert (off["state"], off["distribution"], off["version"]) == ("off", "acme-tally", "2.1")
    on = listed(environment, tmp_path, "[plugins.tally]\n")
    assert (on["state"], on["position"], on["why"]) == ("on", 1, "named at hookloop.toml:1")
    assert on["hooks"]


def test_switched_off_it_is_not_imported(environment: Path, tmp_path: Path, plugin: Path) -> None:
    mark = tmp_path / "imported"
    plugin.write_text(f"{plugin.read_text('utf-8')}\nopen({str(mark)!r}, 'w').close()\n", "utf-8")
    assert listed(environment, tmp_path, "auto = true\n[plugins.tally]\nenabled = false\n")["state"] == "off"
    assert not mark.exists()
    assert listed(environment, tmp_path, "auto = true\n")["state"] == "on"
    assert mark.exists()


def test_one_hook_of_it_is_switched_off_and_it_is_put_in_order(environment: Path, tmp_path: Path) -> None:
    hooks = listed(environment, tmp_path, "[plugins.tally]\n")["hooks"]
    toml = f'order = ["trace", "tally"]\n[plugins.trace]\n[plugins.tally]\nhooks.{hooks[0]} = false\n'
    found = listed(environment, tmp_path, toml)
    assert (found["position"], found["switched_off"]) == (2, [hooks[0]])


def test_it_is_checked(environment: Path, tmp_path: Path) -> None:
    assert "pass  is_a_plugin" in command(environment / "bin/hookloop", "check", "tally", cwd=tmp_path)


BROKEN = {
    "import": ("import acme_nothing", "ModuleNotFoundError: No module named 'acme_nothing'"),
    "exit": ("raise SystemExit(1)", "tried to end the program (SystemExit: 1)"),
    "syntax": ("class Tally(", "SyntaxError"),
    "no class": ("", "has no attribute 'Tally'"),
    "no hooks": ("class Tally: ...", "has no hooks"),
    "misspelt": (
        "from hookloop_hookspecs import hookimpl\nclass Tally:\n    @hookimpl\n    def after_tol(self): ...",
        "did you mean 'after_tool'?",
    ),
    "not made": ("class Tally:\n    def __init__(self): raise OSError('disk')", "cannot be made: OSError: disk"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_it_is_reported_with_its_cause(environment: Path, tmp_path: Path, plugin: Path, kind: str) -> None:
    source, cause = BROKEN[kind]
    plugin.write_text(source, "utf-8")
    found = listed(environment, tmp_path, "[plugins.tally]\n")
    assert (found["state"], found["code"]) == ("failed", 2)
    assert cause in found["why"]


@contextmanager
def changed(file: Path, text: str) -> Iterator[None]:
    before = file.read_text("utf-8")
    file.write_text(text, "utf-8")
    try:
        yield
    finally:
        file.write_text(before, "utf-8")


def test_one_for_a_newer_contract_is_reported(environment: Path, tmp_path: Path) -> None:
    (metadata,) = environment.glob("lib/*/site-packages/acme_tally-*.dist-info/METADATA")
    text = metadata.read_text("utf-8").replace("hookloop-hookspecs==0.1.0", "hookloop-hookspecs>=7")
    with changed(metadata, text):
        found = listed(environment, tmp_path, "[plugins.tally]\n")
    assert found["why"] == "plugin 'tally' (acme-tally 2.1): needs hookloop-hookspecs>=7; 0.1.0 is installed"
