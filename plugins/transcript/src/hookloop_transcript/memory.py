"""The memory: what was said, as files in a folder."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hookloop_hookspecs import (
    Batch,
    ConfigError,
    Conflict,
    ContractError,
    ConversationInfo,
    CorruptData,
    Entry,
    Loaded,
    LoadQuery,
    MemoryCapabilities,
    Message,
    Origin,
    Said,
    TurnEnded,
    TurnStarted,
    hookimpl,
)
from hookloop_hookspecs.entries import Body
from hookloop_hookspecs.storing import check_ids

from .files import append_text, read_text
from .names import safe_name
from .text import Spoken, header, names, parsed, whole, written

_ROLES = ("user", "assistant")


class TranscriptMemory:
    """Histories as text files that people read: what the user said and what was answered, no tools.

    Arguments: `url`, "transcript:folder" or "transcript:///absolute/folder". It may be used from any thread and by any
    number of processes; whole turns follow one another in the order they end. It declares no flag, so it stands outside
    the loop. Raises `ConfigError` for a URL without a folder.
    """

    name = "transcript"
    capabilities = MemoryCapabilities()

    def __init__(self, url: str) -> None:
        self._folder = _folder(url)

    @hookimpl
    def persist_memory(self, batch: Batch) -> None:
        """Append the batch's turns. A turn that is there already is skipped; `Conflict` where it says something else."""
        check_ids(batch.conversation, batch.scope)
        fresh = list(_spoken(batch.entries))
        if not fresh:
            return

        def plan(content: str) -> tuple[str, str]:
            keep = whole(content, batch.conversation, batch.scope)
            there = {spoken.turn: spoken for spoken in parsed(keep)}
            more = "".join(written(spoken) for spoken in fresh if not _repeated(spoken, there, batch))
            if not more:
                return keep, ""
            before = "" if keep.endswith("\n") else "\n" if keep else header(batch.conversation, batch.scope)
            return keep, before + more

        append_text(self._path(batch.conversation, batch.scope), plan)

    @hookimpl
    def load_memory(self, conversation: str, query: LoadQuery) -> Loaded:
        """The turns as entries: for each its start, what was said, its end. Raises `CorruptData`."""
        check_ids(conversation, query.scope)
        entries: list[Entry] = []
        starts: list[int] = []
        for spoken in self._turns(conversation, query.scope):
            starts.append(len(entries))
            entries += _entries(spoken, len(entries))
        start = _cut(entries, starts, query.messages)
        older = [entry for entry in entries[:start] if query.turn_id and entry.turn == query.turn_id]
        return Loaded((*older, *entries[start:]), len(entries))

    def conversations(self, scope: str = "") -> Sequence[ConversationInfo]:
        """All conversations of a tenant, newest first."""
        found = []
        for path in self._place(scope).glob("chat-*.txt"):
            content = _readable(path)
            name = names(content)
            if name is not None and name[1] == scope and path == self._path(*name):
                found.append(ConversationInfo(name[0], _count(content, *name), path.stat().st_mtime))
        return sorted(found, key=lambda info: info.updated, reverse=True)

    def delete(self, conversation: str, scope: str = "") -> bool:
        """Delete a conversation whole; False when there was none."""
        check_ids(conversation, scope)
        try:
            self._path(conversation, scope).unlink()
        except FileNotFoundError:
            return False
        return True

    def _place(self, scope: str) -> Path:
        place = self._folder / f"scope-{safe_name(scope)}" if scope else self._folder
        if scope and place.is_symlink():
            raise CorruptData(f"{place.name}: a tenant's folder must not be a link")
        return place

    def _path(self, conversation: str, scope: str) -> Path:
        return self._place(scope) / f"chat-{safe_name(conversation)}.txt"

    def _turns(self, conversation: str, scope: str) -> list[Spoken]:
        return parsed(whole(read_text(self._path(conversation, scope)), conversation, scope))


def _readable(path: Path) -> str:
    """A file's text, "" for one that is no text: a list is of what can be listed."""
    try:
        return "" if path.is_symlink() else read_text(path)
    except CorruptData:
        return ""


def _count(content: str, conversation: str, scope: str) -> int:
    """How many entries a transcript comes to; 0 for a broken one, which is listed so that it can be seen and deleted."""
    try:
        return sum(len(spoken.said) + 2 for spoken in parsed(whole(content, conversation, scope)))
    except CorruptData:
        return 0


def _folder(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc or parts.query or parts.fragment or not parts.path:
        raise ConfigError("a transcript's URL names a folder: transcript:chats or transcript:///absolute/folder")
    return Path(unquote(parts.path))


def _spoken(entries: Sequence[Entry]) -> Iterator[Spoken]:
    """What the turns of a batch said, as text; a turn without any text is none."""
    turns: dict[str, list[tuple[str, str]]] = {}
    for entry in entries:
        if isinstance(entry.body, Said) and entry.body.message.role in _ROLES and entry.body.message.text:
            turns.setdefault(entry.turn, []).append((entry.body.message.role, entry.body.message.text))
    at = datetime.fromtimestamp(time.time(), UTC).isoformat(timespec="seconds")
    for turn, said in turns.items():
        try:
            "".join((turn, *(text for _, text in said))).encode("utf-8")
        except UnicodeEncodeError as error:
            raise ContractError(f"turn {turn[:80]!r} is no storable text: {error}") from error
        yield Spoken(turn, at, tuple(said))


def _repeated(spoken: Spoken, there: dict[str, Spoken], batch: Batch) -> bool:
    other = there.get(spoken.turn)
    if other is not None and other.said != spoken.said:
        raise Conflict(f"conversation {batch.conversation!r}: turn {spoken.turn!r} says something else already")
    return other is not None


def _entries(spoken: Spoken, number: int) -> list[Entry]:
    at = datetime.fromisoformat(spoken.at).timestamp()
    bodies: list[Body] = [TurnStarted("", "", at=at), *(_said(spoken.turn, role, text) for role, text in spoken.said)]
    answer = spoken.said[-1][1] if spoken.said and spoken.said[-1][0] == "assistant" else ""
    bodies.append(TurnEnded("done", "end", answer))
    return [Entry(number + place, spoken.turn, body) for place, body in enumerate(bodies)]


def _said(turn: str, role: str, text: str) -> Said:
    if role == "user":
        return Said(Message("user", text, Origin("user", turn=turn)))
    return Said(Message("assistant", text, Origin("model", turn=turn, round=1)), stop="end")


def _cut(entries: Sequence[Entry], starts: Sequence[int], messages: int | None) -> int:
    """The start of the turn behind which at least so many messages stand."""
    if messages is None:
        return 0
    for start in reversed(starts):
        if sum(isinstance(entry.body, Said) for entry in entries[start:]) >= messages:
            return start
    return 0
