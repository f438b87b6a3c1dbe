"""What the Messages API asks of a request as a whole, its roles and its content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .media import IMAGE_TYPES, PDF, decoded, told_type
from .messages_view import (
    ASSISTANT_ONLY,
    BETA_FIELDS,
    BLOCK_FIELDS,
    BLOCK_REQUIRED,
    TOP_FIELDS,
    USER_ONLY,
    Block,
    Line,
    MessagesView,
)
from .registry import Finding, Rulebook, fault

RULES: Rulebook[MessagesView] = Rulebook()
rule = RULES.rule

RESULT_PARTS = ("text", "image", "document", "search_result", "tool_reference")


@rule("auth", "doc", gate=True)
def _auth(view: MessagesView) -> Iterable[Finding]:
    """A key must be sent."""
    if view.headers is not None and not ({"x-api-key", "authorization"} & view.headers.keys()):
        yield fault("x-api-key header is required", 401)


@rule("version", "doc", gate=True)
def _version(view: MessagesView) -> Iterable[Finding]:
    """The header `anthropic-version` must be sent."""
    if view.headers is not None and "anthropic-version" not in view.headers:
        yield "anthropic-version: header is required"


@rule("required", "doc", gate=True)
def _required(view: MessagesView) -> Iterable[Finding]:
    """`model`, `max_tokens` and `messages` are there and of their types."""
    for name in ("model", "max_tokens", "messages"):
        if view.body.get(name) is None:
            yield f"{name}: Field required"
    limit = view.body.get("max_tokens")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 0):
        yield "max_tokens: Input should be a valid integer, greater than or equal to 0"
    if not isinstance(view.body.get("model", ""), str):
        yield "model: Input should be a valid string"
    messages = view.body.get("messages")
    if messages is not None and not isinstance(messages, list):
        yield "messages: Input should be a valid list"
    elif messages == []:
        yield "messages: at least one message is required"


@rule("unknown_field")
def _unknown_field(view: MessagesView) -> Iterable[Finding]:
    """No top-level field that the API does not know."""
    known = TOP_FIELDS | BETA_FIELDS if (view.headers or {}).get("anthropic-beta") else TOP_FIELDS
    yield from (f"{name}: Extra inputs are not permitted" for name in view.body if name not in known)


@rule("message_shape", "doc", gate=True)
def _message_shape(view: MessagesView) -> Iterable[Finding]:
    """A message is a role and a content, and nothing else."""
    given = view.body.get("messages")
    for index, message in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(message, Mapping):
            yield f"messages.{index}: Input should be a valid dictionary or object"
            continue
        if not isinstance(message.get("content"), str | list):
            yield f"messages.{index}.content: Input should be a valid string or list"
        if not isinstance(message.get("role"), str):
            yield f"messages.{index}.role: Field required"
        extra = message.keys() - {"role", "content"}
        yield from (f"messages.{index}.{name}: Extra inputs are not permitted" for name in sorted(extra))


@rule("role")
def _role(view: MessagesView) -> Iterable[Finding]:
    """Roles are user and assistant, and system where the model knows it."""
    for line in view.lines:
        if line.role == "system" and not view.model.takes_system_messages:
            yield (
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not '
                '"system" as an input message role.'
            )
        elif line.role not in ("user", "assistant", "system"):
            yield f'messages: Unexpected role "{line.role}". Allowed roles are "user" or "assistant".'


@rule("system_place", "doc")
def _system_place(view: MessagesView) -> Iterable[Finding]:
    """A system message stands right after a user message (or a server tool's turn), last or before an assistant's."""
    if not view.model.takes_system_messages:
        return
    for at, line in enumerate(view.lines):
        if line.role != "system":
            continue
        before = view.lines[at - 1] if at else None
        after = view.lines[at + 1] if at + 1 < len(view.lines) else None
        if before is None:
            yield f"{line.path}: use the top-level 'system' parameter for the initial system prompt"
        elif not _carries_system(before) or (after is not None and after.role != "assistant"):
            yield (
                f"{line.path}: a `system` message must directly follow a `user` message or an assistant turn that ends "
                "in server tool use, and be last or followed by an `assistant` message"
            )


def _carries_system(line: Line) -> bool:
    last = line.blocks[-1].get("type", "") if line.blocks else ""
    served = last == "server_tool_use" or (last.endswith("_tool_result") and last != "tool_result")
    return line.role == "user" or (line.role == "assistant" and served)


@rule("first_role")
def _first_role(view: MessagesView) -> Iterable[Finding]:
    """The first message is the user's."""
    if view.lines and view.lines[0].role == "assistant":
        yield 'messages: first message must use the "user" role'


@rule("content_empty")
def _content_empty(view: MessagesView) -> Iterable[Finding]:
    """No empty content, but in a final assistant message."""
    for line in view.lines:
        final = line is view.lines[-1] and line.role == "assistant"
        if line.content in ("", []) and not final:
            yield (
                f"{line.path}: all messages must have non-empty content except for the optional final assistant message"
            )


@rule("text_empty")
def _text_empty(view: MessagesView) -> Iterable[Finding]:
    """No empty text block, also in tool results and the system text."""
    for place, block in view.texts():
        if block.get("text") == "" and not _is_empty_string(view, block):
            yield f"{place}: text content blocks must be non-empty"


def _is_empty_string(view: MessagesView, block: Block) -> bool:
    """True for the block that stands for a content of `""`, which is `content_empty`."""
    return any(line.content == "" and line.blocks[0] is block for line in view.lines)


@rule("text_blank")
def _text_blank(view: MessagesView) -> Iterable[Finding]:
    """No text block of white space alone."""
    for place, block in view.texts():
        text = block.get("text")
        if isinstance(text, str) and text and not text.strip():
            yield f"{place}: text content blocks must contain non-whitespace text"


@rule("block_type", "sdk", gate=True)
def _block_type(view: MessagesView) -> Iterable[Finding]:
    """Every block has a type that the API knows."""
    for line in view.lines:
        for index, block in enumerate(line.content if isinstance(line.content, list) else ()):
            kind = block.get("type") if isinstance(block, dict) else None
            if not isinstance(kind, str) or kind not in BLOCK_FIELDS or kind == "tool_reference":
                yield (
                    f"{line.path}.content.{index}: Input tag '{kind}' found using 'type' does not match any of the "
                    "expected tags"
                )


@rule("block_role")
def _block_role(view: MessagesView) -> Iterable[Finding]:
    """Calls and thinking stand in assistant messages, results and images in the user's."""
    for line, _, block in view.numbered():
        kind = block.get("type")
        if line.role == "user" and kind in ASSISTANT_ONLY:
            yield f"{line.path}: `{kind}` blocks can only be in `assistant` messages"
        elif line.role == "assistant" and kind in USER_ONLY:
            yield f"{line.path}: `{kind}` blocks can only be in `user` messages"


@rule("block_field", "sdk", gate=True)
def _block_field(view: MessagesView) -> Iterable[Finding]:
    """Blocks have their fields, of their types, and no others."""
    for line, index, block in view.placed(*BLOCK_FIELDS):
        kind = block["type"]
        where = f"{line.path}.content.{index}.{kind}"
        known = BLOCK_FIELDS[kind]
        for name in () if known.issuperset(block) else sorted(block.keys() - known):
            if (kind, name) not in (("thinking", "cache_control"), ("redacted_thinking", "cache_control")):
                yield f"{where}.{name}: Extra inputs are not permitted"
        for name, expected in BLOCK_REQUIRED.get(kind, {}).items():
            if block.get(name) is None:
                yield f"{where}.{name}: Field required"
            elif not isinstance(block[name], expected):
                yield f"{where}.{name}: Input should be a valid {expected.__name__}"


@rule("image", "doc")
def _image(view: MessagesView) -> Iterable[Finding]:
    """Images are base64 of four media types, or a URL or file id."""
    for path, image in _media(view, "image"):
        yield from (f"{path}.source.{why}" for why in _image_faults(image.get("source")))


@rule("document", "doc")
def _document(view: MessagesView) -> Iterable[Finding]:
    """Documents are PDFs in base64, plain text, content blocks, or a URL or file id."""
    for path, document in _media(view, "document"):
        yield from (f"{path}.source.{why}" for why in _document_faults(document.get("source")))


def _media(view: MessagesView, wanted: str) -> Iterator[tuple[str, Block]]:
    """The blocks of one kind with their paths, in messages and in tool results."""
    for line, index, block in view.placed(wanted, "tool_result"):
        for part in (block, *_parts(block)):
            if part.get("type") == wanted:
                yield f"{line.path}.content.{index}.{wanted}", part


def _parts(block: Block) -> Iterator[Block]:
    content = block.get("content")
    if block.get("type") == "tool_result" and isinstance(content, list):
        yield from (part for part in content if isinstance(part, dict))


def _image_faults(source: Any) -> Iterator[str]:
    kind = source.get("type") if isinstance(source, Mapping) else None
    if not isinstance(source, Mapping) or kind not in ("base64", "url", "file"):
        yield f"type: Input tag '{kind}' does not match any of the expected tags: 'base64', 'url', 'file'"
    elif kind == "base64" and source.get("media_type") not in IMAGE_TYPES:
        yield "base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'"
    elif kind == "base64":
        yield from _pixel_faults(source)
    elif kind == "url":
        yield from _url_faults(source)


def _pixel_faults(source: Mapping[str, Any]) -> Iterator[str]:
    raw = decoded(source.get("data"))
    if not raw:
        yield "base64: invalid base64 data"
    elif told_type(raw) not in ("", source["media_type"]):
        yield f"base64.data: Image does not match the provided media type {source['media_type']}"


def _url_faults(source: Mapping[str, Any]) -> Iterator[str]:
    if not str(source.get("url")).lower().startswith(("https://", "http://")):
        yield "url.url: Invalid URL"


def _document_faults(source: Any) -> Iterator[str]:
    kind = source.get("type") if isinstance(source, Mapping) else None
    if not isinstance(source, Mapping) or kind not in ("base64", "text", "content", "url", "file"):
        known = "'base64', 'content', 'file', 'text', 'url'"
        yield f"type: Input tag '{kind}' does not match any of the expected tags: {known}"
    elif kind == "base64" and source.get("media_type") != PDF:
        yield "base64.media_type: Input should be 'application/pdf'"
    elif kind == "base64" and not decoded(source.get("data")):
        yield "base64: invalid base64 data"
    elif kind == "text" and (source.get("media_type") != "text/plain" or not isinstance(source.get("data"), str)):
        yield "text.media_type: Input should be 'text/plain'"
    elif kind == "url":
        yield from _url_faults(source)


@rule("prefill")
def _prefill(view: MessagesView) -> Iterable[Finding]:
    """From 4.6 on the conversation ends with a user message (a paused turn apart)."""
    if _prefilled(view) and not view.model.takes_prefill:
        yield ("This model does not support assistant message prefill. The conversation must end with a user message.")


@rule("prefill_space")
def _prefill_space(view: MessagesView) -> Iterable[Finding]:
    """A prefill does not end in white space."""
    last = view.lines[-1] if view.lines else None
    if last and last.role == "assistant" and last.blocks:
        text = last.blocks[-1].get("text")
        if isinstance(text, str) and text != text.rstrip():
            yield "messages: final assistant content cannot end with trailing whitespace"


@rule("prefill_thinking", "doc")
def _prefill_thinking(view: MessagesView) -> Iterable[Finding]:
    """No prefill while thinking is on."""
    if _prefilled(view) and view.thinks and view.model.takes_prefill:
        yield "messages: assistant message prefill is not supported while thinking is enabled"


def _prefilled(view: MessagesView) -> bool:
    """Whether the last message is an assistant's to go on from; a paused turn (server tools) and open calls are not."""
    last = view.lines[-1] if view.lines else None
    if last is None or last.role != "assistant":
        return False
    return not last.of("tool_use", "server_tool_use", "mcp_tool_use")


@rule("sampling", "seen")
def _sampling(view: MessagesView) -> Iterable[Finding]:
    """Opus 4.7 and the 5 family take no temperature, top_p or top_k other than the default."""
    if view.model.fixed_sampling:
        for name, default in (("temperature", 1), ("top_p", None), ("top_k", None)):
            value = view.body.get(name)
            if value is not None and value != default:
                yield f"`{name}` is not supported by this model; omit it"


@rule("cache_max")
def _cache_max(view: MessagesView) -> Iterable[Finding]:
    """At most four cache marks."""
    count = sum(1 for block in _cacheable(view) if block.get("cache_control"))
    if count > 4:
        yield f"A maximum of 4 blocks with cache_control may be provided. Found {count}."


@rule("cache_empty")
def _cache_empty(view: MessagesView) -> Iterable[Finding]:
    """No cache mark on an empty text or on thinking."""
    for block in _cacheable(view):
        if not block.get("cache_control"):
            continue
        kind = block.get("type")
        if kind == "text" and not str(block.get("text", "")).strip():
            yield "cache_control cannot be set for empty text blocks"
        elif kind in ("thinking", "redacted_thinking"):
            yield f"cache_control cannot be set for {kind} blocks"


def _cacheable(view: MessagesView) -> Iterator[Mapping[str, Any]]:
    yield {"cache_control": view.body.get("cache_control")}
    yield from view.tools
    system = view.body.get("system")
    yield from (block for block in (system if isinstance(system, list) else ()) if isinstance(block, Mapping))
    for _, _, block in view.numbered():
        yield block
        yield from _parts(block)
