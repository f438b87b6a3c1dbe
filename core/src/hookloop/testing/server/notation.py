"""Short builders of single stream events, for streams that no well-behaved server sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

DONE = "data: [DONE]\n\n"
"""The end mark of a Chat Completions stream."""

_ABSENT: Any = object()


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **fields: Any) -> dict[str, Any]:
    """A Chat Completions chunk with one choice. `fields` (`usage`, `choices`, `model`, …) replace its own."""
    choice = {"index": 0, "delta": dict(delta or {}), "finish_reason": finish}
    head = {"id": "chatcmpl-odd", "object": "chat.completion.chunk", "created": 1, "model": "odd"}
    return {**head, "choices": [choice], **fields}


def tc(index: int | None, id: str | None = _ABSENT, name: str | None = _ABSENT, args: Any = _ABSENT) -> dict[str, Any]:
    """One entry of `delta.tool_calls`; what is left out (and an `index` of None) is absent."""
    function = {key: value for key, value in (("name", name), ("arguments", args)) if value is not _ABSENT}
    entry: dict[str, Any] = {} if index is None else {"index": index}
    if id is not _ABSENT:
        entry |= {"id": id, "type": "function"}
    return {**entry, "function": function} if function else entry


def calls(*entries: Mapping[str, Any]) -> dict[str, Any]:
    """A Chat Completions chunk whose delta holds these tool call entries."""
    return chunk({"tool_calls": [dict(entry) for entry in entries]})


def ant(type: str, **fields: Any) -> dict[str, Any]:
    """A Messages event, or a Responses event: its type and its fields."""
    return {"type": type, **fields}


def ms(**usage: int) -> dict[str, Any]:
    """`message_start` with this usage."""
    message = {"id": "msg_odd", "type": "message", "role": "assistant", "model": "odd", "content": []}
    return ant("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})


def cbs(index: int, block: Mapping[str, Any]) -> dict[str, Any]:
    """`content_block_start`."""
    return ant("content_block_start", index=index, content_block=dict(block))


def cbd(index: int, type: str, **fields: Any) -> dict[str, Any]:
    """`content_block_delta` with a delta of this type."""
    return ant("content_block_delta", index=index, delta={"type": type, **fields})


def ijd(index: int, text: str) -> dict[str, Any]:
    """An `input_json_delta`."""
    return cbd(index, "input_json_delta", partial_json=text)


def cbe(index: int) -> dict[str, Any]:
    """`content_block_stop`."""
    return ant("content_block_stop", index=index)


def md(stop_reason: str | None = "end_turn", **usage: int) -> dict[str, Any]:
    """`message_delta` with a stop reason and this usage."""
    return ant("message_delta", delta={"stop_reason": stop_reason, "stop_sequence": None}, usage=usage)


def mstop() -> dict[str, Any]:
    """`message_stop`."""
    return ant("message_stop")


__all__ = ["DONE", "ant", "calls", "cbd", "cbe", "cbs", "chunk", "ijd", "md", "ms", "mstop", "tc"]
