"""The loop. Everything else in this package is a phase of it.

    begin → ( ask → decide → work )* → ask → answer → finish

Rules for the next editor. This is a generator: it yields effects and receives their answers, and it does nothing else to the
world; it may not know asyncio, threads, clocks, randomness, pluggy or a provider. A phase leaves the turn by raising `Ended`,
which is caught here alone. What a driver cannot do is thrown in where it was asked, so policy stands here and in the phases.
However a turn is left, `finish` runs: the history is valid, stored, and told.
"""

from __future__ import annotations

from hookloop_hookspecs import Outcome
from hookloop_hookspecs.errors import Cancelled
from hookloop_hookspecs.events import TurnFinished

from . import begin, resume
from .again import again
from .answer import after_group, answer
from .ask import ask
from .decide import decide
from .effects import Emit, Flow
from .finish import finish
from .run import Ended, Request, Run, Setup
from .saving import save_outside
from .work import work


def turn(setup: Setup, request: Request, run: Run | None = None) -> Flow[Outcome]:
    """One run of a turn, from loading to the outcome.

    Arguments: `setup`, what the agent is; `request`, what the caller wants; `run`, given by drivers that want to see the
    turn's state while it runs.
    Raises what ended the turn, where that was an error, once it is stored and told; the error's `outcome` is set.
    """
    run = run or Run(setup, request)
    found: Outcome | None = None
    try:
        found = yield from _load(run)
        ended = (yield from _play(run)) if found is None else Ended(found.status, found.stop_reason, error=found.error)
    except (Cancelled, KeyboardInterrupt) as gone:
        ended = Ended("cancelled", "cancelled", error=gone if isinstance(gone, KeyboardInterrupt) else None)
    except GeneratorExit:
        raise
    except BaseException as error:
        ended = Ended("failed", type(error).__name__, error=error)
    if found is None:
        outcome = yield from finish(run, ended)
    else:
        outcome = found
        known = run.past.turn(outcome.turn_id)
        if known is not None:  # a store that stands beside may lack it, where the process died before it was told
            yield from save_outside(run, known.entries, outcome.status, outcome.text, again=True)
        yield from Emit(TurnFinished(outcome.status, outcome.stop_reason, outcome.text, outcome)).ask()
    if ended.error is not None:
        _attach(ended.error, outcome)
        raise ended.error
    return outcome


def _attach(error: BaseException, outcome: Outcome) -> None:
    """Every exception that leaves a turn carries its outcome; those of others too, as far as they let us."""
    try:
        error.outcome = outcome  # type: ignore[attr-defined]  # declared for our family, set on any
    except AttributeError:
        error.add_note(f"turn {outcome.turn_id} ended {outcome.status}: {outcome.stop_reason}")


def _load(run: Run) -> Flow[Outcome | None]:
    """Load the conversation; a turn that was finished before under this id is given back as it was."""
    yield from begin.load(run)
    known = run.past.turn(run.request.turn_id) if run.request.repeatable else None
    return None if known is None or known.open or known.suspended else again(run, known)


def _play(run: Run) -> Flow[Ended]:
    """The phases in order; comes to how the turn ended."""
    try:
        yield from _enter(run)
        if not resume.followed(run) and run.log.group is None and run.log.newest is not None:
            yield from after_group(run, run.log.newest, resume.reply_of(run.log.newest.said))
        while True:
            group = run.log.group
            if group is not None:
                yield from resume.finish_group(run, group)
                yield from after_group(run, group, resume.reply_of(group.said))
            yield from _round(run)
    except Ended as ended:
        return ended


def _enter(run: Run) -> Flow[None]:
    """Begin a new turn, or take up the one that is open."""
    known = run.past.turn(run.request.turn_id) if run.request.repeatable else None
    yield from begin.register(run)
    if run.request.message is None or known is not None:
        yield from resume.take_up(run, resume.require(run, known))
    else:
        yield from begin.start(run, run.request.message)


def _round(run: Run) -> Flow[None]:
    """One request and what it leads to."""
    asked = yield from ask(run)
    if not asked.reply.calls:
        yield from answer(run, asked)
        return
    jobs = yield from decide(run, asked)
    group = run.log.newest
    yield from work(run, jobs)
    if group is not None:
        yield from after_group(run, group, run.reply)
