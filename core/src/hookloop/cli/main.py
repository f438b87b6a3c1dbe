"""The program `hookloop`: its commands, put together, and its exit codes."""

from __future__ import annotations

import errno
import logging
import os
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from hookloop.discovery import COMMANDS, distribution_for
from hookloop_hookspecs import ConfigError, HookloopError
from hookloop_hookspecs.redact import redact

from . import added, check, config_commands, conversations, explain, plugin_commands, scaffold, talk, trace_commands
from .terminal import err, one_line, usual_streams

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
    usual_streams()
    notes = Notes(logging.WARNING)
    logging.getLogger("hookloop").addHandler(notes)
    try:
        _run()
    except HookloopError as error:
        _tell(error)
        sys.exit(WRONG if isinstance(error, ConfigError) else FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        logging.getLogger("hookloop").removeHandler(notes)


class Notes(logging.Handler):
    """Prints what is logged of agents, such as a plugin that is left out, as warnings of the program."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one record."""
        _line("warning: ", "bold yellow", record.getMessage())


def _run() -> None:
    """Run the program; what cannot be printed is an error like others, and not one of the interpreter's end."""
    try:
        try:
            make_app()()
        finally:
            sys.stdout.flush()
    except OSError as error:
        _leave_stdout()
        if error.errno != errno.EPIPE:
            _line(
                "error: ", "bold red", f"{error.strerror or error}" + (f": {error.filename}" if error.filename else "")
            )
        sys.exit(FAILED)


def _leave_stdout() -> None:
    """Send what still waits to be printed nowhere, since the interpreter would try again at its end."""
    with suppress(OSError, ValueError):  # a stream of a program that calls this one may have no descriptor
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _tell(error: HookloopError) -> None:
    """Print an error; those of a configuration may be several, one on each line."""
    text = redact(str(error))
    lines = text.splitlines() if isinstance(error, ConfigError) else [" ".join(text.split())]
    for line in lines if any(lines) else [type(error).__name__]:
        _line("error: ", "bold red", line)


def _line(label: str, style: str, text: str) -> None:
    console = err()
    console.print(label, style=style, end="")
    console.print(one_line(text), markup=False, soft_wrap=True)
