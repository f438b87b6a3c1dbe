"""Commands of other distributions: listed from their entry points, loaded when they are called."""

from __future__ import annotations

import typer

from hookloop.discovery import COMMANDS, Found, available, load_one
from hookloop_hookspecs import ConfigError

PASS_ON = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def add_to(app: typer.Typer) -> None:
    """Add a command for each entry point in `hookloop.commands`; the program's own commands cannot be replaced."""
    own = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    for found in available(COMMANDS).values():
        if found.name not in own:
            _add(app, found)


def _add(app: typer.Typer, found: Found) -> None:
    source = f"From {found.distribution} {found.version}."

    @app.command(
        found.name, help=source, context_settings=PASS_ON, rich_help_panel="Added by plugins", add_help_option=False
    )
    def _(context: typer.Context) -> None:
        _call(found.name, context.args)


def _call(name: str, arguments: list[str]) -> None:
    target = load_one(COMMANDS, name)
    inner = target if isinstance(target, typer.Typer) else _of_function(name, target)
    inner(args=arguments, prog_name=f"hookloop {name}")


def _of_function(name: str, function: object) -> typer.Typer:
    if not callable(function):
        raise ConfigError(f"command {name!r}: its entry point names {function!r}, which is no function")
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name)(function)
    return app
