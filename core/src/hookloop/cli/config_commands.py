"""`hookloop config`: what is configured and from where, and the JSON Schema for editors."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, fields
from typing import Annotated, Any

import typer

from hookloop.config import Config, load_config, schema
from hookloop.config_file import Keys
from hookloop.discovery import hidden

from .terminal import one_line, out, print_json

app = typer.Typer(help="Show the configuration, or the JSON Schema of hookloop.toml.", no_args_is_help=True)

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
        print_json({"file": str(config.path) if config.path else None, "config": _plain(config)})
        return
    console = out()
    console.print(str(config.path or "no hookloop.toml found; these are the defaults"), markup=False, soft_wrap=True)
    for keys, value in leaves(_plain(config)):
        place = f"  # {config.where(*keys)}" if _given(config, keys) else ""
        line = f"{'.'.join(map(str, keys))} = {one_line(repr(value))}{place}"
        console.print(line, markup=False, soft_wrap=True, style=None if place else "dim")


def leaves(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """The values of nested tables with their paths; an empty table is a value."""
    if isinstance(value, Mapping) and value:
        for key, item in value.items():
            yield from leaves(item, (*keys, key))
    else:
        yield keys, value


def _plain(config: Config) -> dict[str, Any]:
    """The configuration as plain data, without passwords."""
    data = config.model_dump(exclude={"limits", "window"})
    limits = {spec.name: getattr(config.limits, spec.name) for spec in fields(config.limits)}
    limits["per_tool_overrides"] = dict(config.limits.per_tool_overrides)
    for memory in data["memory"]:
        memory["url"] = hidden(memory["url"])
    return {**data, "limits": limits, "window": asdict(config.window) if config.window else None}


def _given(config: Config, keys: Keys) -> bool:
    node: Any = config.given
    for key in keys:
        if not isinstance(node, Mapping) or key not in node:
            return False
        node = node[key]
    return True
