"""What the server writes: steps of every kind, on a plain socket and through a plain HTTP client."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import urllib.parse
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from hookloop.testing import call, reply, say, think
from hookloop.testing.server import (
    DONE,
    Chunks,
    Cut,
    Delay,
    Deltas,
    Drop,
    ErrorEvent,
    Fail,
    Raw,
    Recorded,
    Sse,
    StrictServer,
    ant,
    calls,
    chunk,
    mstop,
    tc,
)
from hookloop_hookspecs import ProviderError, Usage

Json = dict[str, Any]
PATHS = {"messages": "/v1/messages", "chat": "/v1/chat/completions", "responses": "/v1/responses"}
APIS = list(PATHS)
HEADERS = {"authorization": "Bearer k", "anthropic-version": "2023-06-01", "content-type": "application/json"}
BODIES: dict[str, Json] = {
    "messages": {"model": "claude-sonnet-4-6", "max_tokens": 100, "messages": [{"role": "user", "content": "hi"}]},
    "chat": {"model": "gpt-4.1", "messages": [{"role": "user", "content": "hi"}]},
    "responses": {"model": "gpt-4.1", "input": "hi"},
}


@pytest.fixture
def server() -> Iterator[StrictServer]:
    with StrictServer() as running:
        yield running


def connect(server: StrictServer) -> http.client.HTTPConnection:
    return http.client.HTTPConnection("127.0.0.1", urllib.parse.urlsplit(server.url).port or 0)


def post(
    server: StrictServer, api: str, *, stream: bool = False, **more: Any
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = connect(server)
    try:
        body = {**BODIES[api], **({"stream": True} if stream else {}), **more}
        connection.request("POST", PATHS[api], json.dumps(body), HEADERS)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def events(body: bytes) -> list[Json]:
    """The data of the events, without the end mark."""
    lines = [line[6:] for line in body.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_requests_are_recorded(server: StrictServer, api: str, stream: bool) -> None:
    server.play("a")
    post(server, api, stream=stream)
    [request] = server.requests
    assert (request.api, request.path, request.stream) == (api, PATHS[api], stream)
    assert request.body == json.loads(request.raw)
    assert request.headers["authorization"] == "Bearer k"


@pytest.mark.parametrize("api", APIS)
def test_the_script_goes_on_whatever_api_is_asked_and_ends_loudly(server: StrictServer, api: str) -> None:
    server.play("first", say("second"))
    for other in APIS[:2]:
        assert post(server, other)[0].status == 200
    response, body = post(server, api)
    assert (response.status, server.refusals[-1].rule, server.left) == (500, "script_over", 0)
    assert "the script has 2 steps, and was asked for one more" in json.loads(body)["error"]["message"]
    assert response.headers["x-should-retry"] == "false"


def test_a_refused_request_takes_no_step(server: StrictServer) -> None:
    server.play("kept")
    assert post(server, "chat", tools=[])[0].status == 400
    assert (server.left, len(server.requests), len(server.refusals)) == (1, 2 - 1, 1)
    assert post(server, "chat")[0].status == 200


def test_a_server_that_is_not_strict_refuses_nothing() -> None:
    with StrictServer(["fine"], strict=False) as server:
        assert post(server, "chat", tools=[])[0].status == 200


@pytest.mark.parametrize(
    "raw", [b"{", b"[]", b'{"a": NaN}', b'{"a": "\\ud800"}', b"\xff", b'"' + b"[" * 20], ids=lambda raw: repr(raw[:12])
)
def test_what_is_no_json_object_in_utf_8_is_refused(server: StrictServer, raw: bytes) -> None:
    connection = connect(server)
    connection.request("POST", "/v1/messages", raw, HEADERS)
    assert connection.getresponse().status == 400
    connection.close()
    assert server.refusals[-1].rule == "json"


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_other_paths_are_not_found_and_the_connection_lives_on(server: StrictServer, method: str) -> None:
    server.play("alive")
    connection = connect(server)
    for headers, shape in (({}, {"error"}), ({"anthropic-version": "x"}, {"type", "error", "request_id"})):
        connection.request(method, "/v1/models", headers=headers)
        response = connection.getresponse()
        body = response.read()
        assert response.status == 404
        assert method == "HEAD" or set(json.loads(body)) == shape
    connection.request("POST", PATHS["chat"], json.dumps(BODIES["chat"]), HEADERS)
    assert connection.getresponse().status == 200
    connection.close()
    assert len(server.requests) == 1


def test_paths_may_have_a_prefix_and_a_query(server: StrictServer) -> None:
    server.play("azure")
    connection = connect(server)
    path = "/openai/deployments/x/chat/completions?api-version=1"
    connection.request("POST", path, json.dumps(BODIES["chat"]), HEADERS)
    assert connection.getresponse().status == 200
    connection.close()


def test_a_body_may_come_in_chunks(server: StrictServer) -> None:
    server.play("a")
    connection = connect(server)
    raw = json.dumps(BODIES["chat"]).encode()
    connection.request("POST", PATHS["chat"], iter([raw[:5], raw[5:]]), HEADERS, encode_chunked=True)
    assert connection.getresponse().status == 200
    connection.close()
    assert server.requests[0].raw == raw


@pytest.mark.parametrize(
    "junk",
    [
        b"\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET / HTTP/1.1\r\ncontent-length: 9\r\n\r\nx",
        b"POST",
        b"X / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ],
)
def test_junk_and_half_requests_harm_nobody(server: StrictServer, junk: bytes) -> None:
    port = urllib.parse.urlsplit(server.url).port
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(junk)
        client.shutdown(socket.SHUT_WR)
        assert client.recv(100) == b""
    server.play("alive")
    assert post(server, "chat")[0].status == 200
    assert server.departures == []


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("api", "kind"), [("messages", "rate_limit_error"), ("chat", "requests"), ("responses", "requests")]
)
def test_failures_have_the_shape_of_the_api(server: StrictServer, api: str, kind: str, stream: bool) -> None:
    server.play(Fail(429, "slow down", headers={"retry-after": "7"}))
    response, body = post(server, api, stream=stream)
    error = json.loads(body)["error"]
    assert (response.status, response.headers["retry-after"]) == (429, "7")
    assert (error["type"], error["message"]) == (kind, "slow down")
    assert response.headers["request-id" if api == "messages" else "x-request-id"].startswith("req_")
    assert server.refusals == []


def test_a_failure_may_have_any_body(server: StrictServer) -> None:
    server.play(Fail(502, body="<html>bad gateway</html>"), Fail(503, body=[1]))
    assert post(server, "chat")[1] == b"<html>bad gateway</html>"
    assert post(server, "chat")[1] == b"[1]"


@pytest.mark.parametrize("api", APIS)
def test_errors_inside_a_stream(server: StrictServer, api: str) -> None:
    server.play(*[ErrorEvent("Hello there", after=2, message="overloaded")] * 2)
    response, body = post(server, api, stream=True)
    listed = events(body)
    message = listed[-1]["message"] if api == "responses" else listed[-1]["error"]["message"]
    assert (response.status, len(listed), message) == (200, 3, "overloaded")
    assert post(server, api)[0].status == 529


def test_a_response_may_fail_inside_a_stream(server: StrictServer) -> None:
    server.play(ErrorEvent("Hello", after=2, form="failed", code="server_error"))
    last = events(post(server, "responses", stream=True)[1])[-1]
    assert (last["type"], last["response"]["status"]) == ("response.failed", "failed")
    assert (last["response"]["error"]["code"], last["sequence_number"]) == ("server_error", 2)


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_ends_too_early(server: StrictServer, api: str) -> None:
    server.play(Cut("Hello there, whoever you are", after=2, how="eof"))
    assert len(events(post(server, api, stream=True)[1])) == 2


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["reset", "close"])
def test_a_connection_that_breaks(server: StrictServer, how: Any, stream: bool) -> None:
    server.play(Cut("Hello there, whoever you are", 3, how))
    with pytest.raises((ConnectionResetError, http.client.IncompleteRead)):
        post(server, "chat", stream=stream)
    assert server.departures == []


def test_a_body_cut_at_a_byte(server: StrictServer) -> None:
    server.play(Cut("Hello", after=10, how="eof", unit="bytes"))
    assert post(server, "chat")[1] == b'{"id":"cha'


@pytest.mark.parametrize("step", [Drop(), ProviderError("gone", provider="x", kind="connection")])
def test_no_answer_at_all(server: StrictServer, step: Any) -> None:
    server.play(step)
    with pytest.raises(ConnectionError):
        post(server, "chat")


def test_errors_of_a_script_become_failures(server: StrictServer) -> None:
    limited = ProviderError("slow", provider="x", kind="rate_limit", retry_after=2.5)
    server.play(limited, ValueError("odd"))
    response, _ = post(server, "chat")
    assert (response.status, response.headers["retry-after"]) == (429, "2.5")
    assert post(server, "chat")[0].status == 500


def test_a_function_makes_the_step_from_the_request(server: StrictServer) -> None:
    def echo(request: Recorded) -> Any:
        return Deltas(request.body["messages"][-1]["content"], size=1)

    server.play(echo)
    listed = events(post(server, "chat", stream=True)[1])
    assert [event["choices"][0]["delta"].get("content") for event in listed] == ["", "h", "i", None]


@pytest.mark.parametrize("step", [lambda request: 1 / 0, object(), [object()]])
def test_a_step_that_fails_is_told_to_client_and_test(server: StrictServer, step: Any) -> None:
    server.play(step)
    assert post(server, "chat")[0].status == 500
    assert server.refusals[-1].rule == "step_failed"


def test_deltas_are_cut_where_asked(server: StrictServer) -> None:
    server.play(Deltas([say("abcdef"), call("f", '{"a":1}')], cuts=[2, 3]))
    deltas = [event["choices"][0]["delta"] for event in events(post(server, "chat", stream=True)[1])]
    assert [delta["content"] for delta in deltas if delta.get("content")] == ["ab", "c", "def"]
    arguments = [delta["tool_calls"][0]["function"]["arguments"] for delta in deltas if "tool_calls" in delta]
    assert arguments == ["", '{"', "a", '":1}']


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("api", APIS)
def test_network_chunks_may_end_anywhere(server: StrictServer, api: str, stream: bool) -> None:
    text = "héllo wörld, 你好 🎉"
    server.play(Chunks(text, size=1), Chunks(text, at=[3, 40, 41]), text)
    bodies = [post(server, api, stream=stream)[1] for _ in range(3)]
    assert len({_without_ids(body) for body in bodies}) == 1
    assert text[:5] in bodies[0].decode()


def _without_ids(body: bytes) -> str:
    return "".join(letter for letter in body.decode() if not letter.isdigit())


def test_chunks_are_chunks_on_the_wire(server: StrictServer) -> None:
    server.play(Chunks(Raw(200, {}, "é".encode()), size=1))
    port = urllib.parse.urlsplit(server.url).port
    raw = json.dumps(BODIES["chat"]).encode()
    with socket.create_connection(("127.0.0.1", port)) as client, client.makefile("rb") as answer:
        head = f"POST /v1/chat/completions HTTP/1.1\r\nauthorization: k\r\ncontent-length: {len(raw)}\r\n\r\n"
        client.sendall(head.encode() + raw)
        client.shutdown(socket.SHUT_WR)
        assert answer.read().endswith(b"\r\n\r\n1\r\n\xc3\r\n1\r\n\xa9\r\n0\r\n\r\n")


def test_every_answer_can_be_cut_by_the_server() -> None:
    with StrictServer(["hällo", "hällo"], chunks=2) as server:
        assert events(post(server, "messages", stream=True)[1])[-1] == {"type": "message_stop"}
        assert json.loads(post(server, "messages")[1])["content"][0]["text"] == "hällo"


def test_raw_answers_are_sent_as_they_are(server: StrictServer) -> None:
    server.replay(201, {"content-type": "text/plain", "x-odd": "1"}, b"anything at all", cuts=[3, 4])
    response, body = post(server, "chat")
    assert (response.status, body, response.headers["x-odd"]) == (201, b"anything at all", "1")


def test_events_are_sent_exactly_as_given(server: StrictServer) -> None:
    odd: list[Any] = [
        calls(tc(0, "c1", "f", ""), tc(None, args=None)),
        chunk({"content": "x"}, usage=None),
        b": hm\n\n",
        DONE,
    ]
    server.play(Sse(odd))
    body = post(server, "chat", stream=True)[1].decode()
    listed = events(body.encode())
    assert listed[0]["choices"][0]["delta"]["tool_calls"] == [
        {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}},
        {"function": {"arguments": None}},
    ]
    assert body.endswith(": hm\n\ndata: [DONE]\n\n")
    assert "event:" not in body


def test_named_events_have_their_name_and_a_whole_form(server: StrictServer) -> None:
    server.play(*[Sse([ant("ping"), mstop()], whole={"odd": True})] * 2)
    assert post(server, "messages", stream=True)[1].startswith(
        b'event: ping\ndata: {"type":"ping"}\n\nevent: message_stop\n'
    )
    assert json.loads(post(server, "messages")[1]) == {"odd": True}


def test_an_answer_waits_for_an_event(server: StrictServer) -> None:
    go = threading.Event()
    server.play(Delay(go, "late"))
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(post, server, "chat")
        with pytest.raises(TimeoutError):
            asked.result(0.1)
        go.set()
        assert asked.result(5)[0].status == 200


def test_the_first_events_come_before_the_wait(server: StrictServer) -> None:
    go = threading.Event()
    server.play(Delay(go, "abc", after=2))
    connection = connect(server)
    connection.request("POST", PATHS["chat"], json.dumps({**BODIES["chat"], "stream": True}), HEADERS)
    response = connection.getresponse()
    first = [response.readline() for _ in range(4)]
    assert b'"content":"abc"' in first[2]
    go.set()
    assert response.read().endswith(b"data: [DONE]\n\n")
    connection.close()


def test_seconds_may_be_waited_for_too(server: StrictServer) -> None:
    server.play(Delay(0.01, "soon"), Delay(0.01, Delay(0.01, "soon")))
    assert post(server, "chat")[0].status == 200
    assert post(server, "chat", stream=True)[0].status == 200


@pytest.mark.parametrize("after", [0, 1])
def test_a_client_that_leaves_is_noticed(server: StrictServer, after: int) -> None:
    never, noticed = threading.Event(), threading.Event()
    server.play(Delay(never, "abc", after=after))
    connection = connect(server)
    connection.request("POST", PATHS["chat"], json.dumps({**BODIES["chat"], "stream": True}), HEADERS)
    if after:
        connection.getresponse().close()
    connection.close()
    for _ in range(500):
        if server.departures or noticed.wait(0.01):
            break
    [departure] = server.departures
    assert departure.request is server.requests[0]
    assert (departure.sent > 0) == bool(after)


def test_a_client_that_leaves_a_long_answer_unread_is_noticed(server: StrictServer) -> None:
    server.play("x" * 20_000_000)
    connection = connect(server)
    connection.request("POST", PATHS["chat"], json.dumps(BODIES["chat"]), HEADERS)
    response = connection.getresponse()
    response.read(10)
    response.close()
    connection.close()
    for _ in range(500):
        if server.departures or threading.Event().wait(0.01):
            break
    assert len(server.departures) == 1


def test_leaving_the_block_ends_held_answers_and_all_threads() -> None:
    with StrictServer([Delay(threading.Event(), "never")]) as server:
        connection = connect(server)
        connection.request("POST", PATHS["chat"], json.dumps(BODIES["chat"]), HEADERS)
        while not server.requests:
            threading.Event().wait(0.005)
    with pytest.raises((http.client.HTTPException, ConnectionError)):
        connection.getresponse()
    connection.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("strict-server")]
    with pytest.raises(RuntimeError, match="not running"):
        _ = server.url


def test_many_clients_are_served_at_once(server: StrictServer) -> None:
    count = 60
    barrier = threading.Barrier(count)

    def together(request: Recorded) -> str:
        barrier.wait(20)
        return "met"

    server.play(*[together] * count)
    with ThreadPoolExecutor(count) as pool:
        answers = list(pool.map(lambda _: post(server, "chat")[0].status, range(count)))
    assert answers == [200] * count
    assert len(server.requests) == count


@pytest.mark.parametrize("api", APIS)
def test_unknown_usage_is_left_out_and_no_zero(server: StrictServer, api: str) -> None:
    server.play(reply("x", usage=Usage()))
    usage = json.loads(post(server, api)[1]).get("usage")
    assert not usage


def test_lone_surrogates_of_a_script_are_escaped(server: StrictServer) -> None:
    server.play("a\udc97")
    assert json.loads(post(server, "chat")[1])["choices"][0]["message"]["content"] == "a\udc97"


def test_calls_and_thinking_come_in_order_in_whole_and_stream(server: StrictServer) -> None:
    item: Any = [think("hm", "s1"), say("so"), call("f", {"a": 1}, id="t1")]
    server.play(item, item)
    whole = json.loads(post(server, "messages")[1])["content"]
    listed = events(post(server, "messages", stream=True)[1])
    opened = [event["content_block"]["type"] for event in listed if event["type"] == "content_block_start"]
    assert [block["type"] for block in whole] == opened == ["thinking", "text", "tool_use"]
    assert {"type": "signature_delta", "signature": "s1"} in [event.get("delta") for event in listed]


def test_a_large_answer_in_tiny_chunks_arrives_whole(server: StrictServer) -> None:
    text = "é" * 1000
    server.play(Chunks(Deltas(text, size=7), size=1))
    listed = events(post(server, "chat", stream=True)[1])
    assert "".join(event["choices"][0]["delta"].get("content") or "" for event in listed) == text
