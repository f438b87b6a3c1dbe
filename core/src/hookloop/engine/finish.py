"""The last phase, whatever happened: answer what is open, end the turn in the log, store, tell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hookloop_hookspecs import (
    Conflict,
    Message,
    Origin,
    Outcome,
    PendingCall,
    Round,
    Said,
    Suspended,
    ToolResult,
    TurnEnded,
    TurnSuspended,
)
from hookloop_hookspecs.codec import dump_entry
from hookloop_hookspecs.events import ToolEnded, TurnFinished
from hookloop_hookspecs.messages import Usage, json_text

from . import hooked
from .begin import closings
from .effects import CloseTools, Done, Emit, Flow, Now, StopJobs
from .history import clean_text, closing
from .log import flatten
from .run import Ended, Run
from .saving import save, save_outside


def finish(run: Run, ended: Ended) -> Flow[Outcome]:
    """End the run. A memory that fails to store is raised with the finished outcome."""
    run.finishing = True
    storing: BaseException | None = None
    if run.entered and not run.lost:
        yield from _close(run, ended)
        storing = yield from _store(run, ended)
    for problem in (yield from CloseTools().ask()):
        yield from hooked.warn(run, problem)
    outcome = outcome_of(run, ended, storing)
    yield from hooked.after_turn(run, outcome)
    yield from Emit(TurnFinished(outcome.status, outcome.stop_reason, outcome.text, outcome)).ask()
    if storing is not None and ended.error is None:
        ended.error = storing
    return outcome


def _close(run: Run, ended: Ended) -> Flow[None]:
    """Answer what is open (unless it waits for a decision) and append the last mark."""
    if run.running:
        run.running = False
        yield from _drain(run, (yield from StopJobs(True).ask()))
    now = yield from Now().ask()
    if ended.status == "suspended":
        run.add(TurnSuspended(now.wall))
        return
    group = run.log.group
    for place, said in closings(run.log):
        run.log.answer(place, said)
        if group is not None:
            yield from Emit(ToolEnded(run.round, group.call(place), said.message.results[0], False)).ask()
    run.add(TurnEnded(ended.status, ended.reason, clean_text(ended.text), run.output_text, _error_text(ended.error)))


def _drain(run: Run, dones: Sequence[Done]) -> Flow[None]:
    """Results of jobs that came to their end while the turn was being left."""
    group = run.log.group
    for done in dones:
        if group is None or done.question is not None:
            continue
        call = group.call(done.place)
        if done.interrupted:
            message = closing(call, "interrupted: the call had started, its effect is unknown")
        else:
            result = ToolResult(call.id, call.name, done.content, done.is_error, "", done.private)
            message = Message("tool", (result,), Origin("tool", turn=run.turn_id, round=run.round))
        run.log.answer(done.place, Said(message))
        yield from Emit(ToolEnded(run.round, call, message.results[0], not done.interrupted, done.seconds)).ask()


def _error_text(error: BaseException | None) -> str:
    return clean_text(f"{type(error).__name__}: {error}"[:2000]) if error is not None else ""


def _store(run: Run, ended: Ended) -> Flow[BaseException | None]:
    """The last batch, inside and outside; gives back what the history's owner raised."""
    try:
        yield from save(run, final=True)
        if ended.status not in ("failed", "cancelled", "suspended"):
            yield from save_outside(run, *_exchange(run, ended))
    except Exception as error:
        if not isinstance(error, Conflict):
            yield from hooked.warn(run, f"the turn's last entries were not stored: {type(error).__name__}: {error}")
        return error
    return None


def _exchange(run: Run, ended: Ended) -> tuple[Message | None, Message | None]:
    """The user's message and the answer, for memories outside; no answer where the turn came to none."""
    said = [entry.body.message for entry in run.log.entries if isinstance(entry.body, Said)]
    question = next((message for message in said if message.role == "user"), None)
    if question is None or ended.status == "limit" or not ended.text:
        return question, None
    last = next((message for message in reversed(said) if message.role == "assistant" and not message.calls), None)
    if last is not None and last.text == ended.text:
        return question, Message("assistant", last.text, last.origin)
    return question, Message("assistant", ended.text, said[-1].origin)


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
        rounds=tuple(_rounds(run)),
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
    return past + list(flatten(sorted(run.log.entries, key=lambda entry: entry.number)))


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


def _rounds(run: Run) -> list[Round]:
    replies = [e.body for e in run.log.entries if isinstance(e.body, Said) and e.body.stop is not None]
    rounds = []
    for number, said in enumerate(replies, 1):
        sent = run.rounds.get(number)
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
