"""The first phase: load, close what was left open, choose the view, admit the question, claim the conversation."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from hookloop_hookspecs import (
    ConfigError,
    Conflict,
    Decided,
    Entry,
    HookloopError,
    Loaded,
    LoadQuery,
    Message,
    PluginError,
    Said,
    Stop,
    Summary,
    Suspended,
    Text,
    Tool,
    TurnEnded,
    TurnStarted,
    Window,
)
from hookloop_hookspecs.events import TurnBegan
from hookloop_hookspecs.messages import Origin
from hookloop_hookspecs.redact import words
from hookloop_hookspecs.tools import Toolset, as_tool
from hookloop_hookspecs.verdicts import Replace
from hookloop_hookspecs.wellformed import fault

from . import hooked
from .effects import Alive, Emit, Flow, Load, Now, OpenTools
from .history import clean, clean_text, closing, distinct
from .log import Group, Log
from .merge import Merged
from .output import spec_of, uses_tool
from .past import Past, PastTurn, fills, first_in_view, lead, read, show
from .run import Ended, MemoryFacts, Run
from .saving import save

FIRST_REACH = 64
"""Messages that are loaded at first where the window counts tokens."""
PASSES = 3
"""How often an input or a call is judged anew because a plugin replaced it."""


def load(run: Run) -> Flow[None]:
    """Read the conversation from the memory that owns it, or take the entries that were given."""
    if run.request.suspended and run.setup.home is not None:
        yield from _prefer_home(run, run.setup.home)
    if run.home is not None and not run.closing:
        turn_id = run.request.turn_id if run.request.repeatable else ""
        loaded = yield from _load_enough(run, turn_id)
        run.version = loaded.version
        last = run.past.last
        if last is not None and last.open:
            yield from _refuse_living(run, last, loaded.lease is not None and loaded.lease.left > 0)
        return
    run.past = read(run.request.given or ())


def _load_enough(run: Run, turn_id: str) -> Flow[Loaded]:
    """Load from the tail what the view needs. Views leave some messages out (failed turns, ephemeral ones), and count in
    tokens perhaps, so how far back that is shows only once it is read.
    """
    reach = _reach(run.setup.window, run.setup.hooks)
    while True:
        loaded = yield from Load(run.conversation, LoadQuery(reach, turn_id, run.setup.scope)).ask()
        run.past = read(loaded.entries)
        if reach is None or len(loaded.entries) >= loaded.version or fills(run.past, run.setup.window):
            return loaded
        if sum(isinstance(entry.body, Said) for entry in loaded.entries) < reach:
            return loaded  # fewer than were asked for: there are no more, whatever the store counts as its version
        reach *= 4


def _prefer_home(run: Run, home: MemoryFacts) -> Flow[None]:
    """Where the memory holds the suspended turn itself, it is taken up there, so that no decision is taken twice. One that
    holds nothing of the conversation takes all of it over, so that the conversation goes on there.
    """
    loaded = yield from Load(run.conversation, LoadQuery(None, run.request.turn_id, run.setup.scope)).ask()
    if not loaded.entries and home.placement == "inside":
        run.keep_in(home)
        run.closing = list(run.request.given or ())
    elif read(loaded.entries).turn(run.request.turn_id) is not None:
        run.keep_in(home)


def _reach(window: Window, hooks: frozenset[str]) -> int | None:
    """How many messages back a load must reach at first; None is all."""
    if "select_context" in hooks or (window.messages is None and window.tokens is None):
        return None
    return FIRST_REACH if window.messages is None else window.messages + window.slack


def _refuse_living(run: Run, turn: PastTurn, leased: bool) -> Flow[None]:
    """Raise `Conflict` where the open turn is another living writer's."""
    if not leased:
        return
    alive = yield from Alive(turn.owner).ask()
    if alive is not False:
        raise Conflict(f"conversation {run.conversation!r}: turn {turn.id!r} of {turn.owner} is under way")


def register(run: Run) -> Flow[None]:
    """Collect the turn's tools; two of one name are an error that names both givers."""
    givers: dict[str, str] = {}
    for tool in run.setup.tools:
        _give(run, givers, "tools=", tool)
    for one in (yield from hooked.register_tools(run)):
        for tool in (yield from _tools_of(one.plugin, one.value)):
            _give(run, givers, f"plugin {one.plugin!r}", tool)
    choice = run.setup.tool_choice
    if choice not in ("auto", "none") and (not run.tools or choice not in ("required", *run.tools)):
        names = ", ".join(run.tools) or "none"
        raise ConfigError(f"tool_choice is {choice!r}, but the tools are: {names}")
    yield from _check_overrides(run)
    run.specs = tuple(tool.spec for tool in run.tools.values())
    output = run.request.output
    if output is not None and output.name in run.tools:
        raise ConfigError(f"a tool is named {output.name!r}, which is the name of the output tool; rename it")
    if output is not None and uses_tool(run):
        run.specs = (*run.specs, spec_of(output))


