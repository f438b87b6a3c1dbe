"""Recorded conversations of several rounds: after the recorded reply our next request says what the recorded one said.

The recordings stand beside the repository, in ../shared/recordings; where they are absent these tests are skipped.
Both sides are brought to one form first: roles, texts, calls and results with ids numbered by their first use, media
by kind. What then still differs is one of the classes in `DIFFERENCES`, and is looked for by name.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import pytest

from hookloop.testing.server import Raw, StrictServer
from hookloop_hookspecs import (
    File,
    Image,
    Message,
    ModelRequest,
    Opaque,
    Origin,
    Part,
    ProviderError,
    Reply,
    Text,
    ToolCall,
    ToolResult,
    ToolSpec,
    json_text,
)
from hookloop_openai import OpenAIProvider, factories

ROOT = Path(__file__).parents[2].parent / "shared" / "recordings"
PROFILES: dict[str, str | dict[str, Any]] = {
    "azure": "azure",
    "crusoe": "vllm",
    "deepseek": "deepseek",
    "gemini": "gemini",
    "groq": "groq",
    "gpustack": {"base": "vllm", "name": "gpustack", "reasoning_field": "reasoning_content"},
    "llama-server": "llamacpp",
    "mistral": "mistral",
    "ollama": "ollama",
    "openrouter": "openrouter",
    "perplexity": "groq",
    "snowflake": "openrouter",
    "vercel-gateway": "openrouter",
    "xai": "xai",
    "zai": {"base": "deepseek", "name": "zai"},
}
DIFFERENCES = {
    "openrouter-chat-s-grok-multi-tool-streaming": (
        "reasoning: the recorded client wrote the summary anew as text; we return the details as they came"
    ),
    "pydantic-gateway-resp-w-instrument-langchain": (
        "reasoning: the recorded client points at reasoning that the server had stored; we ask servers to store nothing,"
        " and return reasoning where it came encrypted"
    ),
}
"""Sequences whose requests differ, and the class of the difference with its reason. None touches a call or a result."""
EDITED = {"openai-chat-w-testmaxusagecountwithnativetoo-ked-in-native-tool-calling"}
"""Sequences whose client kept only some of a reply's calls. What to keep is the caller's business and how to send it the
provider's, so the history that is compared is the one that the client had."""

pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason="../shared/recordings is absent")

Form = list[tuple[Any, ...]]


def sequences() -> list[dict[str, Any]]:
    if not ROOT.is_dir():
        return []
    lines = json.loads((ROOT / "index.json").read_text())
    found = [ROOT / line["file"] for line in lines if line["api"] != "messages" and line["rounds"] > 1]
    return [json.loads(file.read_text()) for file in found]


