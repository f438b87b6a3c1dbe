"""Taking up a turn that is open (after a crash) or waits for decisions. The log is the state; the rest is as at a start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hookloop_hookspecs import (
    Answer,
    Approve,
    ArgumentsError,
    ConfigError,
    Decided,
    Deny,
    NoOpenTurn,
    Origin,
    PluginError,
    Reply,
    Resumed,
    Said,
    Started,
    Suspended,
    ToolCall,
    ToolResult,
    TurnStarted,
)
from hookloop_hookspecs.events import TurnBegan
from hookloop_hookspecs.results import Unencodable, encode_json
from hookloop_hookspecs.schema import parse_arguments
from hookloop_hookspecs.verdicts import Decision
from hookloop_hookspecs.wellformed import fault

from . import hooked
from .begin import new_epoch
from .decide import commit, conclude
from .effects import Emit, Flow, Now
from .history import distinct
from .judge import Judged, judge, refused
from .log import Group, Log
from .merge import result_of
from .output import recover
from .past import PastTurn, Size, lead, show
from .recut import pieces, standing
from .remaking import halted
from .run import Run
from .saving import save
from .work import work


def require(run: Run, wanted: PastTurn | None = None) -> PastTurn:
    """The turn that can be taken up: the last one, and the one that is `wanted`. Raises `NoOpenTurn`."""
    turn = run.past.last
    if wanted is not None and wanted is not turn:
        raise NoOpenTurn(f"turn {wanted.id!r} was left open, and others came after it; it cannot be taken up any more")
    if turn is None or turn.started is None or turn.ended is not None:
        raise NoOpenTurn(f"conversation {run.conversation!r} has no turn that is open or waits for a decision")
    return turn


def take_up(run: Run, turn: PastTurn) -> Flow[None]:
    """Rebuild the log of an open turn, note what was decided, and store that before any call runs."""
    assert turn.started is not None
    home = run.home
    if home is not None and not home.capabilities.durable and turn.owner != run.setup.owner:
        what = f"turn {turn.id!r} was left here by another process ({turn.owner}), and this memory does not declare durable"
        yield from hooked.warn(run, f"{what}: some of it may be missing", home.name, "load_memory")
    _rebuild(run, turn, turn.started)
    decisions = _decided(run)
    now = yield from Now().ask()
    run.begun = now.mono
    run.add(Resumed(run.setup.owner, run.request.nonce, now.wall))
    for mark in _marks(run, decisions, now.wall):
        run.add(mark)
    run.entered = True
    yield from save(run)
    yield from Emit(TurnBegan(run.conversation, run.turn_id, None, True)).ask()


def _rebuild(run: Run, turn: PastTurn, started: TurnStarted) -> None:
    run.past.turns.remove(turn)
    bound = run.facts.traits.bound_thinking
    closed = show(run.past, bound=bound)
    at = next((at for at, past in enumerate(closed) if past.start >= started.view_from), len(closed))
    window = distinct(lead(run.past, closed[:at]) + [message for past in closed[at:] for message in past.messages])
    run.log = Log(turn.id, turn.start, window, _ids(run))
    run.log.ledger.tally.uncounted = run.request.output.name if run.request.output else None
    run.closed = len(window)
    run.measured = len(window)
    run.log.replay(turn.entries)
    run.system = started.system
    run.specs = started.tools
    run.round = run.log.ledger.rounds
    if run.log.ledger.recut:
        _recut_again(run)
    recover(run)
    new_epoch(run)


def _ids(run: Run) -> set[str]:
    """All call ids of the closed turns that were loaded."""
    said = (entry.body for turn in run.past.turns for entry in turn.entries if isinstance(entry.body, Said))
    return {call.id for body in said for call in body.message.calls}


def _recut_again(run: Run) -> None:
    """The window as the last recut left it, with what came after."""
    group = run.log.group
    entries = [entry for entry in run.log.entries if group is None or entry.number < group.number]
    question, *rest = pieces(entries)
    kept = [piece for piece in rest if piece.start >= run.log.ledger.recut]
    messages = standing(run) + [message for piece in (question, *kept) for message in piece.messages]
    run.log.window, run.closed = messages, 0
    run.measured, run.size = len(messages), Size.of(messages, run.window)


def _decided(run: Run) -> Mapping[int, Decision]:
    """The caller's decisions by place. Raises `ConfigError` for ids that do not wait."""
    group, marks = run.log.group, run.log.ledger.marks
    waiting = {}
    if group is not None:
        waiting = {group.call(place).id: place for place in group.open if isinstance(marks.get(place), Suspended)}
    unknown = [id for id in run.request.decisions if id not in waiting]
    if unknown:
        names = ", ".join(waiting) or "none"
        raise ConfigError(f"no call {', '.join(map(repr, unknown))} waits for a decision; those that wait: {names}")
    for id, decision in run.request.decisions.items():
        if not isinstance(decision, Approve | Deny | Answer):
            raise ConfigError(f"the decision on {id!r} is {decision!r:.80}; it is Approve, Deny or Answer")
        if trouble := fault(decision):
            raise ConfigError(f"the decision on {id!r} cannot be used: {trouble}")
    return {waiting[id]: decision for id, decision in run.request.decisions.items()}


