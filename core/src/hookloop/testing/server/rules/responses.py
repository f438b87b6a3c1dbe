"""What the Responses API asks of a request as a whole, its items and its tools."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .media import document_faults, image_url_faults
from .openai_shared import (
    key_faults,
    length_faults,
    missing,
    name_faults,
    output_faults,
    schema_faults,
    temperature_faults,
    wrong_type,
)
from .registry import Finding, Rulebook, doubled, fault
from .responses_view import (
    CALLS,
    ID_PREFIX,
    ITEM_FIELDS,
    MOVED,
    OUTPUTS,
    TOLD,
    TOP_FIELDS,
    JsonObject,
    ResponsesView,
    is_output,
    keys_of,
    kind_of,
    wants_output,
    words,
)

RULES: Rulebook[ResponsesView] = Rulebook()
rule = RULES.rule

MAX_CALL_ID = 64
MIN_OUTPUT_TOKENS = 16
ROLES = ("assistant", "system", "developer", "user")
ASSISTANT_PARTS = ("output_text", "refusal")
INPUT_PARTS = ("input_text", "input_image", "input_file", "input_audio")


@rule("auth", "doc", gate=True)
def _auth(view: ResponsesView) -> Iterable[Finding]:
    """A key must be sent."""
    yield from key_faults(view.headers)


@rule("required", "doc", gate=True)
def _required(view: ResponsesView) -> Iterable[Finding]:
    """`model` and an input (or something to go on from) are there."""
    if not isinstance(view.body.get("model"), str) and "prompt" not in view.body:
        yield missing("model")
    given = view.body.get("input")
    if given is None:
        if not any(view.body.get(name) for name in ("previous_response_id", "prompt", "conversation", *MOVED)):
            yield missing("input")
    elif not isinstance(given, str | list):
        yield wrong_type("input", "one of a list of input items or string", given)
    elif isinstance(given, list) and len(view.items) < len(given):
        yield wrong_type("input", "a list of input items", next(i for i in given if not isinstance(i, dict)))


@rule("unknown_field", "doc")
def _unknown_field(view: ResponsesView) -> Iterable[Finding]:
    """No field of another API, and none that is unknown."""
    for name in view.body:
        if name in MOVED and name != "max_tokens":
            text = f"'{name}'. In the Responses API, this parameter has moved to '{MOVED[name]}'."
            yield fault(f"Unsupported parameter: {text}", code="unsupported_parameter", param=name)
        elif name not in TOP_FIELDS and name != "max_tokens":
            yield fault(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)


@rule("max_tokens", "guess")
def _max_tokens(view: ResponsesView) -> Iterable[Finding]:
    """The bound is `max_output_tokens`, at least 16."""
    if "max_tokens" in view.body:
        text = "'max_tokens'. In the Responses API, this parameter has moved to 'max_output_tokens'."
        yield fault(f"Unsupported parameter: {text}", code="unsupported_parameter", param="max_tokens")
    limit = view.body.get("max_output_tokens")
    if isinstance(limit, int) and limit < MIN_OUTPUT_TOKENS:
        text = f"integer below minimum value. Expected a value >= {MIN_OUTPUT_TOKENS}, but got {limit} instead."
        code = "integer_below_min_value"
        yield fault(f"Invalid 'max_output_tokens': {text}", code=code, param="max_output_tokens")


@rule("temperature")
def _temperature(view: ResponsesView) -> Iterable[Finding]:
    """Models that reason take temperature 1 only."""
    if view.model.reasons:
        yield from temperature_faults(view.body)


@rule("stream_options")
def _stream_options(view: ResponsesView) -> Iterable[Finding]:
    """`stream_options` goes with `stream`, and knows no `include_usage`."""
    options = view.body.get("stream_options")
    if options is not None and view.body.get("stream") is not True:
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield fault(text, param="stream_options")
    for name in options if isinstance(options, Mapping) else ():
        if name != "include_obfuscation":
            path = f"stream_options.{name}"
            yield fault(f"Unknown parameter: '{path}'.", code="unknown_parameter", param=path)


@rule("include")
def _include(view: ResponsesView) -> Iterable[Finding]:
    """Models that do not reason have no encrypted content to include."""
    wanted = view.body.get("include")
    silent = (0, 0) < view.model.version < (5, 0)
    if isinstance(wanted, list) and "reasoning.encrypted_content" in wanted and silent:
        yield fault("Encrypted content is not supported with this model.", param="include")


@rule("item_type", "doc", gate=True)
def _item_type(view: ResponsesView) -> Iterable[Finding]:
    """Every item has a known type, every message a known role."""
    for index, item in enumerate(view.items):
        kind = kind_of(item)
        path = f"input[{index}]"
        if kind not in ITEM_FIELDS:
            yield fault(f"Invalid value: '{kind}'.", code="invalid_value", param=path)
        elif kind == "message" and item.get("role") not in ROLES:
            known = "'assistant', 'system', 'developer', and 'user'"
            text = f"Invalid value: '{item.get('role')}'. Supported values are: {known}."
            yield fault(text, code="invalid_value", param=f"{path}.role")


@rule("item_field", "doc")
def _item_field(view: ResponsesView) -> Iterable[Finding]:
    """Items have their fields, and no others that hold something."""
    for index, item in enumerate(view.items):
        known = ITEM_FIELDS.get(kind_of(item), frozenset(item))
        for name in (name for name, value in item.items() if name not in known and value is not None):
            path = f"input[{index}].{name}"
            yield fault(f"Unknown parameter: '{path}'.", code="unknown_parameter", param=path)


@rule("item_shape", "doc", gate=True)
def _item_shape(view: ResponsesView) -> Iterable[Finding]:
    """Calls, outputs and reasoning have what they need."""
    needs = {
        "function_call": ("call_id", "name"),
        "function_call_output": ("call_id", "output"),
        "local_shell_call_output": ("id", "output"),
        "shell_call_output": ("call_id", "output"),
        "apply_patch_call_output": ("call_id", "status"),
        "computer_call_output": ("call_id", "output"),
        "reasoning": ("summary",),
        "message": ("content",),
        "item_reference": ("id",),
    }
    for index, item in enumerate(view.items):
        for name in needs.get(kind_of(item), ()):
            if item.get(name) is None:
                yield missing(f"input[{index}].{name}")


@rule("arguments", "doc", gate=True)
def _arguments(view: ResponsesView) -> Iterable[Finding]:
    """A call's arguments are a JSON string, an output a string or a list of parts."""
    for index, item in enumerate(view.items):
        kind = kind_of(item)
        if kind == "function_call" and not isinstance(item.get("arguments"), str):
            yield wrong_type(f"input[{index}].arguments", "a string", item.get("arguments"))
        output = item.get("output")
        if kind == "function_call_output" and output is not None and not isinstance(output, str | list):
            yield wrong_type(f"input[{index}].output", "one of an array of objects or string", output)


