"""The fourth phase: the calls run. Each result is put before `after_tool`, takes its call's place, and is stored then."""

from __future__ import annotations

from hookloop_hookspecs import Message, Origin, PluginError, Said, ToolResult
from hookloop_hookspecs.events import ToolEnded

from . import hooked
from .decide import end, fail, suspend
from .effects import Done, Emit, Flow, Job, NextResult, Start, StopJobs
from .history import clean, closing
from .judge import Judged
from .results import Finished, after
from .run import Ended, Run
from .saving import save


def work(run: Run, jobs: tuple[Job, ...]) -> Flow[None]:
    """Run the jobs to their ends. A Stop or a failing `after_tool` lets no further job start; what runs is answered."""
    if not jobs:
        return
    yield Start(jobs)
    run.started = True
    failed: PluginError | None = None
    while run.jobs and failed is None and not stopped(run):
        failed = yield from settle(run, (yield from NextResult().ask()))
    if run.jobs:
        failed = (yield from _stop(run, failed)) or failed
    run.running = False
    if failed is not None:
        raise Ended("failed", type(failed).__name__, error=failed)


def _stop(run: Run, failed: PluginError | None) -> Flow[PluginError | None]:
    """Let no further job begin, and take what those that run come to; gives back the first failure meanwhile."""
    dones = yield from StopJobs(False).ask()
    dones = [done for done in dones if done.place in run.jobs]
    run.over.update((done.place, done) for done in dones)  # so that none is lost where the turn is left meanwhile
    for done in dones:
        if done.began:
            later = yield from settle(run, done)
            failed = failed or later
    why = f"plugin {failed.plugin} failed" if failed else stopped(run)
    for job in [run.jobs[done.place] for done in dones if not done.began]:
        yield from never_began(run, job, f"not run: {why}")
    yield from save(run)
    return failed


def stopped(run: Run) -> str:
    """Says by whom the turn was told to stop while its calls run; empty where nobody did."""
    ending = run.log.ledger.ending
    return f"stopped by {ending.by}" if ending is not None and ending.status == "stopped" else ""


def settle(run: Run, done: Done) -> Flow[PluginError | None]:
    """One job is over: its result (or suspension) enters history and is stored. Gives back what withheld it.

    The job stays in `run.jobs` until its result is history, so that a turn that is left meanwhile still answers it.
    """
    job = run.jobs[done.place]
    run.over[done.place] = done
    if done.warning:
        yield from hooked.warn(run, done.warning)
    if not done.began:
        yield from never_began(run, job, "not run: it could not be started")
        yield from save(run)
        return None
    if done.question is not None:
        waiting = Judged(job.call, job.raw, question=done.question, expires=done.expires)
        yield from suspend(run, job.place, waiting, by_tool=True)
        _forget(run, job)
        yield from save(run)
        return None
    finished = _plain(run, job, done)
    if "after_tool" in run.setup.hooks and not done.interrupted:
        finished = yield from after(run, job.call, finished.said.message, finished.said.message.origin, ran=True)
    run.log.answer(job.place, finished.said)
    _forget(run, job)
    end(run, finished.stop)
    fail(run, finished.error)
    run.collect()
    if run.heard:
        yield from Emit(ToolEnded(run.round, job.call, finished.result, not done.interrupted, done.seconds)).ask()
        yield from hooked.tell(run, finished.said.behind)
    yield from save(run)
    return finished.error


def _plain(run: Run, job: Job, done: Done) -> Finished:
    """The result of a job before any plugin saw it. One that was lost is the engine's to answer."""
    if done.interrupted:
        message = closing(job.call, "interrupted: the call had started, its effect is unknown")
        return Finished(Said(message), message.results[0])
    origin = Origin("tool", turn=run.turn_id, round=job.round)
    given = ToolResult(job.call.id, job.call.name, done.content, done.is_error, job.raw, done.private)
    message = Message("tool", clean((given,)), origin)
    return Finished(Said(message), message.results[0])


def _forget(run: Run, job: Job) -> None:
    del run.jobs[job.place]
    run.over.pop(job.place, None)


def never_began(run: Run, job: Job, text: str) -> Flow[None]:
    """Answer a job that was to start and did not."""
    message = closing(job.call, text)
    run.log.answer(job.place, Said(message))
    _forget(run, job)
    yield from Emit(ToolEnded(run.round, job.call, message.results[0], False)).ask()
