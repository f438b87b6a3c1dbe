"""Printing: to a terminal of any width, to a pipe, as JSON. Text from models and plugins is made harmless first."""

from __future__ import annotations

import json
import re
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import asdict, is_dataclass
from typing import Any

from rich.console import Console
from rich.text import Text

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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


def wrapped(console: Console, text: str, indent: int, style: str = "") -> None:
    """Print text within the terminal's width; no word is cut that fits on a line."""
    width = max(console.width - indent, 20)
    for line in textwrap.wrap(one_line(text), width, break_on_hyphens=False) or [""]:
        console.print(Text(" " * indent + line, style), no_wrap=True, crop=False, overflow="ignore")


def labelled(console: Console, label: str, text: str, indent: int) -> None:
    """Print `label  text`, further lines below the text."""
    wrapped(console, f"{label} {text}", indent, "dim")


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
