"""`hookloop plugins`: what is on, off or failed, from where, in which order, which hooks, and why."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from hookloop.discovery import PLUGINS, PluginReport, activate, available
from hookloop.names import hook_names, suggest
from hookloop_hookspecs import ConfigError

from .config_commands import AsJson, current
from .editing import switch
from .terminal import joined, labelled, one_line, out, print_json

app = typer.Typer(help="List plugins and say why; switch them on and off.", invoke_without_command=True)

Hook = Annotated[list[str] | None, typer.Option("--hook", help="Only this hook; may be given several times.")]
COLOURS = {"on": "green", "off": "dim", "failed": "bold red"}


@app.callback()
def _list(context: typer.Context, as_json: AsJson = False) -> None:
    """List plugins and say why; switch them on and off."""
    if context.invoked_subcommand is None:
        show_list(as_json)


@app.command("list")
def show_list(as_json: AsJson = False) -> None:
    """List every plugin: on, off or failed; where it comes from; its hooks; and why."""
    activation = activate(current())
    if as_json:
        print_json({"plugins": list(activation.report.plugins), "errors": list(activation.errors)})
    else:
        console = out()
        for report in activation.report.plugins:
            _show(console, report)
        if not activation.report.plugins:
            console.print("No plugin is installed. `hookloop new plugin NAME` makes one.")
        for words in activation.errors:
            labelled(console, "error:", words, 0)
    if activation.errors:
        raise typer.Exit(2)


@app.command()
def why(name: Annotated[str, typer.Argument(help="The plugin's name.")], as_json: AsJson = False) -> None:
    """Say why one plugin is on, off or failed."""
    report = activate(current()).report
    found = report.plugin(name)
    if found is None:
        raise ConfigError(f"unknown plugin {name!r}{suggest(name, [plugin.name for plugin in report.plugins])}")
    if as_json:
        print_json(found)
    else:
        _show(out(), found)


@app.command()
def enable(name: Annotated[str, typer.Argument(help="The plugin's name.")], hook: Hook = None) -> None:
    """Switch a plugin on in the configuration file, or single hooks of it."""
    _switch(name, hook or [], True)


@app.command()
def disable(name: Annotated[str, typer.Argument(help="The plugin's name.")], hook: Hook = None) -> None:
    """Switch a plugin off in the configuration file, or single hooks of it."""
    _switch(name, hook or [], False)


def _switch(name: str, hooks: list[str], on: bool) -> None:
    config = current()
    known = set(available(PLUGINS)) | set(config.plugins)
    if name not in known:
        raise ConfigError(f"unknown plugin {name!r}{suggest(name, known)}")
    for hook in hooks:
        if hook not in hook_names():
            raise ConfigError(f"unknown hook {hook!r}{suggest(hook, hook_names())}")
    unnamed = name not in config.plugins and not config.auto
    file = switch(config.path, name, hooks, on, stays_off=unnamed and bool(hooks) and not on)
    what = f"{joined(hooks)} of {name}" if hooks else name
    out().print(f"{what} is now {'on' if on else 'off'} in {file}", markup=False, soft_wrap=True)


def _show(console: Console, report: PluginReport) -> None:
    place = f"{report.position}." if report.position else ""
    source = f"  {report.distribution} {report.version}".rstrip()
    head = Text(f"{report.state:<7}", COLOURS[report.state]) + Text(f"{place:<4}") + Text(one_line(report.name), "bold")
    if len(head) + len(source) <= console.width:
        console.print(head + Text(source), soft_wrap=True)
    else:
        console.print(head, soft_wrap=True)
        labelled(console, "from:", source.strip(), 11)
    if report.hooks:
        labelled(console, "hooks:", joined(_marked(report)), 11)
    labelled(console, "why:", report.why, 11)


def _marked(report: PluginReport) -> list[str]:
    return [f"{hook} (off)" if hook in report.switched_off else hook for hook in report.hooks]
