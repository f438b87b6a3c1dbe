"""The last phase, whatever happened: answer what is open, end the turn in the log, store, tell."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial

from hookloop_hookspecs import (
    Conflict,
    Entry,
    Message,
    Outcome,
    PendingCall,
    PluginError,
    Round,
    Said,
    Suspended,
    TurnEnded,
    TurnSuspended,
)
from hookloop_hookspecs.codec import dump_entry
from hookloop_hookspecs.events import ToolEnded, TurnFinished
from hookloop_hookspecs.messages import Usage, json_text
from hookloop_hookspecs.redact import words

from . import hooked
from .ask import admit_sent
from .begin import closings
from .effects import CloseTools, Emit, Flow, Inbox, Now, StopJobs
from .history import distinct
from .log import flatten
from .run import Ended, Run, Sent
from .saving import let_go, save, save_outside
from .work import never_began, settle


def finish(run: Run, ended: Ended) -> Flow[Outcome]:
    """End the run. A memory that fails to store is raised with the finished outcome."""
    run.finishing = True
    storing: BaseException | None = None
    if run.running:
        yield from _drain(run, ended)
    if run.entered and not run.lost:
        yield from _close(run, ended)
        storing = yield from _store(run, ended)
    yield from _guarded(ended, _close_tools(run))
    outcome = outcome_of(run, ended, storing)
    yield from _guarded(ended, hooked.after_turn(run, outcome))
    if (run.boxes or run.spent) and run.entered and not run.lost and storing is None:
        yield from _guarded(ended, _afterwards(run))
    if len(run.warnings) > len(outcome.warnings):
        outcome = replace(outcome, warnings=tuple(run.warnings))
    told = TurnFinished(outcome.status, outcome.stop_reason, outcome.text, outcome)
    yield from _guarded(ended, Emit(told).ask())
    if storing is not None and ended.error is None:
        ended.error = storing
    return outcome


def _guarded(ended: Ended, flow: Flow[None]) -> Flow[None]:
    """A last step. Whatever is raised in it (a plugin exits, Ctrl-C) comes out once all of them were made."""
    try:
        yield from flow
    except GeneratorExit:
        raise
    except BaseException as error:
        ended.error = ended.error or error


def _close_tools(run: Run) -> Flow[None]:
    for problem in (yield from CloseTools().ask()):
        yield from hooked.warn(run, problem)


def _afterwards(run: Run) -> Flow[None]:
    """What `after_turn` put into states, or spent, is stored behind the turn. Nothing here ends a turn that is over."""
    try:
        run.collect()
        yield from save(run, final=True)
    except Exception as error:
        run.log.saved()
        yield from hooked.warn(run, f"what after_turn noted was not stored: {words(error.__cause__ or error)}")


def _close(run: Run, ended: Ended) -> Flow[None]:
    """Answer what is open (unless it waits for a decision), admit what was sent in, and append the last mark."""
    _collect(run, ended)
    now = yield from Now().ask()
    if ended.status != "suspended":
        group = run.log.group
        for place, said in closings(run.log):
            run.log.answer(place, said)
            if group is not None:
                yield from Emit(ToolEnded(run.round, group.call(place), said.message.results[0], False)).ask()
    while (post := (yield from Inbox(True).ask())).messages:
        yield from admit_sent(run, post)
    if ended.status == "suspended":
        run.add(TurnSuspended(now.wall))
    else:
        run.add(TurnEnded(ended.status, ended.reason, ended.text, run.output_text, _error_text(ended.error)))


def _collect(run: Run, ended: Ended) -> None:
    """The last states of plugins. One that is no JSON fails the turn, where nothing else did."""
    for _ in range(len(run.boxes) + 1):
        try:
            run.collect()
        except PluginError as error:
            if ended.error is None:
                ended.status, ended.reason, ended.error = "failed", type(error).__name__, error


def _drain(run: Run, ended: Ended) -> Flow[None]:
    """Bring started jobs to their ends: those that are over are judged as ever, the others are told to stop, and those that
    never began are answered so. A plugin that fails meanwhile withholds its result; the turn ends as it would have.
    """
    dones = list(run.over.values()) + (yield from StopJobs(True).ask()) if run.started else []
    run.running = False
    if run.lost:
        return
    unbegun = [done.place for done in dones if not done.began] if run.started else list(run.jobs)
    for place in (place for place in unbegun if place in run.jobs):
        yield from never_began(run, run.jobs[place], "not run: the turn ended before this call began")
    for done in dones:
        if done.place in run.jobs:
            try:
                yield from settle(run, done)
            except Exception as error:
                ended.error = ended.error or error


def _error_text(error: BaseException | None) -> str:
    return words(error) if error is not None else ""


def _store(run: Run, ended: Ended) -> Flow[BaseException | None]:
    """The last batch, inside and outside; gives back what the history's owner raised."""
    try:
        yield from save(run, final=True)
        yield from save_outside(run, run.log.entries, ended.status, ended.text)
    except GeneratorExit:
        raise
    except BaseException as error:
        if not isinstance(error, Conflict):
            yield from let_go(run)
            yield from hooked.warn(run, f"the turn's last entries were not stored: {words(error.__cause__ or error)}")
        return error
    return None


