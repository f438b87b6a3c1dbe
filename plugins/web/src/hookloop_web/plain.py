"""Values of the contract and events as plain data and words for people: without secrets, whole."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from hookloop_hookspecs import ModelRequest
from hookloop_hookspecs.codec import dump_message
from hookloop_hookspecs.redact import redact

from .agents import Told


def clean(value: Any) -> Any:
    """Plain data with secrets taken out of every text in it."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: clean(item) for key, item in value.items()}
    return [clean(item) for item in value] if isinstance(value, list) else value


def pretty(value: Any) -> str:
    """JSON text for people."""
    return json.dumps(value, ensure_ascii=False, indent=2)


def whole_request(request: ModelRequest) -> dict[str, Any]:
    """Everything that a request says."""
    settings = {one.name: getattr(request.settings, one.name) for one in fields(request.settings)}
    plain = {
        "model": request.model,
        "system": request.system,
        "tools": [
            {"name": tool.name, "description": tool.description, "schema": json.loads(tool.schema)}
            for tool in request.tools
        ],
        "tool_choice": request.tool_choice,
        "allowed": sorted(request.allowed) if request.allowed is not None else None,
        "settings": {name: value for name, value in settings.items() if value not in (None, ())} or None,
        "output": request.output,
        "epoch": request.epoch,
        "messages": [json.loads(dump_message(message)) for message in request.messages],
    }
    settings_plain = json.loads(json.dumps(plain["settings"], default=dict))
    told: dict[str, Any] = clean({**plain, "settings": settings_plain})
    return {key: value for key, value in told.items() if value not in (None, "", {"extra": {}})}


def words_of(told: Told) -> str:
    """A line of what happened, for events that carry no message."""
    data = told.data
    match told.kind:
        case "limit_reached":
            return f"limit {data['limit']} reached: {data['action']}"
        case "view_cut":
            return f"{data['before']} messages cut to {data['after']}: {data['why']}"
        case "stored":
            return f"{data['memory']}: {data['entries']} entries, version {data['version']}"
        case "decision":
            return f"{data['verdict']} {data.get('detail', '')}".strip()
        case "model_failed":
            return f"attempt {data['attempt']} failed ({data['error_kind']}): {data['error']}"
        case "reply_discarded":
            return f"what was streamed does not count: {data['why']}"
        case "warned":
            return str(data["text"])
    return told.kind.replace("_", " ")