@rule("content_part")
def _content_part(view: ResponsesView) -> Iterable[Finding]:
    """An assistant's parts are output parts, those of others and of outputs are input parts."""
    for index, item in enumerate(view.items):
        kind = kind_of(item)
        content = item.get("content") if kind == "message" else item.get("output") if kind in TOLD else None
        said = kind == "message" and item.get("role") == "assistant"
        known = ASSISTANT_PARTS if said else INPUT_PARTS
        for at, part in enumerate(content if isinstance(content, list) else ()):
            found = part.get("type") if isinstance(part, dict) else None
            if found not in known:
                listed = " and ".join(f"'{name}'" for name in known)
                path = f"input[{index}].{'content' if kind == 'message' else 'output'}[{at}]"
                text = f"Invalid value: '{found}'. Supported values are: {listed}."
                yield fault(text, code="invalid_value", param=path)


@rule("image")
def _image(view: ResponsesView) -> Iterable[Finding]:
    """Images are web addresses, or data URLs in base64 of four types."""
    for path, part in _parts(view, "input_image"):
        if part.get("image_url") is not None:
            url = f"{path}.image_url"
            yield from image_url_faults(str(part["image_url"]), url, f"Invalid '{url}'")


@rule("file", "doc")
def _file(view: ResponsesView) -> Iterable[Finding]:
    """Files are data URLs in base64 of the listed types, web addresses or file ids."""
    for path, part in _parts(view, "input_file"):
        if part.get("file_data") is not None:
            yield from document_faults(part["file_data"], f"{path}.file_data")
        elif part.get("file_id") is None and part.get("file_url") is None:
            yield missing(f"{path}.file_id")


