"""Checks of who may write what, and of the keeper's methods: repeats, conflicts, leases, names, several writers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from threading import Barrier

from hookloop_hookspecs import Conflict, Entry, HookloopError, Loaded, Message, Said, TurnStarted

from .memory_contents import Rule
from .memory_subject import ODD_NAMES, Dialogue, Subject, numbered

_PATIENCE = 10.0


def repeat_is_skipped(subject: Subject) -> None:
    """A batch that is sent again, alone or with more behind it, is stored once."""
    entries = next(Dialogue(1).entries())
    for _ in range(2):
        subject.append(entries[:2], 0)
    subject.append(entries[:4], 0)
    subject.append(entries[2:], 2)
    subject.append(entries[2:], 2)
    _holds(subject, entries, "a repeated batch must be stored once")


def repeated_turn_is_skipped(subject: Subject) -> None:
    """A turn of texts that is sent again is stored once."""
    turn = numbered([Said(Message.user("question")), Said(Message.assistant("answer"))], "t")
    for _ in range(3):
        subject.append(turn, 0, final=True)
    assert subject.texts() == [("user", "question"), ("assistant", "answer")], "a repeated turn must be stored once"


def other_content_conflicts(subject: Subject) -> None:
    """Another entry of a number that is taken is a `Conflict`, and nothing of its batch is stored."""
    entries = next(Dialogue(1).entries())
    subject.append(entries[:3], 0)
    twin = replace(entries[2], body=Said(Message.assistant("something else")))
    _conflicts(lambda: subject.append([twin, *entries[3:]], 2), "another entry of a taken number")
    _conflicts(lambda: subject.append([replace(entries[2], turn="other")], 2), "an entry of another turn")
    _holds(subject, entries[:3], "after a conflict nothing of the batch may be stored")


def stale_version_conflicts(subject: Subject) -> None:
    """A batch at a version other than what is stored is a `Conflict`, and nothing of it is stored."""
    entries = next(Dialogue(1).entries())
    subject.append(entries[:3], 0)
    for version in (0, 2, 4):
        _conflicts(partial(subject.append, entries[3:5], version), f"version {version} where 3 are stored")
    _conflicts(lambda: subject.append(entries[2:5], 1), "a half repeated batch at a stale version")
    _conflicts(lambda: subject.append(entries[:1], 1, "new"), "version 1 of a new conversation")
    _holds(subject, entries[:3], "after a conflict nothing of the batch may be stored")
    assert subject.load("new") == Loaded(), "a conflict must not make a conversation"


def version_below_zero_is_not_compared(subject: Subject) -> None:
    """A memory that does not own the history is written to at a version below 0: appended, repeats skipped all the same."""
    entries = next(Dialogue(1).entries())
    for batch in (entries[:2], entries[4:6], entries[:2], entries[4:]):
        subject.append(batch, -1)
    twin = replace(entries[0], body=Said(Message.user("something else")))
    _conflicts(lambda: subject.append([twin], -1), "another entry of a taken number")
    found = subject.load()
    assert list(found.entries) == entries[:2] + entries[4:], "a batch at a version below 0 must be appended"
    assert found.version == 5, f"five entries are stored, version is {found.version}"


def batch_is_all_or_nothing(subject: Subject) -> None:
    """A batch of which one entry cannot be stored stores nothing."""
    subject.append(numbered([Said(Message.user("first"))], "t"), 0)
    good, bad = Said(Message.user("good")), Said(Message.user("bad \udc97"))
    for bodies in ([good, bad], [bad, good], [good, bad, good]):
        try:
            subject.append(numbered(bodies, "t", 1), 1)
        except HookloopError:
            assert [text for _, text in subject.texts()] == ["first"], "half a batch was stored"
        else:
            assert len(subject.texts()) == 1 + len(bodies), "a batch was stored in part"
            return


def lease_is_kept(subject: Subject) -> None:
    """A lease is noted with a batch, renewed by an empty one, changed by its owner alone, and let go."""
    entries = next(Dialogue(1).entries())
    subject.append(entries[:2], 0, owner="one", lease=500.0)
    _leased(subject, "one", 500.0)
    subject.append([], 2, owner="one", lease=900.0)
    _leased(subject, "one", 900.0)
    _conflicts(lambda: subject.append([], 2, owner="two", lease=500.0), "an empty batch while another holds the lease")
    _leased(subject, "one", 900.0)
    subject.append(entries[2:3], 2, owner="two", lease=500.0)
    _leased(subject, "two", 500.0)
    subject.append(entries[2:3], 2, owner="one", lease=500.0)
    _leased(subject, "two", 500.0)
    subject.append(entries[3:4], 3, owner="two", lease=0.0)
    assert subject.load().lease is None, "lease 0 lets go"
    assert subject.load().version == 4, "renewing a lease must store nothing"


def lease_passes(subject: Subject) -> None:
    """A lease that is not renewed passes by the store's own clock, and then others may take it."""
    subject.append(next(Dialogue(1).entries())[:1], 0, owner="one", lease=0.05)
    deadline = time.monotonic() + _PATIENCE
    while subject.load().lease is not None:
        assert time.monotonic() < deadline, f"a lease of 0.05 seconds still holds after {_PATIENCE}"
    subject.append([], 1, owner="two", lease=500.0)
    _leased(subject, "two", 500.0)