def _check_overrides(run: Run) -> Flow[None]:
    """A limit for a tool that is not there would limit nothing: nearly the name of one is an error, any other a warning (and
    where plugins give tools, who may give others in the next turn).
    """
    for name in run.setup.limits.per_tool_overrides:
        if name in run.tools:
            continue
        close = get_close_matches(name, run.tools, n=1)
        if close and "register_tools" not in run.setup.hooks and run.request.message is not None:
            raise ConfigError(f"limit per_tool_overrides names the tool {name!r}; did you mean {close[0]!r}?")
        yield from hooked.warn(run, f"limit per_tool_overrides names the tool {name!r}, which is not among this turn's")


def _give(run: Run, givers: dict[str, str], giver: str, tool: Tool) -> None:
    if tool.name in givers:
        raise ConfigError(
            f"two tools are named {tool.name!r}: one from {givers[tool.name]}, one from {giver}; rename one of them"
        )
    givers[tool.name] = giver
    run.tools[tool.name] = tool


def _tools_of(plugin: str, value: object) -> Flow[list[Tool]]:
    if value is None:
        return []
    if isinstance(value, Toolset):
        try:
            return list((yield from OpenTools(value).ask()))
        except HookloopError:
            raise
        except Exception as error:
            raise PluginError(plugin, "register_tools", f"its toolset did not open: {words(error)}") from error
    if isinstance(value, Tool) or callable(value):
        return [as_tool(value)]
    if not isinstance(value, Iterable) or isinstance(value, str):
        raise PluginError(plugin, "register_tools", f"returned {value!r:.80}; give tools, functions or a toolset")
    tools: list[Tool] = []
    for item in value:
        tools += yield from _tools_of(plugin, item)
    return tools


def start(run: Run, message: Message) -> Flow[None]:
    """Begin a new turn: the user's message, what plugins say of it, and the claim, in one batch."""
    run.closing = close_turns(run.past, run.setup.on_pending)
    question = Message("user", clean(message.content), Origin("user", turn=run.turn_id), clean_text(message.key))
    summary = yield from _choose_window(run)
    asked, cut = question, _open_log(run, (question,))
    yield from Emit(TurnBegan(run.conversation, run.turn_id, question)).ask()
    recalled = yield from hooked.recall(run, question)
    question, merged, stop = yield from _judge_input(run, question)
    run.system = clean_text("\n\n".join(text for text in (run.setup.instructions, *merged.system) if text))
    now = yield from Now().ask()
    run.begun = now.mono
    if question is not asked or stop is not None:
        cut = _open_log(run, (question,) if stop is None else ())
    run.entered = True
    run.add(TurnStarted(run.setup.owner, run.request.nonce, run.system, run.specs, cut, now.wall))
    if summary is not None:
        run.add(summary)
    run.collect()
    if stop is not None:
        raise stop  # begun and ended in one batch, as there is nothing to take up in between
    for said in (question, *recalled.messages, *merged.messages):
        run.add(Said(said))
    yield from hooked.tell(run, [*recalled.messages, *merged.messages])
    yield from save(run)


def _choose_window(run: Run) -> Flow[Summary | None]:
    """Let plugins choose the view policy; gives back the summary of old turns that one of them made."""
    if "select_context" not in run.setup.hooks:
        return None
    closed = show(run.past, bound=False)
    view = lead(run.past, ()) + [message for turn in closed for message in turn.messages]
    chosen = yield from hooked.select_context(run, view)
    if chosen is None:
        return None
    giver, policy = chosen
    if isinstance(policy, Window):
        run.window = policy
        return None
    run.window = policy.window or run.window
    turns = max(0, min(policy.turns, len(closed)))
    covers = closed[turns].start if turns < len(closed) else run.past.number
    origin = Origin("plugin", giver.plugin, giver.version, "select_context", run.turn_id)
    run.past.summary = Summary(Message("user", clean((Text(policy.text),)), origin), covers)
    return run.past.summary


