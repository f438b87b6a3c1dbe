"""`hookloop conversations`: what the configured memory keeps; list, show, export, import, delete, fork."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from hookloop.engine.log import flatten
from hookloop_hookspecs import ConfigError, CorruptData, Entry, Message
from hookloop_hookspecs.codec import dump_entry, dump_message, load_entry

from .config_commands import AsJson, current
from .keeper import Keeper, open_keeper
from .terminal import clean, one_line, out, print_json

app = typer.Typer(help="List, show, export, import, delete and fork conversations.", no_args_is_help=True)

Id = Annotated[str, typer.Argument(help="The conversation's id.")]
Scope = Annotated[str, typer.Option("--scope", help="The tenant.")]
FORMAT = "hookloop-conversation"


@app.command("list")
def show_list(scope: Scope = "", as_json: AsJson = False) -> None:
    """List conversations, newest first."""
    with open_keeper(current(), scope) as keeper:
        found = keeper.conversations()
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
    with open_keeper(current(), scope) as keeper:
        messages = list(flatten(keeper.entries(conversation)))
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
    with open_keeper(current(), scope) as keeper:
        text = exported(conversation, keeper.entries(conversation))
    if file is None:
        sys.stdout.write(text)
    else:
        file.write_text(text, "utf-8")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What `export` wrote.")],
    conversation: Annotated[str | None, typer.Option("--as", help="Another id for it.")] = None,
    scope: Scope = "",
) -> None:
    """Store a conversation that `export` wrote."""
    name, entries = imported(file.read_text("utf-8"), str(file))
    with open_keeper(current(), scope) as keeper:
        _store(keeper, conversation or name, entries)


@app.command()
def fork(conversation: Id, new: Annotated[str, typer.Argument(help="The copy's id.")], scope: Scope = "") -> None:
    """Copy a conversation, to go on differently."""
    with open_keeper(current(), scope) as keeper:
        _store(keeper, new, keeper.entries(conversation))


@app.command()
def delete(
    conversation: Id,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    scope: Scope = "",
) -> None:
    """Delete a conversation whole."""
    if not yes:
        typer.confirm(f"Delete conversation {one_line(conversation)}?", abort=True)
    with open_keeper(current(), scope) as keeper:
        if not keeper.delete(conversation):
            raise ConfigError(f"there is no conversation {conversation!r} in {keeper.url}")


def exported(conversation: str, entries: Iterable[Entry]) -> str:
    """A conversation as text: a line that names it, then one for each entry."""
    head = json.dumps({"format": FORMAT, "conversation": conversation}, ensure_ascii=False)
    return "\n".join([head, *map(dump_entry, entries), ""])


def imported(text: str, source: str) -> tuple[str, Sequence[Entry]]:
    """What `exported` wrote: the conversation's id and its entries. Raises `CorruptData` with the line."""
    head, *lines = text.split("\n")
    try:
        data = json.loads(head)
        if data["format"] != FORMAT:
            raise ValueError(f"format is {data['format']!r}")
        name = str(data["conversation"])
    except (ValueError, KeyError, TypeError) as error:
        raise CorruptData(f"{source}:1: not an exported conversation: {error}") from error
    return name, [_entry(line, f"{source}:{number}") for number, line in enumerate(lines, 2) if line]


def _entry(line: str, place: str) -> Entry:
    try:
        return load_entry(line)
    except CorruptData as error:
        raise CorruptData(f"{place}: {error}") from error


def _store(keeper: Keeper, conversation: str, entries: Sequence[Entry]) -> None:
    if keeper.exists(conversation):
        raise ConfigError(f"conversation {conversation!r} exists already in {keeper.url}")
    keeper.store(conversation, entries)
    text = f"{len(entries)} entries are now in {one_line(conversation)}"
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
