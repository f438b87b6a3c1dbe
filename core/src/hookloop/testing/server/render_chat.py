"""A reply as Chat Completions says it, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from hookloop_hookspecs import Reply, Text, Thinking, ToolCall, Usage

from .context import Context

_FINISH = {"end": "stop", "calls": "tool_calls", "length": "length", "filter": "content_filter", "context": "length"}
_REASONING = {"vllm": "reasoning", "groq": "reasoning"}

_UNASKED = ("mistral",)
"""Profiles whose streams end with usage, whatever was asked."""


def whole(reply: Reply, context: Context) -> dict[str, Any]:
    """The `chat.completion` object."""
    choice = {"index": 0, "message": _message(reply, context), "logprobs": None, "finish_reason": _finish(reply)}
    usage = _usage(reply.usage)
    return {**_head(context, "chat.completion"), "choices": [choice], **({"usage": usage} if usage else {})}


def events(reply: Reply, context: Context) -> Iterator[dict[str, Any] | str]:
    """The chunks, then `[DONE]`; usage in a last chunk of its own where `include_usage` was asked.

    Servers that know no such option send it unasked, with the finish reason.
    """
    head = _head(context, "chat.completion.chunk")
    asked = bool((context.request.body.get("stream_options") or {}).get("include_usage"))
    silent = {"usage": None} if asked else {}
    for delta in _deltas(reply, context):
        yield {**head, "choices": [_choice(delta, None)], **silent}
    usage = _usage(reply.usage)
    unasked = {"usage": usage} if usage and context.profile in _UNASKED else silent
    yield {**head, "choices": [_choice({}, _finish(reply))], **unasked}
    if asked and usage:
        yield {**head, "choices": [], "usage": usage}
    yield "[DONE]"


def _head(context: Context, kind: str) -> dict[str, Any]:
    return {"id": context.new("chatcmpl-"), "object": kind, "created": context.created, "model": context.model}


def _choice(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _finish(reply: Reply) -> str:
    return reply.raw_stop or _FINISH.get(reply.stop, "stop")


def _reasoning_key(context: Context) -> str:
    return _REASONING.get(context.profile or "", "reasoning_content")


def _message(reply: Reply, context: Context) -> dict[str, Any]:
    text = reply.text
    refused = reply.stop == "refusal"
    message: dict[str, Any] = {"role": "assistant", "content": None if refused or not _has_text(reply) else text}
    message["refusal"] = text if refused else None
    thought = "".join(part.text for part in reply.content if isinstance(part, Thinking))
    if thought:
        message[_reasoning_key(context)] = thought
    calls = [{**_opening(part), "function": {"name": part.name, "arguments": part.raw}} for part in reply.calls]
    return {**message, "tool_calls": calls} if calls else message


def _has_text(reply: Reply) -> bool:
    return not reply.calls or any(isinstance(part, Text) for part in reply.content)


def _opening(call: ToolCall) -> dict[str, Any]:
    extra: dict[str, Any] = json.loads(call.extra) if call.extra else {}
    return {"id": call.id, "type": "function", **extra}


def _deltas(reply: Reply, context: Context) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": "" if _has_text(reply) else None}
    index = 0
    key = "refusal" if reply.stop == "refusal" else "content"
    for part in reply.content:
        if isinstance(part, Text):
            yield from ({key: piece} for piece in context.cut(part.text))
        elif isinstance(part, Thinking):
            yield from ({_reasoning_key(context): piece} for piece in context.cut(part.text))
        elif isinstance(part, ToolCall):
            yield from _call_deltas(index, part, context)
            index += 1


def _call_deltas(index: int, call: ToolCall, context: Context) -> Iterator[dict[str, Any]]:
    opening = {"index": index, **_opening(call), "function": {"name": call.name, "arguments": ""}}
    yield {"tool_calls": [opening]}
    for piece in context.cut(call.raw):
        yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _usage(usage: Usage) -> dict[str, Any] | None:
    if usage.input is None and usage.output is None:
        return None
    read, written = usage.input or 0, usage.output or 0
    counts: dict[str, Any] = {"prompt_tokens": read, "completion_tokens": written}
    counts["total_tokens"] = usage.total if usage.total is not None else read + written
    if usage.cache_read is not None:
        counts["prompt_tokens_details"] = {"cached_tokens": usage.cache_read}
    if usage.reasoning is not None:
        counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
    return counts
