"""Writing: the batches of a turn at their fixed points, inside as the turn goes, outside once at its end.

A batch that failed goes again with the next one. After a `Conflict` nothing more is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hookloop_hookspecs import Batch, Conflict, Entry, LoadQuery, Message, Said, Text, ToolResult
from hookloop_hookspecs.entries import Status
from hookloop_hookspecs.events import Stored
from hookloop_hookspecs.messages import File, Image, Part, ResultPart
from hookloop_hookspecs.redact import words

from . import hooked
from .effects import Emit, Flow, Load, Store
from .past import read
from .run import MemoryFacts, Run


def save(run: Run, *, final: bool = False) -> Flow[None]:
    """Store everything that was appended since the last batch. Raises what the memory raises."""
    home = run.home
    if home is None or not run.inside or run.lost:
        run.log.saved()
        return
    entries = kept = (*run.closing, *run.log.unsaved) if run.closing else tuple(run.log.unsaved)
    if not entries:
        return
    if not home.capabilities.media:
        kept = yield from _storable(run, home, entries)
    lease = run.setup.lease if home.capabilities.versioned and not final else 0.0
    batch = Batch(run.conversation, kept, run.version, run.setup.owner, lease, run.setup.scope, final)
    try:
        yield Store(home.name, batch)
    except Conflict:
        run.lost = True
        raise
    run.version += len(entries)
    run.claimed = True
    run.closing = []
    run.log.saved()
    if run.heard:
        yield from Emit(Stored(home.name, len(entries), run.version)).ask()


def let_go(run: Run) -> Flow[None]:
    """Give up the lease where the last batch could not be stored, so that the conversation is not held for nothing."""
    home = run.home
    if home is None or not run.claimed or not home.capabilities.versioned:
        return
    batch = Batch(run.conversation, (), run.version, run.setup.owner, 0.0, run.setup.scope, True)
    try:
        yield from Store(home.name, batch).ask()
    except Exception as error:
        yield from hooked.warn(run, f"the lease was not given up: {words(error.__cause__ or error)}", home.name)


def save_outside(run: Run, entries: Sequence[Entry], status: Status, text: str, *, again: bool = False) -> Flow[None]:
    """Give each memory outside the user's message and the answer; nothing for a turn without an answer.

    Arguments: `entries`, `status` and `text` are the turn's; `again` is for one that was stored before: then only stores are
    asked that are not the owner, and can say whether they hold it.
    """
    question, answer = _exchange(entries, status, text)
    if question is None or answer is None:
        return
    for memory in run.setup.memories:
        owns = memory.owns and run.home is not None
        foreign = memory.owns and run.home is None and run.request.message is not None  # a history of the caller's own
        if not memory.writes or foreign or (memory.owns and memory.placement == "inside"):
            continue
        if not again or (not memory.owns and memory.loads):
            yield from _store_outside(run, memory, owns, question, answer)


def _exchange(entries: Sequence[Entry], status: Status, text: str) -> tuple[Message | None, Message | None]:
    """The user's message and the answer of a turn; no answer where it came to none."""
    said = [entry.body.message for entry in entries if isinstance(entry.body, Said)]
    question = next((message for message in said if message.role == "user"), None)
    if question is None or status in ("failed", "cancelled", "suspended", "limit") or not text:
        return question, None
    last = next((message for message in reversed(said) if message.role == "assistant" and not message.calls), None)
    if last is not None and last.text == text:
        return question, Message("assistant", last.text, last.origin)
    return question, Message("assistant", text, said[-1].origin)


def _store_outside(run: Run, memory: MemoryFacts, owns: bool, question: Message, answer: Message) -> Flow[None]:
    number = run.past.number if owns or not memory.loads else (yield from _next_number(run, memory))
    if number is None:
        return
    entries = (Entry(number, run.turn_id, Said(question)), Entry(number + 1, run.turn_id, Said(answer)))
    kept = entries if memory.capabilities.media else (yield from _storable(run, memory, entries))
    version = run.version if owns else -1
    batch = Batch(run.conversation, kept, version, run.setup.owner, 0.0, run.setup.scope, True)
    try:
        yield from Store(memory.name, batch).ask()
    except Exception as error:
        if owns:
            raise
        yield from hooked.warn(run, words(error.__cause__ or error), memory.name, "persist_memory")
        return
    yield from Emit(Stored(memory.name, len(kept), version + len(kept) if owns else -1)).ask()


def _next_number(run: Run, memory: MemoryFacts) -> Flow[int | None]:
    """The first free number of a store that does not own the history: it counts by itself. None where it holds this turn
    already (of a run that was interrupted behind this), or cannot say.
    """
    query = LoadQuery(1, run.turn_id, run.setup.scope)
    try:
        loaded = yield from Load(run.conversation, query, memory.name).ask()
    except Exception as error:
        yield from hooked.warn(run, words(error.__cause__ or error), memory.name, "load_memory")
        return None
    past = read(loaded.entries)
    return past.number if past.turn(run.turn_id) is None else None


def _storable(run: Run, memory: MemoryFacts, entries: tuple[Entry, ...]) -> Flow[tuple[Entry, ...]]:
    """The entries for a memory without `media`: pictures and files become placeholders, with a warning."""
    if not any(_has_media(entry) for entry in entries):
        return entries
    yield from hooked.warn(run, "pictures and files are stored as placeholders", memory.name, "persist_memory")
    return tuple(_without_media(entry) for entry in entries)


def _messages(entry: Entry) -> tuple[Message, ...]:
    body = entry.body
    return (body.message, *body.behind) if isinstance(body, Said) else ()


def _has_media(entry: Entry) -> bool:
    parts = [part for message in _messages(entry) for part in message.content]
    parts += [piece for part in parts if isinstance(part, ToolResult) for piece in part.content]
    return any(isinstance(part, Image | File) for part in parts)


def _without_media(entry: Entry) -> Entry:
    body = entry.body
    if not isinstance(body, Said) or not _has_media(entry):
        return entry
    message, *behind = (replace(m, content=tuple(_plain(part) for part in m.content)) for m in _messages(entry))
    return replace(entry, body=replace(body, message=message, behind=tuple(behind)))


def _plain(part: Part) -> Part:
    if isinstance(part, ToolResult):
        return replace(part, content=tuple(_placeholder(piece) for piece in part.content))
    return _placeholder(part) if isinstance(part, Image | File) else part


def _placeholder(part: ResultPart) -> ResultPart:
    match part:
        case Image():
            return Text(f"[image {part.media_type} not kept]")
        case File():
            return Text(f"[file {part.name or part.media_type} not kept]")
        case Text():
            return part
