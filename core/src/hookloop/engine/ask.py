"""The second phase: one request. Limits, what was sent in, what plugins say of the request, the model, what they say of
its reply. Nothing of it is history before the reply is whole and judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from hookloop_hookspecs import (
    Answer,
    Message,
    ModelRequest,
    Narrow,
    Origin,
    PluginError,
    Reply,
    Said,
    Settings,
    Spent,
    Stop,
    Text,
    Thinking,
    ToolCall,
)
from hookloop_hookspecs.events import (
    CallPiece,
    MessageSent,
    ReplyDiscarded,
    TextPiece,
    ThinkingPiece,
)
from hookloop_hookspecs.verdicts import Replace

from . import hooked
from .converse import converse
from .effects import Emit, Flow, Inbox, Now, Post, Time
from .history import clean, clean_text
from .merge import Ruling, reply_of
from .recut import outgrown, recut
from .request import breach, build, passed, switch, use
from .run import Ended, Run

INBOX = Inbox()
NOW = Now()


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
    post: Post = yield INBOX
    if post.messages or post.leave:
        yield from _took(run, post, final=False)
    if run.log.ledger.ending is None:  # the one request of the breach mode "answer" is not held to limits
        limit = passed(run, post.mono)
        if limit:
            yield from breach(run, limit)
    run.round = run.log.ledger.rounds + 1
    run.partial, run.output, run.output_text = [], None, ""
    request, answer = yield from _prepare(run)
    if answer is None:
        reply, origin = yield from converse(run, request)
    else:
        yield from hooked.ruled(answer)
        reply = reply_of(_value(answer), None, answer.plugin, "before_round")
        origin = answer.origin(run.turn_id, run.round)
    now: Time = yield NOW
    seconds = now.mono - post.mono
    if "after_reply" not in run.setup.hooks:
        return Asked(reply, (), origin, seconds, origin.plugin)
    return (yield from _judged(run, request, reply, origin, seconds))


def take_post(run: Run, *, last: bool = False, final: bool = False) -> Flow[bool]:
    """Admit what was sent into the turn; True when there was anything. Ends the turn where somebody wished so, but a
    `final` reply is an end already.
    """
    post = yield from Inbox(last).ask()
    yield from _took(run, post, final=final)
    return bool(post.messages)


def _took(run: Run, post: Post, *, final: bool) -> Flow[None]:
    yield from admit_sent(run, post)
    if post.leave and not final:
        raise Ended("cancelled", "cancelled")


def admit_sent(run: Run, post: Post) -> Flow[None]:
    """Messages that were sent into the turn become history."""
    for message in post.messages:
        said = Message(
            "user", clean(message.content), Origin("user", turn=run.turn_id, round=run.round), clean_text(message.key)
        )
        run.add(Said(said))
        yield from Emit(MessageSent(said)).ask()


def _prepare(run: Run) -> Flow[tuple[ModelRequest, Ruling | None]]:
    """Ask `before_round`, add what it contributes, cut where the open turn alone is too large, build the request."""
    settings, choice, answer = run.setup.settings, None, None
    if run.lent_from is not None:
        use(run, run.lent_from)
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
