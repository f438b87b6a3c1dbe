"""Judging one call: name, arguments, limits, what plugins say. A judged call runs, waits, or has its result already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches

from hookloop_hookspecs import (
    Answer,
    Approve,
    ArgumentsError,
    Deny,
    Message,
    Origin,
    PluginError,
    Replace,
    Stop,
    Suspend,
    Text,
    Tool,
    ToolCall,
    ToolResult,
)
from hookloop_hookspecs.results import Unencodable, encode_json
from hookloop_hookspecs.schema import parse_arguments
from hookloop_hookspecs.verdicts import Decision

from . import hooked
from .effects import Flow
from .history import clean
from .ledger import Tally
from .merge import Merged, Ruling, result_of
from .run import Run

PASSES = 3
"""How often a call is judged anew because a plugin replaced its arguments; then it is denied."""


@dataclass(slots=True)
class Judged:
    """What is to become of one call.

    Exactly one of these holds: `tool` is set (it runs, with `kwargs`), `question` is set (it waits), or `result` is set.
    `raw` are the arguments as judged. `stop` is a Stop that ends the turn; `limit` names the limit that it passed; `closes`
    says that the engine closes the call, which is no plugin's matter.
    """

    call: ToolCall
    raw: str = ""
    tool: Tool | None = None
    kwargs: Mapping[str, object] | None = None
    question: str | None = None
    expires: float | None = None
    result: ToolResult | None = None
    origin: Origin = Origin("engine")
    stop: Ruling | None = None
    limit: str = ""
    decisions: tuple[Decision, ...] = ()
    closes: bool = False

    @property
    def message(self) -> Message:
        """The result as a message."""
        return Message("tool", clean((self.outcome,)), self.origin)

    @property
    def outcome(self) -> ToolResult:
        """The result of a call that does not run."""
        assert self.result is not None
        return self.result


def refused(call: ToolCall, text: str, *, limit: str = "", origin: Origin | None = None) -> Judged:
    """A call that is answered with an error."""
    result = ToolResult(call.id, call.name, (Text(text),), is_error=True)
    return Judged(call, result=result, limit=limit, origin=origin or Origin("engine"))


@dataclass(slots=True)
class Rank:
    """Where a call stands in its turn: the tally up to and with it, and its rank in the reply, from 1."""

    tally: Tally
    in_reply: int


@dataclass(slots=True)
class Sifted:
    """A call that may run, as far as the engine can say; plugins are asked about it."""

    call: ToolCall
    tool: Tool
    arguments: Mapping[str, object]
    decision: Decision | None


def judge(run: Run, call: ToolCall, decision: Decision | None = None) -> Flow[Judged]:
    """The whole path of a call that was judged by the limits before (on a resume), up to its start."""
    one = sift(run, call, None, decision)
    return (yield from put_before(run, one)) if isinstance(one, Sifted) else one


def sift(run: Run, call: ToolCall, rank: Rank | None, decision: Decision | None = None) -> Judged | Sifted:
    """The path of one call as far as no plugin has a say in it: limit, name, arguments; to its start, where none asks to judge
    it.

    The limit is looked at first, since calls of unknown tools and with unreadable arguments count as well.
    """
    limit = _limit(run, call, rank) if rank is not None else ""
    if limit:
        return refused(call, f"not run: the limit {limit!r} of this turn is reached", limit=limit)
    tool = run.tools.get(call.name)
    if tool is None:
        return refused(call, _unknown(run, call.name))
    try:
        arguments = parse_arguments(call.raw)
    except ArgumentsError as error:
        return refused(call, f"The arguments of {call.name} were not understood, so it was not called: {error}")
    if run.allowed is not None and call.name not in run.allowed:
        allowed = ", ".join(sorted(run.allowed)) or "none"
        return refused(call, f"not run: {call.name} may not be called in this round; allowed: {allowed}")
    if isinstance(decision, Approve) and decision.arguments is not None:
        arguments = dict(decision.arguments)
    if "before_tool" in run.setup.hooks or tool.needs_approval:
        return Sifted(call, tool, arguments, decision)
    try:
        kwargs = tool.validate(arguments)
    except ArgumentsError as error:
        return _unfit(call, error)
    plain = decision is None and call.raw.startswith("{")  # else the text holds the object in other words
    return Judged(call, call.raw if plain else encode_json(arguments), tool=tool, kwargs=kwargs)


def _unfit(call: ToolCall, error: ArgumentsError) -> Judged:
    return refused(call, f"The arguments of {call.name} do not fit, so it was not called: {error}")


def _unknown(run: Run, name: str) -> str:
    close = get_close_matches(name, run.tools, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    known = ", ".join(run.tools) or "none"
    return f"There is no tool named {name!r}.{hint} The tools are: {known}"


def _limit(run: Run, call: ToolCall, rank: Rank) -> str:
    """The name of the limit that this call would pass, by its rank in turn, tool and reply; empty for none."""
    limits, tally, errors = run.setup.limits, rank.tally, run.log.ledger.errors
    if limits.tool_calls is not None and tally.calls > limits.tool_calls:
        return "tool_calls"
    of_tool = limits.of_tool(call.name)
    if of_tool is not None and tally.by_tool[call.name] > of_tool:
        return "per_tool"
    if limits.calls_per_reply is not None and rank.in_reply > limits.calls_per_reply:
        return "calls_per_reply"
    if limits.repeated is not None and tally.repeated > limits.repeated:
        return "repeated"
    if limits.errors is not None and errors and errors >= limits.errors:
        return "errors"
    return ""


def put_before(run: Run, one: Sifted) -> Flow[Judged]:
    """Validate and ask `before_tool`, again after each replacement of the arguments, so that all judged what runs."""
    tool, call, arguments, decision = one.tool, one.call, one.arguments, one.decision
    raw = encode_json(arguments)
    for _ in range(PASSES):
        try:
            kwargs = tool.validate(arguments)
        except ArgumentsError as error:
            return _unfit(call, error)
        try:
            merged = yield from hooked.before_tool(run, replace(call, raw=raw), decision)
            final = yield from _ruling(run, tool, call, raw, kwargs, merged, decision)
        except PluginError as error:
            yield from hooked.warn(run, f"the call was denied: {error}", error.plugin, "before_tool")
            return refused(call, f"denied: plugin {error.plugin} failed while it judged this call")
        if final is not None:
            return final
        replaced = merged.first(Replace)
        assert replaced is not None
        value = replaced.verdict.value if isinstance(replaced.verdict, Replace) else None
        if not isinstance(value, Mapping):
            yield from hooked.warn(
                run, f"replaced arguments by {value!r:.80}, not a mapping", replaced.plugin, "before_tool"
            )
            return refused(call, f"denied: plugin {replaced.plugin} gave arguments that are not an object")
        yield from hooked.ruled(replaced, call.name)
        arguments, decision = dict(value), None
        try:
            raw = encode_json(arguments)
        except Unencodable as error:
            yield from hooked.warn(
                run, f"replaced arguments by some without JSON: {error}", replaced.plugin, "before_tool"
            )
            return refused(call, f"denied: plugin {replaced.plugin} gave arguments that are not JSON")
    return refused(call, "denied: plugins kept changing the arguments of this call")


def _ruling(
    run: Run,
    tool: Tool,
    call: ToolCall,
    raw: str,
    kwargs: Mapping[str, object],
    merged: Merged,
    decision: Decision | None,
) -> Flow[Judged | None]:
    """What the verdicts of one pass come to; None asks for another pass."""
    strongest = merged.strongest
    verdict = strongest.verdict if strongest is not None else None
    origin = strongest.origin(run.turn_id, run.round) if strongest is not None else Origin("engine")
    if isinstance(verdict, Stop) and strongest is not None:
        yield from hooked.ruled(strongest, verdict.reason)
        return replace(refused(call, f"not run: stopped by {strongest.plugin}", origin=origin), stop=strongest)
    if isinstance(verdict, Deny) and strongest is not None:
        yield from hooked.ruled(strongest, verdict.reason)
        return refused(call, f"denied: {verdict.reason}", origin=origin)
    if merged.first(Replace) is not None:
        return None
    if isinstance(verdict, Suspend) and decision is None and strongest is not None:
        yield from hooked.ruled(strongest, verdict.question)
        return Judged(call, raw, question=verdict.question, expires=verdict.expires, origin=origin)
    answer = merged.first(Answer)
    if answer is not None and isinstance(answer.verdict, Answer):
        yield from hooked.ruled(answer, call.name)
        result = result_of(answer.verdict.value, ToolResult(call.id, call.name), answer.plugin, "before_tool")
        return Judged(call, raw, result=result, origin=answer.origin(run.turn_id, run.round))
    if tool.needs_approval and decision is None:
        return Judged(call, raw, question=f"Run {call.name} with {raw}?")
    return Judged(call, raw, tool=tool, kwargs=kwargs)
