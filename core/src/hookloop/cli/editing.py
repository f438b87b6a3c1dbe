"""Changing `hookloop.toml` so that everything else in it, comments too, stays as it is."""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.container import Container
from tomlkit.items import Table

from hookloop.config_file import FILE, PROJECT

from .terminal import writing


def switch(path: Path | None, name: str, hooks: Iterable[str], on: bool, *, stays_off: bool = False) -> Path:
    """Switch a plugin, or only `hooks` of it, on or off in a configuration file.

    Arguments: `path`, the file; None makes `hookloop.toml` in the working directory. `stays_off`: a plugin that the file
    does not name yet is not switched on by being named. Returns the file.
    """
    file = path or Path.cwd() / FILE
    raw = file.read_bytes() if file.is_file() else b""
    document = tomlkit.parse(raw.decode("utf-8-sig"))
    root: Any = document
    if file.name == PROJECT:
        root = _table(_table(document, "tool"), "hookloop")
    plugin = _table(_table(root, "plugins", super_table=True), name)
    chosen = list(hooks)
    if stays_off:
        plugin["enabled"] = False
    if chosen:
        _switch_hooks(plugin, chosen, on)
    else:
        plugin["enabled"] = on
    with writing(file):
        file.write_bytes(tomlkit.dumps(document).encode("utf-8-sig" if raw.startswith(BOM_UTF8) else "utf-8"))
    return file


def _switch_hooks(plugin: Any, hooks: list[str], on: bool) -> None:
    table = plugin.get("hooks")
    if table is None:
        table = plugin["hooks"] = tomlkit.inline_table()
    for hook in hooks:
        table[hook] = on


def _table(parent: Container | Table | Any, key: str, super_table: bool = False) -> Any:
    """The table at `key`, made where there is none."""
    if key not in parent:
        parent[key] = tomlkit.table(is_super_table=super_table)
    return parent[key]
