"""What one OpenAI-compatible endpoint wants and what it can do: data, never code.

What must live here: plain values, so that a profile can be written in TOML. What must never be known here: how a
message is encoded (the encoders ask these fields) and how a stream is read (every server is read with one tolerance).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, TypeAlias

Api: TypeAlias = Literal["chat", "responses"]

_REASONING: Final = r"(.*[/.])?(o[1-9]|gpt-[5-9](?!.*chat)|codex|computer-use)"
_ON_RESPONSES: Final = (
    r"gpt-5\.([4-9]|\d\d)|gpt-[6-9]|gpt-.*codex|codex|o\d-pro|gpt-5(\.\d+)?-pro|o\d-deep-research|computer-use"
)
_FAMILY: Final = r"(.+?)(-\d{4}-\d{2}-\d{2}|-\d{8}|-latest)?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One endpoint, in plain fields. Patterns are regular expressions that are matched from the model name's start.

    Where and with what key:
    - `name` tags what only this endpoint may get back; `base_url` may instead stand in the variable `base_url_env`;
      the key stands in the variable `key_env` and is sent as a bearer token, and in the header `key_header` where there
      is one; `key_needed` says that there is no asking without a key.

    Which API:
    - `responses_models`: models that are asked through Responses, all others through Chat Completions. `store` lets the
      server keep responses; else reasoning travels encrypted, where a model matches `encrypted_models`. `family`: its
      first group is the model family.

    How a request is written:
    - `system_role` ("system" or "developer"); `one_system`: all system text goes into one first message;
      `merge_roles`: neighbours of one role become one message; `after_tool`: an assistant text put between a tool
      message and a user message; `user_last`: a user text put behind a last message of another role.
    - `user_first`: a user text put before a first assistant message; `one_call`: a message with several calls is sent as
      several messages, each with its result.
    - `call_content`: the content of a message that only calls tools, null or an empty string.
    - `id_pattern` and `id_length`: call ids that do not match are rewritten, the same way on both sides.
    - `max_tokens_field`; `reasoning_models` take no temperature, top_p or stop; `effort_field`: where the reasoning
      effort stands ("reasoning.effort" for a nested one, "" for none); `no_effort_with_tools`: models that take tools
      on Chat Completions only with the effort "none".
    - `parallel_field`, `usage_option`, `seed`: whether `parallel_tool_calls`, `stream_options`, `seed` are known.
    - `strict_tools`: tools that ask for it get a strict schema; `inline_refs`: schemas are sent without references.
    - `structured`: structured output by a JSON schema, also beside tools; `allowed_tools`: tools can be narrowed by
      `tool_choice`; `vision`, `files`: whether images and other files are taken (a placeholder is sent where not);
      `image_types`: the media types of images that are.

    What goes back to where it came from:
    - `reasoning_field`: the key for reasoning ("" sends none); `reasoning_with_content`: also beside text;
      `reasoning_filler`: sent with calls that came without reasoning, or with another provider's, to models that match
      `reasoning_filler_models`.
    - `call_extras`: keys of a tool call that return on the same call; `call_filler`: what stands for them on the first
      call of a message that came without, for models that match `call_filler_models`; `message_extras`: keys of a
      message that return with its reasoning.
    """

    name: str
    base_url: str = ""
    base_url_env: str = ""
    key_env: str = ""
    key_header: str = ""
    key_needed: bool = True
    responses_models: str = ""
    store: bool = False
    encrypted_models: str = ".*"
    family: str = _FAMILY
    system_role: Literal["system", "developer"] = "system"
    one_system: bool = False
    merge_roles: bool = False
    after_tool: str = ""
    user_last: str = ""
    user_first: str = ""
    one_call: bool = False
    call_content: Literal["null", "empty"] = "null"
    id_pattern: str = r".+"
    id_length: int = 40
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    reasoning_models: str = ""
    effort_field: Literal["", "reasoning_effort", "reasoning.effort"] = "reasoning_effort"
    no_effort_with_tools: str = ""
    parallel_field: bool = True
    usage_option: bool = True
    seed: bool = True
    strict_tools: bool = False
    inline_refs: bool = False
    structured: bool = False
    allowed_tools: bool = False
    vision: bool = True
    files: bool = False
    image_types: str = r"image/(jpeg|png|gif|webp)$"
    reasoning_field: Literal["", "reasoning_content", "reasoning"] = ""
    reasoning_with_content: bool = True
    reasoning_filler: str = ""
    reasoning_filler_models: str = ""
    call_extras: tuple[str, ...] = ()
    call_filler: dict[str, Any] = field(default_factory=dict)
    call_filler_models: str = ""
    message_extras: tuple[str, ...] = ()

    def api_for(self, model: str) -> Api:
        """The API through which this endpoint wants `model` to be asked."""
        return "responses" if matches(self.responses_models, model) else "chat"

    def family_of(self, model: str) -> str:
        """The group of models that read each other's reasoning; the model itself where the pattern says nothing."""
        found = re.fullmatch(self.family, model) if self.family else None
        return found.group(1) if found and found.groups() and found.group(1) else model


