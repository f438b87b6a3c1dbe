"""One typed function per hook. The loop asks plugins through these alone; a hook that nobody implements costs no effect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hookloop_hookspecs import (
    Condense,
    Message,
    ModelRequest,
    Outcome,
    PluginError,
    ProviderError,
    Reply,
    ToolCall,
    ToolResult,
    Window,
)
from hookloop_hookspecs.events import Contributed, Decision, Warned
from hookloop_hookspecs.redact import bounded, redact
from hookloop_hookspecs.verdicts import Decision as Decided
from hookloop_hookspecs.wellformed import fault

from .effects import CallHook, Emit, Flow, HookName, Returned
from .merge import Merged, Ruling, merge
from .run import Run


def _call(run: Run, hook: HookName, arguments: Mapping[str, object], fold: str = "") -> Flow[list[Returned]]:
    """Ask a hook and settle failures: skipped ones become warnings, the first other one is raised."""
    if hook not in run.setup.hooks:
        return []
    common = {"conversation": run.conversation, "view": run.view, "reply": run.reply}
    returned = yield from CallHook(hook, {**common, **arguments}, fold).ask()
    for one in returned:
        if one.error is not None and one.skip:
            yield from warn(run, one.trouble, one.plugin, hook)
    for one in returned:
        if one.error is not None and not one.skip:
            raise failure(one, hook) from one.error
    return [one for one in returned if one.error is None]


def failure(one: Returned, hook: str) -> PluginError:
    """The error that a failing implementation becomes."""
    if isinstance(one.error, PluginError):
        return one.error
    return PluginError(one.plugin, hook, one.trouble)


def _merged(run: Run, hook: HookName, arguments: Mapping[str, object], fold: str = "") -> Flow[Merged]:
    if hook not in run.setup.hooks:
        return Merged()
    returned = yield from _call(run, hook, arguments, fold)
    merged = merge(hook, returned, run.turn_id, run.round)
    for conflict in merged.conflicts(hook):
        yield from warn(run, conflict)
    return merged


def warn(run: Run, text: str, plugin: str = "", hook: str = "") -> Flow[None]:
    """Note a warning for the outcome and tell it as an event."""
    text = bounded(redact(text))
    run.warnings.append(f"{plugin}.{hook}: {text}" if plugin else text)
    yield from Emit(Warned(text, plugin, hook)).ask()


def tell(run: Run, messages: Sequence[Message]) -> Flow[None]:
    """Tell that messages of plugins entered history."""
    if run.heard:
        for message in messages:
            yield Emit(Contributed(message))


def ruled(ruling: Ruling, detail: str = "") -> Flow[None]:
    """Tell that a verdict took effect."""
    verdict = type(ruling.verdict).__name__
    yield from Emit(Decision(ruling.plugin, ruling.hook, verdict, detail)).ask()


def register_tools(run: Run) -> Flow[list[Returned]]:
    """What plugins give in tools, unsorted."""
    return (yield from _call(run, "register_tools", {}))


def recall(run: Run, query: Message) -> Flow[Merged]:
    """What memories retrieve for the user's message."""
    return (yield from _merged(run, "recall", {"conversation": run.conversation, "query": query}))


def before_turn(run: Run, query: Message) -> Flow[Merged]:
    """What plugins say of the user's message."""
    return (yield from _merged(run, "before_turn", {"query": query}))


def select_context(run: Run, view: Sequence[Message]) -> Flow[tuple[Returned, Window | Condense] | None]:
    """The view policy that the first plugin with one chooses, and who that is."""
    returned = yield from _call(run, "select_context", {"view": view})
    for one in returned:
        if isinstance(one.value, Window | Condense):
            if trouble := fault(one.value):
                text = f"returned a {type(one.value).__name__} that cannot be used: {trouble}"
                raise PluginError(one.plugin, "select_context", text)
            return one, one.value
        if one.value is not None:
            text = f"returned {one.value!r:.80}; it may return a Window, Condense or None"
            raise PluginError(one.plugin, "select_context", text)
    return None


def before_round(run: Run, request: ModelRequest) -> Flow[Merged]:
    """What plugins say of the next request."""
    return (yield from _merged(run, "before_round", {"view": request.messages, "request": request}))


def on_model_error(run: Run, request: ModelRequest, error: ProviderError) -> Flow[Merged]:
    """What plugins want to do about a failed attempt."""
    return (yield from _merged(run, "on_model_error", {"request": request, "error": error}))


def after_reply(run: Run, request: ModelRequest, reply: Reply) -> Flow[Merged]:
    """What plugins say of a reply that is not history yet."""
    return (yield from _merged(run, "after_reply", {"request": request, "reply": reply}, "reply"))


def before_tool(run: Run, call: ToolCall, decision: Decided | None) -> Flow[Merged]:
    """What plugins say of a call that would run."""
    return (yield from _merged(run, "before_tool", {"call": call, "decision": decision}))


def after_tool(run: Run, call: ToolCall, result: ToolResult) -> Flow[Merged]:
    """What plugins say of a result that is not stored yet."""
    return (yield from _merged(run, "after_tool", {"call": call, "result": result}, "result"))


def next_instructions(run: Run, reply: Reply, results: Sequence[ToolResult]) -> Flow[Merged]:
    """What plugins tell the model about a call group."""
    return (yield from _merged(run, "next_instructions", {"reply": reply, "results": results}))


def review_answer(run: Run, reply: Reply) -> Flow[Merged]:
    """What plugins object to in a final answer."""
    return (yield from _merged(run, "review_answer", {"reply": reply}))


def after_turn(run: Run, outcome: Outcome) -> Flow[None]:
    """Tell plugins that the run is over."""
    yield from _call(run, "after_turn", {"outcome": outcome})
