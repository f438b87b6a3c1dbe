"""Fixtures of the whole tree: distributions that are made on the spot and found by entry point like any other."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pytest


class Distribute(Protocol):
    """Puts a distribution on the path: its modules, and a `.dist-info` with entry points by group."""

    def __call__(
        self,
        name: str,
        points: Mapping[str, Mapping[str, str]],
        modules: Mapping[str, str],
        version: str = "1.0",
        requires: Sequence[str] = (),
    ) -> Path: ...


@pytest.fixture
def distribute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Distribute]:
    """A function that makes distributions for this test; their modules are forgotten afterwards."""
    made: list[str] = []

    def make(
        name: str,
        points: Mapping[str, Mapping[str, str]],
        modules: Mapping[str, str],
        version: str = "1.0",
        requires: Sequence[str] = (),
    ) -> Path:
        site = tmp_path / f"site-{name}"
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        head = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        (info / "METADATA").write_text(head + "".join(f"Requires-Dist: {text}\n" for text in requires), "utf-8")
        groups = (f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in names.items()) for group, names in points.items())
        (info / "entry_points.txt").write_text("\n".join(groups), "utf-8")
        for module, text in modules.items():
            (site / f"{module}.py").write_text(text, "utf-8")
        made.extend(modules)
        monkeypatch.syspath_prepend(str(site))
        return site

    yield make
    for module in made:
        sys.modules.pop(module, None)
