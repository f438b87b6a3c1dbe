"""How plugins, memories and providers are listed: a line for each, its state and its name first, what is told of it below."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console

from hookloop.discovery import MEMORY, PROVIDERS, PartReport, PluginReport
from hookloop.discovery.installed import SHIPPED

from .terminal import joined, labelled, one_line, padded, wrapped

INDENT = 11
LONGEST_NAME, LONGEST_SOURCE = 24, 30
"""Cells up to which names and sources stand in columns; what is longer moves the rest of its own line."""
COLOURS = {"on": "green", "used": "green", "off": "dim", "installed": "dim", "failed": "bold red"}


@dataclass
class Listed:
    """What `hookloop plugins` tells; `errors` are those that keep an agent from being made."""

    plugins: list[PluginReport]
    memories: list[PartReport]
    providers: list[PartReport]
    errors: list[str]

    @property
    def all(self) -> list[PluginReport | PartReport]:
        """Every report."""
        return [*self.plugins, *self.memories, *self.providers]


@dataclass
class _Row:
    """One entry of a list, in words."""

    state: str
    name: str
    source: str
    why: str
    place: str = ""
    hooks: str = ""


@dataclass(frozen=True)
class _Columns:
    """How wide names and sources are, and whether reasons stand beside them."""

    name: int = 0
    source: int = 0
    why: bool = False

    def line(self, row: _Row) -> str:
        """Name, source and reason in their columns."""
        return "  ".join((padded(row.name, self.name), padded(row.source, self.source), row.why)).rstrip()


def show_all(console: Console, listed: Listed) -> None:
    """Print everything that is listed, and the errors that are not told with what they are about."""
    plugins = [_of_plugin(report) for report in listed.plugins]
    stores, models = list(_of_parts(listed.memories)), list(_of_parts(listed.providers))
    columns = _columns([*plugins, *stores, *models], console.width - INDENT)
    _section(console, "plugins", plugins, columns)
    if not plugins:
        wrapped(console, "none is installed; hookloop new plugin NAME makes one", 0, "dim")
    elif not any(row.state == "on" for row in plugins):
        wrapped(console, "none is on; hookloop plugins enable NAME switches one on", 0, "dim")
    for title, rows, group in (("memories", stores, MEMORY), ("providers", models, PROVIDERS)):
        console.print()
        _section(console, title, rows, columns)
        if not rows:
            wrapped(console, f"none is installed; for example: pip install {next(iter(SHIPPED[group]))}", 0, "dim")
    told = tuple(report.why for report in listed.all if report.why)
    for words in (error for error in listed.errors if not error.endswith(told)):
        labelled(console, "error:", words, 0, "", "bold red")


def show_one(console: Console, report: PluginReport | PartReport) -> None:
    """Print one entry."""
    _show(console, _of_plugin(report) if isinstance(report, PluginReport) else _of_part(report), _Columns())


def _of_plugin(report: PluginReport) -> _Row:
    hooks = [f"{hook} (off)" if hook in report.switched_off else hook for hook in report.hooks]
    place = f"{report.position}." if report.position else ""
    return _Row(report.state, one_line(report.name), _source(report), _why(report), place, joined(hooks, ""))


def _of_part(report: PartReport) -> _Row:
    return _Row(report.state, one_line(report.name), _source(report), _why(report))


def _why(report: PluginReport | PartReport) -> str:
    """The reason, without what its own line says already: what is spoken of, and whose it is."""
    return re.sub(rf"^[a-z ]+ {re.escape(repr(report.name))}( \({re.escape(_source(report))}\))?: ", "", report.why)


def _of_parts(parts: Sequence[PartReport]) -> Iterable[_Row]:
    """Those that are only installed share a line with what came with them."""
    yield from (_of_part(part) for part in parts if part.state != "installed")
    rest = sorted((part for part in parts if part.state == "installed"), key=lambda part: (_source(part), part.name))
    for source, group in groupby(rest, _source):
        yield _Row("installed", joined(one_line(part.name) for part in group), source, "")


def _source(report: PluginReport | PartReport) -> str:
    return f"{report.distribution} {report.version}".strip()


def _section(console: Console, title: str, rows: Sequence[_Row], columns: _Columns) -> None:
    console.print(title, style="bold")
    for row in rows:
        _show(console, row, columns)


def _columns(rows: Sequence[_Row], room: int) -> _Columns:
    """The columns that suit these rows: reasons stand beside only where all of them can."""
    name = _width((row.name for row in rows), LONGEST_NAME)
    source = _width((row.source for row in rows), LONGEST_SOURCE)
    columns = _Columns(name, source, why=True)
    fit = all(cell_len(columns.line(row)) <= room for row in rows if row.why and row.state != "failed")
    return replace(columns, why=fit)


def _width(texts: Iterable[str], most: int) -> int:
    return max((size for text in texts if (size := cell_len(text)) <= most), default=0)


def _show(console: Console, row: _Row, columns: _Columns) -> None:
    """A row: its name, and beside it as much as there is room for; the rest below."""
    head = f"{row.state:<7}{row.place}".ljust(INDENT - 1)
    room = console.width - INDENT
    why = columns.why and bool(row.why) and cell_len(columns.line(row)) <= room
    line = columns.line(row) if why else columns.line(replace(row, why=""))
    beside = line.removeprefix(row.name) if cell_len(line) <= room else ""
    wrapped(console, row.name, 0, "bold", head, COLOURS[row.state], after=beside)
    if row.source and not beside:
        labelled(console, "from:", row.source, INDENT)
    if row.hooks:
        labelled(console, "hooks:", row.hooks, INDENT)
    if row.why and not why:
        wrapped(console, row.why, INDENT, "red" if row.state == "failed" else "dim")
