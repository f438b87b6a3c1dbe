"""`hookloop conversations`: what the configured memory keeps; list, show, export, import, delete, fork."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hookloop.config_file import reason
from hookloop.keeper import Keeper
from hookloop.names import nearest
from hookloop_hookspecs import ConfigError, Message
from hookloop_hookspecs.codec import dump_message

from .config_commands import AsJson, current
from .keeper import open_keeper
from .terminal import clean, one_line, out, print_json, writing

app = typer.Typer(help="List, show, export, import, delete and fork conversations.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="The conversation's id.")]
Scope = Annotated[str, typer.Option("--scope", help="The tenant.")]


@app.command("list")
def show_list(scope: Scope = "", as_json: AsJson = False) -> None:
    """List conversations, newest first."""
    with open_keeper(current(), scope) as keeper:
        found = keeper.list()
    if as_json:
        print_json(list(found))
        return
    console = out()
    for info in found:
        when = datetime.fromtimestamp(info.updated).strftime("%Y-%m-%d %H:%M") if info.updated else "?"
        console.print(
            f"{when:<16}  {info.entries:>6} entries  {one_line(info.conversation)}", soft_wrap=True, markup=False
        )


@app.command()
def show(conversation: Id, scope: Scope = "", as_json: AsJson = False) -> None:
    """Print a conversation's messages, and where each came from."""
    with open_keeper(current(), scope) as keeper, _hinted(keeper, conversation):
        messages = keeper.messages(conversation)
    if as_json:
        print_json([json.loads(dump_message(message)) for message in messages])
        return
    console = out()
    for message in messages:
        _print(console, message)


@app.command("export")
def export(
    conversation: Id,
    file: Annotated[Path | None, typer.Argument(help="Where to write; left out: stdout.")] = None,
    scope: Scope = "",
) -> None:
    """Write a conversation as JSON lines: every entry of its log."""
    with open_keeper(current(), scope) as keeper, _hinted(keeper, conversation):
        text = keeper.export(conversation)
    if file is None:
        sys.stdout.write(text)
    else:
        with writing(file):
            file.write_text(text, "utf-8")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What `export` wrote.")],
    conversation: Annotated[str | None, typer.Option("--as", help="Another id for it.")] = None,
    scope: Scope = "",
) -> None:
    """Store a conversation that `export` wrote."""
    with open_keeper(current(), scope) as keeper:
        _stored(keeper, keeper.restore(_text(file), conversation, str(file)))


@app.command()
def fork(
    conversation: Id,
    new: Annotated[str, typer.Argument(help="The copy's id.")],
    at: Annotated[int | None, typer.Option("--at", help="Copy up to this entry; left out: all.")] = None,
    scope: Scope = "",
) -> None:
    """Copy a conversation, whole or up to an entry, to go on differently."""
    with open_keeper(current(), scope) as keeper, _hinted(keeper, conversation):
        keeper.fork(conversation, new, at)
        _stored(keeper, new)


@app.command()
def delete(
    conversation: Id,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    scope: Scope = "",
) -> None:
    """Delete a conversation whole."""
    if not yes:
        typer.confirm(f"Delete conversation {one_line(conversation)}?", abort=True)
    with open_keeper(current(), scope) as keeper, _hinted(keeper, conversation):
        if not keeper.delete(conversation):
            raise ConfigError(f"there is no conversation {conversation!r} in {keeper.name}")


@contextmanager
def _hinted(keeper: Keeper, conversation: str) -> Iterator[None]:
    """Adds the nearest id to an error about a conversation that is not there."""
    try:
        yield
    except ConfigError as error:
        known = [info.conversation for info in keeper.list()]
        near = nearest(conversation, known)
        if conversation in known or near is None:
            raise
        raise ConfigError(f"{error}; did you mean {near!r}?") from error


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {reason(error)}") from error


def _stored(keeper: Keeper, conversation: str) -> None:
    text = f"{len(keeper.entries(conversation))} entries are now in {one_line(conversation)}"
    out().print(text, markup=False, soft_wrap=True)


def _print(console: Console, message: Message) -> None:
    origin = message.origin
    source = ".".join(filter(None, (origin.plugin, origin.hook))) or origin.model
    head = f"{message.role}  {source}" if source else message.role
    console.print(one_line(head.strip()), style="bold", markup=False, soft_wrap=True)
    for line in _body(message):
        console.print(f"  {line}", markup=False, soft_wrap=True)


def _body(message: Message) -> Iterable[str]:
    if message.text:
        yield from clean(message.text).split("\n")
    for call in message.calls:
        yield one_line(f"→ {call.name} {call.raw}")
