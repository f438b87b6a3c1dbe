"""Printing: to a terminal of any width, to a pipe, as JSON. Text from models and plugins is made harmless first."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any, Literal

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.console import Console
from rich.text import Text

from hookloop.config_file import reason
from hookloop_hookspecs import ConfigError

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

JOINED = r"(?:[\u200d\ufe0f\U0001f3fb-\U0001f3ff]|(?<=\u200d)\S)*"
TOKEN = re.compile(rf"\n|[^\S\n]|[^\s\u1100-\uffff\U0001f000-\U0003ffff]+|\S{JOINED}")
"""A line's end, a blank, a word of a script that has words, or a character of any other with all that joins it."""
NARROWEST = 20
"""Cells that a text gets at least, however narrow the terminal is."""
NARROW = re.compile(r"[^\s\u1100-\uffff\U0001f000-\U0003ffff]+")


def usual_streams() -> None:
    """Make the standard streams such as can be used: one that is closed leads nowhere, and no character stops one."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 - it is the process's
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def out() -> Console:
    """The console for what was asked for."""
    return _console(stderr=False)


def err() -> Console:
    """The console for what goes wrong, and for prompts of a program that is piped."""
    return _console(stderr=True)


def _console(stderr: bool) -> Console:
    """With `NO_COLOR` in the environment nothing but text is printed, not even bold."""
    colours: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(stderr=stderr, color_system=colours, highlight=False, emoji=False)


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
    longest = max(map(cell_len, NARROW.findall(one_line(text))), default=0)
    if label and console.width - indent - hang < max(NARROWEST, min(longest, console.width - indent - 2)):
        _line(console, Text(" " * indent) + head)
        head, hang = Text(), 2
    width = max(console.width - indent - hang, NARROWEST)
    lines = Text(_foldable(one_line(text), width)).wrap(console, width, tab_size=1)
    for at, line in enumerate(lines):
        start = Text(" " * indent) + head if at == 0 else Text()
        start.pad_right(indent + hang - start.cell_len)
        end = Text(after) if at == len(lines) - 1 else Text()
        plain = line.plain.strip() if at else line.plain.rstrip()
        _line(console, start + Text(plain, style) + end)


def _foldable(text: str, width: int) -> str:
    """Text whose paths can be broken behind a slash where they are wider than a line."""
    return re.sub(r"\S+", lambda word: _folded(word[0], width) if cell_len(word[0]) > width else word[0], text)


def _folded(path: str, width: int) -> str:
    """The parts of a path, as many together as fit on a line, so that no line has room for two of them."""
    lines = [""]
    for part in re.findall(r"[^/]*/|[^/]+", path):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return " ".join(lines)


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
    """Text that comes in pieces, broken at words to a width in cells.

    A word waits until its end has come, and blanks until something follows them, so that no line ends with any.
    """

    def __init__(self, console: Console) -> None:
        self.console = console
        self._column = 0
        self._word = ""
        self._blanks = ""

    def feed(self, text: str) -> None:
        """Print a piece."""
        tokens = TOKEN.findall(self._word + text)
        self._word = tokens.pop() if tokens and NARROW.fullmatch(tokens[-1]) else ""
        for token in tokens:
            self._put(token)
        self.console.file.flush()

    def end(self) -> None:
        """Print the word that waits, and end a line that is open."""
        if self._word:
            self._put(self._word)
        self._word = self._blanks = ""
        if self._column:
            self._put("\n")
        self.console.file.flush()

    def _put(self, token: str) -> None:
        if token == "\n":
            self._blanks = ""
            self._write(token, -self._column)
        elif token.isspace():
            self._blanks += token.replace("\t", "    ")
        elif self._column + cell_len(self._blanks + token) <= self.console.width:
            self._write(self._blanks + token, cell_len(self._blanks + token))
            self._blanks = ""
        elif self._column:
            self._put("\n")
            self._put(token)
        else:
            self._blanks = ""
            head = chop_cells(token, self.console.width)[0]
            self._write(head, cell_len(head))
            self._put(token[len(head) :])

    def _write(self, text: str, moved: int) -> None:
        self.console.print(text, end="", markup=False, soft_wrap=True)
        self._column += moved


def labelled(console: Console, label: str, text: str, indent: int, style: str = "dim", mark: str = "") -> None:
    """Print `label  text`, further lines below the text."""
    wrapped(console, text, indent, style, label, mark)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Says which file or folder cannot be written, in place of what Python says. Raises `ConfigError`."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{path}: cannot be written: {reason(error)}") from error


def print_json(value: Any) -> None:
    """Print a plain value, dataclass or list of those as JSON; what the stream cannot hold is escaped."""
    text = json.dumps(_plain(value), ensure_ascii=False, indent=2, default=str)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(_plain(value), indent=2, default=str)
    sys.stdout.write(text + "\n")


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
