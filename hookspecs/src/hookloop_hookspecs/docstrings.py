"""What a docstring says: a description, and one text per parameter. Reads the Google, numpy and Sphinx styles."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Final

_PARAMETERS: Final = {
    "args",
    "arguments",
    "parameters",
    "params",
    "keyword args",
    "keyword arguments",
    "other parameters",
}
_OTHERS: Final = {
    "attributes", "example", "examples", "note", "notes", "raises", "references", "return", "returns", "see also",
    "todo", "warning", "warnings", "warns", "yield", "yields",
}  # fmt: skip
_GOOGLE: Final = re.compile(r"^\s*(\w+(?:\s+\w+)?)\s*:\s*$")
_GOOGLE_ITEM: Final = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*(?:\([^)]*\)[^)]*)*\))?\s*:\s*(.*)$")
_NUMPY_ITEM: Final = re.compile(r"^(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?$")
_SPHINX: Final = re.compile(r"^:(\w+)(?:\s+([^:]*))?:\s*(.*)$")
_SPHINX_PARAMETERS: Final = {"param", "parameter", "arg", "argument", "key", "keyword"}


@dataclass(slots=True)
class Docs:
    """A docstring taken apart."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docs:
    """The description (everything outside sections about parameters, returns, errors and examples) and the parameters."""
    docs = Docs()
    lines = inspect.cleandoc(text or "").splitlines()
    prose: list[str] = []
    place = 0
    while place < len(lines):
        end = _section(lines, place, docs)
        if end == place:
            prose.append(lines[place])
            end += 1
        place = end
    docs.description = re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()
    return docs


def _section(lines: list[str], place: int, docs: Docs) -> int:
    """Read the section that begins at `place` into `docs`; where it ends, or `place` when none begins there."""
    if field_list := _SPHINX.match(lines[place]):
        return _sphinx(lines, place, field_list, docs)
    title = lines[place].strip().lower()
    if place + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[place + 1]) and title in _PARAMETERS | _OTHERS:
        return _numpy(lines, place + 2, title, docs)
    header = _GOOGLE.match(lines[place])
    if header and header[1].lower() in _PARAMETERS | _OTHERS:
        return _google(lines, place, header[1].lower(), docs)
    return place


def _sphinx(lines: list[str], place: int, match: re.Match[str], docs: Docs) -> int:
    kind, subject, first = match.groups()
    end = _block_end(lines, place + 1, 1, blank_ends=True)
    if kind in _SPHINX_PARAMETERS and subject:
        docs.parameters[subject.split()[-1].lstrip("*")] = _joined([first, *lines[place + 1 : end]])
    return end


def _google(lines: list[str], place: int, title: str, docs: Docs) -> int:
    margin = _indent(lines[place]) + 1
    end = _block_end(lines, place + 1, margin)
    if title in _PARAMETERS:
        for head, body in _items(lines[place + 1 : end]):
            if match := _GOOGLE_ITEM.match(head):
                docs.parameters[match[1]] = _joined([match[2], *body])
    return end


def _numpy(lines: list[str], place: int, title: str, docs: Docs) -> int:
    end = place
    while end < len(lines) and not (end + 1 < len(lines) and re.fullmatch(r"\s*-{3,}\s*", lines[end + 1])):
        end += 1
    if title in _PARAMETERS:
        for head, body in _items(lines[place:end]):
            if match := _NUMPY_ITEM.match(head):
                for name in match[1].split(","):
                    docs.parameters[name.strip().lstrip("*")] = _joined(body)
    return end


def _items(lines: list[str]) -> list[tuple[str, list[str]]]:
    """Items of a section: a line at the section's margin, with the deeper lines below it."""
    filled = [line for line in lines if line.strip()]
    margin = min(map(_indent, filled), default=0)
    items: list[tuple[str, list[str]]] = []
    for line in filled:
        if _indent(line) == margin:
            items.append((line.strip(), []))
        elif items:
            items[-1][1].append(line)
    return items


def _block_end(lines: list[str], place: int, margin: int, *, blank_ends: bool = False) -> int:
    """The first line from `place` on that is indented less than `margin`; blank lines do not count unless they end it."""
    while place < len(lines) and (_indent(lines[place]) >= margin if lines[place].strip() else not blank_ends):
        place += 1
    return place


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(part for part in map(str.strip, lines) if part)
