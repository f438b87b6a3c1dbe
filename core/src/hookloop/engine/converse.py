"""Asking the model until there is a reply: the stream's pieces, failed attempts, and what plugins say of those."""

from __future__ import annotations

from hookloop_hookspecs import (
    Answer,
    CallDelta,
    ModelRequest,
    Origin,
    ProviderError,
    Reply,
    Retry,
    Spent,
    Stop,
    TextDelta,
    ThinkingDelta,
)
from hookloop_hookspecs.events import (
    CallPiece,
    Event,
    ModelFailed,
    ReplyDiscarded,
    RequestSent,
    TextPiece,
    ThinkingPiece,
)
from hookloop_hookspecs.providers import Delta
from hookloop_hookspecs.redact import bounded, redact
from hookloop_hookspecs.wellformed import fault

from . import hooked
from .effects import Ask, Emit, Flow, Next, Now, Sleep
from .merge import reply_of, whole_reply
from .recut import recut
from .request import breach, build, passed, switch
from .run import Ended, Run, Sent

_PIECES = (Reply, TextDelta, ThinkingDelta, CallDelta)
NEXT = Next()
ATTEMPTS = 20
"""How often plugins may have the model asked for one reply; more is a plugin that never gives up."""


def converse(run: Run, request: ModelRequest) -> Flow[tuple[Reply, Origin]]:
    """Ask until there is a reply; what fails is put to `on_model_error`."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            reply = yield from _stream(run, request, attempt)
        except ProviderError as error:
            if (
                error.kind == "context"
                and not run.cut_once
                and (yield from recut(run, "the provider says the context is too long"))
            ):
                run.cut_once = True
                request = build(run, request.settings, request.tool_choice)
                continue
            request, found = yield from _failed(run, request, error, attempt)
            if found is not None:
                return found
            continue
        run.rounds[run.round] = Sent(run.facts.reference, len(request.messages), attempt)
        model = run.facts.reference
        return reply, Origin("model", turn=run.turn_id, round=run.round, model=model)
    raise Ended(
        "failed",
        "too_many_attempts",
        error=ProviderError(f"{ATTEMPTS} attempts for one reply failed", provider=run.facts.reference, retryable=False),
    )


def _stream(run: Run, request: ModelRequest, attempt: int) -> Flow[Reply]:
    """One attempt: the request goes out, its pieces are told (or held back while a plugin wants to judge the whole)."""
    size = len(request.messages)
    if run.heard:
        yield from Emit(RequestSent(run.round, request, run.facts.reference, size - run.sent, attempt)).ask()
    yield Ask(request, run.facts.reference)
    run.sent = size
    tells = run.heard and "after_reply" not in run.setup.hooks
    run.partial = []
    while True:
        piece: Delta | Reply = yield NEXT
        if isinstance(piece, Reply):
            piece = whole_reply(piece)
        if trouble := fault(piece) if isinstance(piece, _PIECES) else f"it is a {type(piece).__name__}":
            what = f"the provider gave a {type(piece).__name__} that cannot be used: {trouble}"
            raise ProviderError(what, provider=run.facts.reference, kind="server")
        if isinstance(piece, Reply):
            return piece
        if isinstance(piece, TextDelta) and "after_reply" not in run.setup.hooks:
            run.partial.append(piece.text)
        if tells:
            yield from Emit(_event(piece, run.round)).ask()


def _event(piece: Delta, round: int) -> Event:
    match piece:
        case TextDelta():
            return TextPiece(piece.text, round)
        case ThinkingDelta():
            return ThinkingPiece(piece.text, round)
        case CallDelta():
            return CallPiece(piece.index, piece.id, piece.name, piece.raw, round)


def _failed(
    run: Run, request: ModelRequest, error: ProviderError, attempt: int
) -> Flow[tuple[ModelRequest, tuple[Reply, Origin] | None]]:
    """A failed attempt: its tokens are counted, and plugins say what next. Raises the error where they say nothing."""
    usage = error.partial.usage if error.partial is not None else None
    failed = ModelFailed(run.round, run.facts.reference, bounded(redact(str(error))), error.kind, attempt, usage)
    yield from Emit(failed).ask()
    if usage is not None and usage.total is not None:
        run.add(Spent(usage, "failed attempt"))
    merged = yield from hooked.on_model_error(run, request, error)
    ruling = merged.strongest
    if ruling is None:
        raise error
    yield from hooked.ruled(ruling, error.kind)
    if run.partial and "after_reply" not in run.setup.hooks:
        yield from Emit(ReplyDiscarded(run.round, bounded(redact(str(error))))).ask()
    run.partial = []
    match ruling.verdict:
        case Stop(reason, text):
            raise Ended("stopped", reason, text)
        case Answer(value):
            reply = reply_of(value, None, ruling.plugin, "on_model_error")
            run.rounds[run.round] = Sent(run.facts.reference, len(request.messages), attempt)
            return request, (reply, ruling.origin(run.turn_id, run.round))
        case Retry(after, provider):
            if after > 0:
                yield from Sleep(after).ask()
            if provider is not None:
                run.lent_from = None
                yield from switch(run, provider)
            limit = passed(run, (yield from Now().ask()).mono) if run.log.ledger.ending is None else ""
            if limit:
                yield from breach(run, limit)
            return build(run, request.settings, request.tool_choice), None
        case _:
            raise error
