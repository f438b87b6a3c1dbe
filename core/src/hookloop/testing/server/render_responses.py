"""A reply as the Responses API says it, whole and streamed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hookloop_hookspecs import Reply, Text, Thinking, ToolCall, Usage

from .context import Context, Said, said

Item = dict[str, Any]
_INCOMPLETE = {"length": "max_output_tokens", "context": "max_output_tokens", "filter": "content_filter"}
_ECHOED = ("instructions", "max_output_tokens", "parallel_tool_calls", "previous_response_id", "store", "temperature")


def items(reply: Reply, context: Context) -> list[Item]:
    """The output items, in the reply's order."""
    made = [_item(part, context, reply.stop == "refusal") for part in said(reply)]
    if made and reply.stop in _INCOMPLETE and "status" in made[-1]:
        made[-1]["status"] = "incomplete"
    return made


def whole(reply: Reply, context: Context, output: Sequence[Item], response_id: str) -> dict[str, Any]:
    """The `response` object."""
    status = "incomplete" if reply.stop in _INCOMPLETE else "completed"
    why = {"reason": _INCOMPLETE[reply.stop]} if status == "incomplete" else None
    shell = _shell(context, response_id, status)
    return {**shell, "incomplete_details": why, "output": list(output), "usage": _usage(reply.usage)}


def events(reply: Reply, context: Context, output: Sequence[Item], response_id: str) -> list[dict[str, Any]]:
    """All events with their sequence numbers, ended by `response.completed` or `response.incomplete`."""
    final = whole(reply, context, output, response_id)
    listed = [*_body(context, output, response_id), {"type": f"response.{final['status']}", "response": final}]
    return [{**event, "sequence_number": number} for number, event in enumerate(listed)]


def failed(context: Context, response_id: str, code: str, message: str) -> dict[str, Any]:
    """The `response.failed` event."""
    error = {"code": code, "message": message}
    return {"type": "response.failed", "response": {**_shell(context, response_id, "failed"), "error": error}}


def _body(context: Context, output: Sequence[Item], response_id: str) -> Iterator[dict[str, Any]]:
    started = _shell(context, response_id, "in_progress")
    yield {"type": "response.created", "response": started}
    yield {"type": "response.in_progress", "response": started}
    for index, item in enumerate(output):
        yield {"type": "response.output_item.added", "output_index": index, "item": _opened(item)}
        where = {"item_id": item.get("id", ""), "output_index": index}
        yield from ({**event, **where} for event in _inner(item, context))
        yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _shell(context: Context, response_id: str, status: str) -> dict[str, Any]:
    body = context.request.body
    echoed = {key: body.get(key) for key in _ECHOED}
    head = {"id": response_id, "object": "response", "created_at": context.created, "status": status}
    rest: Item = {"error": None, "incomplete_details": None, "model": context.model, "output": [], "usage": None}
    more = {"tools": body.get("tools", []), "tool_choice": body.get("tool_choice", "auto"), "metadata": {}}
    defaults = {"parallel_tool_calls": True, "store": True}
    return {**head, **rest, **more, **echoed, **{key: body.get(key, value) for key, value in defaults.items()}}


def _item(part: Said, context: Context, refused: bool) -> Item:
    if isinstance(part, Text):
        return _message(part, context, refused)
    if isinstance(part, Thinking):
        summary = [{"type": "summary_text", "text": part.text}] if part.text else []
        secret = part.redacted or part.signature
        return {"id": context.new("rs_"), "type": "reasoning", "summary": summary, "encrypted_content": secret}
    if isinstance(part, ToolCall):
        said = {"arguments": part.raw, "call_id": part.id, "name": part.name, "status": "completed"}
        return {"id": context.new("fc_"), "type": "function_call", **said}
    return dict(part.value)


def _message(part: Text, context: Context, refused: bool) -> Item:
    inner: dict[str, Any] = {"type": "output_text", "text": part.text, "annotations": [], "logprobs": []}
    content = [{"type": "refusal", "refusal": part.text} if refused else inner]
    head = {"id": context.new("msg_"), "type": "message", "role": "assistant", "status": "completed"}
    return {**head, "content": content}


def _opened(item: Item) -> Item:
    empty: dict[str, Item] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "reasoning": {"summary": []},
    }
    if item["type"] not in empty:
        return item
    status = {"status": "in_progress"} if "status" in item else {}
    opened = {**item, **empty[item["type"]], **status}
    opened.pop("encrypted_content", None)
    return opened


def _inner(item: Item, context: Context) -> Iterator[dict[str, Any]]:
    if item["type"] == "function_call":
        yield from _argument_events(item, context)
    elif item["type"] == "reasoning":
        for index, part in enumerate(item["summary"]):
            yield from ({**event, "summary_index": index} for event in _summary_events(part, context))
    elif item["type"] == "message":
        for index, part in enumerate(item["content"]):
            yield from ({**event, "content_index": index} for event in _content_events(part, context))


def _argument_events(item: Item, context: Context) -> Iterator[dict[str, Any]]:
    for piece in context.cut(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", "delta": piece}
    done = {"arguments": item["arguments"], "name": item["name"]}
    yield {"type": "response.function_call_arguments.done", **done}


def _summary_events(part: Item, context: Context) -> Iterator[dict[str, Any]]:
    name = "response.reasoning_summary"
    yield {"type": f"{name}_part.added", "part": {**part, "text": ""}}
    for piece in context.cut(part["text"]):
        yield {"type": f"{name}_text.delta", "delta": piece}
    yield {"type": f"{name}_text.done", "text": part["text"]}
    yield {"type": f"{name}_part.done", "part": part}


def _content_events(part: Item, context: Context) -> Iterator[dict[str, Any]]:
    key = "text" if part["type"] == "output_text" else "refusal"
    name = f"response.{part['type']}"
    more: dict[str, Any] = {"logprobs": []} if key == "text" else {}
    yield {"type": "response.content_part.added", "part": {**part, key: ""}}
    for piece in context.cut(part[key]):
        yield {"type": f"{name}.delta", "delta": piece, **more}
    yield {"type": f"{name}.done", key: part[key], **more}
    yield {"type": "response.content_part.done", "part": part}


def _usage(usage: Usage) -> dict[str, Any] | None:
    if usage.input is None and usage.output is None:
        return None
    read, written = usage.input or 0, usage.output or 0
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": usage.cache_read or 0, "cache_write_tokens": usage.cache_write or 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": usage.total if usage.total is not None else read + written,
    }
