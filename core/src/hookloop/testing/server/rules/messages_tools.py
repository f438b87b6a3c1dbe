"""What the Messages API asks of tools, calls and results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from .messages import RESULT_PARTS
from .messages_view import TOOL_FIELDS, Block, Line, MessagesView
from .registry import Finding, Rulebook, doubled, fault
from .schemas import properties, top_unions

RULES: Rulebook[MessagesView] = Rulebook()
rule = RULES.rule

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_PROPERTY = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_SERVER_ID = re.compile(r"srvtoolu_[a-zA-Z0-9_]+")
_CHOICES = {"auto": (), "any": (), "none": (), "tool": ("name",)}


def _custom(view: MessagesView) -> Iterable[tuple[int, Block]]:
    """The tools that are not the vendor's own, with their index."""
    return ((index, tool) for index, tool in enumerate(view.tools) if tool.get("type") in (None, "custom"))


@rule("tool_name")
def _tool_name(view: MessagesView) -> Iterable[Finding]:
    """Tool names are 1 to 64 letters, digits, `_` and `-`."""
    for index, tool in _custom(view):
        if not _NAME.fullmatch(str(tool.get("name", ""))):
            yield f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"
    for line, index, block in view.placed("tool_use"):
        if not _NAME.fullmatch(str(block.get("name", ""))):
            yield f"{line.path}.content.{index}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,64}}$'"


@rule("tool_unique")
def _tool_unique(view: MessagesView) -> Iterable[Finding]:
    """No two tools of one name."""
    if doubled(tool["name"] for tool in view.tools if tool.get("name")):
        yield "tools: Tool names must be unique."


@rule("tool_field", "sdk", gate=True)
def _tool_field(view: MessagesView) -> Iterable[Finding]:
    """Tools are a list; a tool has a name and its fields, and no others."""
    given = view.body.get("tools")
    if given is not None and (not isinstance(given, list) or len(view.tools) < len(given)):
        yield "tools: Input should be a valid list of dictionaries"
    for index, tool in enumerate(view.tools):
        if not isinstance(tool.get("type", ""), str | None) or not isinstance(tool.get("name", ""), str):
            yield f"tools.{index}: `type` and `name` should be valid strings"
    for index, tool in _custom(view):
        extra = sorted(tool.keys() - TOOL_FIELDS)
        yield from (f"tools.{index}.custom.{name}: Extra inputs are not permitted" for name in extra)


@rule("tool_schema")
def _tool_schema(view: MessagesView) -> Iterable[Finding]:
    """An input schema is an object, without unions at its top."""
    for index, tool in _custom(view):
        schema = tool.get("input_schema")
        if not isinstance(schema, Mapping):
            yield f"tools.{index}.custom.input_schema: Field required"
        elif schema.get("type") != "object":
            yield f"tools.{index}.custom.input_schema.type: Input should be 'object'"
        elif top_unions(schema):
            yield (
                f"tools.{index}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top "
                "level"
            )


@rule("tool_property")
def _tool_property(view: MessagesView) -> Iterable[Finding]:
    """Property names are 1 to 64 letters, digits, `_`, `.` and `-`."""
    for index, tool in _custom(view):
        if not all(_PROPERTY.fullmatch(name) for name in properties(tool.get("input_schema"))):
            yield (
                f"tools.{index}.custom.input_schema.properties: Property keys should match pattern "
                "'^[a-zA-Z0-9_.-]{1,64}$'"
            )


@rule("choice_tools", "doc")
def _choice_tools(view: MessagesView) -> Iterable[Finding]:
    """A tool choice needs tools."""
    if view.body.get("tool_choice") is not None and not view.tools:
        yield "tool_choice: tool_choice may only be specified while providing tools"


@rule("choice_type", "doc")
def _choice_type(view: MessagesView) -> Iterable[Finding]:
    """A tool choice is auto, any, tool or none, as a mapping with its own fields."""
    choice = view.body.get("tool_choice")
    if choice is None:
        return
    kind = choice.get("type") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(kind, str) or kind not in _CHOICES:
        yield f"tool_choice: Input tag '{kind}' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'"
        return
    allowed = {"type", *_CHOICES[kind], *(() if kind == "none" else ("disable_parallel_tool_use",))}
    yield from (
        f"tool_choice.{kind}.{name}: Extra inputs are not permitted" for name in sorted(choice.keys() - allowed)
    )


@rule("choice_name", "doc")
def _choice_name(view: MessagesView) -> Iterable[Finding]:
    """A forced tool is one of the tools."""
    choice = view.body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") == "tool" and view.tools:
        name = choice.get("name")
        if name not in [tool.get("name") for tool in view.tools]:
            yield f"Tool '{name}' not found in provided tools"


@rule("thinking_choice", "doc")
def _thinking_choice(view: MessagesView) -> Iterable[Finding]:
    """No forced tool use while thinking is on."""
    choice = view.body.get("tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") in ("any", "tool") and view.thinks:
        yield "Thinking may not be enabled when tool_choice forces tool use."


@rule("tools_missing")
def _tools_missing(view: MessagesView) -> Iterable[Finding]:
    """Tools are sent wherever the history holds calls or results (on some routes)."""
    if not view.tools and any(line.of("tool_use", "tool_result") for line in view.lines):
        yield "Requests which include `tool_use` or `tool_result` blocks must define tools"


@rule("tool_id")
def _tool_id(view: MessagesView) -> Iterable[Finding]:
    """Ids of calls are letters, digits, `_` and `-`."""
    for line, index, block in view.placed("tool_use", "tool_result"):
        key = "id" if block["type"] == "tool_use" else "tool_use_id"
        if not _ID.fullmatch(str(block.get(key, ""))):
            where = f"{line.path}.content.{index}.{block['type']}.{key}"
            yield f"{where}: String should match pattern '^[a-zA-Z0-9_-]+$'"


