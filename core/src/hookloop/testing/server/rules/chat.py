"""What Chat Completions asks of a request as a whole and of its messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .chat_view import CALL_FIELDS, MESSAGE_FIELDS, PARTS, TOP_FIELDS, ChatView, calls_of
from .media import SOUNDS, decoded, image_url_faults, pdf_faults
from .openai_shared import empty_array, key_faults, missing, temperature_faults, wrong_type
from .profiles import PROFILES
from .registry import Finding, Rulebook, fault

RULES: Rulebook[ChatView] = Rulebook()
rule = RULES.rule


@rule("auth", "doc", gate=True)
def _auth(view: ChatView) -> Iterable[Finding]:
    """A key must be sent."""
    yield from key_faults(view.headers if view.profile is None else None)


@rule("required", "doc", gate=True)
def _required(view: ChatView) -> Iterable[Finding]:
    """`model` and `messages` are there, the messages objects."""
    if not isinstance(view.body.get("model"), str):
        yield fault("you must provide a model parameter")
    messages = view.body.get("messages")
    if messages is None:
        yield missing("messages")
    elif not isinstance(messages, list):
        yield wrong_type("messages", "an array of objects", messages)
    elif not messages:
        yield empty_array("messages")
    elif len(view.messages) < len(messages):
        yield wrong_type("messages", "an array of objects", next(m for m in messages if not isinstance(m, dict)))


@rule("unknown_field")
def _unknown_field(view: ChatView) -> Iterable[Finding]:
    """No top-level field that the API does not know."""
    profile = PROFILES.get(view.profile or "")
    if profile is None or profile.closed:
        extra = profile.fields if profile else frozenset()
        unknown = [name for name in view.body if name not in TOP_FIELDS and name not in extra]
        yield from (fault(f"Unrecognized request argument supplied: {name}") for name in unknown)


@rule("role", "doc", gate=True)
def _role(view: ChatView) -> Iterable[Finding]:
    """Roles are the known ones; compatible servers know no developer."""
    for index, message in enumerate(view.messages):
        role = message.get("role")
        if (
            not isinstance(role, str)
            or role not in MESSAGE_FIELDS
            or (view.profile and role in ("developer", "function"))
        ):
            known = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
            path = f"messages[{index}].role"
            yield fault(f"Invalid value: '{role}'. Supported values are: {known}.", code="invalid_value", param=path)


@rule("message_field", "guess")
def _message_field(view: ChatView) -> Iterable[Finding]:
    """A message has its fields, and no others that hold something."""
    profile = PROFILES.get(view.profile or "")
    more = profile.message_fields if profile else frozenset()
    call_more = profile.call_fields if profile else frozenset()
    if profile and profile.ignores_fields:
        return
    for index, message in enumerate(view.messages):
        known = MESSAGE_FIELDS.get(str(message.get("role")), frozenset()) | more
        extra = [name for name, value in message.items() if name not in known and value is not None]
        for call in calls_of(message):
            extra += [name for name in call if name not in CALL_FIELDS and name not in call_more and name != "index"]
        for name in extra:
            text = f"Additional properties are not allowed ('{name}' was unexpected) - 'messages.{index}'"
            yield fault(text, param=f"messages.{index}")


@rule("content_null")
def _content_null(view: ChatView) -> Iterable[Finding]:
    """Content is null or absent only beside an assistant's calls, refusal or audio."""
    for index, message in enumerate(view.messages):
        if message.get("content") is not None:
            continue
        spared = ("tool_calls", "refusal", "audio", "function_call") if message.get("role") == "assistant" else ()
        if not any(message.get(name) for name in spared):
            text = "Invalid value for 'content': expected a string, got null."
            yield fault(text, param=f"messages.[{index}].content")


@rule("content_part")
def _content_part(view: ChatView) -> Iterable[Finding]:
    """Content is a string or parts that the role may hold; images are the user's."""
    for index, message in enumerate(view.messages):
        content = message.get("content")
        path = f"messages[{index}].content"
        if isinstance(content, list):
            yield from _part_faults(content, str(message.get("role")), path)
        elif content is not None and not isinstance(content, str):
            yield wrong_type(path, "one of an array of objects or string", content)