class Ids:
    """Numbers ids by their first use."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, id: str) -> int:
        return self.numbers.setdefault(id, len(self.numbers))


def texts_of(content: Any) -> str:
    if isinstance(content, list):
        return "".join(part.get("text") or "" for part in content)
    return content or ""


def media_of(content: Any) -> list[str]:
    parts = content if isinstance(content, list) else []
    return [part["type"] for part in parts if part["type"] not in ("text", "input_text", "output_text")]


def arguments_of(text: str) -> Any:
    return json.loads(text)


def thought_of(message: dict[str, Any]) -> str:
    details = "".join(
        detail.get("text") or detail.get("data") or "" for detail in message.get("reasoning_details") or ()
    )
    return message.get("reasoning_content") or message.get("reasoning") or details


def chat_form(messages: list[dict[str, Any]]) -> Form:
    ids = Ids()
    form: Form = []
    for message in messages:
        role, text = message["role"], texts_of(message.get("content"))
        form += [("thought", thought)] if (thought := thought_of(message)) else []
        if role == "tool":
            form.append(("result", ids(message["tool_call_id"]), text))
        elif media := media_of(message.get("content")):
            form.append((role, tuple(media)))
        elif text or role != "assistant":
            form.append((role, text))
        for call in message.get("tool_calls") or ():
            function = call["function"]
            form.append(("call", ids(call["id"]), function["name"], arguments_of(function["arguments"])))
    return form


def responses_form(items: list[dict[str, Any]]) -> Form:
    ids = Ids()
    form: Form = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "function_call":
            form.append(("call", ids(item["call_id"]), item["name"], arguments_of(item["arguments"])))
        elif kind == "function_call_output":
            form.append(("result", ids(item["call_id"]), texts_of(item["output"])))
        elif kind == "message" and (media := media_of(item["content"])):
            form.append((item["role"], tuple(media)))
        elif kind == "message" and (text := texts_of(item["content"])):
            form.append((item["role"], text))
        elif kind == "reasoning":
            form.append(("reasoning", item.get("encrypted_content") or "by its id"))
        elif kind != "message":
            form.append((kind, {key: value for key, value in item.items() if key != "status" and value is not None}))
    return form


def parts_of(content: Any) -> list[Text | Image | File]:
    if not isinstance(content, list):
        return [Text(content or "")]
    parts: list[Text | Image | File] = []
    for part in content:
        if "image" in part["type"]:
            parts.append(Image("aGk=", "image/png"))
        elif part["type"] in ("file", "input_file"):
            parts.append(File("aGk=", "application/pdf", "sample.pdf"))
        elif part["type"] == "input_audio":
            parts.append(File("aGk=", "audio/mpeg"))
        else:
            parts.append(Text(part["text"]))
    return parts


def history_of(
    sent: list[dict[str, Any]], replies: list[Reply], reference: str, before: list[Message]
) -> list[Message]:
    """The recorded request as our history: what the model said is what we read, the rest is as it was sent."""
    history = list(before)
    said = iter(replies)
    content: tuple[Part, ...] = before[-1].content if before else ()
    left = list(before[-1].calls) if before else []
    for spoken, run in groupby(sent, key=by_model):
        if spoken:
            content = kept(next(said).content, list(run))
            history.append(Message("assistant", content, Origin("model", model=reference)))
            left = list(history[-1].calls)
        else:
            history += [told for entry in run if (told := answer(entry, left, content)) is not None]
    return history


def by_model(entry: dict[str, Any]) -> bool:
    kind = entry.get("type", "message")
    return entry.get("role") == "assistant" or kind in ("reasoning", "mcp_approval_request") or kind.endswith("_call")


def kept(content: tuple[Part, ...], run: list[dict[str, Any]]) -> tuple[Part, ...]:
    """The reply without the calls that the client left out. Where the ids are the client's own none can be missed."""
    ids = {call["id"] for entry in run for call in entry.get("tool_calls") or ()}
    ids |= {entry["call_id"] for entry in run if entry.get("type") in ("function_call", "custom_tool_call")}
    known = {part.id for part in content if isinstance(part, ToolCall)}
    if not ids or not ids <= known:
        return content
    return tuple(part for part in content if not isinstance(part, ToolCall) or part.id in ids)


def answer(entry: dict[str, Any], left: list[ToolCall], said: tuple[Part, ...]) -> Message | None:
    """What was sent behind a reply: a result, the answer to an item of the provider's own, or a user's message."""
    kind = entry.get("type", "message")
    if entry.get("role") == "tool" or kind == "function_call_output":
        wanted = entry.get("tool_call_id") or entry.get("call_id")
        call = next((call for call in left if call.id == wanted), left[0] if left else None)
        if call is None:
            return None
        left.remove(call)
        content = tuple(parts_of(entry.get("content", entry.get("output"))))
        return Message.tool(ToolResult(call.id, call.name, content))
    if kind.endswith(("_output", "_response")):
        asked = next(part for part in said if isinstance(part, Opaque))
        return Message.user(replace(asked, data=json_text(entry)))
    return Message.user(parts_of(entry.get("content")))


def tools_of(body: dict[str, Any]) -> tuple[ToolSpec, ...]:
    flat = [tool.get("function", tool) for tool in body.get("tools") or () if tool.get("type") == "function"]
    return tuple(ToolSpec(t["name"], t.get("description") or "", json.dumps(t["parameters"])) for t in flat)


