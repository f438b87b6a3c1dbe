"""From an id to a file name: two ids never share one, on any file system, and none leaves the folder."""

from __future__ import annotations

import hashlib

from hookloop_hookspecs import ContractError

LONGEST_ID = 500
_LONGEST_NAME = 120
_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")


def check_ids(conversation: str, scope: str) -> None:
    """Raise `ContractError` for an id that could not be kept apart from all others."""
    if not conversation:
        raise ContractError("a conversation's id must not be empty")
    for what, value in (("conversation id", conversation), ("scope", scope)):
        if len(value) > LONGEST_ID:
            raise ContractError(f"a {what} has at most {LONGEST_ID} characters, this one {len(value)}: {value[:40]!r}…")
        if "\0" in value or any("\ud800" <= char <= "\udfff" for char in value):
            raise ContractError(f"a {what} holds no NUL and no lone surrogate: {value[:80]!r}")


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
