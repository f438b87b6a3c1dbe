"""The tables of known fields agree with the types of the installed SDKs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

from hookloop.testing.server.rules import chat_view, messages_view, responses_view


def fields(kind: Any) -> set[str]:
    return set(get_type_hints(kind))


def words(kind: Any, key: str) -> Iterator[str]:
    """The values of a literal field; of an optional one too."""
    hint = get_type_hints(kind).get(key)
    for option in (hint, *get_args(hint)):
        if get_origin(option) is Literal:
            yield from get_args(option)


def members(union: Any) -> Iterator[Any]:
    for option in get_args(union):
        inner = getattr(option, "__origin__", None)
        if isinstance(inner, type) and get_type_hints(inner):
            yield inner
        elif get_args(option):
            yield from members(option)
        else:
            yield option


def table(union: Any, key: str = "type") -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for kind in members(union):
        for word in words(kind, key):
            found[word] = found.get(word, set()) | fields(kind)
    return found


def test_messages_know_the_fields_that_the_sdk_sends() -> None:
    from anthropic.types import content_block_param, message_create_params, tool_param

    sampling = {"temperature", "top_p", "top_k"}
    assert fields(message_create_params.MessageCreateParamsStreaming) | sampling == messages_view.TOP_FIELDS
    assert fields(tool_param.ToolParam) == messages_view.TOOL_FIELDS
    blocks = table(content_block_param.ContentBlockParam)
    assert len(blocks) > 10
    assert {kind: set(messages_view.BLOCK_FIELDS[kind]) for kind in blocks} == blocks


def test_chat_completions_know_the_fields_that_the_sdk_sends() -> None:
    from openai.types.chat import chat_completion_message_param, completion_create_params

    assert fields(completion_create_params.CompletionCreateParamsStreaming) == chat_view.TOP_FIELDS
    messages = table(chat_completion_message_param.ChatCompletionMessageParam, "role")
    assert set(messages) == set(chat_view.MESSAGE_FIELDS)
    assert all(known <= chat_view.MESSAGE_FIELDS[role] for role, known in messages.items())


def test_responses_know_the_fields_that_the_sdk_sends() -> None:
    from openai.types.responses import response_create_params, response_input_item_param

    assert fields(response_create_params.ResponseCreateParamsStreaming) == responses_view.TOP_FIELDS
    items = table(response_input_item_param.ResponseInputItemParam)
    assert len(items) > 20
    assert {kind: set(known) for kind, known in responses_view.ITEM_FIELDS.items()} == items
