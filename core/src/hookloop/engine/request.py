"""What a request is made of, by whom it is answered, and the limits that are looked at before one goes out."""

from __future__ import annotations

from hookloop_hookspecs import (
    Ending,
    LimitError,
    ModelRequest,
    Said,
    Settings,
)
from hookloop_hookspecs.events import (
    LimitReached,
)

from .begin import new_epoch
from .effects import Emit, Facts, Flow, Resolve
from .past import without_thinking
from .run import Ended, Run


def passed(run: Run, now: float) -> str:
    """The name of the limit that the next request would pass; empty for none."""
    limits, ledger = run.setup.limits, run.log.ledger
    if limits.rounds is not None and ledger.rounds >= limits.rounds:
        return "rounds"
    if limits.truncated is not None and ledger.truncated and ledger.truncated >= limits.truncated:
        return "truncated"
    if limits.tokens is not None and (ledger.usage.total or 0) >= limits.tokens:
        return "tokens"
    if limits.cost is not None and ledger.usage.cost is not None and ledger.usage.cost > limits.cost:
        return "cost"
    if limits.seconds is not None and ledger.seconds + now - run.begun > limits.seconds:
        return "seconds"
    return ""


def breach(run: Run, limit: str) -> Flow[None]:
    """Act on a breach before a request: end the turn, or allow one more request without calls."""
    mode = run.setup.limits.on_breach
    yield from Emit(LimitReached(limit, mode)).ask()
    if mode == "answer":
        run.add(Ending("limit", limit, answer=True))
        return
    raise limit_ended(run, limit)


def limit_ended(run: Run, limit: str, text: str = "") -> Ended:
    """The end by a limit; with the breach mode "raise" it carries the error."""
    error = LimitError(limit) if run.setup.limits.on_breach == "raise" else None
    return Ended("limit", limit, text or last_text(run), error)


def last_text(run: Run) -> str:
    """The text of the turn's last reply."""
    for entry in reversed(run.log.entries):
        if isinstance(entry.body, Said) and entry.body.message.role == "assistant":
            return entry.body.message.text
    return ""


def build(run: Run, settings: Settings, choice: str | None = None) -> ModelRequest:
    """The request as it would go out now."""
    return ModelRequest(
        run.facts.model,
        run.system,
        run.view,
        run.specs,
        _choice(run, choice),
        run.allowed,
        settings,
        run.request.output.schema if run.request.output and run.facts.traits.structured else "",
        run.request.output.name if run.request.output else "",
        run.conversation,
        run.turn_id,
        run.log.ledger.rounds + 1,
        run.epoch,
        run.log.ledger.recut > 0,
        run.memo,
    )


def _choice(run: Run, choice: str | None) -> str:
    """A forced choice holds for the first round only, else the model could never answer (it is not in its power to stop)."""
    if run.log.ledger.ending is not None:
        return "none"
    if choice is not None:
        return choice
    forced = run.setup.tool_choice
    return forced if forced in ("auto", "none") or run.log.ledger.tally.calls == 0 else "auto"


def switch(run: Run, provider: object) -> Flow[None]:
    """Ask another provider or model from here on; a new epoch where its family differs."""
    use(run, (yield from Resolve(provider).ask()))


def use(run: Run, facts: Facts) -> None:
    before, run.facts = run.facts, facts
    if (facts.name, facts.family) != (before.name, before.family):
        if facts.traits.bound_thinking and not before.traits.bound_thinking:
            _unbind(run)
        new_epoch(run)
    elif facts.reference != before.reference:
        run.memo = {}


def _unbind(run: Run) -> None:
    """Leave thinking of closed turns out of the window, in a new list: requests that went out keep theirs."""
    closed, rest = run.log.window[: run.closed], run.log.window[run.closed :]
    kept = [message for message in map(without_thinking, closed) if message.content]
    run.log.window, run.closed = kept + rest, len(kept)
    run.measured += len(kept) - len(closed)
