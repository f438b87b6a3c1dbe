"""A process that writes to a store, for tests with several of them. Arguments: what to do, a memory's URL, and more.

It waits for a line on its standard input, so that several begin at once, and reports in lines of JSON.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from hookloop_hookspecs import Batch, Conflict, Entry, LoadQuery, Message, Said, TurnEnded, TurnStarted
from hookloop_hookspecs.entries import Body

CONVERSATIONS = 10


def memory_of(url: str) -> Any:
    """The memory of a URL, found as the engine finds it."""
    (point,) = entry_points(group="hookloop.memory", name=url.split(":")[0])
    return point.load()(url)


def turn(who: str, at: int, number: int) -> tuple[Entry, ...]:
    """A closed turn of four entries."""
    name = f"{who}-{at}"
    said = (Said(Message.user(name)), Said(Message.assistant(f"answer to {name}")))
    bodies: tuple[Body, ...] = (TurnStarted(who, name), *said, TurnEnded("done", "end"))
    return tuple(Entry(number + place, name, body) for place, body in enumerate(bodies))


def contend(memory: Any, who: str, mark: str, turns: str) -> None:
    """Append so many turns to ten conversations that others write too; report which were won, and what a loser saw."""
    chance, won, lost, left = random.Random(who), [], 0, 0
    for at in range(int(turns)):
        conversation = f"{mark}-{chance.randrange(CONVERSATIONS)}"
        while True:
            version = memory.load_memory(conversation, LoadQuery(1)).version
            entries = turn(who, at, version)
            try:
                memory.persist_memory(Batch(conversation, entries, version, who, 30.0))
            except Conflict:
                lost += 1
                left += sum(e.turn == entries[0].turn for e in memory.load_memory(conversation, LoadQuery()).entries)
            else:
                won.append([conversation, entries[0].turn])
                break
    report({"won": won, "lost": lost, "left": left})


def stream(memory: Any, who: str, conversation: str) -> None:
    """Append turns without end, and report each once it is stored."""
    at = 0
    while True:
        memory.persist_memory(Batch(conversation, turn(who, at, 4 * at), 4 * at, who, 30.0))
        report(at)
        at += 1


def first(memory: Any, who: str, conversation: str) -> None:
    """Use a store that nobody used before."""
    memory.persist_memory(Batch(f"{conversation}-{who}", turn(who, 0, 0), 0))
    report(memory.load_memory(f"{conversation}-{who}", LoadQuery()).version)


def report(value: object) -> None:
    print(json.dumps(value), flush=True)


def main(what: str, url: str, *more: str) -> None:
    tasks: dict[str, Callable[..., None]] = {"contend": contend, "stream": stream, "first": first}
    memory = memory_of(url)
    report("ready")
    sys.stdin.readline()
    tasks[what](memory, *more)
    memory.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
