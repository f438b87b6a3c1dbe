"""Printing: to a terminal of any width, to a pipe, as JSON. Text from models and plugins is made harmless first."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from typing import Any

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console
from rich.text import Text

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

TOKEN = re.compile(r"\n|[^\S\n]|[^\s\u1100-\uffff\U0001f000-\U0003ffff]+|[^\s]")
NARROWEST = 20
"""Cells that a text gets at least, however narrow the terminal is."""
NARROW = re.compile(r"[^\s\u1100-\uffff\U0001f000-\U0003ffff]+")


def out() -> Console:
    """The console for what was asked for."""
    return Console(highlight=False, emoji=False)


def err() -> Console:
    """The console for what goes wrong, and for prompts of a program that is piped."""
    return Console(stderr=True, highlight=False, emoji=False)


def clean(text: str) -> str:
    """Text without the control characters that could move the cursor or forge a line; they are shown as codes."""
    return CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """`clean` text on a single line."""
    return clean(text).replace("\n", "\\n").replace("\t", " ")


def wrapped(
    console: Console, text: str, indent: int, style: str = "", label: str = "", mark: str = "", after: str = ""
) -> None:
    """Print text within the terminal's width, behind a label whose style is `mark`; further lines stand below the text.

    No word is cut that fits on a line. `after` stands behind the last line, for which the caller knows that there is
    room.
    """
    head, hang = Text(label, mark or style), cell_len(label) + 1 if label else 0
    if label and console.width - indent - hang < NARROWEST:
        _line(console, Text(" " * indent) + head)
        head, hang = Text(), 2
    lines = Text(one_line(text)).wrap(console, max(console.width - indent - hang, NARROWEST), tab_size=1)
    for at, line in enumerate(lines):
        start = Text(" " * indent) + head if at == 0 else Text()
        start.pad_right(indent + hang - start.cell_len)
        end = Text(after) if at == len(lines) - 1 else Text()
        _line(console, start + Text(line.plain.rstrip(), style) + end)


def _line(console: Console, line: Text) -> None:
    line.rstrip()
    console.print(line, no_wrap=True, crop=False, overflow="ignore")


def paragraphs(console: Console, text: str, indent: int, style: str = "") -> None:
    """Print text of several lines within the terminal's width, each line of it on lines of its own."""
    for line in clean(text).split("\n"):
        wrapped(console, line, indent, style)


def fitted(text: str, width: int) -> str:
    """Text on one line, cut to a width in cells; a cut ends with "…"."""
    line = one_line(text)
    return line if cell_len(line) <= width else set_cell_size(line, max(width - 1, 0)).rstrip() + "…"


def padded(text: str, width: int) -> str:
    """Text with blanks behind it up to a width in cells."""
    return text + " " * max(width - cell_len(text), 0)


class Flow:
    """Text that comes in pieces, broken at words to a width in cells. A word waits until its end has come."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._column = 0
        self._word = ""

    def feed(self, text: str) -> None:
        """Print a piece."""
        tokens = TOKEN.findall(self._word + text)
        self._word = tokens.pop() if tokens and NARROW.fullmatch(tokens[-1]) else ""
        for token in tokens:
            self._put(token)
        self.console.file.flush()

    def end(self) -> None:
        """Print the word that waits, and end a line that is open."""
        self._put(self._word)
        self._word = ""
        if self._column:
            self._put("\n")
        self.console.file.flush()

    def _put(self, token: str) -> None:
        size = cell_len(token)
        if token == "\n":
            self._write(token, -self._column)
        elif self._column + size <= self.console.width:
            self._write(token, size)
        elif token == " ":
            self._write("\n", -self._column)
        elif self._column:
            self._write("\n", -self._column)
            self._put(token)
        else:
            head = chop_cells(token, self.console.width)[0]
            self._write(head + "\n", 0)
            self._put(token[len(head) :])

    def _write(self, text: str, moved: int) -> None:
        self.console.print(text, end="", markup=False, soft_wrap=True)
        self._column += moved


def labelled(console: Console, label: str, text: str, indent: int, style: str = "dim", mark: str = "") -> None:
    """Print `label  text`, further lines below the text."""
    wrapped(console, text, indent, style, label, mark)


def print_json(value: Any) -> None:
    """Print a plain value, dataclass or list of those as JSON."""
    sys.stdout.write(json.dumps(_plain(value), ensure_ascii=False, indent=2, default=str) + "\n")


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def joined(names: Iterable[str], nothing: str = "none") -> str:
    """Names for people: `a, b`."""
    return ", ".join(names) or nothing


def counted(count: int, noun: str) -> str:
    """`1 call`, `2 calls`, `2 replies`."""
    several = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else several}"
