"""Compatible servers as data: which fields they know, and which further rules of `chat_profiles` they enforce."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .registry import names


@dataclass(frozen=True, slots=True)
class ServerProfile:
    """What a compatible server asks beyond Chat Completions.

    `rules` are names of rules that hold only where a profile lists them. `closed` servers refuse unknown top-level fields
    (`fields` are their own); `message_fields` and `call_fields` are known in messages and calls; `ignores_fields` servers
    accept any.
    """

    rules: frozenset[str] = frozenset()
    closed: bool = False
    fields: frozenset[str] = frozenset()
    message_fields: frozenset[str] = frozenset()
    call_fields: frozenset[str] = frozenset()
    ignores_fields: bool = False


PROFILES: Mapping[str, ServerProfile] = {
    "deepseek": ServerProfile(
        names("reasoning_back"), fields=names("thinking"), message_fields=names("reasoning_content prefix")
    ),
    "mistral": ServerProfile(
        names("mistral_id user_after_tool last_role arguments_object"),
        fields=names("random_seed safe_prompt prompt_mode"),
        message_fields=names("prefix name"),
    ),
    "gemini": ServerProfile(
        names("thought_signature name_start"),
        message_fields=names("extra_content"),
        call_fields=names("extra_content"),
    ),
    "vllm": ServerProfile(
        names("arguments_object single_call system_first"), message_fields=names("reasoning reasoning_content name")
    ),
    "llama.cpp": ServerProfile(
        names("arguments_object alternation system_first content_and_thinking"),
        message_fields=names("reasoning_content name"),
    ),
    "groq": ServerProfile(
        closed=True,
        fields=names("reasoning_format include_reasoning compound_custom documents search_settings exclude_domains"),
        message_fields=names("reasoning name"),
    ),
    "ollama": ServerProfile(names("arguments_object"), ignores_fields=True),
    "openrouter": ServerProfile(message_fields=names("reasoning reasoning_content reasoning_details name annotations")),
    "together": ServerProfile(message_fields=names("reasoning reasoning_content name")),
    "xai": ServerProfile(message_fields=names("reasoning_content name")),
}
"""By the name that `StrictServer(profile=…)` takes."""
