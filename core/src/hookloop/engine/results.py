"""Results on their way into history: `after_tool` is asked before anything is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hookloop_hookspecs import Message, Origin, PluginError, Replace, Said, Stop, Text, ToolCall, ToolResult

from . import hooked
from .effects import Flow
from .history import clean
from .merge import Ruling, result_of
from .run import Run


@dataclass(slots=True)
class Finished:
    """A result as it enters history, a Stop that came with it, and the failure that withheld it."""

    said: Said
    result: ToolResult
    stop: Ruling | None = None
    error: PluginError | None = None


def after(run: Run, call: ToolCall, message: Message, origin: Origin, *, ran: bool = False) -> Flow[Finished]:
    """Ask `after_tool` about a result. Where a plugin fails, the result is withheld: nothing unjudged leaks, and nothing
    that ran is taken for not run.
    """
    (result,) = message.results
    if "after_tool" not in run.setup.hooks:
        return Finished(Said(message), result)
    try:
        merged = yield from hooked.after_tool(run, call, result)
        for ruling in merged.rulings:
            if isinstance(ruling.verdict, Replace):
                result = result_of(ruling.verdict.value, result, ruling.plugin, "after_tool")
                origin = replace(origin, plugin=ruling.plugin, version=ruling.version, hook="after_tool")
                yield from hooked.ruled(ruling, call.name)
    except PluginError as error:
        return _withheld(result, origin, error, ran=ran)
    stop = merged.first(Stop)
    if stop is not None and isinstance(stop.verdict, Stop):
        yield from hooked.ruled(stop, stop.verdict.reason)
    if merged.rulings:
        message = Message("tool", clean((result,)), origin)
        (result,) = message.results
    return Finished(Said(message, tuple(merged.messages)), result, stop)


def _withheld(result: ToolResult, origin: Origin, error: PluginError, *, ran: bool) -> Finished:
    what = "ran; result withheld" if ran else "not run; answer withheld"
    text = Text(f"{what}: plugin {error.plugin} failed")
    result = ToolResult(result.call_id, result.name, (text,), is_error=True, ran=result.ran)
    return Finished(Said(Message("tool", (result,), origin)), result, error=error)