def _parts(view: ResponsesView, wanted: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The parts of one type, in messages and in outputs, with their paths."""
    for index, item in enumerate(view.items):
        name = "content" if kind_of(item) == "message" else "output"
        content = item.get(name) if name == "content" or kind_of(item) in TOLD else None
        for at, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, Mapping) and part.get("type") == wanted:
                yield f"input[{index}].{name}[{at}]", part


@rule("call_id_long", "seen")
def _call_id_long(view: ResponsesView) -> Iterable[Finding]:
    """Call ids are not longer than 64 characters."""
    for index, item in enumerate(view.items):
        yield from length_faults(item.get("call_id"), f"input[{index}].call_id", MAX_CALL_ID)


@rule("item_id")
def _item_id(view: ResponsesView) -> Iterable[Finding]:
    """An item's id, where one is sent, has its type's prefix."""
    for index, item in enumerate(view.items):
        kind = kind_of(item)
        prefix = ID_PREFIX.get(kind)
        if kind == "message" and item.get("role") != "assistant":
            prefix = None
        key = item.get("id")
        if prefix and key is not None and not str(key).startswith(f"{prefix}_"):
            path = f"input[{index}].id"
            text = f"Invalid '{path}': '{key}'. Expected an ID that begins with '{prefix}'."
            yield fault(text, code="invalid_value", param=path)


@rule("item_twice")
def _item_twice(view: ResponsesView) -> Iterable[Finding]:
    """No item's id stands twice in the input and its chain (a local shell's output has the id of its call)."""
    items = [item for item in (*view.chain, *view.items) if kind_of(item) != "local_shell_call_output"]
    for key in doubled(str(item["id"]) for item in items if item.get("id")):
        text = f"Duplicate item found with id {key}. Remove duplicate items from your input and try again."
        yield fault(text, param="input")


@rule("call_twice", "guess")
def _call_twice(view: ResponsesView) -> Iterable[Finding]:
    """No two calls, and no two outputs, of one call id."""
    items = [item for item in (*view.chain, *view.resolved()) if item.get("call_id") is not None]
    for kinds in (CALLS, OUTPUTS):
        for key in doubled(str(item["call_id"]) for item in items if kind_of(item) in kinds):
            yield fault(f"Duplicate item found with call_id {key}.", param="input")


@rule("call_orphan")
def _call_orphan(view: ResponsesView) -> Iterable[Finding]:
    """Every call, also of the chain and of the vendor's own tools, has its output behind it."""
    items = [*view.chain, *view.resolved()]
    last = {pair: at for at, item in enumerate(items) if is_output(item) for pair in _pairs(item)}
    for at, item in enumerate(items):
        if wants_output(item) and all(last.get((CALLS[kind_of(item)], key), -1) < at for key in keys_of(item)):
            text = f"No tool output found for {words(kind_of(item))} {item.get('call_id')}."
            yield fault(text, param="input")


@rule("output_orphan")
def _output_orphan(view: ResponsesView) -> Iterable[Finding]:
    """Every output has its call before it, in the input or the chain."""
    if view.known is None and view.body.get("previous_response_id"):
        return  # the calls are in a chain that nobody here knows
    called = {pair for item in view.chain if wants_output(item) for pair in _pairs(item)}
    for item in view.resolved():
        if wants_output(item):
            called |= _pairs(item)
        elif is_output(item) and not any((OUTPUTS[kind_of(item)], key) in called for key in keys_of(item)):
            text = f"No tool call found for {words(kind_of(item))} with call_id {item.get('call_id')}."
            yield fault(text, param="input")


def _pairs(item: JsonObject) -> set[tuple[str, str]]:
    """A call or an output by its type and each of its keys."""
    return {(kind_of(item), key) for key in keys_of(item)}


@rule("tool_shape", "doc", gate=True)
def _tool_shape(view: ResponsesView) -> Iterable[Finding]:
    """Tools are a list, and flat: the name and the parameters beside the type."""
    given = view.body.get("tools")
    if given is not None and (not isinstance(given, list) or len(view.tools) < len(given)):
        yield wrong_type("tools", "an array of objects", given)
    for index, tool in enumerate(view.tools):
        if tool.get("type") is None:
            yield missing(f"tools[{index}].type")
        elif tool.get("type") == "function" and "name" not in tool:
            yield missing(f"tools[{index}].name")


@rule("tool_name")
def _tool_name(view: ResponsesView) -> Iterable[Finding]:
    """Function names are 1 to 64 letters, digits, `_` and `-`, in tools and in calls."""
    for index, tool in view.functions:
        if "name" in tool:
            yield from name_faults(tool["name"], f"tools[{index}].name")
    for index, item in enumerate(view.items):
        if kind_of(item) == "function_call" and item.get("name") is not None:
            yield from name_faults(item["name"], f"input[{index}].name")


@rule("choice_name", "doc")
def _choice_name(view: ResponsesView) -> Iterable[Finding]:
    """A tool choice is a known word, or names one of the tools; it needs tools."""
    choice = view.body.get("tool_choice")
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        yield fault(f"Invalid value: '{choice}'.", code="invalid_value", param="tool_choice")
    named = choice.get("name") if isinstance(choice, Mapping) and choice.get("type") == "function" else None
    if named is not None and named not in [tool.get("name") for _, tool in view.functions]:
        yield fault(f"Tool choice '{named}' not found in 'tools' parameter.", param="tool_choice")
    if choice == "required" and not view.tools:
        yield fault("Tool choice 'required' must be specified with 'tools' parameter.", param="tool_choice")


@rule("strict")
def _strict(view: ResponsesView) -> Iterable[Finding]:
    """Parameters are an object schema; strict ones closed, with everything required."""
    for index, tool in view.functions:
        yield from schema_faults(tool, f"tools[{index}].parameters")
    text = view.body.get("text")
    yield from output_faults(text.get("format") if isinstance(text, Mapping) else None, "text.format.schema")
