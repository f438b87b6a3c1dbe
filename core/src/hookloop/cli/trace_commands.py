"""`hookloop trace`: what a recorded turn did."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hookloop.config_file import reason
from hookloop.names import nearest
from hookloop.trace import Traced, read_trace
from hookloop_hookspecs import ConfigError

from .config_commands import AsJson
from .terminal import out, print_json
from .tree import drawn, turns

app = typer.Typer(help="Look at recorded turns, which the plugin `trace` records.", no_args_is_help=True)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A trace: JSON lines, as the plugin `trace` writes them.")],
    turn: Annotated[str | None, typer.Option("--turn", help="Only this turn.")] = None,
    last: Annotated[bool, typer.Option("--last", help="Only the last turn.")] = False,
    as_json: AsJson = False,
) -> None:
    """Draw turns as trees: rounds, replies, tool runs, what plugins added, limits, writes."""
    lines = _lines(file, turn)
    if last and lines:
        lines = [line for line in lines if line.turn == lines[-1].turn]
    if as_json:
        print_json(lines)
        return
    console = out()
    for root in turns(lines):
        for text, style in drawn(root, console.width):
            console.print(text, style=style, markup=False, soft_wrap=True)


def _lines(file: Path, turn: str | None) -> list[Traced]:
    try:
        with file.open(encoding="utf-8", errors="surrogateescape") as stream:
            everything = list(read_trace(stream, str(file)))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {reason(error)}") from error
    if not everything:
        raise ConfigError(f"{file}: is empty")
    lines = [line for line in everything if turn in (None, line.turn)]
    if not lines:
        near = nearest(str(turn), {line.turn for line in everything}) or everything[-1].turn
        raise ConfigError(f"{file}: no turn {turn!r}; there is for example {near!r}")
    return lines
