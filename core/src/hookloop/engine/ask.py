"""The second phase: one request. Limits, what was sent in, what plugins say of the request, the model, what they say of
its reply. Nothing of it is history before the reply is whole and judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from hookloop_hookspecs import (
    Answer,
    CallDelta,
    Ending,
    LimitError,
    Message,
    ModelRequest,
    Narrow,
    Origin,
    PluginError,
    ProviderError,
    Reply,
    Retry,
    Said,
    Settings,
    Spent,
    Stop,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
)
from hookloop_hookspecs.events import (
    CallPiece,
    Event,
    LimitReached,
    MessageSent,
    ModelFailed,
    ReplyDiscarded,
    RequestSent,
    TextPiece,
    ThinkingPiece,
)
from hookloop_hookspecs.providers import Delta
from hookloop_hookspecs.redact import bounded, redact
from hookloop_hookspecs.verdicts import Replace
from hookloop_hookspecs.wellformed import fault

from . import hooked
from .begin import new_epoch
from .effects import Ask, Emit, Facts, Flow, Inbox, Next, Now, Post, Resolve, Sleep
from .history import clean, clean_text
from .merge import Ruling, reply_of
from .past import without_thinking
from .recut import outgrown, recut
from .run import Ended, Run, Sent

_PIECES = (Reply, TextDelta, ThinkingDelta, CallDelta)
ATTEMPTS = 20
"""How often plugins may have the model asked for one reply; more is a plugin that never gives up."""


@dataclass(slots=True)
class Asked:
    """A reply that was judged and may enter history, with what plugins said of it."""

    reply: Reply
    behind: tuple[Message, ...]
    origin: Origin
    seconds: float
    answered_by: str = ""


def ask(run: Run) -> Flow[Asked]:
    """One round's reply. Leaves by `Ended` where a limit, a Stop or a wish to leave says so."""
    yield from take_post(run)
    now = yield from Now().ask()
    if run.log.ledger.ending is None:  # the one request of the breach mode "answer" is not held to limits
        limit = passed(run, now.mono)
        if limit:
            yield from breach(run, limit)
    run.round = run.log.ledger.rounds + 1
    run.partial, run.output, run.output_text = [], None, ""
    request, answer = yield from _prepare(run)
    if answer is None:
        reply, origin = yield from _converse(run, request)
    else:
        yield from hooked.ruled(answer)
        reply = reply_of(_value(answer), None, answer.plugin, "before_round")
        origin = answer.origin(run.turn_id, run.round)
    seconds = (yield from Now().ask()).mono - now.mono
    if "after_reply" not in run.setup.hooks:
        return Asked(reply, (), origin, seconds, origin.plugin)
    return (yield from _judged(run, request, reply, origin, seconds))


def take_post(run: Run, *, last: bool = False, final: bool = False) -> Flow[bool]:
    """Admit what was sent into the turn; True when there was anything. Ends the turn where somebody wished so, but a
    `final` reply is an end already.
    """
    post = yield from Inbox(last).ask()
    if post.messages:
        yield from admit_sent(run, post)
    if post.leave and not final:
        raise Ended("cancelled", "cancelled")
    return bool(post.messages)


def admit_sent(run: Run, post: Post) -> Flow[None]:
    """Messages that were sent into the turn become history."""
    for message in post.messages:
        said = Message(
            "user", clean(message.content), Origin("user", turn=run.turn_id, round=run.round), clean_text(message.key)
        )
        run.add(Said(said))
        yield from Emit(MessageSent(said)).ask()


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


def _prepare(run: Run) -> Flow[tuple[ModelRequest, Ruling | None]]:
    """Ask `before_round`, add what it contributes, cut where the open turn alone is too large, build the request."""
    settings, choice, answer = run.setup.settings, None, None
    if run.lent_from is not None:
        _use(run, run.lent_from)
        run.lent_from = None
    run.allowed = None
    if "before_round" in run.setup.hooks:
        merged = yield from hooked.before_round(run, build(run, settings))
        for message in merged.messages:
            run.add(Said(message))
        yield from hooked.tell(run, merged.messages)
        narrow, answer = _narrowed([one for _, one in merged.narrows]), merged.first(Answer)
        run.allowed = frozenset(narrow.tools) if narrow.tools is not None else None
        settings, choice = _over(settings, narrow.settings), narrow.tool_choice
        _check_choice(run, choice, merged.narrows)
        if narrow.model is not None:
            run.lent_from = run.facts
            yield from switch(run, narrow.model)
    run.collect()
    if outgrown(run):
        yield from recut(run, "the open turn passes the window")
    return build(run, settings, choice), answer


