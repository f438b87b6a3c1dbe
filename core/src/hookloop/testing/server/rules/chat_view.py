"""A Chat Completions request as the rules look at it, and the tables of what it may hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hookloop.testing.server.issued import Issued

from .models import OpenAIModel, openai_model
from .registry import names

JsonObject = dict[str, Any]

TOP_FIELDS = names(
    "audio frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens "
    "messages metadata modalities model moderation n parallel_tool_calls prediction presence_penalty "
    "prompt_cache_key prompt_cache_options prompt_cache_retention reasoning_effort response_format "
    "safety_identifier seed service_tier stop store stream stream_options temperature tool_choice tools "
    "top_logprobs top_p user verbosity web_search_options"
)
MESSAGE_FIELDS: Mapping[str, frozenset[str]] = {
    "developer": frozenset({"role", "content", "name"}),
    "system": frozenset({"role", "content", "name"}),
    "user": frozenset({"role", "content", "name"}),
    "assistant": names("audio content function_call name refusal role tool_calls annotations"),
    "tool": frozenset({"role", "content", "tool_call_id"}),
    "function": frozenset({"role", "content", "name"}),
}
CALL_FIELDS = frozenset({"id", "type", "function", "custom"})
PARTS: Mapping[str, frozenset[str]] = {
    "user": frozenset({"text", "image_url", "input_audio", "file"}),
    "assistant": frozenset({"text", "refusal"}),
    "tool": frozenset({"text"}),
    "system": frozenset({"text"}),
    "developer": frozenset({"text"}),
}


@dataclass(slots=True)
class ChatView:
    """A request, its messages, its model, the profile of the server, and its ledger where there is one.

    Compatible servers have rules of their own for every model, so that with a profile the model's name says nothing.
    """

    body: Mapping[str, Any]
    headers: Mapping[str, str] | None = None
    profile: str | None = None
    issued: Issued | None = None
    model: OpenAIModel = field(init=False)
    messages: list[JsonObject] = field(init=False)

    def __post_init__(self) -> None:
        self.model = openai_model("" if self.profile else str(self.body.get("model", "")))
        given = self.body.get("messages")
        self.messages = [m for m in given if isinstance(m, dict)] if isinstance(given, list) else []

    @property
    def tools(self) -> list[JsonObject]:
        """The tools that are mappings."""
        given = self.body.get("tools")
        return [tool for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []

    @property
    def functions(self) -> Iterator[tuple[int, JsonObject]]:
        """The function of each function tool, with its index."""
        for index, tool in enumerate(self.tools):
            if isinstance(tool.get("function"), dict):
                yield index, tool["function"]

    def calls(self) -> Iterator[tuple[str, JsonObject]]:
        """Every call of every assistant message, with its path."""
        for index, message in enumerate(self.messages):
            for at, call in enumerate(calls_of(message)):
                yield f"messages[{index}].tool_calls[{at}]", call

    def groups(self) -> Iterator[tuple[int, list[str], list[str]]]:
        """Each assistant message with calls: its index, the ids of its calls, those answered right behind it."""
        for index, message in enumerate(self.messages):
            if calls := calls_of(message):
                yield index, [str(call.get("id")) for call in calls], self._answers(index + 1)

    def _answers(self, start: int) -> list[str]:
        ids: list[str] = []
        for message in self.messages[start:]:
            if message.get("role") != "tool":
                break
            ids.append(str(message.get("tool_call_id")))
        return ids


def calls_of(message: Mapping[str, Any]) -> list[JsonObject]:
    """The tool calls of an assistant message."""
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