def _marks(run: Run, decisions: Mapping[int, Decision], now: float) -> list[Decided]:
    """What is noted of the calls that waited: the decisions, and a denial where the time was up before."""
    marks: list[Decided] = []
    for place, mark in run.log.ledger.marks.items():
        if isinstance(mark, Suspended) and mark.expires is not None and mark.expires < now:
            marks.append(Decided(place, "deny", reason="expired"))
        elif place in decisions:
            marks.append(_mark(place, decisions[place]))
    return marks


def _mark(place: int, decision: Decision) -> Decided:
    """A decision as it is noted. Raises `ConfigError` for what cannot be."""
    try:
        match decision:
            case Approve(arguments):
                return Decided(place, "approve", encode_json(arguments) if arguments is not None else "")
            case Deny(reason):
                return Decided(place, "deny", reason=reason)
            case Answer(value):
                return Decided(place, "answer", result=result_of(value, ToolResult("", ""), "resume", "resume"))
    except (Unencodable, PluginError) as error:
        raise ConfigError(f"the decision {decision!r:.80} cannot be noted: {error}") from error


def finish_group(run: Run, group: Group) -> Flow[None]:
    """Bring the open call group to its end: answer what was decided, run what may run, leave waiting what waits."""
    run.reply = reply_of(group.said)
    places: list[int] = []
    judged: list[Judged] = []
    for place in group.open:
        one = yield from _rejudge(run, group, place)
        if one is not None:
            places.append(place)
            judged.append(one)
    judged, finished = yield from conclude(run, judged)
    jobs = yield from commit(run, list(zip(places, judged, finished, strict=True)))
    yield from work(run, jobs)


def followed(run: Run) -> bool:
    """Did anything come behind the newest call group? What follows a group is stored with the next reply, so a crash in
    between left nothing of it: then it is done again.
    """
    group = run.log.newest
    if group is None:
        return True
    last = max(group.places)
    return any(entry.number > last for entry in run.log.entries if isinstance(entry.body, Said))


def _rejudge(run: Run, group: Group, place: int) -> Flow[Judged | None]:
    """What becomes of one call that has no result; None leaves it waiting."""
    call, mark = group.call(place), run.log.ledger.marks.get(place)
    if isinstance(mark, Suspended):
        return None
    if group.said.stop in ("length", "filter", "refusal", "context"):
        return replace(refused(call, "not run: the reply was cut, so this call may be incomplete"), closes=True)
    ending = run.log.ledger.ending
    if ending is not None and ending.status != "limit" and not isinstance(mark, Started):
        return replace(refused(call, f"not run: {halted(ending)}"), closes=True)
    if isinstance(mark, Started):
        return _interrupted(run, place, call, mark)
    if isinstance(mark, Decided) and mark.decision == "deny":
        return refused(call, f"denied: {mark.reason}", origin=_decider(run))
    if isinstance(mark, Decided) and mark.decision == "answer":
        given = mark.result or ToolResult("")
        return Judged(call, result=replace(given, call_id=call.id, name=call.name), origin=_decider(run))
    if not isinstance(mark, Decided):
        return (yield from judge(run, call))
    approvals = _approvals(run, place)
    one = yield from judge(run, call, approvals[-1])
    return replace(one, decisions=_for_tool(run, place, approvals)) if one.tool is not None else one


def _decider(run: Run) -> Origin:
    """The mark of a result that the decision on a call made."""
    return Origin("user", hook="resume", turn=run.turn_id, round=run.round)


def _suspensions(run: Run, place: int) -> list[Suspended]:
    bodies = (entry.body for entry in run.log.entries)
    return [body for body in bodies if isinstance(body, Suspended) and body.place == place]


def _approvals(run: Run, place: int) -> list[Approve]:
    """All approvals of a call, in order, each with its arguments or else those that were judged when it was asked for."""
    marks = [e.body for e in run.log.entries if isinstance(e.body, Decided) and e.body.place == place]
    texts = [mark.arguments or asked.arguments for mark, asked in zip(marks, _suspensions(run, place), strict=False)]
    return [Approve(parse_arguments(text)) for text in texts]


def _for_tool(run: Run, place: int, approvals: list[Approve]) -> tuple[Decision, ...]:
    """The approvals that the tool itself asked for; its nth `suspend` gives the nth."""
    asked = zip(approvals, _suspensions(run, place), strict=False)
    return tuple(approval for approval, suspension in asked if suspension.by_tool)


def _interrupted(run: Run, place: int, call: ToolCall, mark: Started) -> Judged:
    """A call that had started when its process died: run again only where its tool says that this does no harm."""
    tool = run.tools.get(call.name)
    (raw,) = mark.arguments
    ending = run.log.ledger.ending
    if tool is None or not tool.idempotent or (ending is not None and ending.status != "limit"):
        return replace(refused(call, "interrupted: the call had started, its effect is unknown"), closes=True)
    try:
        kwargs = tool.validate(parse_arguments(raw))
    except ArgumentsError as error:
        return refused(call, f"The arguments of {call.name} do not fit any more, so it was not called again: {error}")
    decisions = _for_tool(run, place, _approvals(run, place))
    return Judged(call, raw, tool=tool, kwargs=kwargs, decisions=decisions)


def reply_of(said: Said) -> Reply:
    """The reply that an entry holds."""
    return Reply(said.message.content, said.stop or "calls", said.usage or Reply().usage, said.message.origin.model)
