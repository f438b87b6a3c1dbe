"""Events as lines of text. Pure: nothing is kept from one event to the next."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hookloop_hookspecs import File, Image, Message, Opaque, Part, Reply, Text, Thinking, ToolCall, ToolResult, Usage
from hookloop_hookspecs.events import (
    CallSuspended,
    Contributed,
    Decision,
    Event,
    LimitReached,
    MessageSent,
    ModelFailed,
    ReplyDiscarded,
    ReplyReceived,
    RequestSent,
    Stored,
    ToolEnded,
    ToolStarted,
    TurnBegan,
    TurnFinished,
    ViewCut,
    Warned,
)

from .clean import block, name
from .shown import Shown

LIMIT = 1000


def format_event(event: Event, *, full: bool = False, limit: int = LIMIT, shown: Shown | None = None) -> list[str]:
    """The lines that tell an event; none for the pieces of a streamed reply, which is told when it is whole.

    Arguments: `full` shows all messages of each request (else those that are new), all texts without bounds, and the
    writes to memories; `limit` is the most characters of a text, where not `full`; `shown` says what of a request was
    shown before (default: what the event says was in the request before it, which for a turn's first one is nothing).
    """
    bound = None if full else limit
    match event:
        case RequestSent():
            return _request(event, bound, shown or _as_told(event))
        case ReplyReceived():
            return _reply(event, bound)
        case ToolStarted():
            title = _title(event.round, f"tool {name(event.call.name)}", "runs", name(event.call.id))
            return [title, *block("arguments", event.arguments, bound)]
        case ToolEnded():
            return _tool_ended(event, bound)
        case TurnBegan() | TurnFinished():
            return _edge(event, bound)
        case _:
            return _remark(event, bound)


def _edge(event: TurnBegan | TurnFinished, bound: int | None) -> list[str]:
    if isinstance(event, TurnBegan):
        verb = "resumed" if event.resumed else "begins"
        return ["", f"══ turn {name(event.turn)} {verb} ══ conversation {name(event.conversation)}"]
    outcome = event.outcome
    calls = sum(len(each.calls) for each in outcome.rounds)
    facts = [_count(len(outcome.rounds), "round"), _count(calls, "call"), _tokens(outcome.usage)]
    title = f"══ turn ends: {event.status} ({name(event.stop_reason)}) ══ {_joined(facts)}"
    error = [] if outcome.error is None else block("error", f"{type(outcome.error).__name__}: {outcome.error}", bound)
    return [title, *error]


def _as_told(event: RequestSent) -> Shown:
    known = max(0, len(event.request.messages) - event.fresh)
    return Shown(known, head=known > 0)


def _request(event: RequestSent, bound: int | None, shown: Shown) -> list[str]:
    request, messages = event.request, event.request.messages
    first = 0 if bound is None else shown.messages
    attempt = f"attempt {event.attempt}" if event.attempt > 1 else ""
    counts = f"{_count(len(messages), 'message')}, {len(messages) - shown.messages} new"
    lines = [_title(event.round, "sent", name(event.provider), counts, _count(len(request.tools), "tool"), attempt)]
    if bound is None or not shown.head:
        lines += block("system", request.system, bound) if request.system else []
        lines += block("tools", ", ".join(name(tool.name) for tool in request.tools), bound) if request.tools else []
    if request.allowed is not None:
        lines += block("allowed", ", ".join(sorted(map(name, request.allowed))) or "no tool", bound)
    return lines + _each(messages, range(first, len(messages)), bound)


def _each(messages: Sequence[Message], places: Iterable[int], bound: int | None) -> list[str]:
    return [line for place in places for line in _message(messages[place], bound)]


def _message(message: Message, bound: int | None) -> list[str]:
    who = f"{message.role}{_source(message)}"
    return [line for part in message.content for line in _part(part, who, bound)] or block(who, "", bound)


def _source(message: Message) -> str:
    origin = message.origin
    if origin.kind == "plugin":
        return f" ({name(origin.plugin)}, {name(origin.hook)})"
    return " (engine)" if origin.kind == "engine" and message.role == "user" else ""


def _part(part: Part, who: str, bound: int | None) -> list[str]:
    match part:
        case Text():
            return block(who, part.text, bound)
        case Thinking():
            return block("thinking", part.text or "(not shown by the provider)", bound)
        case ToolCall():
            return block("call", f"{name(part.name)}({part.raw})  [{name(part.id)}]", bound)
        case ToolResult():
            return _result(part, bound)
        case Image() | File():
            size = f"{len(part.data)} characters of base64" if part.data else name(part.url)
            return block(part.type, f"{name(part.media_type)}, {size}", bound)
        case Opaque():
            return block("opaque", f"a block of {name(part.provider)}, {len(part.data)} characters", bound)


def _result(result: ToolResult, bound: int | None) -> list[str]:
    label = "error" if result.is_error else "result"
    others = [line for part in result.content if not isinstance(part, Text) for line in _part(part, label, bound)]
    return [*block(label, f"{name(result.name)} → {result.text}", bound), *others]


def _reply(event: ReplyReceived, bound: int | None) -> list[str]:
    reply: Reply = event.reply
    by = f"by plugin {name(event.answered_by)}" if event.answered_by else name(reply.model)
    title = _title(event.round, "reply", by, f"stop: {reply.stop}", _tokens(reply.usage), _seconds(event.seconds))
    parts = [line for part in event.message.content for line in _part(part, "text", bound)]
    return [title, *(parts or block("text", "(nothing)", bound))]


def _tool_ended(event: ToolEnded, bound: int | None) -> list[str]:
    state = "error" if event.result.is_error else "done"
    ran = _seconds(event.seconds) if event.ran else "not run"
    title = _title(event.round, f"tool {name(event.call.name)}", state, ran, name(event.call.id))
    return [title, *_result(event.result, bound)]


def _remark(event: Event, bound: int | None) -> list[str]:
    match event:
        case Contributed():
            origin = event.message.origin
            title = f"·· plugin {name(origin.plugin)} adds in {name(origin.hook)}"
            return [title, *_message(event.message, bound)]
        case MessageSent():
            return ["·· sent into the running turn", *_message(event.message, bound)]
        case ModelFailed():
            title = _title(
                event.round, "model failed", name(event.provider), name(event.error_kind), f"attempt {event.attempt}"
            )
            return [title, *block("error", event.error, bound)]
        case CallSuspended():
            return [
                _title(event.round, f"tool {name(event.call.name)}", "waits"),
                *block("question", event.question, bound),
            ]
        case Stored():
            return [f"·· stored: {_count(event.entries, 'entry')} in {name(event.memory)}"] if bound is None else []
        case _:
            return _short(event)


def _short(event: Event) -> list[str]:
    match event:
        case Decision():
            detail = f": {name(event.detail)}" if event.detail else ""
            return [f"·· plugin {name(event.plugin)} decides in {name(event.hook)}: {name(event.verdict)}{detail}"]
        case LimitReached():
            return [f"!! limit {name(event.limit)} is passed: {name(event.action)}"]
        case ReplyDiscarded():
            return [f"!! round {event.round}: what was streamed does not count: {name(event.why)}"]
        case ViewCut():
            return [f"·· view cut from {event.before} to {_count(event.after, 'message')}: {name(event.why)}"]
        case Warned():
            who = f"plugin {name(event.plugin)}" + (f", {name(event.hook)}" if event.hook else "")
            return [f"!! warning{f' ({who})' if event.plugin else ''}: {name(event.text)}"]
        case _:
            return []


def _title(number: int, what: str, *facts: str) -> str:
    return f"── round {number} · {what} ── {_joined(facts)}".rstrip()


def _joined(facts: Iterable[str]) -> str:
    return " · ".join(filter(None, facts))


def _count(number: int, thing: str) -> str:
    many = f"{thing[:-1]}ies" if thing.endswith("y") else f"{thing}s"
    return f"{number} {thing if number == 1 else many}"


def _seconds(seconds: float) -> str:
    return f"{seconds:.3f} s"


def _tokens(usage: Usage) -> str:
    known = [(usage.input, "in"), (usage.output, "out"), (usage.cache_read, "cached"), (usage.reasoning, "reasoning")]
    told = ", ".join(f"{number} {what}" for number, what in known if number is not None)
    return f"tokens: {told}" if told else ""
