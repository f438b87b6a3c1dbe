"""The third phase: a reply with calls enters history, with all that was decided about its calls, in one batch.

All verdicts are taken, in call order, before anything is appended and before the first call starts. Calls that do not run
have their results in the same batch; those that wait are marked `Suspended`, those that run `Started`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from hookloop_hookspecs import Ending, Message, PluginError, Said, Started, Stop, Suspended, ToolCall
from hookloop_hookspecs.events import CallSuspended, LimitReached, ReplyReceived, ToolEnded, ToolStarted

from . import hooked
from .ask import Asked
from .effects import Emit, Flow, Job, Now
from .history import clean, unique_ids
from .judge import Judged, Rank, Sifted, put_before, refused, sift
from .merge import Ruling
from .output import is_output, judge_output
from .results import Finished, after
from .run import Ended, Run
from .saving import save


def decide(run: Run, asked: Asked) -> Flow[tuple[Job, ...]]:
    """Judge the calls of a reply, put everything into history and store it; gives back what is to run."""
    message = enter(run, asked)
    run.reply = asked.reply
    if message.content is not asked.reply.content:
        run.reply = replace(asked.reply, content=message.content)
    number = run.log.number
    calls = message.calls
    judged = yield from _verdicts(run, asked, calls)
    finished: list[Finished | None] = [None] * len(judged)
    limit = ""
    if refusals := [one for one in judged if one.result is not None]:
        limit = next((one.limit for one in refusals if one.limit), "")
        judged, finished = yield from conclude(run, judged, asks=not asked.reply.cut)
    run.add(Said(message, asked.behind, asked.reply.stop, asked.reply.usage, asked.seconds))
    if run.heard:
        yield from Emit(ReplyReceived(run.round, run.reply, message, asked.seconds, asked.answered_by)).ask()
        yield from hooked.tell(run, asked.behind)
    if limit and run.log.ledger.ending is None:
        yield from _breach(run, limit)
    placed = list(zip(range(number + 1, number + 1 + len(judged)), judged, finished, strict=True))
    return (yield from commit(run, placed))


def conclude(run: Run, judged: list[Judged], *, asks: bool = True) -> Flow[tuple[list[Judged], list[Finished | None]]]:
    """Put the results of calls that do not run before `after_tool`. A Stop, or a plugin that fails there, means that no
    call starts and none waits: all are answered.
    """
    finished: list[Finished | None] = []
    for one in judged:
        known = Finished(Said(one.message), one.outcome) if one.result is not None else None
        ask = known is not None and asks and not one.closes
        finished.append((yield from after(run, one.call, one.message, one.origin)) if ask else known)
    why = _halted(judged, finished)
    if why:
        judged = [one if one.result is not None else refused(one.call, f"not run: {why}") for one in judged]
        pairs = zip(judged, finished, strict=True)
        finished = [done or Finished(Said(one.message), one.outcome) for one, done in pairs]
    return judged, finished


def _halted(judged: Sequence[Judged], finished: Sequence[Finished | None]) -> str:
    """Why no call may start; empty where they may."""
    for done in finished:
        if done is not None and done.error is not None:
            return f"plugin {done.error.plugin} failed"
    stops = [one.stop for one in judged] + [done.stop for done in finished if done is not None]
    return next((f"stopped by {stop.plugin}" for stop in stops if stop is not None), "")


def end(run: Run, ruling: Ruling | None) -> None:
    """Mark the turn as ending by a Stop; the first one counts."""
    if ruling is not None and isinstance(ruling.verdict, Stop) and run.log.ledger.ending is None:
        run.add(Ending("stopped", ruling.verdict.reason, ruling.verdict.text, by=ruling.plugin))


def fail(run: Run, error: PluginError | None) -> None:
    """Mark the turn as ending by a plugin that failed, so that it fails also where the process dies before its end."""
    if error is not None and run.log.ledger.ending is None:
        run.add(Ending("failed", type(error).__name__, str(error), by=error.plugin))


def enter(run: Run, asked: Asked) -> Message:
    """The reply as a message: clean, its ids unique."""
    content = unique_ids(clean(asked.reply.content), run.log.ids, run.log.number)
    return Message("assistant", content, asked.origin)


def _verdicts(run: Run, asked: Asked, calls: Sequence[ToolCall]) -> Flow[list[Judged]]:
    """One judgement for each call; a Stop or a cut reply means that none starts."""
    if asked.reply.cut:
        return [refused(call, "not run: the reply was cut, so this call may be incomplete") for call in calls]
    if run.log.ledger.ending is not None:
        reason = run.log.ledger.ending.reason
        return [refused(call, f"not run: the limit {reason!r} of this turn is reached", limit=reason) for call in calls]
    tally = run.log.ledger.tally.copy()
    judged: list[Judged] = []
    rank, stop = 0, None
    for call in calls:
        if is_output(run, call):
            judged.append(judge_output(run, call))
            continue
        tally.count(call)
        rank += 1
        one = sift(run, call, Rank(tally, rank))
        if isinstance(one, Sifted):
            one = yield from put_before(run, one)
            stop = stop or one.stop
        judged.append(one)
    if stop is None:
        return judged
    text = f"not run: stopped by {stop.plugin}"
    return [one if one.result is not None else replace(refused(one.call, text), origin=one.origin) for one in judged]


def _breach(run: Run, limit: str) -> Flow[None]:
    """A call passed a limit: mark the turn as ending; what runs is answered first."""
    mode = run.setup.limits.on_breach
    yield from Emit(LimitReached(limit, mode)).ask()
    if mode != "error_result":
        run.add(Ending("limit", limit, answer=mode == "answer"))


Placed: TypeAlias = tuple[int, Judged, "Finished | None"]


def commit(run: Run, placed: Sequence[Placed]) -> Flow[tuple[Job, ...]]:
    """Append what was decided about calls and store it before any call starts; gives back those that start."""
    failed: PluginError | None = None
    for place, one, done in placed:
        if one.question is not None:
            yield from suspend(run, place, one)
        if done is None:
            continue
        run.log.answer(place, done.said)
        end(run, one.stop)
        end(run, done.stop)
        fail(run, done.error)
        failed = failed or done.error
        if done.result.is_error and is_output(run, one.call) and one.call.id == run.accepted:
            run.output, run.output_text = None, ""  # a plugin refused what was accepted
        if run.heard:
            yield from Emit(ToolEnded(run.round, one.call, done.result, False)).ask()
            yield from hooked.tell(run, done.said.behind)
    jobs = tuple([_job(run, place, one) for place, one, _ in placed if one.tool is not None])
    if jobs:
        run.jobs = {job.place: job for job in jobs}
        run.running, run.started = True, False
        run.add(Started(tuple([job.place for job in jobs]), tuple([job.raw for job in jobs])))
    run.collect()
    yield from save(run)
    if failed is not None:
        raise Ended("failed", type(failed).__name__, error=failed)
    if run.output_error is not None:
        raise Ended("failed", type(run.output_error).__name__, error=run.output_error)
    if run.heard:
        for job in jobs:
            yield from Emit(ToolStarted(run.round, job.call, job.raw)).ask()
    return jobs


def suspend(run: Run, place: int, one: Judged, *, by_tool: bool = False) -> Flow[None]:
    """Mark a call as waiting. Its expiry is a point of the wall clock, since people answer by it."""
    expires = None
    if one.expires is not None:
        expires = (yield from Now().ask()).wall + one.expires
    run.add(Suspended(place, one.question or "", one.raw or "{}", expires, by_tool))
    yield from Emit(CallSuspended(run.round, one.call, one.question or "", expires)).ask()


def _job(run: Run, place: int, one: Judged) -> Job:
    assert one.tool is not None
    assert one.kwargs is not None
    group = run.log.group
    assert group is not None
    return Job(place, place - group.number - 1, one.call, one.tool, one.kwargs, one.raw, run.round, one.decisions)
