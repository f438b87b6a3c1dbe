"""What a Responses request says beside its items. Keys that say nothing are left out."""

from __future__ import annotations

from typing import Final

from hookloop_hookspecs import ModelRequest, ToolSpec

from .chat_body import function_tool, narrowed, output_schema
from .identity import Identity
from .profile import Profile, matches
from .values import Json, utf8

FEWEST: Final = 16
"""The smallest bound on output tokens that the API takes."""


def responses_body(request: ModelRequest, identity: Identity, *, stream: bool) -> Json:
    """The JSON body that asks `identity`'s model, but for its items and tools."""
    profile = identity.profile
    body: Json = {"model": identity.model, "store": profile.store}
    if request.system:
        body["instructions"] = utf8(request.system)
    if not profile.store and matches(profile.encrypted_models, identity.model):
        body["include"] = ["reasoning.encrypted_content"]
    if request.tools:
        body |= _about_tools(request, profile)
    if request.output:
        body["text"] = {"format": {"type": "json_schema"} | output_schema(request, profile)}
    body |= _settings(request, identity)
    if stream:
        body["stream"] = True
    return body | dict(request.settings.extra)


def responses_tools(specs: tuple[ToolSpec, ...], profile: Profile) -> list[Json]:
    """The tools as Responses wants them: flat, and strict only where it is said."""
    return [{"type": "function", "strict": False} | function_tool(spec, profile) for spec in specs]


def _about_tools(request: ModelRequest, profile: Profile) -> Json:
    said: Json = {}
    choice = _choice(request, profile)
    if choice != "auto":
        said["tool_choice"] = choice
    if request.settings.parallel is not None and profile.parallel_field:
        said["parallel_tool_calls"] = request.settings.parallel
    return said


def _choice(request: ModelRequest, profile: Profile) -> str | Json:
    choice = request.tool_choice
    if choice not in ("auto", "none", "required"):
        return {"type": "function", "name": choice}
    names = narrowed(request)
    if choice == "none" or names == []:
        return "none"
    if names is None or not profile.allowed_tools:
        return choice
    return {"type": "allowed_tools", "mode": choice, "tools": [{"type": "function", "name": name} for name in names]}


def _settings(request: ModelRequest, identity: Identity) -> Json:
    settings = request.settings
    said: Json = {"max_output_tokens": None if settings.max_tokens is None else max(FEWEST, settings.max_tokens)}
    if not matches(identity.profile.reasoning_models, identity.model):
        said |= {"temperature": settings.temperature, "top_p": settings.top_p}
    if settings.effort is not None:
        said["reasoning"] = {"effort": settings.effort}
    return {name: value for name, value in said.items() if value is not None}
