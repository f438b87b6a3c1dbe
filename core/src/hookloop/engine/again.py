"""A turn that is over, asked for once more under its id: its outcome is read from its entries, and nothing runs."""

from __future__ import annotations

import json

from hookloop_hookspecs import (
    ConfigError,
    HookloopError,
    LimitError,
    Outcome,
    TurnEnded,
)

from .finish import rounds_of
from .log import Log, flatten
from .past import PastTurn
from .remaking import remade
from .run import Run


def again(run: Run, known: PastTurn) -> Outcome:
    """The outcome of a turn that is over; `error` is what ended it, where that was one."""
    log = Log(known.id, known.start, [], set())
    log.replay(known.entries)
    messages = tuple(flatten(known.entries))
    end = known.ended or TurnEnded("done", "end", messages[-1].text if messages else "")  # outside, no end is stored
    rounds = tuple(rounds_of(known.entries, {}))
    error = _error(end, rounds[-1].provider if rounds else run.facts.reference) if end.error else None
    outcome = Outcome(
        status=end.status,
        stop_reason=end.stop_reason,
        text=end.text,
        conversation=run.conversation,
        turn_id=known.id,
        output=_output(run, end.output),
        new=messages,
        usage=log.ledger.usage,
        rounds=rounds,
        error=error,
        flatten=lambda: [message for past in run.past.turns for message in flatten(past.entries)],
    )
    if error is not None:
        error.outcome = outcome
    return outcome


def _output(run: Run, text: str) -> object:
    if not text:
        return None
    wanted = run.request.output
    if wanted is None:
        return json.loads(text)
    try:
        return wanted.parse(text)
    except ValueError as error:
        raise ConfigError(
            f"turn {run.request.turn_id!r} ended with other output than is asked for now: {error}"
        ) from error


def _error(end: TurnEnded, provider: str) -> HookloopError:
    name, _, text = end.error.partition(": ")
    if name == "LimitError":
        return LimitError(end.stop_reason)
    return remade(name, text, provider)