def split(body: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    """The system text and everything behind it."""
    sent = body.get("messages") or body["input"]
    system = body.get("instructions") or ""
    if isinstance(sent, list) and sent[0].get("role") in ("system", "developer"):
        return texts_of(sent[0]["content"]), sent[1:]
    return system, sent if isinstance(sent, list) else [{"role": "user", "content": sent}]


def raw_of(exchange: dict[str, Any]) -> Raw:
    response = exchange["response"]
    body = response.get("sse")
    return Raw(
        response["status"], response["headers"], (body if body is not None else json.dumps(response["body"])).encode()
    )


def provider_of(sequence: dict[str, Any], server: StrictServer, *, stream: bool) -> OpenAIProvider:
    profile = PROFILES.get(sequence["provider"], "openai")
    factory: Any = factories.openai
    api = "responses" if sequence["api"] == "responses" else "chat"
    made: OpenAIProvider = factory(
        sequence["rounds"][0]["request"]["model"],
        factory.Options(
            base_url=f"{server.url}/v1",
            api_key="test-key-1",
            api=api,
            transport="stream" if stream else "whole",
            retries=0,
            profile=profile,
        ),
    )
    return made


def replay(sequence: dict[str, Any]) -> list[tuple[Form, Form]]:
    """For each round but the first: our request and the recorded one, in one form, up to a reply that never came."""
    pairs: list[tuple[Form, Form]] = []
    replies: list[Reply] = []
    before: list[Message] = []
    form = responses_form if sequence["api"] == "responses" else chat_form
    for number, exchange in enumerate(sequence["rounds"]):
        with StrictServer([raw_of(exchange)], strict=False) as server:
            provider = provider_of(sequence, server, stream=exchange["stream"])
            system, sent = split(exchange["request"])
            if "previous_response_id" in exchange["request"]:
                before.append(Message("assistant", replies[-1].content, Origin("model", model=provider.reference)))
            else:
                before = []
            history = history_of(sent, replies, provider.reference, before)
            before = history
            reply = ask(provider, ModelRequest("m", system, history, tools_of(exchange["request"])))
            body = server.requests[0].body
        if number:
            ours = split(body)[1]
            pairs.append(
                (form(ours[-len(sent) :] if "previous_response_id" in exchange["request"] else ours), form(sent))
            )
        if reply is None:
            break
        replies.append(reply)
    return pairs


def ask(provider: OpenAIProvider, request: ModelRequest) -> Reply | None:
    """The reply, or nothing where the recorded answer was a failure."""
    try:
        *_, reply = provider.stream(request)
    except ProviderError:
        return None
    finally:
        provider.close()
    assert isinstance(reply, Reply)
    return reply


@pytest.mark.parametrize("sequence", sequences(), ids=lambda sequence: sequence["id"])
def test_next_request_says_what_the_recorded_one_said(sequence: dict[str, Any]) -> None:
    pairs = replay(sequence)
    assert (
        pairs or sequence["rounds"][0]["expect"].get("error") or sequence["rounds"][0]["expect"]["finish"] == "queued"
    )
    different = any(ours != theirs for ours, theirs in pairs)
    if sequence["id"] not in DIFFERENCES:
        for ours, theirs in pairs:
            assert ours == theirs
    assert different == (sequence["id"] in DIFFERENCES)


def edited(sequence: dict[str, Any]) -> bool:
    """True where a recorded client returned some of a reply's calls and not the others."""
    for first, second in pairwise(sequence["rounds"]):
        made = {call["id"] for call in first["expect"]["calls"]}
        sent = [entry for entry in split(second["request"])[1] if by_model(entry)]
        back = {call["id"] for entry in sent for call in entry.get("tool_calls") or [{"id": entry.get("call_id")}]}
        if made & back and made - back:
            return True
    return False


def test_history_is_edited_where_the_recorded_client_did() -> None:
    assert {sequence["id"] for sequence in sequences() if edited(sequence)} == EDITED


def test_differences_are_one_class() -> None:
    assert {reason.partition(":")[0] for reason in DIFFERENCES.values()} == {"reasoning"}
