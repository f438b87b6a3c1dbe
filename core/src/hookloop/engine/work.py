"""The fourth phase: the calls run. Each result is put before `after_tool`, takes its call's place, and is stored then."""

from __future__ import annotations

from hookloop_hookspecs import Ending, Message, Origin, PluginError, Said, Stop, ToolResult
from hookloop_hookspecs.events import ToolEnded

from . import hooked
from .decide import suspend
from .effects import Done, Emit, Flow, Job, NextResult, Start, StopJobs
from .history import clean, closing
from .judge import Judged
from .merge import Ruling
from .results import after
from .run import Ended, Run
from .saving import save


def work(run: Run, jobs: tuple[Job, ...]) -> Flow[None]:
    """Run the jobs to their ends. A Stop or a failing `after_tool` lets no further job start; what runs is answered."""
    if not jobs:
        return
    left = {job.place: job for job in jobs}
    run.running = True
    yield from Start(jobs).ask()
    failed: PluginError | None = None
    stop: Ruling | None = None
    while left and failed is None and stop is None:
        done = yield from NextResult().ask()
        stop, failed = yield from _settle(run, left.pop(done.place), done)
    if left:
        for done in (yield from StopJobs(False).ask()):
            _, later = yield from _settle(run, left.pop(done.place), done)
            failed = failed or later
        yield from _unstarted(run, left, stop, failed)
    run.running = False
    if stop is not None and run.log.ledger.ending is None and isinstance(stop.verdict, Stop):
        run.add(Ending("stopped", stop.verdict.reason, stop.verdict.text))
    if failed is not None:
        raise Ended("failed", type(failed).__name__, error=failed)


def _settle(run: Run, job: Job, done: Done) -> Flow[tuple[Ruling | None, PluginError | None]]:
    """One job is over: its result (or suspension) enters history and is stored."""
    if done.warning:
        yield from hooked.warn(run, done.warning)
    if done.question is not None:
        waiting = Judged(job.call, job.raw, question=done.question, expires=done.expires)
        yield from suspend(run, job.place, waiting, by_tool=True)
        yield from save(run)
        return None, None
    result = ToolResult(job.call.id, job.call.name, done.content, done.is_error, job.raw, done.private)
    origin = Origin("tool", turn=run.turn_id, round=job.round)
    finished = yield from after(run, job.call, Message("tool", clean((result,)), origin), origin, ran=True)
    run.log.answer(job.place, finished.said)
    run.collect()
    if run.heard:
        yield from Emit(ToolEnded(run.round, job.call, finished.result, True, done.seconds)).ask()
        yield from hooked.tell(finished.said.behind)
    yield from save(run)
    return finished.stop, finished.error


def _unstarted(run: Run, left: dict[int, Job], stop: Ruling | None, failed: PluginError | None) -> Flow[None]:
    """Answer the jobs that never began."""
    why = f"stopped by {stop.plugin}" if stop is not None else f"plugin {failed.plugin} failed" if failed else "stopped"
    for place, job in left.items():
        message = closing(job.call, f"not run: {why}")
        run.log.answer(place, Said(message))
        (result,) = message.results
        yield from Emit(ToolEnded(run.round, job.call, result, False)).ask()
    if left:
        yield from save(run)