def outcome_of(run: Run, ended: Ended, storing: BaseException | None = None) -> Outcome:
    """The outcome of this run, from the log."""
    entries = sorted(run.log.entries, key=lambda entry: entry.number)
    return Outcome(
        status=ended.status,
        stop_reason=ended.reason,
        text=ended.text,
        conversation=run.conversation,
        turn_id=run.turn_id,
        output=run.output,
        new=tuple(flatten(entries)),
        usage=run.log.ledger.usage,
        rounds=tuple(rounds_of(run.log.entries, run.rounds)),
        pending=tuple(pending(run)) if ended.status == "suspended" else (),
        warnings=tuple(run.warnings),
        error=ended.error or storing,
        partial="".join(run.partial) if ended.status in ("cancelled", "failed") else "",
        flatten=partial(all_messages, run),
        suspend=partial(suspension, run),
    )


def all_messages(run: Run) -> list[Message]:
    """The loaded log and this turn, flattened."""
    past = [message for turn in run.past.turns for message in flatten(turn.entries)]
    return distinct(past + list(flatten(sorted(run.log.entries, key=lambda entry: entry.number))))


def suspension(run: Run) -> str:
    """The conversation as JSON text, for a resume without a durable memory."""
    entries = [entry for turn in run.past.turns for entry in turn.entries] + run.log.entries
    entries.sort(key=lambda entry: entry.number)
    lines = [dump_entry(entry) for entry in entries]
    return json_text({"conversation": run.conversation, "turn": run.turn_id, "entries": lines})


def pending(run: Run) -> list[PendingCall]:
    """The calls that wait for a decision."""
    group, marks = run.log.group, run.log.ledger.marks
    if group is None:
        return []
    waiting = [(place, mark) for place in group.open if isinstance(mark := marks.get(place), Suspended)]
    return [PendingCall(group.call(place), mark.question, mark.arguments, mark.expires) for place, mark in waiting]


def rounds_of(entries: Iterable[Entry], known: Mapping[int, Sent]) -> list[Round]:
    """The rounds of a turn, with what is `known` of their requests."""
    replies = [e.body for e in entries if isinstance(e.body, Said) and e.body.stop is not None]
    rounds = []
    for number, said in enumerate(replies, 1):
        sent = known.get(number)
        rounds.append(
            Round(
                number,
                sent.provider if sent else said.message.origin.model,
                sent.size if sent else 0,
                said.usage or Usage(),
                said.message.calls,
                said.seconds,
                sent.attempts if sent else 1,
                said.stop or "",
            )
        )
    return rounds