def scopes_are_apart(subject: Subject) -> None:
    """The same id in two scopes is two conversations, for every method."""
    for scope in ("", "tenant", "Tenant", "ten/ant"):
        subject.say(f"of {scope}", "answer", scope=scope)
    for scope in ("", "tenant", "Tenant", "ten/ant"):
        assert subject.texts(scope=scope)[0] == ("user", f"of {scope}"), f"scope {scope!r} sees another's messages"
        assert len(subject.listed(scope)) == 1, f"scope {scope!r} lists another's conversations"
    assert subject.delete(scope="tenant"), "delete must say True"
    assert subject.texts(scope="tenant") == [], "a deleted conversation is gone"
    assert subject.texts(scope="Tenant"), "delete in one scope must leave another alone"


def names_are_apart(subject: Subject) -> None:
    """Ids with quotes, slashes, dots, capitals, spaces, any script, up to 500 characters are kept apart."""
    for name in ODD_NAMES:
        subject.say(f"of {name}", "answer", name)
    for name in ODD_NAMES:
        found = subject.texts(name)
        assert found == [("user", f"of {name}"), ("assistant", "answer")], f"id {name[:40]!r} holds {str(found)[:200]}"
    names = {info.conversation for info in subject.listed()}
    assert names == {subject.named(name) for name in ODD_NAMES}, "the list must give ids back as they are"


def bad_names_are_refused(subject: Subject) -> None:
    """Ids with NUL or a lone surrogate are refused with a clear error, or kept apart like any other; too long ones too."""
    bad = ("a\0b", "a\udc97", "y" * 5000, "y" * 4999)
    kept = [name for name in bad if _kept(subject, name)]
    for name in kept:
        assert subject.texts(name) == [("user", f"of {name}"), ("assistant", "answer")], f"id {name[:40]!r} is shared"
    assert {info.conversation for info in subject.listed()} == {subject.named(name) for name in kept}


def keeper_lists_and_deletes(subject: Subject) -> None:
    """Conversations are listed newest first, with their count; a deleted one is gone and may begin anew."""
    for name in ("one", "two", "three", "one"):
        subject.say("question", "answer", name)
        _tick()
    listed = subject.listed()
    names = [info.conversation for info in listed]
    assert names == [subject.named(name) for name in ("one", "three", "two")], f"newest first, not {names}"
    assert listed[0].entries == subject.load("one").version, "the list's count must be the version"
    assert subject.delete("one"), "delete must say True for what was there"
    assert not subject.delete("one"), "delete must say False the second time"
    assert len(subject.listed()) == 2, "a deleted conversation must leave the list"
    subject.say("again", "answer", "one")
    assert subject.texts("one") == [("user", "again"), ("assistant", "answer")], "a deleted conversation begins anew"


def _claims(subject: Subject, version: int, who: str) -> None:
    subject.append(_claim(who, version), version, owner=who, lease=60.0)


