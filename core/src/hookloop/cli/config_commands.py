"""`hookloop config`: what is configured and from where, and the JSON Schema for editors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import tomlkit
import typer

from hookloop.config import Config, load_config, schema
from hookloop.config_file import Keys

from .terminal import one_line, out, print_json

app = typer.Typer(help="Show the configuration, or the JSON Schema of hookloop.toml.", no_args_is_help=True)

NO_FILE = "no hookloop.toml was found; these are the defaults"

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def current() -> Config:
    """The configuration of the working directory, or of the file that `--config` names. Raises `ConfigError`."""
    return load_config(None, os.environ)


@app.command("schema")
def show_schema() -> None:
    """Print the JSON Schema of hookloop.toml, so that editors complete it."""
    print_json(schema())


@app.command("show")
def show(as_json: AsJson = False) -> None:
    """Print what is configured, and where each key was set."""
    config = current()
    if as_json:
        print_json({"file": str(config.path) if config.path else None, "config": config.shown()})
        return
    console = out()
    console.print(f"# {config.path or NO_FILE}", markup=False, soft_wrap=True)
    for keys, value in leaves(config.shown()):
        given = _given(config, keys)
        if given or not (value is None or keys[0] == "plugins"):
            place = f"  # {config.where(*keys)}" if given else ""
            line = one_line(f"{tomlkit.key(list(map(str, keys))).as_string()} = {in_toml(value)}{place}")
            console.print(line, markup=False, soft_wrap=True, style=None if place else "dim")


def in_toml(value: Any) -> str:
    """A value as the file has it; None, which only limits can be, is the word for no limit."""
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(in_toml, value))}]"
    if isinstance(value, Mapping):
        pairs = (f"{tomlkit.key(str(key)).as_string()} = {in_toml(item)}" for key, item in _set(value))
        return f"{{ {', '.join(pairs)} }}" if value else "{}"
    return tomlkit.item("none" if value is None else value).as_string()


def _set(table: Mapping[Any, Any]) -> Iterator[tuple[Any, Any]]:
    """What is set of a table in a list: no defaults."""
    return ((key, item) for key, item in table.items() if item is not None and item != {})


def leaves(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """The values of nested tables with their paths; an empty table is a value."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, (*keys, key))
    else:
        yield keys, value


def _given(config: Config, keys: Keys) -> bool:
    node: Any = config.given
    for key in keys:
        if not isinstance(node, Mapping) or key not in node:
            return False
        node = node[key]
    return True