def _part_faults(parts: list[Any], role: str, path: str) -> Iterator[Finding]:
    known = PARTS.get(role, frozenset({"text"}))
    for at, part in enumerate(parts):
        kind = str(part.get("type")) if isinstance(part, dict) else None
        if kind == "image_url" and kind not in known:
            text = f"Image URLs are only allowed for messages with role 'user', but this message with role '{role}'"
            yield fault(f"Invalid '{path}'. {text} contains an image URL.", code="invalid_value", param=path)
        elif kind not in known:
            text = f"Invalid value: '{kind}'. Supported values are: {', '.join(sorted(known))}."
            yield fault(text, code="invalid_value", param=f"{path}[{at}].type")
        elif not _is_whole(part, str(kind)):
            yield missing(f"{path}[{at}].{kind}")


def _is_whole(part: Mapping[str, Any], kind: str) -> bool:
    value = part.get(kind)
    if kind == "image_url":
        return isinstance(value, Mapping) and isinstance(value.get("url"), str)
    return isinstance(value, str if kind in ("text", "refusal") else Mapping)


@rule("image")
def _image(view: ChatView) -> Iterable[Finding]:
    """Images are web addresses, or data URLs in base64; OpenAI takes four types of them."""
    for path, part in _parts(view, "image_url"):
        url = f"{path}.image_url.url"
        given = part["image_url"].get("url")
        yield from image_url_faults(str(given), url, f"Invalid image URL: '{url}'", typed=view.profile is None)


@rule("file", "doc")
def _file(view: ChatView) -> Iterable[Finding]:
    """Files are PDFs in base64 or file ids, sounds are wav or mp3 in base64; copies may take other types."""
    typed = view.profile is None
    for path, part in _parts(view, "file"):
        if part["file"].get("file_id") is None:
            yield from pdf_faults(part["file"].get("file_data"), f"{path}.file.file_data", typed=typed)
    for path, part in _parts(view, "input_audio"):
        sound = part["input_audio"]
        if typed and sound.get("format") not in SOUNDS:
            text = f"Invalid value: '{sound.get('format')}'. Supported values are: 'wav' and 'mp3'."
            yield fault(text, code="invalid_value", param=f"{path}.input_audio.format")
        elif not decoded(sound.get("data")):
            text = f"Invalid '{path}.input_audio.data'. Expected base64-encoded audio data."
            yield fault(text, code="invalid_value", param=f"{path}.input_audio.data")


def _parts(view: ChatView, kind: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The parts of one type whose own field is an object, with their paths."""
    for index, message in enumerate(view.messages):
        content = message.get("content")
        for at, part in enumerate(content if isinstance(content, list) else ()):
            if isinstance(part, Mapping) and part.get("type") == kind and isinstance(part.get(kind), Mapping):
                yield f"messages[{index}].content[{at}]", part


@rule("empty_array")
def _empty_array(view: ChatView) -> Iterable[Finding]:
    """`tools`, `tool_calls` and lists of parts are left out where they are empty."""
    if view.body.get("tools") == []:
        yield empty_array("tools")
    for index, message in enumerate(view.messages):
        for name in ("tool_calls", "content"):
            if message.get(name) == []:
                yield empty_array(f"messages[{index}].{name}")


@rule("max_tokens")
def _max_tokens(view: ChatView) -> Iterable[Finding]:
    """Models that reason take `max_completion_tokens`."""
    if view.model.reasons and view.body.get("max_tokens") is not None:
        text = "'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        yield fault(f"Unsupported parameter: {text}", code="unsupported_parameter", param="max_tokens")


@rule("temperature")
def _temperature(view: ChatView) -> Iterable[Finding]:
    """Models that reason take temperature 1 only."""
    if view.model.reasons:
        yield from temperature_faults(view.body)


@rule("stream_options")
def _stream_options(view: ChatView) -> Iterable[Finding]:
    """`stream_options` goes with `stream`."""
    if view.body.get("stream_options") is not None and view.body.get("stream") is not True:
        text = "The 'stream_options' parameter is only allowed when 'stream' is enabled."
        yield fault(text, param="stream_options")