def one_writer_wins(subject: Subject) -> None:
    """Of several writers at one version exactly one wins; the others get `Conflict` with nothing stored."""
    version = 0
    for round_ in range(5):
        wrote = _race(partial(_claims, subject, version))
        assert len(wrote) == 1, f"round {round_}: {len(wrote)} of 6 writers stored at version {version}"
        version += 2
        found = subject.load()
        assert found.version == version == len(found.entries), (
            f"{found.version=} after {round_ + 1} winners of 2 entries"
        )
        assert {entry.turn for entry in found.entries[-2:]} == set(wrote), "two writers' entries were mixed"


def many_conversations_at_once(subject: Subject) -> None:
    """Threads that write different conversations do not disturb each other."""

    def write(who: str) -> None:
        for at in range(5):
            subject.append(_claim(who, 2 * at), 2 * at, who)

    assert len(_race(write)) == 6, "writers of different conversations must not conflict"
    for who in _writers():
        assert subject.load(who).version == 10, f"conversation {who!r} lost entries"


def reopened_is_the_same(subject: Subject) -> None:
    """What was stored is there when the store is opened anew, and can be gone on with."""
    for turn in range(3):
        subject.say(f"question {turn}", "answer")
    before = subject.load()
    subject.reopen()
    after = subject.load()
    assert (after.entries, after.version) == (before.entries, before.version), "a reopened store holds something else"
    subject.say("after", "answer")
    assert subject.texts()[-2:] == [("user", "after"), ("assistant", "answer")], (
        "a reopened store cannot be gone on with"
    )


def _writers() -> list[str]:
    return [f"writer {at}" for at in range(6)]


def _race(write: Callable[[str], None]) -> list[str]:
    """Who of six threads that write at once was not told `Conflict`."""
    barrier = Barrier(6)

    def run(who: str) -> str | None:
        barrier.wait(_PATIENCE)
        try:
            write(who)
        except Conflict:
            return None
        return who

    with ThreadPoolExecutor(6) as pool:
        return [who for who in pool.map(run, _writers()) if who is not None]


def _claim(who: str, number: int) -> Sequence[Entry]:
    return numbered([TurnStarted(who, f"{who} {number}"), Said(Message.user(who))], who, number)


def _conflicts(append: Callable[[], None], what: str) -> None:
    try:
        append()
    except Conflict:
        return
    raise AssertionError(f"{what} must raise Conflict")


def _holds(subject: Subject, wanted: Sequence[Entry], why: str) -> None:
    found = subject.load()
    assert list(found.entries) == list(wanted), f"{why}: {len(found.entries)} entries instead of {len(wanted)}"
    assert found.version == len(wanted), f"{why}: version {found.version} instead of {len(wanted)}"


def _leased(subject: Subject, owner: str, seconds: float) -> None:
    lease = subject.load().lease
    assert lease is not None, f"{owner!r} should hold the lease, nobody does"
    assert lease.owner == owner, f"{owner!r} should hold the lease, not {lease.owner!r}"
    assert seconds - 2 * _PATIENCE < lease.left <= seconds, f"a lease of {seconds} seconds has {lease.left} left"


def _kept(subject: Subject, name: str) -> bool:
    try:
        subject.say(f"of {name}", "answer", name)
    except HookloopError:
        return False
    return True


def _tick() -> None:
    """Until the wall clock has moved by more than any store's resolution, so that "newest" means something."""
    start = time.time()
    while time.time() - start < 0.02:
        pass


ANY: tuple[Rule, ...] = (
    repeated_turn_is_skipped,
    scopes_are_apart,
    names_are_apart,
    bad_names_are_refused,
    keeper_lists_and_deletes,
)
INSIDE: tuple[Rule, ...] = (
    repeat_is_skipped,
    other_content_conflicts,
    version_below_zero_is_not_compared,
    batch_is_all_or_nothing,
    many_conversations_at_once,
)
VERSIONED: tuple[Rule, ...] = (stale_version_conflicts, lease_is_kept, lease_passes, one_writer_wins)
DURABLE: tuple[Rule, ...] = (reopened_is_the_same,)
