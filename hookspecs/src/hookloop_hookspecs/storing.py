"""For stores: ids and entries on their way in and out. One rule for all, so that a program may change its store."""

from __future__ import annotations

import hashlib
import threading

from .codec import dump_entry, load_entry
from .entries import Entry
from .errors import ContractError

LONGEST_ID = 500
"""Characters that a conversation's id or a scope may have."""
REMEMBERED = 8192
"""How many entries `EntryTexts` remembers, each of at most so many characters:"""
REMEMBERED_LENGTH = 4096


def check_ids(conversation: str, scope: str) -> None:
    """Raise `ContractError` for an id that not every store could keep apart from all others."""
    if not conversation:
        raise ContractError("a conversation's id must not be empty")
    for what, value in (("conversation id", conversation), ("scope", scope)):
        if len(value) > LONGEST_ID:
            raise ContractError(f"a {what} has at most {LONGEST_ID} characters, this one {len(value)}: {value[:40]!r}…")
        if "\0" in value or not _encodes(value):
            raise ContractError(f"a {what} holds no NUL and no lone surrogate: {value[:80]!r}")


def digest(*names: str) -> str:
    """A key of fixed width for names of any width, so that no database's collation or index limit touches them."""
    return hashlib.sha256("\0".join(names).encode("utf-8", "surrogatepass")).hexdigest()


def _encodes(value: str) -> bool:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


class EntryTexts:
    """Entries to text and back. Remembers recent ones: a stored entry never changes, so no text is read twice."""

    def __init__(self) -> None:
        self._known: dict[str, Entry] = {}
        self._lock = threading.Lock()

    def text(self, entry: Entry) -> str:
        """The entry's text. Raises `ContractError` where it cannot be stored (a lone surrogate)."""
        try:
            text = dump_entry(entry)
            text.encode("utf-8")
        except ValueError as error:
            raise ContractError(
                f"entry {entry.number} of turn {entry.turn[:80]!r} is no storable text: {error}"
            ) from error
        self._remember(text, entry)
        return text

    def entry(self, text: str) -> Entry:
        """The entry that a text stands for. Raises `CorruptData`."""
        entry = self._known.get(text)
        if entry is None:
            entry = load_entry(text)
            self._remember(text, entry)
        return entry

    def _remember(self, text: str, entry: Entry) -> None:
        if len(text) > REMEMBERED_LENGTH:
            return
        with self._lock:
            if len(self._known) >= REMEMBERED:
                del self._known[next(iter(self._known))]
            self._known[text] = entry
