"""From an id to a file name: two ids never share one, on any file system, and none leaves the folder."""

from __future__ import annotations

import hashlib

_LONGEST_NAME = 120
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


def safe_name(value: str) -> str:
    """A file name for an id: small letters, digits, `-`, `_` as they are, other bytes as `%41`.

    Capitals are escaped too, since some file systems do not tell them apart. A name that gets too long ends in `~` and a
    digest of the whole id; no short name holds a `~`.
    """
    name = "".join(char if char in _PLAIN else _escaped(char) for char in value)
    if len(name) <= _LONGEST_NAME:
        return name
    return f"{name[: _LONGEST_NAME // 2]}~{hashlib.sha256(value.encode()).hexdigest()}"


def _escaped(char: str) -> str:
    return "".join(f"%{byte:02x}" for byte in char.encode("utf-8"))
