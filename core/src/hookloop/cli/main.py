"""The program `hookloop`: its commands, put together, and its exit codes."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hookloop.discovery import COMMANDS, distribution_for
from hookloop_hookspecs import ConfigError, HookloopError
from hookloop_hookspecs.redact import redact

from . import added, check, config_commands, conversations, explain, plugin_commands, scaffold, talk, trace_commands
from .terminal import err, one_line

OK, FAILED, WRONG, INTERRUPTED = 0, 1, 2, 130

EPILOG = (
    f"Exit codes: {OK} done, {FAILED} failed, {WRONG} wrong usage or configuration, 3 stopped or over a limit, "
    f"4 waits for a decision, {INTERRUPTED} interrupted."
)


class Program(TyperGroup):
    """Says which distribution brings a command that is not there."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of that name, if there is one. Raises `ConfigError` where it has only to be installed."""
        found = super().get_command(ctx, cmd_name)
        if found is None and (made := distribution_for(COMMANDS, cmd_name)):
            raise ConfigError(f"command {cmd_name!r} is not installed; pip install {made}")
        return found


def make_app() -> typer.Typer:
    """The program with the commands that are installed now."""
    app = typer.Typer(name="hookloop", cls=Program, epilog=EPILOG, no_args_is_help=True, pretty_exceptions_enable=False)
    app.callback()(_options)
    talk.add_to(app)
    explain.add_to(app)
    check.add_to(app)
    app.add_typer(plugin_commands.app, name="plugins")
    app.add_typer(config_commands.app, name="config")
    app.add_typer(conversations.app, name="conversations")
    app.add_typer(trace_commands.app, name="trace")
    app.add_typer(scaffold.app, name="new")
    added.add_to(app)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"hookloop {version('hookloop')}, contract {version('hookloop-hookspecs')}")
        raise typer.Exit


def _options(
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="The configuration file; default: the nearest hookloop.toml, upwards."),
    ] = None,
    _version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A tool loop that cannot be edited, only hooked."""
    if config is not None:
        os.environ["HOOKLOOP_CONFIG"] = str(config)  # so that commands of other distributions read it too


def main() -> None:
    """Run the program with the arguments of the process; ends it with one of its exit codes."""
    try:
        make_app()()
    except HookloopError as error:
        _tell(error)
        sys.exit(WRONG if isinstance(error, ConfigError) else FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _tell(error: HookloopError) -> None:
    console = err()
    for line in redact(str(error)).splitlines() or [type(error).__name__]:
        console.print("error: ", style="bold red", end="")
        console.print(one_line(line), markup=False, soft_wrap=True)
