"""`hookloop plugins`: what is on, off or failed, and why; which memories and providers there are; switching in the file."""

from __future__ import annotations

from typing import Annotated

import typer

from hookloop.config import Config
from hookloop.discovery import PLUGINS, absent, activate, available, memories, providers
from hookloop.names import hook_names, suggest
from hookloop_hookspecs import ConfigError

from .config_commands import AsJson, current
from .editing import switch
from .listing import Listed, show_all, show_one
from .terminal import err, joined, out, print_json, wrapped

app = typer.Typer(
    help="List plugins, memories and providers, and say why; switch plugins on and off.", invoke_without_command=True
)


def _installed(incomplete: str) -> list[str]:
    return [name for name in available(PLUGINS) if name.startswith(incomplete)]


def _hooks(incomplete: str) -> list[str]:
    return [name for name in hook_names() if name.startswith(incomplete)]


Name = Annotated[str, typer.Argument(help="The plugin's name.", autocompletion=_installed)]
Hook = Annotated[
    list[str] | None,
    typer.Option("--hook", help="Only this hook; may be given several times.", autocompletion=_hooks),
]


@app.callback()
def _list(context: typer.Context, as_json: AsJson = False) -> None:
    """List plugins, memories and providers, and say why; switch plugins on and off."""
    if context.invoked_subcommand is None:
        show_list(as_json)


@app.command("list")
def show_list(as_json: AsJson = False) -> None:
    """List every plugin: on, off or failed; where it comes from; its hooks; and why. Then memories and providers."""
    listed = listing(current())
    if as_json:
        print_json(listed)
    else:
        show_all(out(), listed)
    if listed.errors:
        raise typer.Exit(2)


def listing(config: Config) -> Listed:
    """All that is installed, and what the configuration makes of it. Only what it uses is imported."""
    activation = activate(config)
    stores, models = memories(config), providers(config)
    wrong = activation.errors + (activation.warnings if config.strict else ())
    failed = (part.why for part in (*stores, *models) if part.state == "failed" and part.needed)
    return Listed(list(activation.report.plugins), stores, models, [*wrong, *failed])


@app.command()
def why(name: Name, as_json: AsJson = False) -> None:
    """Say why one plugin is on, off or failed; or what uses a memory or a provider."""
    listed = listing(current())
    found = [one for one in listed.all if one.name == name]
    if not found:
        raise ConfigError(f"plugin {name!r} {absent(PLUGINS, name, [one.name for one in listed.all])}")
    if as_json:
        print_json(found[0])
    else:
        show_one(out(), found[0])


@app.command()
def enable(name: Name, hook: Hook = None) -> None:
    """Switch a plugin on in the configuration file, or single hooks of it."""
    _switch(name, hook or [], True)


@app.command()
def disable(name: Name, hook: Hook = None) -> None:
    """Switch a plugin off in the configuration file, or single hooks of it."""
    _switch(name, hook or [], False)


def _switch(name: str, hooks: list[str], on: bool) -> None:
    config = current()
    known = set(available(PLUGINS)) | set(config.plugins)
    if name not in known:
        raise ConfigError(f"plugin {name!r} {absent(PLUGINS, name, known)}")
    for hook in hooks:
        if hook not in hook_names():
            raise ConfigError(f"unknown hook {hook!r}{suggest(hook, hook_names())}")
    unnamed = name not in config.plugins and not config.auto
    file = switch(config.path, name, hooks, on, stays_off=unnamed and bool(hooks) and not on)
    what = f"{joined(hooks)} of {name}" if hooks else name
    console = out()
    console.print(f"{what} is now {'on' if on else 'off'} in {file}", markup=False, soft_wrap=True)
    _overridden(name, hooks, on)
    report = activate(current()).report.plugin(name) if on else None
    if report is not None and report.state == "failed":
        show_one(console, report)


def _overridden(name: str, hooks: list[str], on: bool) -> None:
    """Tell where something else than the file decides."""
    config = current()
    table = config.plugins[name]
    states = {("hooks", hook): hook not in table.off for hook in hooks} if hooks else {("enabled",): table.enabled}
    for keys, state in states.items():
        if state is not on:
            place = config.where("plugins", name, *keys)
            wrapped(err(), f"but {place} says otherwise, and comes before the file", 0, "yellow")