@rule("tool_id_unique")
def _tool_id_unique(view: MessagesView) -> Iterable[Finding]:
    """No two calls of one id in the whole request."""
    if doubled(block["id"] for _, _, block in view.placed("tool_use")):
        yield "messages: `tool_use` ids must be unique"


@rule("tool_input")
def _tool_input(view: MessagesView) -> Iterable[Finding]:
    """A call's input is an object, never a JSON string."""
    for line, index, block in view.placed("tool_use", "server_tool_use"):
        if not isinstance(block.get("input"), dict):
            yield f"{line.path}.content.{index}.{block['type']}.input: Input should be a valid dictionary"


def _answers(line: Line | None) -> list[str]:
    """The ids that the results at the head of a line answer."""
    ids: list[str] = []
    for block in line.blocks if line is not None and line.role == "user" else ():
        if block.get("type") != "tool_result":
            break
        ids.append(str(block.get("tool_use_id")))
    return ids


@rule("tool_use_orphan")
def _tool_use_orphan(view: MessagesView) -> Iterable[Finding]:
    """Every call is answered in the next message, before anything else in it."""
    for at, line in enumerate(view.lines):
        calls = [str(block.get("id")) for block in line.of("tool_use")] if line.role == "assistant" else []
        if not calls:
            continue
        answered = _answers(view.lines[at + 1] if at + 1 < len(view.lines) else None)
        missing = [call for call in calls if call not in answered]
        if missing:
            yield (
                f"{line.path}: `tool_use` ids were found without `tool_result` blocks immediately after: "
                f"{', '.join(missing)}. Each `tool_use` block must have a corresponding `tool_result` block in the next "
                "message."
            )


@rule("tool_result_orphan")
def _tool_result_orphan(view: MessagesView) -> Iterable[Finding]:
    """Every result answers a call of the message before."""
    for at, line in enumerate(view.lines):
        before = view.lines[at - 1] if at else None
        calls = [block.get("id") for block in before.of("tool_use")] if before else []
        for index, block in enumerate(line.blocks):
            if block.get("type") == "tool_result" and block.get("tool_use_id") not in calls:
                yield (
                    f"{line.path}.content.{index}: unexpected `tool_use_id` found in `tool_result` blocks: "
                    f"{block.get('tool_use_id')}. Each `tool_result` block must have a corresponding `tool_use` block in "
                    "the previous message."
                )


@rule("tool_result_twice", "guess")
def _tool_result_twice(view: MessagesView) -> Iterable[Finding]:
    """One result for each call."""
    for line in view.lines:
        results = line.of("tool_result")
        for call in doubled(block["tool_use_id"] for block in results) if len(results) > 1 else ():
            yield (
                f"{line.path}: each tool_use must have a single result. Found multiple `tool_result` blocks with "
                f"id: {call}"
            )


@rule("tool_result_content", "doc")
def _tool_result_content(view: MessagesView) -> Iterable[Finding]:
    """A result's content is absent, a string, or a list of parts that results may hold."""
    for line, index, block in view.placed("tool_result"):
        content = block.get("content")
        if content is None or isinstance(content, str):
            continue
        where = f"{line.path}.content.{index}.tool_result.content"
        if not isinstance(content, list):
            yield f"{where}: Input should be a valid string or list"
            continue
        kinds = [part.get("type") if isinstance(part, Mapping) else None for part in content]
        yield from (f"{where}: Input tag '{kind}' does not match" for kind in kinds if kind not in RESULT_PARTS)


@rule("is_error_text", "guess")
def _is_error_text(view: MessagesView) -> Iterable[Finding]:
    """An error result holds text only."""
    for line, index, block in view.placed("tool_result"):
        content = block.get("content") if block.get("is_error") else None
        parts = [part for part in content if isinstance(part, Mapping)] if isinstance(content, list) else []
        if any(part.get("type") != "text" for part in parts):
            yield f'{line.path}.content.{index}.tool_result: all content must be type "text" if `is_error` is true'


@rule("toolset", "doc")
def _toolset(view: MessagesView) -> Iterable[Finding]:
    """A call's `toolset_name` is echoed on its result."""
    named = {block["id"]: block["toolset_name"] for _, _, block in view.placed("tool_use") if block.get("toolset_name")}
    for line, _, block in view.placed("tool_result") if named else ():
        asked = named.get(block["tool_use_id"])
        if asked and block.get("toolset_name") != asked:
            yield f"{line.path}: `toolset_name` of a `tool_result` must equal that of its `tool_use`: {asked}"


@rule("server_id")
def _server_id(view: MessagesView) -> Iterable[Finding]:
    """Ids of server tool calls begin with `srvtoolu_`."""
    for line, index, block in view.placed("server_tool_use"):
        if not _SERVER_ID.fullmatch(str(block.get("id", ""))):
            where = f"{line.path}.content.{index}.server_tool_use.id"
            yield f"{where}: String should match pattern '^srvtoolu_[a-zA-Z0-9_]+$'"


@rule("server_pair")
def _server_pair(view: MessagesView) -> Iterable[Finding]:
    """A server tool's result follows its call, in an assistant message."""
    called: set[str] = set()
    for line, index, block in view.numbered():
        kind = str(block.get("type"))
        if kind in ("server_tool_use", "mcp_tool_use"):
            called.add(str(block.get("id")))
        elif kind.endswith("_tool_result") and (
            line.role != "assistant" or str(block.get("tool_use_id")) not in called
        ):
            yield fault(
                f"{line.path}.content.{index}: `{kind}` found without a `server_tool_use` block before it: "
                f"{block.get('tool_use_id')}"
            )