def _check_choice(run: Run, choice: str | None, narrows: Sequence[tuple[str, Narrow]]) -> None:
    """A tool choice that cannot be met is its giver's fault. Raises `PluginError`."""
    names = [name for name in run.tools if run.allowed is None or name in run.allowed]
    if choice in (None, "auto", "none") or choice in names or (choice == "required" and names):
        return
    giver = next(giver for giver, one in narrows if one.tool_choice is not None)
    may = ", ".join(names) or "none"
    raise PluginError(giver, "before_round", f"chose the tool {choice!r}; the tools of this round are: {may}")


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


def _narrowed(narrows: Sequence[Narrow]) -> Narrow:
    """All narrowings as one: allow-lists are intersected, of the rest the first that says something."""
    whole = Narrow()
    for one in narrows:
        tools = one.tools if whole.tools is None else whole.tools
        if whole.tools is not None and one.tools is not None:
            tools = tuple(name for name in whole.tools if name in one.tools)
        whole = Narrow(
            tools,
            whole.tool_choice or one.tool_choice,
            whole.settings or one.settings,
            whole.model or one.model,
        )
    return whole


def _over(base: Settings, top: Settings | None) -> Settings:
    if top is None:
        return base
    default = Settings()
    changed = {f.name: getattr(top, f.name) for f in fields(top) if getattr(top, f.name) != getattr(default, f.name)}
    return replace(base, **changed)


def switch(run: Run, provider: object) -> Flow[None]:
    """Ask another provider or model from here on; a new epoch where its family differs."""
    _use(run, (yield from Resolve(provider).ask()))


def _use(run: Run, facts: Facts) -> None:
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


def _converse(run: Run, request: ModelRequest) -> Flow[tuple[Reply, Origin]]:
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
        piece = yield from Next().ask()
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


def _judged(run: Run, request: ModelRequest, reply: Reply, origin: Origin, seconds: float) -> Flow[Asked]:
    """Put the whole reply to `after_reply`, then let go what was held back."""
    answered_by = origin.plugin
    try:
        merged = yield from hooked.after_reply(run, request, reply)
    except BaseException:
        run.add(Spent(reply.usage, "discarded reply"))
        raise
    stop = merged.first(Stop)
    if stop is not None and isinstance(stop.verdict, Stop):
        run.add(Spent(reply.usage, "discarded reply"))
        yield from _stopped(run, stop, stop.verdict)
    for ruling in merged.rulings:
        if isinstance(ruling.verdict, Replace):
            reply = reply_of(ruling.verdict.value, reply, ruling.plugin, "after_reply")
            origin = replace(origin, plugin=ruling.plugin, version=ruling.version, hook="after_reply")
            yield from hooked.ruled(ruling)
    yield from _let_go(run, reply)
    return Asked(reply, tuple(merged.messages), origin, seconds, answered_by)


def _stopped(run: Run, ruling: Ruling, stop: Stop) -> Flow[None]:
    """The reply never becomes history; the Stop's text stands in its place."""
    yield from hooked.ruled(ruling, stop.reason)
    yield from Emit(ReplyDiscarded(run.round, f"stopped by {ruling.plugin}")).ask()
    run.partial = []
    if stop.text:
        content = clean((Text(stop.text),))
        run.add(Said(Message("assistant", content, ruling.origin(run.turn_id, run.round))))
    raise Ended("stopped", stop.reason, stop.text)


def _let_go(run: Run, reply: Reply) -> Flow[None]:
    """The stream that was held back, as it stands now."""
    index = 0
    for part in reply.content:
        match part:
            case Text() if part.text:
                yield from Emit(TextPiece(part.text, run.round)).ask()
            case Thinking() if part.text:
                yield from Emit(ThinkingPiece(part.text, run.round)).ask()
            case ToolCall():
                yield from Emit(CallPiece(index, part.id, part.name, part.raw, run.round)).ask()
                index += 1
            case _:
                pass


def _value(ruling: Ruling) -> object:
    return ruling.verdict.value if isinstance(ruling.verdict, Answer) else None