@cache
def matches(pattern: str, model: str) -> bool:
    """True where a model name begins with what the pattern says; an empty pattern matches nothing."""
    return bool(pattern) and re.match(pattern, model) is not None


_OPENAI = Profile(
    name="openai",
    base_url="https://api.openai.com/v1",
    base_url_env="OPENAI_BASE_URL",
    key_env="OPENAI_API_KEY",
    responses_models=_ON_RESPONSES,
    max_tokens_field="max_completion_tokens",
    encrypted_models=_REASONING,
    reasoning_models=_REASONING,
    no_effort_with_tools=r"gpt-5\.([4-9]|\d\d)|gpt-[6-9]",
    strict_tools=True,
    structured=True,
    allowed_tools=True,
    files=True,
)

_ALL: Final = (
    _OPENAI,
    Profile(
        name="azure",
        base_url_env="AZURE_OPENAI_BASE_URL",
        key_env="AZURE_OPENAI_API_KEY",
        key_header="api-key",
        responses_models=_ON_RESPONSES,
        max_tokens_field="max_completion_tokens",
        encrypted_models=_REASONING,
        reasoning_models=_REASONING,
        no_effort_with_tools=r"gpt-5\.([4-9]|\d\d)|gpt-[6-9]",
        strict_tools=True,
        structured=True,
        files=True,
    ),
    Profile(
        name="deepseek",
        base_url="https://api.deepseek.com/v1",
        key_env="DEEPSEEK_API_KEY",
        effort_field="",
        parallel_field=False,
        seed=False,
        vision=False,
        reasoning_field="reasoning_content",
        reasoning_filler="(The reasoning behind this step was not recorded.)",
        reasoning_filler_models=r"(?!deepseek-chat)",
    ),
    Profile(
        name="mistral",
        base_url="https://api.mistral.ai/v1",
        key_env="MISTRAL_API_KEY",
        after_tool="I have the results.",
        user_last="Go on.",
        call_content="empty",
        id_pattern=r"[A-Za-z0-9]{9}",
        id_length=9,
        effort_field="",
        usage_option=False,
        seed=False,
    ),
    Profile(
        name="gemini",
        base_url="https://generativelanguage.googleapis.com/v1beta/openai/",
        key_env="GEMINI_API_KEY",
        parallel_field=False,
        seed=False,
        inline_refs=True,
        call_extras=("extra_content",),
        call_filler={"extra_content": {"google": {"thought_signature": "skip_thought_signature_validator"}}},
        call_filler_models=r"(.*/)?gemini-([3-9]|\d\d)",
    ),
    Profile(
        name="ollama",
        base_url="http://127.0.0.1:11434/v1",
        base_url_env="OLLAMA_BASE_URL",
        key_env="OLLAMA_API_KEY",
        key_needed=False,
        one_system=True,
        call_content="empty",
        parallel_field=False,
        inline_refs=True,
        reasoning_field="reasoning",
    ),
    Profile(
        name="vllm",
        base_url="http://127.0.0.1:8000/v1",
        base_url_env="VLLM_BASE_URL",
        key_env="VLLM_API_KEY",
        key_needed=False,
        one_system=True,
        one_call=True,
        inline_refs=True,
        image_types="image/",
        reasoning_field="reasoning",
    ),
    Profile(
        name="llamacpp",
        base_url="http://127.0.0.1:8080/v1",
        base_url_env="LLAMACPP_BASE_URL",
        key_env="LLAMACPP_API_KEY",
        key_needed=False,
        one_system=True,
        merge_roles=True,
        after_tool="I have the results.",
        user_first="Go on.",
        inline_refs=True,
        image_types="image/",
        reasoning_field="reasoning_content",
        reasoning_with_content=False,
    ),
    Profile(
        name="groq",
        base_url="https://api.groq.com/openai/v1",
        key_env="GROQ_API_KEY",
    ),
    Profile(
        name="openrouter",
        base_url="https://openrouter.ai/api/v1",
        key_env="OPENROUTER_API_KEY",
        effort_field="reasoning.effort",
        files=True,
        message_extras=("reasoning_details",),
    ),
    Profile(
        name="together",
        base_url="https://api.together.xyz/v1",
        key_env="TOGETHER_API_KEY",
        one_system=True,
        parallel_field=False,
    ),
    Profile(
        name="xai",
        base_url="https://api.x.ai/v1",
        key_env="XAI_API_KEY",
        structured=True,
    ),
)

profiles: Final[dict[str, Profile]] = {profile.name: profile for profile in _ALL}
"""The profiles that come with this package, by name."""
