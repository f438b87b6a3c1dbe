"""One step for one request: rendered into the API that is asked, in stream or whole form as the request asks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from hookloop.testing.script import as_reply
from hookloop_hookspecs import Opaque, Part, ProviderError, Reply, Text, Thinking, ToolCall

from . import render_chat, render_messages, render_responses
from .context import Context, said
from .cutting import Cutter
from .issued import Issued
from .plan import Plan, api_error_event, cut_bytes, event_bytes, head_of, held, stream_plan, whole_plan
from .record import Recorded, Violation
from .shapes import error_body, request_id_header
from .steps import Chunks, Cut, Delay, Deltas, Drop, ErrorEvent, Fail, Raw, Sse

_CALL_PREFIX = {"messages": "toolu_", "chat": "call_", "responses": "call_"}
_UNSIGNED = "signed"
_STATUS = {"rate_limit": 429, "overloaded": 529, "auth": 401, "invalid": 400, "not_found": 404, "context": 400}


@dataclass(frozen=True, slots=True)
class Player:
    """Turns steps into plans for one server: its ledger, its profile, how fine its deltas are.

    Opaque parts are sent as blocks on Messages and as items on Responses; Chat Completions has no place for them.
    """

    issued: Issued
    profile: str | None
    cut: Cutter

    def play(self, step: Any, request: Recorded) -> Plan:
        """The plan of a step. Raises `TypeError` for what is no step."""
        context = Context(request, self.issued.new, self.cut, self.profile)
        plan = self._plan(step, context)
        return replace(plan, headers=self._with_id(plan, context)) if not isinstance(step, Raw) else plan

    def _with_id(self, plan: Plan, context: Context) -> dict[str, str]:
        name = request_id_header(context.request.api)
        return {name: context.new("req_"), **plan.headers}

    def _plan(self, step: Any, context: Context) -> Plan:
        special = _SPECIAL.get(type(step))
        if special is not None:
            return special(self, step, context)
        if callable(step) and not isinstance(step, type):
            return self._plan(step(context.request), context)
        return self._failure(step, context) if isinstance(step, BaseException) else self._said(step, context)

    def _failure(self, error: BaseException, context: Context) -> Plan:
        if not isinstance(error, ProviderError):
            return self._fail(Fail(500, str(error)), context)
        if error.kind in ("connection", "timeout"):
            return self._drop(Drop(), context)
        after = {} if error.retry_after is None else {"retry-after": f"{error.retry_after:g}"}
        return self._fail(Fail(error.status or _STATUS.get(error.kind, 500), str(error), headers=after), context)

    def _said(self, item: Any, context: Context) -> Plan:
        scripted = as_reply(item)
        reply = replace(scripted, content=tuple(self._named(part, context) for part in scripted.content))
        render = _RENDER[context.request.api]
        return render(self, reply, context)

    def _named(self, part: Part, context: Context) -> Part:
        if not isinstance(part, Text | Thinking | ToolCall | Opaque):
            raise TypeError(f"a model says no {type(part).__name__}")
        if isinstance(part, ToolCall) and not part.id:
            return replace(part, id=self._call_id(context))
        if isinstance(part, Thinking) and part.signature == _UNSIGNED and not part.redacted:
            return replace(part, signature=context.new("sig_"))
        return part

    def _call_id(self, context: Context) -> str:
        short = self.profile == "mistral"
        return self.issued.short_id() if short else context.new(_CALL_PREFIX[context.request.api])

    def _messages(self, reply: Reply, context: Context) -> Plan:
        self.issued.sign(context.request.body, [render_messages.block(part) for part in said(reply)])
        if context.request.stream:
            return stream_plan(render_messages.events(reply, context))
        return whole_plan(render_messages.whole(reply, context))

    def _chat(self, reply: Reply, context: Context) -> Plan:
        whole = render_chat.whole(reply, context)
        self.issued.say(whole["choices"][0]["message"])
        if not context.request.stream:
            return whole_plan(whole)
        events = render_chat.events(reply, context)
        return stream_plan(f"data: {event}\n\n" if isinstance(event, str) else event for event in events)

    def _responses(self, reply: Reply, context: Context) -> Plan:
        output = render_responses.items(reply, context)
        response_id = context.new("resp_")
        self.issued.respond(context.request.body, response_id, output)
        if context.request.stream:
            return stream_plan(render_responses.events(reply, context, output, response_id))
        return whole_plan(render_responses.whole(reply, context, output, response_id))

    def _fail(self, step: Fail, context: Context) -> Plan:
        fault = Violation("", step.message, step.status, step.type, step.code)
        shaped = error_body(context.request.api, fault, context.new("req_"), self.profile)
        return whole_plan(shaped if step.body is None else step.body, step.status, step.headers)

    def _cut(self, step: Cut, context: Context) -> Plan:
        plan = self._plan(step.item, context)
        frames = cut_bytes(plan, step.after) if step.unit == "bytes" else head_of(plan, step.after)
        return replace(plan, frames=frames, ending=step.how)

    def _error_event(self, step: ErrorEvent, context: Context) -> Plan:
        if not context.request.stream:
            return self._fail(Fail(step.status, step.message, step.type, step.code), context)
        plan = self._plan(step.item, context)
        kept = head_of(plan, step.after)
        return replace(plan, frames=(*kept, event_bytes(_error(step, context, len(kept)))))

    def _delay(self, step: Delay, context: Context) -> Plan:
        return held(self._plan(step.item, context), step.until, step.after)

    def _deltas(self, step: Deltas, context: Context) -> Plan:
        return self._plan(step.item, replace(context, cut=Cutter(step.size, tuple(step.cuts))))

    def _chunks(self, step: Chunks, context: Context) -> Plan:
        plan = self._plan(step.item, context)
        return replace(plan, size=0 if step.at else step.size, cuts=tuple(step.at))

    def _sse(self, step: Sse, context: Context) -> Plan:
        if step.whole is not None and not context.request.stream:
            return whole_plan(step.whole)
        return stream_plan(step.events)

    def _drop(self, step: Drop, context: Context) -> Plan:
        return Plan(0, ending=step.how)

    def _raw(self, step: Raw, context: Context) -> Plan:
        return Plan(step.status, step.headers, (step.body,), cuts=tuple(step.cuts))


def _error(step: ErrorEvent, context: Context, sequence: int) -> dict[str, Any]:
    if context.request.api != "responses":
        return api_error_event(context.request.api, step.type, step.message, step.code)
    numbered = {"sequence_number": sequence}
    if step.form == "failed":
        code = step.code or "server_error"
        return {**render_responses.failed(context, context.new("resp_"), code, step.message), **numbered}
    return {**api_error_event("responses", step.type, step.message, step.code), **numbered}


_RENDER: dict[str, Callable[[Player, Reply, Context], Plan]] = {
    "messages": Player._messages,
    "chat": Player._chat,
    "responses": Player._responses,
}
_SPECIAL: dict[type, Callable[[Player, Any, Context], Plan]] = {
    Fail: Player._fail,
    Cut: Player._cut,
    ErrorEvent: Player._error_event,
    Delay: Player._delay,
    Deltas: Player._deltas,
    Chunks: Player._chunks,
    Sse: Player._sse,
    Raw: Player._raw,
    Drop: Player._drop,
}
