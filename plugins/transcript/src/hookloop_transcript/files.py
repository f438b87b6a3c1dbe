"""Files: reading and appending safely."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock

from hookloop_hookspecs import CorruptData

_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def read_text(path: Path) -> str:
    """A file's text, "" for one that is not there. Raises `CorruptData` for a link or for what is no UTF-8."""
    try:
        handle = os.open(path, os.O_RDONLY | _NO_LINKS | _BINARY)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise CorruptData(f"{path.name}: cannot be read as a transcript: {error.strerror}") from error
    with os.fdopen(handle, "rb") as file:
        return _decoded(file.read(), path)


def append_text(path: Path, plan: Callable[[str], tuple[str, str]]) -> None:
    """Append to a file, alone.

    `plan` gets the file's text and returns what of it stays (its beginning) and what follows. It is called under a lock;
    what it raises leaves the file as it is. A crash leaves at most a cut last turn, never a lost earlier one.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path.parent / ".lock"):
        content = read_text(path)
        keep, more = plan(content)
        if more:
            _append(path, len(keep.encode("utf-8")), more.encode("utf-8"))


def _append(path: Path, start: int, data: bytes) -> None:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINKS | _BINARY, 0o600)
    with os.fdopen(handle, "r+b", buffering=0) as file:
        file.truncate(start)
        file.seek(start)
        while data:
            data = data[file.write(data) :]
        os.fsync(file.fileno())


def _decoded(data: bytes, path: Path) -> str:
    """The text. A crash may have cut the last character in two; what stands before it counts."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end == len(data) and error.reason == "unexpected end of data":
            return data[: error.start].decode("utf-8")
        raise CorruptData(f"{path.name}: no transcript, its bytes are no UTF-8") from error
