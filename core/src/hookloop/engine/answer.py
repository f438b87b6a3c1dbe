"""The fifth phase: what follows a call group, and what follows a reply without calls."""

from __future__ import annotations

from hookloop_hookspecs import Ending, Reply, Said, Stop, ToolResult
from hookloop_hookspecs.events import ReplyReceived

from . import hooked
from .ask import Asked, take_post
from .decide import enter
from .effects import Emit, Flow
from .history import closing
from .log import Group
from .output import objection
from .remaking import halted, remade
from .request import last_text, limit_ended
from .run import Ended, Run

FINAL = ("filter", "refusal", "context")
"""Stop reasons after which asking again would only repeat them."""


def after_group(run: Run, group: Group, reply: Reply) -> Flow[None]:
    """All calls are answered or wait: end, wait, or tell the model something and go on."""
    ending = run.log.ledger.ending
    if ending is not None and ending.status != "limit":
        for place in group.open:
            run.log.answer(place, Said(closing(group.call(place), f"not run: {halted(ending)}")))
    if len(group.results) < len(group.calls):
        raise Ended("suspended", "suspended")
    if ending is not None:
        _end(run, ending, group)
        return
    if reply.stop in FINAL:
        raise Ended("done", reply.stop, reply.text)
    if run.output_text and not (yield from take_post(run, last=True, final=True)):
        raise Ended("done", "end", run.output_text)
    results = [group.results[place].message.results[0] for place in group.places]
    direct = len([result for result in results if _direct(run, result)]) == len(results)
    if direct and not (yield from take_post(run, last=True, final=True)):
        raise Ended("done", "return_direct", "\n\n".join(r.text for r in results))
    if "next_instructions" not in run.setup.hooks:
        return  # the next round takes what was sent, and what plugins did
    yield from take_post(run)
    merged = yield from hooked.next_instructions(run, reply, results)
    for message in merged.messages:
        run.add(Said(message))
    yield from hooked.tell(run, merged.messages)
    run.collect()
    stop = merged.first(Stop)
    if stop is not None and isinstance(stop.verdict, Stop):
        yield from hooked.ruled(stop, stop.verdict.reason)
        raise Ended("stopped", stop.verdict.reason, stop.verdict.text or last_text(run))


def _direct(run: Run, result: ToolResult) -> bool:
    tool = run.tools.get(result.name)
    return tool is not None and tool.return_direct and not result.is_error and bool(result.ran)


def _end(run: Run, ending: Ending, group: Group) -> None:
    """Leave, unless the one request of the breach mode "answer" is still to be made."""
    if ending.status == "limit":
        if ending.answer and group.number < run.log.ledger.ending_at:
            return
        raise limit_ended(run, ending.reason)
    if ending.status == "failed":
        raise Ended("failed", ending.reason, error=remade("PluginError", ending.text))
    raise Ended(ending.status, ending.reason, ending.text)


def answer(run: Run, asked: Asked) -> Flow[None]:
    """A reply without calls: the answer, unless it was only a pause, something was sent in, or a plugin objects."""
    reply = asked.reply
    message = enter(run, asked)
    run.add(Said(message, asked.behind, reply.stop, reply.usage, asked.seconds))
    yield from Emit(ReplyReceived(run.round, reply, message, asked.seconds, asked.answered_by)).ask()
    yield from hooked.tell(run, asked.behind)
    run.collect()
    text = "" if message.blank else message.text
    ending = run.log.ledger.ending
    if ending is not None and ending.status == "limit":
        raise limit_ended(run, ending.reason, text)
    if ending is not None:
        raise Ended(ending.status, ending.reason, ending.text)
    if reply.stop == "pause":
        return
    if reply.stop in FINAL:
        raise Ended("done", reply.stop, text)
    if (yield from take_post(run, final=True)):
        return
    if reply.stop != "length" and (yield from _objected(run, reply, text)):
        return
    if (yield from take_post(run, last=True, final=True)):
        return
    raise Ended("done", "length" if reply.stop == "length" else "end", text)


def _objected(run: Run, reply: Reply, text: str) -> Flow[bool]:
    """Does anybody say "not yet"? The engine does, where structured output was asked for and the text is not it."""
    merged = yield from hooked.review_answer(run, reply)
    for message in merged.messages:
        run.add(Said(message))
    yield from hooked.tell(run, merged.messages)
    run.collect()
    return bool(merged.messages) or objection(run, text)
