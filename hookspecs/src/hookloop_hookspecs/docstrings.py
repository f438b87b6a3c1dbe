"""What a docstring says: a description, and one text per parameter. Reads the Google, numpy and Sphinx styles.

Only what is about parameters is taken out of the description: what a tool returns and raises helps a model.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Final

_PARAMETERS: Final = {
    "args", "arguments", "parameters", "params", "keyword args", "keyword arguments", "other parameters",
}  # fmt: skip
_RULE: Final = re.compile(r"\s*(-{3,}|={3,})\s*")
_GOOGLE: Final = re.compile(r"\s*([A-Za-z]+(?: [A-Za-z]+)?)\s*:\s*")
_GOOGLE_ITEM: Final = re.compile(r"\*{0,2}(\w+)\s*(?:\((?:[^()]|\([^()]*\))*\))?\s*:(?:\s+(.*))?")
_NUMPY_ITEM: Final = re.compile(r"(\*{0,2}\w+(?:\s*,\s*\*{0,2}\w+)*)\s*(?::.*)?")
_SPHINX: Final = re.compile(r"\s*:(param|parameter|arg|argument|key|keyword|type)\s+([^:]+):\s*(.*)")


@dataclass(slots=True)
class Docs:
    """A docstring taken apart."""

    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)


def read_docstring(text: str | None) -> Docs:
    """The description of a function and the descriptions of its parameters."""
    docs = Docs()
    lines = inspect.cleandoc(text or "").splitlines()
    prose: list[str] = []
    place = 0
    while place < len(lines):
        end = _sphinx(lines, place, docs) or _numpy(lines, place, docs) or _google(lines, place, docs)
        if not end:
            prose.append(lines[place])
        place = end or place + 1
    docs.description = re.sub(r"\n{3,}", "\n\n", "\n".join(prose)).strip()
    return docs


def _sphinx(lines: list[str], place: int, docs: Docs) -> int:
    """Read a `:param name: text` field; where it ends, or 0 where there is none. The others do likewise."""
    match = _SPHINX.fullmatch(lines[place])
    if not match:
        return 0
    margin = _indent(lines[place])
    end = place + 1
    while end < len(lines) and lines[end].strip() and _indent(lines[end]) > margin:
        end += 1
    if match[1] != "type":
        docs.parameters[match[2].split()[-1].lstrip("*")] = _joined([match[3], *lines[place + 1 : end]])
    return end


def _numpy(lines: list[str], place: int, docs: Docs) -> int:
    if lines[place].strip().lower() not in _PARAMETERS or not _ruled(lines, place):
        return 0
    end = place + 2
    while end < len(lines) and not (lines[end].strip() and _ruled(lines, end)):
        end += 1
    for head, body in _items(lines[place + 2 : end]):
        if match := _NUMPY_ITEM.fullmatch(head):
            for name in match[1].split(","):
                docs.parameters[name.strip().lstrip("*")] = _joined(body)
    return end


def _ruled(lines: list[str], place: int) -> bool:
    return place + 1 < len(lines) and bool(_RULE.fullmatch(lines[place + 1]))


def _google(lines: list[str], place: int, docs: Docs) -> int:
    match = _GOOGLE.fullmatch(lines[place])
    if not match or match[1].lower() not in _PARAMETERS:
        return 0
    margin = _indent(lines[place])
    end = place + 1
    while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > margin):
        end += 1
    name = ""
    for head, body in _items(lines[place + 1 : end]):
        if item := _GOOGLE_ITEM.fullmatch(head):
            name = item[1]
            docs.parameters[name] = _joined([item[2] or "", *body])
        elif name:  # a continued text that somebody forgot to indent
            docs.parameters[name] = _joined([docs.parameters[name], head, *body])
    return end


def _items(lines: list[str]) -> list[tuple[str, list[str]]]:
    """The items of a section: a line at the section's margin, with the deeper lines below it."""
    filled = [line for line in lines if line.strip()]
    margin = min(map(_indent, filled), default=0)
    items: list[tuple[str, list[str]]] = []
    for line in filled:
        if _indent(line) == margin:
            items.append((line.strip(), []))
        elif items:
            items[-1][1].append(line)
    return items


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _joined(lines: list[str]) -> str:
    return " ".join(part for part in map(str.strip, lines) if part)
