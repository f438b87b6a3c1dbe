"""CPU of whole turns through the real SDKs, as ratios to a hand-written loop on the openai SDK, in one run.

The server runs in a process of its own, so that only the client's CPU is counted.
"""

from __future__ import annotations

import json
import multiprocessing as mp
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import openai
from hookloop import Agent, Limits, provider, tool
from hookloop_hookspecs import hookimpl

FREE = Limits(rounds=None, tool_calls=None, per_tool=None)
ALLOWED = {10: 0.4, 50: 0.2, 200: 0.08}
"""Hookloop's CPU as a share of the hand-written loop's, by rounds."""
PER_CHUNK = 0.5
TEXT = "The train to Shanghai leaves at nine. "


class Handler(BaseHTTPRequestHandler):
    """Calls `edit` until the conversation has `rounds` results (the model's name says how many), then answers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        kind, _, number = body["model"].partition("-")
        if kind == "chunks":
            self._answer([{"content": "word "}] * int(number), "stop", body.get("stream"))
            return
        done = sum(message["role"] == "tool" for message in body["messages"])
        if done >= int(number):
            self._answer([{"content": "done"}], "stop", body.get("stream"))
            return
        call = {
            "index": 0,
            "id": f"call_{done}",
            "type": "function",
            "function": {"name": "edit", "arguments": '{"path": "a.py"}'},
        }
        self._answer([{"tool_calls": [call]}], "tool_calls", body.get("stream"))

    def _answer(self, deltas: list[dict[str, Any]], finish: str, stream: bool | None) -> None:
        if not stream:
            self._send("application/json", json.dumps(_whole(deltas, finish)).encode())
            return
        chunks = [_chunk(delta, None) for delta in deltas] + [_chunk({}, finish)]
        lines = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
        self._send("text/event-stream", (lines + "data: [DONE]\n\n").encode())

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def _chunk(delta: dict[str, Any], finish: str | None) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def _whole(deltas: list[dict[str, Any]], finish: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, **deltas[0]}
    for call in message.get("tool_calls", []):
        call.pop("index")
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def _serve(port: Any) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    port.put(server.server_port)
    server.serve_forever()


@contextmanager
def serving() -> Iterator[str]:
    """The server, in a process of its own."""
    context = mp.get_context("spawn")
    port = context.Queue()
    process = context.Process(target=_serve, args=(port,), daemon=True)
    process.start()
    yield f"http://127.0.0.1:{port.get()}/v1"
    process.terminate()
    process.join()


@tool
def edit(path: str) -> str:
    """Edit a file."""
    return TEXT * 5


def by_hand(url: str, rounds: int) -> float:
    """The loop that everybody writes, on the SDK's typed methods."""
    client = openai.OpenAI(api_key="k", base_url=url)
    schema = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
    tools: Any = [
        {"type": "function", "function": {"name": "edit", "description": "Edit a file.", "parameters": schema}}
    ]
    messages: list[Any] = [{"role": "user", "content": "go"}]
    client.chat.completions.create(model="calls-0", messages=messages)  # the connection is made
    began = time.process_time()
    while True:
        answer = client.chat.completions.create(model=f"calls-{rounds}", messages=messages, tools=tools)
        message = answer.choices[0].message
        messages.append(message)
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            result = edit(**json.loads(call.function.arguments))  # type: ignore[union-attr]  # our server sends functions
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    spent = time.process_time() - began
    client.close()
    return spent


def hookloop(url: str, model: str, transport: str = "whole") -> float:
    """The same turn with hookloop, through the same SDK."""
    made = provider(f"openai:{model}", api_key="k", base_url=url, api="chat", transport=transport)
    with Agent(made, tools=[edit], limits=FREE) as agent:
        agent.run("warm up")  # the client and its connection are made at the first turn
        began = time.process_time()
        agent.run("go")
        return time.process_time() - began


def chunks_by_hand(url: str, chunks: int) -> float:
    """Reading a stream with the SDK's typed iterator."""
    client = openai.OpenAI(api_key="k", base_url=url)
    began = time.process_time()
    stream = client.chat.completions.create(
        model=f"chunks-{chunks}", messages=[{"role": "user", "content": "go"}], stream=True
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in stream)
    spent = time.process_time() - began
    assert len(text) == 5 * chunks
    client.close()
    return spent


class Adds:
    """Injects in every round."""

    name = "adds"

    @hookimpl
    def next_instructions(self, turn: Any) -> str:
        return f"note {turn.round}"


def prefix_share(url: str) -> float:
    """The share of all input of 50 rounds that a prefix cache would serve: bytes equal to the request before."""
    from hookloop_hookspecs.events import RequestSent

    sizes: list[list[int]] = []

    class Watch:
        name = "watch"

        @hookimpl
        def on_event(self, event: Any) -> None:
            if isinstance(event, RequestSent):
                sizes.append([len(repr(message.content)) for message in event.request.messages])

    made = provider("openai:calls-50", api_key="k", base_url=url, api="chat")
    with Agent(made, tools=[edit], plugins=[Adds(), Watch()], limits=FREE) as agent:
        agent.run("go")
    cached = sum(sum(before) for before in sizes[:-1])
    return cached / sum(sum(after) for after in sizes)


def best(measure: Callable[[], float], times: int) -> float:
    """The least disturbed of several measurements."""
    return min(measure() for _ in range(times))


def main() -> None:
    """Print a table."""
    with serving() as url:
        hookloop(url, "calls-2")
        by_hand(url, 2)
        print("CPU of a turn, milliseconds: hookloop, by hand, ratio (allowed)")
        for rounds, allowed in ALLOWED.items():
            times = 3 if rounds > 100 else 5
            ours = best(partial(hookloop, url, f"calls-{rounds}"), times)
            theirs = best(partial(by_hand, url, rounds), min(times, 3))
            print(f"  {rounds:3} rounds: {ours * 1e3:8.1f} {theirs * 1e3:8.1f}   {ours / theirs:.3f} ({allowed})")
        ours = best(lambda: hookloop(url, "chunks-5000", "stream"), 5) / 5000 * 1e6
        theirs = best(lambda: chunks_by_hand(url, 5000), 3) / 5000 * 1e6
        print(f"CPU of a streamed chunk, microseconds: {ours:.1f} {theirs:.1f}   {ours / theirs:.3f} ({PER_CHUNK})")
        print(f"share of input a prefix cache would serve over 50 rounds: {prefix_share(url):.3f} (at least 0.95)")


if __name__ == "__main__":
    main()
