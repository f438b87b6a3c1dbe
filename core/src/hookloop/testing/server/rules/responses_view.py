"""A Responses request as the rules look at it, and the tables of what it may hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from hookloop.testing.server.issued import Issued, input_items

from .models import OpenAIModel, openai_model
from .registry import names

JsonObject = dict[str, Any]

TOP_FIELDS = names(
    "access_programs background background_options context_management conversation image include input "
    "instructions max_output_tokens max_tool_calls metadata model moderation parallel_tool_calls "
    "previous_response_id prompt prompt_cache_key prompt_cache_options prompt_cache_retention reasoning "
    "safety_identifier service_tier store stream stream_options temperature text tool_choice tools "
    "top_logprobs top_p truncation user"
)
MOVED = {
    "messages": "input",
    "max_tokens": "max_output_tokens",
    "max_completion_tokens": "max_output_tokens",
    "response_format": "text.format",
    "reasoning_effort": "reasoning.effort",
    "functions": "tools",
    "function_call": "tool_choice",
}
ITEM_FIELDS: Mapping[str, frozenset[str]] = {
    kind: names(text)
    for kind, text in {
        "message": "content id phase role status type",
        "file_search_call": "id queries results status type",
        "computer_call": "action actions call_id id pending_safety_checks status type",
        "computer_call_output": "acknowledged_safety_checks call_id id output status type",
        "web_search_call": "action id status type",
        "function_call": "arguments async call_id caller id name namespace status type",
        "function_call_output": "call_id caller id name namespace output status type",
        "tool_search_call": "arguments call_id execution id status type",
        "tool_search_output": "call_id execution id status tools type",
        "additional_tools": "id role tools type",
        "configuration_update": "id reasoning text type",
        "reasoning": "content encrypted_content id status summary type",
        "compaction": "encrypted_content id type",
        "compaction_trigger": "id type",
        "image_generation_call": "action background error id output_format quality result revised_prompt size status "
        "svg_usage type",
        "code_interpreter_call": "code container_id id outputs status type",
        "local_shell_call": "action call_id id status type",
        "local_shell_call_output": "id output status type",
        "shell_call": "action call_id caller environment id status type",
        "shell_call_output": "call_id caller id max_output_length output status type",
        "apply_patch_call": "call_id caller id operation status type",
        "apply_patch_call_output": "call_id caller id output status type",
        "mcp_list_tools": "error id server_label tools type",
        "mcp_approval_request": "arguments id name server_label type",
        "mcp_approval_response": "approval_request_id approve id reason type",
        "mcp_call": "approval_request_id arguments error id name output server_label status type",
        "custom_tool_call": "async call_id caller id input name namespace type",
        "custom_tool_call_output": "call_id caller id output type",
        "item_reference": "id type",
        "program": "call_id code fingerprint id type",
        "program_output": "call_id id result status type",
    }.items()
}
ID_PREFIX = {"function_call": "fc", "reasoning": "rs", "message": "msg"}
CALLS: Mapping[str, str] = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
}
"""Items that want an output, each with the type of it. What the server ran itself it has answered itself."""
OUTPUTS: Mapping[str, str] = {output: call for call, output in CALLS.items()}
TOLD = ("function_call_output", "custom_tool_call_output")
"""Outputs that are a text or input parts."""
MADE_BY_MODEL = frozenset(kind for kind in ITEM_FIELDS if kind.endswith("_call")) | {
    "reasoning",
    "program",
    "mcp_approval_request",
}


@dataclass(slots=True)
class ResponsesView:
    """A request, its input items, the items of its chain, its model, and what the server has issued."""

    body: Mapping[str, Any]
    headers: Mapping[str, str] | None = None
    known: Issued | None = None
    model: OpenAIModel = field(init=False)
    items: list[JsonObject] = field(init=False)
    chain: list[JsonObject] = field(init=False)

    def __post_init__(self) -> None:
        self.model = openai_model(str(self.body.get("model", "")))
        self.items = list(input_items(self.body))
        previous = self.body.get("previous_response_id")
        self.chain = list(self.known.chain(previous)) if self.known else []

    @property
    def tools(self) -> list[JsonObject]:
        """The tools that are mappings."""
        given = self.body.get("tools")
        return [tool for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []

    @property
    def functions(self) -> Iterator[tuple[int, JsonObject]]:
        """The function tools, with their index."""
        return ((index, tool) for index, tool in enumerate(self.tools) if tool.get("type") == "function")

    def resolved(self) -> list[JsonObject]:
        """The input items, references replaced by what they refer to where that is known."""
        issued = self.known.items if self.known else {}
        return [issued.get(str(item.get("id")), item) if is_reference(item) else item for item in self.items]


def kind_of(item: Mapping[str, Any]) -> str:
    """An item's type; a message and a reference may leave it out."""
    given = item.get("type")
    if given is None:
        return "message" if "role" in item else "item_reference"
    return str(given)


def is_reference(item: Mapping[str, Any]) -> bool:
    """Whether an item only refers to another by its id."""
    return kind_of(item) == "item_reference"


def by_model(item: Mapping[str, Any]) -> bool:
    """Whether an item is one that a model says."""
    return kind_of(item) in MADE_BY_MODEL or (kind_of(item) == "message" and item.get("role") == "assistant")


def keys_of(item: Mapping[str, Any]) -> set[str]:
    """What a call and its output share: the call's id; with a local shell, whose outputs have none, also the item's."""
    names = ("call_id", "id") if kind_of(item).startswith("local_shell") else ("call_id",)
    return {str(item[name]) for name in names if item.get(name) is not None}


def wants_output(item: Mapping[str, Any]) -> bool:
    """Whether an item is a call that the client has to answer."""
    return kind_of(item) in CALLS and item.get("execution") != "server" and bool(keys_of(item))


def is_output(item: Mapping[str, Any]) -> bool:
    """Whether an item is a client's answer to a call."""
    return kind_of(item) in OUTPUTS and item.get("execution") != "server" and bool(keys_of(item))


def words(kind: str) -> str:
    """How error messages name a type of item."""
    return kind.removesuffix("_output").replace("_", " ") + (" output" if kind.endswith("_output") else "")