def _open_log(run: Run, question: tuple[Message, ...]) -> int:
    """A fresh log behind the closed turns in view; gives back the number where the view begins."""
    closed = show(run.past, bound=run.facts.traits.bound_thinking)
    previous = next((turn.started.view_from for turn in reversed(run.past.turns) if turn.started), 0)
    at = first_in_view(closed, run.window, previous, question)
    number = run.past.number
    cut = closed[at].start if at < len(closed) else number
    window = distinct(lead(run.past, closed[:at]) + [message for turn in closed[at:] for message in turn.messages])
    ids = {
        call.id
        for turn in run.past.turns
        for entry in turn.entries
        if isinstance(entry.body, Said)
        for call in entry.body.message.calls
    }
    run.log = Log(run.request.turn_id, number, window, ids)
    run.log.ledger.tally.uncounted = run.request.output.name if run.request.output else None
    run.closed = run.measured = len(window)
    new_epoch(run)
    return cut


def new_epoch(run: Run) -> None:
    """Requests from here on need not extend the ones before."""
    run.epoch += 1
    run.memo = {}
    run.sent = 0


def _judge_input(run: Run, question: Message) -> Flow[tuple[Message, Merged, Ended | None]]:
    """Ask `before_turn`, again after each replacement, so that every plugin judged the input that is used."""
    for _ in range(PASSES):
        merged = yield from hooked.before_turn(run, question)
        stop = merged.first(Stop)
        if stop is not None and isinstance(stop.verdict, Stop):
            yield from hooked.ruled(stop, stop.verdict.reason)
            return question, merged, Ended("stopped", stop.verdict.reason, stop.verdict.text)
        replaced = merged.first(Replace)
        if replaced is None:
            return question, merged, None
        yield from hooked.ruled(replaced)
        question = _replaced(run, replaced.plugin, replaced.version, replaced.verdict, question)
    return question, Merged(), Ended("stopped", "input_not_settled", "")


def _replaced(run: Run, plugin: str, version: str, verdict: object, old: Message) -> Message:
    value = verdict.value if isinstance(verdict, Replace) else verdict
    origin = Origin("user", plugin, version, "before_turn", run.turn_id)
    if isinstance(value, str):
        value = Message("user", value)
    if not isinstance(value, Message) or value.role != "user" or fault(value) or value.calls or value.results:
        why = (fault(value) if isinstance(value, Message) else "") or "give text or a user message"
        raise PluginError(plugin, "before_turn", f"replaced the input by {value!r:.80}; {why}")
    return Message("user", clean(value.content), origin, old.key)


def close_turns(past: Past, on_pending: str) -> list[Entry]:
    """Close what earlier turns left open; gives back the entries that do so, which are to be stored.

    Mostly that is the last turn alone; others are left open by turns that were placed outside meanwhile, and stored no marks.
    Raises `Conflict` where calls of the last turn wait for decisions and the agent refuses to supersede.
    """
    last = past.last
    if last is not None and last.suspended and last.ended is None and on_pending == "refuse":
        raise Conflict(f"turn {last.id!r} waits for decisions; resume it, or let on_pending be 'supersede'")
    return [entry for turn in past.turns for entry in _close_turn(past, turn)]


def _close_turn(past: Past, turn: PastTurn) -> list[Entry]:
    """Entries that close a turn, where it is open or waits: each call is answered at its own place, the turn is ended behind
    all turns. They become part of `past` as well. Gives back those that can be stored: a writer without marks may have put
    something else at a call's place.
    """
    if turn.ended is not None or not (turn.open or turn.suspended or turn.dangling):
        return []
    log = Log(turn.id, turn.start, [], set())
    log.replay(turn.entries)
    for place, said in closings(log, superseded=True):
        log.answer(place, said)
    log.number = max(log.number, past.number)
    if turn.suspended:
        log.append(TurnEnded("stopped", "superseded"))
    elif turn.open:
        log.append(TurnEnded("failed", "interrupted", error="the turn was interrupted before it came to an end"))
    taken = {entry.number for other in past.turns for entry in other.entries}
    for entry in log.unsaved:
        turn.take(entry)
    turn.entries.sort(key=lambda entry: entry.number)
    past.number = max(past.number, log.number)
    return [entry for entry in log.unsaved if entry.number not in taken]


def closings(log: Log, *, superseded: bool = False) -> list[tuple[int, Said]]:
    """Results for all calls of the open group that have none: what the engine knows of each."""
    group = log.group
    if group is None:
        return []
    return [(place, Said(closing(group.call(place), _why(log, group, place, superseded)))) for place in group.open]


def _why(log: Log, group: Group, place: int, superseded: bool) -> str:
    mark = log.ledger.marks.get(place)
    if mark is None or isinstance(mark, Decided):
        return "not run: the turn was interrupted before this call started"
    if isinstance(mark, Suspended):
        return (
            "denied: superseded by a new message"
            if superseded
            else "not run: the turn ended while this call waited for a decision"
        )
    return "interrupted: the call had started, its effect is unknown"
