"""Where configuration comes from: the file, found upwards, and the environment; and on which line a key stands.

What must live here: reading and finding. What must never be known here: what the keys mean.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from hookloop_hookspecs import ConfigError

from .names import alike

Keys: TypeAlias = tuple[str | int, ...]
FILE = "hookloop.toml"
PROJECT = "pyproject.toml"
PREFIX = "HOOKLOOP_"
OUR_TABLE = re.compile(r"""^\s*\[+\s*tool\s*\.\s*(["']?)hookloop\1\s*[.\]]""", re.MULTILINE)
"""The head of a table of ours, for a file that is not valid TOML."""


@dataclass(frozen=True)
class Source:
    """Where a configuration came from.

    `path` is its file (None: given by a program); `text` the file's; `prefix` the table in it that is ours; `variables`
    the environment variables, and options of the command line, that were applied, by key path.
    """

    path: Path | None = None
    text: str = ""
    prefix: Keys = ()
    variables: Mapping[Keys, str] = field(default_factory=dict)

    def where(self, keys: Keys = ()) -> str:
        """The place of a key for people: `hookloop.toml:7`, or the environment variable that set it."""
        if name := self.variable(keys):
            return f"option {name}" if name.startswith("-") else f"environment variable {name}"
        if self.path is None:
            return "config"
        line = line_of(self.text, self.prefix + keys)
        return f"{shown(self.path)}:{line}" if line else shown(self.path)

    def variable(self, keys: Keys) -> str | None:
        """The environment variable, or the option, that set a key or a table around it; or that alone wrote below it."""
        above = (self.variables.get(keys[:length]) for length in range(len(keys), 0, -1))
        if found := next(filter(None, above), None):
            return found
        if not keys or _first_with(self.text, self.prefix + keys) is not None:
            return None
        return next((name for path, name in self.variables.items() if path[: len(keys)] == keys), None)


def shown(path: Path) -> str:
    """A path as people know it: relative to the working directory where it lies below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def find(start: Path) -> Path | None:
    """The nearest `hookloop.toml`, or `pyproject.toml` with a table `[tool.hookloop]`, from `start` upwards."""
    for folder in (start.resolve(), *start.resolve().parents):
        if (folder / FILE).is_file():
            return folder / FILE
        project = folder / PROJECT
        if project.is_file() and _is_ours(project):
            return project
    return None


def _is_ours(project: Path) -> bool:
    """Has it a table `[tool.hookloop]`? One that cannot be read is somebody else's, unless the head of ours stands in it."""
    try:
        raw = project.read_bytes()
    except OSError:
        return False
    text = raw.decode("utf-8-sig", "replace")
    try:
        tool = tomllib.loads(text).get("tool")
    except tomllib.TOMLDecodeError:
        return OUR_TABLE.search(text) is not None
    return isinstance(tool, dict) and "hookloop" in tool


def read(path: Path) -> tuple[dict[str, Any], Source]:
    """The data of a configuration file, and where it came from. Raises `ConfigError` where it cannot be read."""
    text = _text(path)
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{shown(path)}: not valid TOML: {error}") from error
    if path.name != PROJECT:
        return data, Source(path, text)
    tool = data.get("tool", {})
    table = tool.get("hookloop", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(f"{shown(path)}: [tool.hookloop] is not a table")
    return table, Source(path, text, ("tool", "hookloop"))


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8-sig")  # some editors begin a file with a byte order mark
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{shown(path)}: cannot be read: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Why a file cannot be read, without its path, which whoever says it names."""
    return getattr(error, "strerror", None) or str(error)


def overrides(environ: Mapping[str, str], known: Callable[[str], bool]) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """The environment's variables that are configuration: name, key path in lower case, text.

    `HOOKLOOP_LIMITS__ROUNDS` is `limits.rounds`. A variable without `__` that `known` does not accept is somebody
    else's.
    """
    for name in sorted(environ):
        if name.startswith(PREFIX):
            keys = tuple(name.removeprefix(PREFIX).lower().split("__"))
            if len(keys) > 1 or known(keys[0]):
                yield name, keys, environ[name]


def value_of(text: str) -> Any:
    """The TOML value that `text` writes (`20`, `true`, `["a"]`), or the text itself."""
    try:
        data = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return data["value"] if len(data) == 1 else text


def put(data: dict[str, Any], keys: tuple[str, ...], value: Any) -> tuple[str, ...]:
    """Set a value deep in `data`, copying what it changes. A part that differs from a present key only in case or `-`
    and `_` is that key. Returns the path as it was used."""
    here = next((key for key in data if alike(key, keys[0])), keys[0])
    if len(keys) == 1:
        data[here] = value
        return (here,)
    below = data.get(here)
    data[here] = dict(below) if isinstance(below, dict) else {}
    return (here, *put(data[here], keys[1:], value))


def line_of(text: str, keys: Keys) -> int | None:
    """The line, from 1, on which the key at `keys` or the nearest table around it is written."""
    best: tuple[int, int] | None = None
    for number, path in _written(text):
        depth = _common(path, keys)
        if depth and depth == len(path) and (best is None or depth > best[0]):
            best = depth, number
    return best[1] if best else _first_with(text, keys)


def _first_with(text: str, keys: Keys) -> int | None:
    """The first line that begins below `keys`, for a table that is only implied by its children."""
    return next((number for number, path in _written(text) if path[: len(keys)] == keys and keys), None)


def _common(path: Keys, keys: Keys) -> int:
    pairs = zip(path, keys, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(path), len(keys)))


def _written(text: str) -> Iterator[tuple[int, Keys]]:
    """Each line that opens a table or sets a key, with the path that it names. Array tables count from 0."""
    table: Keys = ()
    seen: dict[Keys, int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if stripped.startswith("["):
            name = _keys(stripped.split("#")[0].strip())
            if name is None:
                continue
            table = name
            if stripped.startswith("[["):
                seen[name] = seen.get(name, -1) + 1
                table = (*name, seen[name])
            yield number, table
        elif (key := _assigned(stripped)) is not None:
            yield number, table + key


def _assigned(line: str) -> Keys | None:
    """The dotted key before the first `=` that ends a key."""
    at = line.find("=")
    while at > 0:
        if keys := _keys(line[:at] + "= 0"):
            return keys
        at = line.find("=", at + 1)
    return None


def _keys(line: str) -> Keys | None:
    """The path of the only key or table that a piece of TOML names."""
    try:
        data: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return None
    path: list[str] = []
    while isinstance(data, dict | list) and data:
        if isinstance(data, list):
            data = data[0]
            continue
        key, data = next(iter(data.items()))
        path.append(key)
    return tuple(path) or None
