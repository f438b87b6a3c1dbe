"""What a Chat Completions request says beside its messages. Keys that say nothing are left out."""

from __future__ import annotations

import json

from hookloop_hookspecs import ModelRequest, ToolSpec
from hookloop_hookspecs.schema import inline_refs, strict_schema

from .identity import Identity
from .profile import Profile, matches
from .values import Json, utf8
from .wire_text import clean


def chat_body(request: ModelRequest, identity: Identity, *, stream: bool) -> Json:
    """The JSON body that asks `identity`'s model, but for its messages and tools."""
    profile = identity.profile
    body: Json = {"model": identity.model}
    if request.tools:
        body |= _about_tools(request, profile)
    if request.output and profile.structured:
        body["response_format"] = {"type": "json_schema", "json_schema": output_schema(request, profile)}
    body |= _settings(request, identity)
    if stream:
        body |= {"stream": True} | ({"stream_options": {"include_usage": True}} if profile.usage_option else {})
    return body | dict(request.settings.extra)


def chat_tools(specs: tuple[ToolSpec, ...], profile: Profile) -> list[Json]:
    """The tools as Chat Completions wants them."""
    return [{"type": "function", "function": function_tool(spec, profile)} for spec in specs]


def _about_tools(request: ModelRequest, profile: Profile) -> Json:
    said: Json = {}
    choice = chat_choice(request, profile)
    if choice != "auto":
        said["tool_choice"] = choice
    if request.settings.parallel is not None and profile.parallel_field:
        said["parallel_tool_calls"] = request.settings.parallel
    return said


def function_tool(spec: ToolSpec, profile: Profile) -> Json:
    """One tool: name, description, schema; strict where asked for and where the schema can be."""
    schema: Json = json.loads(spec.schema)
    strict = strict_schema(schema) if spec.strict and profile.strict_tools else None
    if strict is None and profile.inline_refs:
        schema = inline_refs(schema)
    tool = {"name": spec.name, "description": utf8(spec.description), "parameters": clean(strict or schema)}
    return tool if strict is None else tool | {"strict": True}


def output_schema(request: ModelRequest, profile: Profile) -> Json:
    """The schema for structured output; strict where it can be."""
    schema: Json = json.loads(request.output)
    strict = strict_schema(schema)
    plain = inline_refs(schema) if profile.inline_refs else schema
    named = {"name": request.output_name or "output", "schema": clean(strict or plain)}
    return named | {"strict": strict is not None}


def chat_choice(request: ModelRequest, profile: Profile) -> str | Json:
    """The tool choice, with the round's narrowing where the endpoint knows one."""
    choice = request.tool_choice
    if choice not in ("auto", "none", "required"):
        return {"type": "function", "function": {"name": choice}}
    names = narrowed(request)
    if choice == "none" or names == []:
        return "none"
    if names is None or not profile.allowed_tools:
        return choice
    tools = [{"type": "function", "function": {"name": name}} for name in names]
    return {"type": "allowed_tools", "allowed_tools": {"mode": choice, "tools": tools}}


def narrowed(request: ModelRequest) -> list[str] | None:
    """The tools that this round allows, in the request's order; None where it allows all."""
    if request.allowed is None or all(spec.name in request.allowed for spec in request.tools):
        return None
    return [spec.name for spec in request.tools if spec.name in request.allowed]


def _settings(request: ModelRequest, identity: Identity) -> Json:
    settings, profile = request.settings, identity.profile
    said: Json = {profile.max_tokens_field: settings.max_tokens}
    if not matches(profile.reasoning_models, identity.model):
        said |= {"temperature": settings.temperature, "top_p": settings.top_p, "stop": list(settings.stop) or None}
    if profile.seed:
        said["seed"] = settings.seed
    said |= effort(_effort(request, identity), profile)
    return {name: value for name, value in said.items() if value is not None}


def _effort(request: ModelRequest, identity: Identity) -> str | None:
    """Some models take tools here only when told, in so many words, not to reason."""
    asked = request.settings.effort
    if asked is None and request.tools and matches(identity.profile.no_effort_with_tools, identity.model):
        return "none"
    return asked


def effort(asked: str | None, profile: Profile) -> Json:
    """The reasoning effort, under the endpoint's key."""
    if asked is None or not profile.effort_field:
        return {}
    return (
        {"reasoning": {"effort": asked}} if profile.effort_field == "reasoning.effort" else {"reasoning_effort": asked}
    )
