"""What ships with the project, and what `hookloop new` makes, passes the conformance that strangers are held to."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from scaffolded import endpoint

from hookloop.cli import scaffold
from hookloop.discovery import PLUGINS, available, build, load_one
from hookloop.testing import (
    ScriptedProvider,
    check_plugin,
    check_provider,
    memory_checks,
    say,
)

OURS = sorted(name for name, found in available(PLUGINS).items() if found.distribution.startswith("hookloop"))
OPTIONS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "booking": lambda folder: {"url": f"sqlite:///{folder}/booking.db"},
    "booking-rules": lambda folder: {},
    "fallback": lambda folder: {"providers": [ScriptedProvider([say("the other model")] * 99)]},
    "feedback": lambda folder: {},
    "prompt-log": lambda folder: {"file": str(folder / "log.txt")},
    "trace": lambda folder: {"file": str(folder / "trace.jsonl")},
}


def test_every_plugin_of_ours_is_looked_at() -> None:
    assert sorted(OPTIONS) == OURS


@pytest.mark.parametrize("name", OURS)
def test_a_shipped_plugin_passes(name: str, tmp_path: Path) -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(build(load_one(PLUGINS, name), options=OPTIONS[name](tmp_path), label=name))
        return made[-1]

    try:
        report = check_plugin(make)
    finally:
        for plugin in made:
            getattr(plugin, "close", lambda: None)()
    assert report.ok, str(report)


@pytest.fixture
def module_of(tmp_path: Path) -> Callable[[scaffold.Kind], ModuleType]:
    """The module that `hookloop new` makes of a kind."""

    def make(kind: scaffold.Kind) -> ModuleType:
        files = dict(scaffold.rendered(kind, f"kit-{kind.word}"))
        (path,) = [path for path in files if path.endswith("__init__.py")]
        file = tmp_path / Path(path).parent.name / "__init__.py"
        file.parent.mkdir()
        file.write_text(files[path], "utf-8")
        spec = importlib.util.spec_from_file_location(file.parent.name, file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return make


def test_a_new_plugin_passes(module_of: Callable[[scaffold.Kind], ModuleType]) -> None:
    report = check_plugin(module_of(scaffold.PLUGIN).KitPlugin)
    assert report.ok, str(report)


def test_a_new_memory_passes(module_of: Callable[[scaffold.Kind], ModuleType], tmp_path: Path) -> None:
    kind = module_of(scaffold.STORE).KitMemory
    report = memory_checks.check_memory(
        lambda: kind(f"kit-memory:{tmp_path / 'kept'}"), reopen=lambda _: kind(f"kit-memory:{tmp_path / 'kept'}")
    )
    assert report.ok, str(report)


def test_a_new_provider_passes(module_of: Callable[[scaffold.Kind], ModuleType]) -> None:
    module = module_of(scaffold.PROVIDER)

    def make(url: str, _transport: str) -> Any:
        return module.KitProvider("m", module.EndpointOptions(base_url=url))

    report = check_provider(make, serve=endpoint, transports=("whole",))
    assert report.ok, str(report)
