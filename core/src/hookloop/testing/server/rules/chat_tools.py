"""What Chat Completions asks of tools, calls and their answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .chat_view import ChatView, JsonObject
from .openai_shared import length_faults, missing, name_faults, output_faults, schema_faults, wrong_type
from .registry import Finding, Rulebook, doubled, fault

RULES: Rulebook[ChatView] = Rulebook()
rule = RULES.rule

MAX_TOOLS = 128
MAX_CALL_ID = 40


@rule("call_shape", "doc", gate=True)
def _call_shape(view: ChatView) -> Iterable[Finding]:
    """A call has an id, a type and a function with name and arguments; a result names its call."""
    for path, call in view.calls():
        yield from (missing(f"{path}.{name}") for name in ("id", "type") if not _is_word(call.get(name)))
        if call.get("type") == "function" and not isinstance(call.get("function"), dict):
            yield missing(f"{path}.function")
    for index, message in enumerate(view.messages):
        calls = message.get("tool_calls")
        if calls is not None and (not isinstance(calls, list) or not all(isinstance(call, dict) for call in calls)):
            yield wrong_type(f"messages[{index}].tool_calls", "an array of objects", calls)
        if message.get("role") == "tool" and not _is_word(message.get("tool_call_id")):
            yield missing(f"messages[{index}].tool_call_id")


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and bool(value)


@rule("call_twice", "guess")
def _call_twice(view: ChatView) -> Iterable[Finding]:
    """No two calls of one id in a message."""
    for index, ids, _ in view.groups():
        for call in doubled(ids):
            yield fault(f"Duplicate value for 'id' in messages[{index}].tool_calls: '{call}'")


@rule("call_orphan")
def _call_orphan(view: ChatView) -> Iterable[Finding]:
    """Every call is answered by a tool message right behind its own message."""
    for index, ids, answers in view.groups():
        unanswered = [call for call in ids if call not in answers]
        if unanswered:
            text = (
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(unanswered)}"
            )
            yield fault(text, param=f"messages.[{index}].role")


def _before_tools(view: ChatView, index: int) -> JsonObject | None:
    """The message before the run of tool messages that this one is in."""
    while index >= 0 and view.messages[index].get("role") == "tool":
        index -= 1
    return view.messages[index] if index >= 0 else None


@rule("tool_orphan")
def _tool_orphan(view: ChatView) -> Iterable[Finding]:
    """A tool message stands behind an assistant message with calls."""
    for index, message in enumerate(view.messages):
        before = _before_tools(view, index) if message.get("role") == "tool" else {"tool_calls": True}
        if before is None or not before.get("tool_calls"):
            text = "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
            yield fault(f"Invalid parameter: {text}", param=f"messages.[{index}].role")


@rule("tool_unknown")
def _tool_unknown(view: ChatView) -> Iterable[Finding]:
    """A tool message answers a call of the message before its run."""
    for index, ids, answers in view.groups():
        for answer in answers:
            if answer not in ids:
                text = f"Invalid parameter: 'tool_call_id' of '{answer}' not found in 'tool_calls' of previous message."
                yield fault(text, param=f"messages.[{index + 1}].tool_call_id")


@rule("tool_twice")
def _tool_twice(view: ChatView) -> Iterable[Finding]:
    """One tool message for each call."""
    for _, _, answers in view.groups():
        for answer in doubled(answers):
            yield fault(f"Duplicate value for 'tool_call_id' of '{answer}'")


@rule("tool_name")
def _tool_name(view: ChatView) -> Iterable[Finding]:
    """Function names are 1 to 64 letters, digits, `_` and `-`, in tools and in calls."""
    for index, function in view.functions:
        yield from name_faults(function.get("name"), f"tools[{index}].function.name")
    for path, call in view.calls():
        if isinstance(call.get("function"), dict):
            yield from name_faults(call["function"].get("name"), f"{path}.function.name")


@rule("call_id_long")
def _call_id_long(view: ChatView) -> Iterable[Finding]:
    """Call ids are not longer than 40 characters."""
    for path, call in view.calls():
        yield from length_faults(call.get("id"), f"{path}.id", MAX_CALL_ID)
    for index, message in enumerate(view.messages):
        yield from length_faults(message.get("tool_call_id"), f"messages[{index}].tool_call_id", MAX_CALL_ID)


@rule("arguments", gate=True)
def _arguments(view: ChatView) -> Iterable[Finding]:
    """Arguments are a JSON string, never an object."""
    for path, call in view.calls():
        function = call.get("function")
        if isinstance(function, dict) and not isinstance(function.get("arguments"), str):
            yield wrong_type(f"{path}.function.arguments", "a string", function.get("arguments"))


@rule("tool_shape", "doc", gate=True)
def _tool_shape(view: ChatView) -> Iterable[Finding]:
    """A tool has a type, and its definition under that name."""
    given = view.body.get("tools")
    if given is not None and not isinstance(given, list):
        yield wrong_type("tools", "an array of objects", given)
    for index, tool in enumerate(given if isinstance(given, list) else ()):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if kind not in ("function", "custom"):
            yield missing(f"tools[{index}].type")
        elif not isinstance(tool.get(kind), dict):
            yield missing(f"tools[{index}].{kind}")


@rule("tools_max")
def _tools_max(view: ChatView) -> Iterable[Finding]:
    """At most 128 tools."""
    count = len(view.tools)
    if count > MAX_TOOLS:
        text = (
            f"Invalid 'tools': array too long. Expected an array with maximum length {MAX_TOOLS}, but got an array with "
            f"length {count} instead."
        )
        yield fault(text, code="array_above_max_length", param="tools")


@rule("choice_tools")
def _choice_tools(view: ChatView) -> Iterable[Finding]:
    """`tool_choice` and `parallel_tool_calls` need tools."""
    for name in ("tool_choice", "parallel_tool_calls"):
        if view.body.get(name) is not None and not view.body.get("tools"):
            text = f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            yield fault(text, param=name)


@rule("choice_name", "doc")
def _choice_name(view: ChatView) -> Iterable[Finding]:
    """A tool choice is a known word, or names one of the tools."""
    choice = view.body.get("tool_choice")
    known = ("auto", "none", "required", *(("any",) if view.profile == "mistral" else ()))
    if isinstance(choice, str) and choice not in known:
        yield fault(f"Invalid value: '{choice}'.", code="invalid_value", param="tool_choice")
    if isinstance(choice, Mapping) and choice.get("type") == "function" and view.tools:
        named = choice.get("function")
        name = named.get("name") if isinstance(named, Mapping) else None
        if name not in [function.get("name") for _, function in view.functions]:
            yield fault(f"Tool choice '{name}' not found in 'tools' parameter.", param="tool_choice")


@rule("strict")
def _strict(view: ChatView) -> Iterable[Finding]:
    """Parameters are an object schema; strict ones closed, with everything required."""
    for index, function in view.functions:
        yield from schema_faults(function, f"tools[{index}].function.parameters")
    wanted = view.body.get("response_format")
    yield from output_faults(wanted.get("json_schema") if isinstance(wanted, Mapping) else None, "response_format")


@rule("tools_effort")
def _tools_effort(view: ChatView) -> Iterable[Finding]:
    """gpt-5.4 and later refuse tools beside an effort; 5.6 and later want `none` said."""
    effort = view.body.get("reasoning_effort")
    version = view.model.version
    refused = (version >= (5, 4) and effort not in (None, "none")) or (version >= (5, 6) and effort != "none")
    if view.tools and refused:
        name = view.body.get("model")
        text = f"Function tools with reasoning_effort are not supported for {name} in /v1/chat/completions."
        instead = "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
        yield fault(f"{text} {instead}", param="reasoning_effort")
