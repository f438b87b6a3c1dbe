"""Images and files that no server would take: told in words, so that no later request is refused for them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest

from hookloop.testing import say
from hookloop.testing.server import StrictServer
from hookloop_hookspecs import File, Image, Message, ModelRequest, Text, ToolCall, ToolResult

Asking = Callable[..., ModelRequest]
Json = dict[str, Any]
PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n..").decode()
PDF = base64.b64encode(b"%PDF").decode()
ZIP = "application/zip"

both_apis = pytest.mark.parametrize("api", ["chat", "responses"])

LEFT: list[tuple[Image | File, str]] = [
    (Image("!!!not base64"), "[image left out: its data is not base64]"),
    (Image("abc"), "[image left out: its data is not base64]"),
    (Image("\u00e9\ud800"), "[image left out: its data is not base64]"),
    (Image(), "[image left out: it has no data]"),
    (Image(" \n"), "[image left out: it has no data]"),
    (Image(PNG, "image/bmp"), "[image left out: image/bmp is not taken here]"),
    (Image(PNG, "image/pngx"), "[image left out: image/pngx is not taken here]"),
    (Image(PNG, ""), "[image left out: no media type is not taken here]"),
    (Image(url="pictures/a.png"), "[image left out: its address is no URL]"),
    (Image(url="data:image/png,raw"), "[image left out: its address is no data URL in base64]"),
    (Image(url="data:image/png;base64,?"), "[image left out: its data is not base64]"),
    (File("?", "application/pdf", "a.pdf"), "[file a.pdf left out: its data is not base64]"),
    (File("?", "text/plain"), "[file left out: its data is not base64]"),
    (File("", "application/pdf"), "[file left out: it has no data]"),
    (File(PDF, ZIP, "a.zip"), "[file a.zip left out: application/zip is not taken here]"),
    (File(PDF, "audio/ogg"), "[file left out: audio/ogg is not taken here]"),
    (File(url="C:\\a.pdf"), "[file left out: its address is no URL]"),
]


def sent(way: Any, asking: Asking, api: str, part: Image | File, **options: Any) -> tuple[Any, Any]:
    """What stands for a part in a user's message, and behind a text in a result; the strict server took both."""
    history = [
        Message.user([Text("see"), part]),
        Message("assistant", (ToolCall("c1", "get"),)),
        Message.tool(ToolResult("c1", "get", (Text("got"), part))),
    ]
    with StrictServer([say("ok")], profile=options.get("profile")) as server:
        way.ask(server, asking(history), model="gpt-4.1", api=api, **options)
        assert not server.refusals
        body = server.requests[0].body
    if api == "responses":
        return body["input"][0]["content"][1], body["input"][-1]["output"][1:]
    told: list[Json] = body["messages"]
    return told[0]["content"][1], told[2:]


@both_apis
@pytest.mark.parametrize(("part", "text"), LEFT)
def test_F04_what_no_server_takes_is_told_in_words(
    way: Any, asking: Asking, api: str, part: Image | File, text: str
) -> None:
    asked, answered = sent(way, asking, api, part)
    kind = "text" if api == "chat" else "input_text"
    assert asked == {"type": kind, "text": text}
    whole = [{"role": "tool", "tool_call_id": "c1", "content": f"got\n{text}"}]
    assert answered == (whole if api == "chat" else [asked])


@both_apis
@pytest.mark.parametrize(
    "image",
    [
        Image(PNG),
        Image(PNG[:5] + "\r\n" + PNG[5:]),
        Image(PNG, "Image/PNG; charset=binary"),
        Image(url=f"data:image/png;base64,{PNG}"),
        Image(url=f"DATA:image/png;name=a;BASE64,{PNG}"),
    ],
)
def test_an_image_in_any_dress_is_one_data_url(way: Any, asking: Asking, api: str, image: Image) -> None:
    asked, _ = sent(way, asking, api, image)
    url = asked["image_url"]["url"] if api == "chat" else asked["image_url"]
    assert url == f"data:image/png;base64,{PNG}"


@both_apis
def test_an_images_usual_misnomer_is_understood(way: Any, asking: Asking, api: str) -> None:
    assert "data:image/jpeg;base64,/9j/" in json.dumps(sent(way, asking, api, Image("/9j/", "image/jpg")))


def test_servers_that_know_other_images_get_them(way: Any, asking: Asking) -> None:
    asked, _ = sent(way, asking, "chat", Image("Qk0=", "image/bmp"), profile="vllm")
    assert asked["image_url"]["url"] == "data:image/bmp;base64,Qk0="
    broken, _ = sent(way, asking, "chat", Image("?", "image/bmp"), profile="vllm")
    assert broken["text"] == "[image left out: its data is not base64]"


@pytest.mark.parametrize("profile", [None, "groq"])
def test_chat_gets_files_of_text_as_text(way: Any, asking: Asking, profile: str | None) -> None:
    options = {"profile": profile} if profile else {}
    file = File.of("h\u00e9llo".encode(), "text/x-python", "a.py")
    asked, answered = sent(way, asking, "chat", file, **options)
    assert asked == {"type": "text", "text": "a.py:\nh\u00e9llo"}
    assert answered[0]["content"] == "got\na.py:\nh\u00e9llo"
    assert sent(way, asking, "chat", File.of(b"{}", "application/json"), **options)[0]["text"] == "{}"


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("application/pdf", "application/pdf"),
        ("text/csv", "text/csv"),
        ("text/csv; charset=utf-8", "text/csv"),
        ("text/x-odd", "text/plain"),
        ("application/toml", "text/plain"),
        ("application/msword", "application/msword"),
    ],
)
def test_responses_gets_files_under_types_that_it_takes(way: Any, asking: Asking, kind: str, said: str) -> None:
    asked, answered = sent(way, asking, "responses", File(PDF, kind, "a"))
    assert asked == {"type": "input_file", "filename": "a", "file_data": f"data:{said};base64,{PDF}"}
    assert answered == [asked]


@both_apis
def test_a_broken_part_does_not_take_the_good_ones_along(way: Any, asking: Asking, api: str) -> None:
    parts: list[Image | File] = [Image("?"), Image(PNG), File(PDF, "application/pdf", "a.pdf")]
    with StrictServer([say("ok")]) as server:
        way.ask(server, asking([Message.user(parts)]), model="gpt-4.1", api=api)
        assert not server.refusals
        body = server.requests[0].body
    content = (body["messages"] if api == "chat" else body["input"])[0]["content"]
    assert [part["type"].removeprefix("input_") for part in content] == [
        "text",
        "image_url" if api == "chat" else "image",
        "file",
    ]
