"""A reply as the Messages API says it, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hookloop_hookspecs import Reply, Text, Thinking, ToolCall, Usage

from .context import Context, Said, said

_STOP = {
    "end": "end_turn",
    "calls": "tool_use",
    "length": "max_tokens",
    "filter": "refusal",
    "refusal": "refusal",
    "pause": "pause_turn",
    "context": "model_context_window_exceeded",
}


def whole(reply: Reply, context: Context) -> dict[str, Any]:
    """The `message` object."""
    content = [block(part) for part in said(reply)]
    return {**_head(context), "content": content, **_stop(reply), "usage": _usage(reply.usage)}


def events(reply: Reply, context: Context) -> Iterator[dict[str, Any]]:
    """`message_start`, `ping`, each block, `message_delta` with the cumulative usage, `message_stop`."""
    nothing = {"stop_reason": None, "stop_sequence": None}
    first = {**_usage(reply.usage), **({} if reply.usage.output is None else {"output_tokens": 1})}
    yield {"type": "message_start", "message": {**_head(context), "content": [], **nothing, "usage": first}}
    yield {"type": "ping"}
    for index, part in enumerate(said(reply)):
        yield {"type": "content_block_start", "index": index, "content_block": _start(part)}
        for delta in _deltas(part, context):
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {"type": "message_delta", "delta": _stop(reply), "usage": _usage(reply.usage)}
    yield {"type": "message_stop"}


def block(part: Said) -> dict[str, Any]:
    """The content block of a part."""
    if isinstance(part, Text):
        return {"type": "text", "text": part.text, **_extra(part.extra)}
    if isinstance(part, Thinking):
        return _thinking(part)
    if isinstance(part, ToolCall):
        return {"type": "tool_use", "id": part.id, "name": part.name, "input": _input(part), **_extra(part.extra)}
    return dict(part.value)


def _thinking(part: Thinking) -> dict[str, Any]:
    if part.redacted:
        return {"type": "redacted_thinking", "data": part.redacted}
    return {"type": "thinking", "thinking": part.text, "signature": part.signature}


def _head(context: Context) -> dict[str, Any]:
    return {"id": context.new("msg_"), "type": "message", "role": "assistant", "model": context.model}


def _stop(reply: Reply) -> dict[str, Any]:
    reason = reply.raw_stop or _STOP[reply.stop]
    stop: dict[str, Any] = {"stop_reason": reason, "stop_sequence": None}
    if reason == "refusal":
        stop["stop_details"] = {"type": "refusal", "category": None, "explanation": None}
    return stop


def _extra(text: str) -> dict[str, Any]:
    return json.loads(text) if text else {}


def _input(call: ToolCall) -> Any:
    try:
        return json.loads(call.raw) if call.raw.strip() else {}
    except ValueError:
        return call.raw


def _start(part: Said) -> dict[str, Any]:
    opening = block(part)
    kind = opening["type"]
    if kind == "text" and isinstance(part, Text):
        return {**opening, "text": ""}
    if kind == "thinking":
        return {**opening, "thinking": "", "signature": ""}
    return {**opening, "input": {}} if kind == "tool_use" else opening


def _deltas(part: Said, context: Context) -> Iterator[dict[str, Any]]:
    if isinstance(part, Text):
        yield from ({"type": "text_delta", "text": piece} for piece in context.cut(part.text))
    elif isinstance(part, Thinking) and not part.redacted:
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in context.cut(part.text))
        yield {"type": "signature_delta", "signature": part.signature}
    elif isinstance(part, ToolCall) and part.raw:
        for piece in ("", *context.cut(part.raw)):
            yield {"type": "input_json_delta", "partial_json": piece}


def _usage(usage: Usage) -> dict[str, Any]:
    counts = {
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cache_read,
        "output_tokens": usage.output,
    }
    return {name: count for name, count in counts.items() if count is not None}
