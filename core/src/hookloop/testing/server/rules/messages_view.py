"""A Messages request as the rules look at it, and the tables of what it may hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from hookloop.testing.server.issued import Issued

from .models import Claude, claude
from .registry import names

Block = dict[str, Any]

TOP_FIELDS = names(
    "cache_control container diagnostics inference_geo max_tokens messages metadata model output_config "
    "service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p "
    "user_profile_id workspace_id"
)
BETA_FIELDS = names(
    "betas billing_policy compaction context_management fallback_credit_token fallbacks mcp_servers thread"
)
"""Top-level fields that only a beta header opens."""

_RESULT = "cache_control content tool_use_id type"
BLOCK_FIELDS: Mapping[str, frozenset[str]] = {
    kind: names(text)
    for kind, text in {
        "text": "cache_control citations text type",
        "image": "cache_control source transformations type",
        "document": "cache_control citations context source title type",
        "search_result": "cache_control citations content source title type",
        "thinking": "signature thinking type",
        "redacted_thinking": "data type",
        "tool_use": "cache_control caller id input name toolset_name type",
        "tool_result": "cache_control content is_error tool_use_id toolset_name type",
        "server_tool_use": "cache_control caller id input name type",
        "web_search_tool_result": f"caller {_RESULT}",
        "web_fetch_tool_result": f"caller {_RESULT}",
        "code_execution_tool_result": _RESULT,
        "bash_code_execution_tool_result": _RESULT,
        "text_editor_code_execution_tool_result": _RESULT,
        "tool_search_tool_result": _RESULT,
        "mcp_tool_use": "cache_control id input name server_name type",
        "mcp_tool_result": f"is_error {_RESULT}",
        "container_upload": "cache_control file_id type",
        "advisor_tool_result": _RESULT,
        "compaction": "cache_control content encrypted_content signature tool_changes type",
        "fallback": "from to trigger type",
        "tool_addition": "cache_control tool type",
        "tool_removal": "cache_control tool type",
        "mcp_tool_listing": "mcp_server_name tools type",
        "tool_reference": "cache_control tool_name type",
    }.items()
}
BLOCK_REQUIRED: Mapping[str, Mapping[str, type]] = {
    "text": {"text": str},
    "image": {"source": dict},
    "document": {"source": dict},
    "thinking": {"thinking": str, "signature": str},
    "redacted_thinking": {"data": str},
    "tool_use": {"id": str, "name": str, "input": object},
    "tool_result": {"tool_use_id": str},
    "server_tool_use": {"id": str, "name": str, "input": object},
}
TOOL_FIELDS = names(
    "allowed_callers cache_control defer_loading description eager_input_streaming input_examples "
    "input_schema name strict type"
)
ASSISTANT_ONLY = frozenset({"thinking", "redacted_thinking", "tool_use", "server_tool_use", "mcp_tool_use"})
USER_ONLY = frozenset({"tool_result", "image", "document", "search_result", "container_upload"})


@dataclass(slots=True)
class Line:
    """One message: its index, role, and content as blocks (a string is the one text block that it stands for)."""

    index: int
    role: str
    content: Any
    blocks: list[Block]

    @property
    def path(self) -> str:
        """How error messages name it."""
        return f"messages.{self.index}"

    def of(self, *kinds: str) -> list[Block]:
        """Its blocks of these types."""
        return [block for block in self.blocks if block.get("type") in kinds]


Placed: TypeAlias = tuple[Line, int, Block]


@dataclass(slots=True)
class MessagesView:
    """A request, its lines, its model, and the ledger of the server where there is one."""

    body: Mapping[str, Any]
    headers: Mapping[str, str] | None = None
    issued: Issued | None = None
    preserved: bool | None = None
    model: Claude = field(init=False)
    lines: list[Line] = field(init=False)
    _placed: dict[str, list[Placed]] = field(init=False)

    def __post_init__(self) -> None:
        self.model = claude(str(self.body.get("model", "")))
        self.lines = list(_lines(self.body.get("messages")))
        self._placed = {}
        for placed in self.numbered():
            self._placed.setdefault(str(placed[2].get("type")), []).append(placed)

    def placed(self, *kinds: str) -> list[Placed]:
        """Every block of these types with its line and its index in it; of one type in the order of the request."""
        return [placed for kind in kinds for placed in self._placed.get(kind, ())]

    @property
    def tools(self) -> list[Block]:
        """The tools that are mappings."""
        given = self.body.get("tools")
        return [tool for tool in given if isinstance(tool, dict)] if isinstance(given, list) else []

    @property
    def thinking(self) -> str:
        """The type of the thinking configuration, empty where there is none."""
        config = self.body.get("thinking")
        return str(config.get("type", "")) if isinstance(config, Mapping) else ""

    @property
    def thinks(self) -> bool:
        """Whether the model will think."""
        return self.thinking not in ("", "disabled") or (not self.thinking and self.model.thinks_unasked)

    def beta(self, name: str) -> bool:
        """Whether a beta header whose name begins so is sent."""
        sent = (self.headers or {}).get("anthropic-beta", "")
        return any(part.strip().startswith(name) for part in sent.split(","))

    @property
    def open_turn(self) -> list[Line]:
        """The lines after the last user message without results; empty when the last message is none with results."""
        if not self.lines or not self.lines[-1].of("tool_result"):
            return []
        start = next((line.index for line in reversed(self.lines) if _asks(line)), -1)
        return [line for line in self.lines if line.index > start]

    def numbered(self) -> Iterator[Placed]:
        """Every block with its line and its index in it."""
        for line in self.lines:
            for index, block in enumerate(line.blocks):
                yield line, index, block

    def texts(self) -> Iterator[tuple[str, Block]]:
        """Every text block with the name of its place: of messages, of tool results, of the system text."""
        for line in self.lines:
            for block in line.blocks:
                if block.get("type") == "text":
                    yield "messages", block
                elif block.get("type") == "tool_result" and isinstance(block.get("content"), list):
                    yield from (("messages", part) for part in block["content"] if _is_text(part))
        yield from (("system", part) for part in blocks_of(self.body.get("system")) if _is_text(part))


def blocks_of(content: Any) -> list[Block]:
    """Content as blocks; a string is one text block, what is no block is left out."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _asks(line: Line) -> bool:
    return line.role == "user" and not line.of("tool_result")


def _lines(given: Any) -> Iterator[Line]:
    for index, message in enumerate(given if isinstance(given, list) else ()):
        if isinstance(message, Mapping):
            content = message.get("content")
            yield Line(index, str(message.get("role", "")), content, blocks_of(content))
