"""The third phase: a reply with calls enters history, with all that was decided about its calls, in one batch.

All verdicts are taken, in call order, before anything is appended and before the first call starts. Calls that do not run
have their results in the same batch; those that wait are marked `Suspended`, those that run `Started`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hookloop_hookspecs import Ending, Message, Said, Started, Stop, Suspended, ToolCall
from hookloop_hookspecs.events import CallSuspended, LimitReached, ReplyReceived, ToolEnded, ToolStarted

from . import hooked
from .ask import Asked
from .effects import Emit, Flow, Job, Now
from .history import clean, unique_ids
from .judge import Judged, Rank, judge, refused
from .output import is_output, judge_output
from .results import Finished, after
from .run import Ended, Run
from .saving import save


def decide(run: Run, asked: Asked) -> Flow[tuple[Job, ...]]:
    """Judge the calls of a reply, put everything into history and store it; gives back what is to run."""
    run.reply = asked.reply
    message = enter(run, asked)
    number = run.log.number
    calls = message.calls
    judged = yield from _verdicts(run, asked, calls)
    finished: list[Finished | None] = []
    for one in judged:
        asks = one.result is not None and not asked.reply.cut
        known = Finished(Said(one.message), one.outcome) if one.result is not None else None
        finished.append((yield from after(run, one.call, one.message, one.origin)) if asks else known)
    failed = next((done.error for done in finished if done is not None and done.error is not None), None)
    if failed is not None:
        why = f"not run: plugin {failed.plugin} failed"
        judged = [one if one.result is not None else refused(one.call, why) for one in judged]
        finished = [
            done or Finished(Said(one.message), one.outcome) for done, one in zip(finished, judged, strict=True)
        ]
    said = Said(message, asked.behind, asked.reply.stop, asked.reply.usage, asked.seconds)
    run.add(said)
    if run.heard:
        yield from Emit(ReplyReceived(run.round, asked.reply, message, asked.seconds, asked.answered_by)).ask()
        yield from hooked.tell(asked.behind)
    for at, done in enumerate(finished):
        if done is not None:
            run.log.answer(number + 1 + at, done.said)
            yield from Emit(ToolEnded(run.round, calls[at], done.result, False)).ask()
            yield from hooked.tell(done.said.behind)
    yield from _ending(run, judged, [done for done in finished if done is not None])
    jobs = yield from commit(run, list(zip(range(number + 1, number + 1 + len(judged)), judged, strict=True)))
    if failed is not None:
        raise Ended("failed", type(failed).__name__, error=failed)
    return jobs


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
    for at, call in enumerate(calls):
        if is_output(run, call):
            judged.append(judge_output(run, call))
            continue
        tally.count(call)
        judged.append((yield from judge(run, call, Rank(tally, at + 1))))
    stopper = next((one for one in judged if one.stop is not None), None)
    if stopper is None or stopper.stop is None:
        return judged
    text = f"not run: stopped by {stopper.stop.plugin}"
    return [one if one.result is not None else replace(refused(one.call, text), origin=one.origin) for one in judged]


def _ending(run: Run, judged: Sequence[Judged], finished: Sequence[Finished]) -> Flow[None]:
    """Mark the turn as ending, where a Stop or a limit says so; what runs is answered first."""
    if run.log.ledger.ending is not None:
        return
    stops = [one.stop for one in judged if one.stop is not None]
    stops += [done.stop for done in finished if done.stop is not None]
    for ruling in stops:
        if isinstance(ruling.verdict, Stop):
            run.add(Ending("stopped", ruling.verdict.reason, ruling.verdict.text))
            return
    limit = next((one.limit for one in judged if one.limit), "")
    if limit:
        mode = run.setup.limits.on_breach
        yield from Emit(LimitReached(limit, mode)).ask()
        if mode != "error_result":
            run.add(Ending("limit", limit, answer=mode == "answer"))


def commit(run: Run, judged: Sequence[tuple[int, Judged]]) -> Flow[tuple[Job, ...]]:
    """Append the marks of judged calls and store everything before any call starts."""
    for place, one in judged:
        if one.question is not None:
            yield from suspend(run, place, one)
    jobs = tuple(_job(run, place, one) for place, one in judged if one.tool is not None)
    if jobs:
        run.add(Started(tuple(job.place for job in jobs), tuple(job.raw for job in jobs)))
    run.collect()
    yield from save(run)
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
