"""CPU of whole turns through the real SDKs, as ratios to a hand-written loop on the openai SDK, in one run.

The server runs in a process of its own, so that only the client's CPU is counted. Also the share of a long turn's input
that a prefix cache would serve, from the bodies that a server received.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing as mp
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise, takewhile
from typing import Any

import openai
from hookloop import Agent, Limits, provider, tool
from hookloop.testing import call as asks
from hookloop.testing import say
from hookloop.testing.server import StrictServer
from hookloop_hookspecs import hookimpl

FREE = Limits(rounds=None, tool_calls=None, per_tool=None)
ALLOWED = {10: 0.4, 50: 0.2, 200: 0.08}
"""Hookloop's CPU as a share of the hand-written loop's, by rounds."""
PER_CHUNK = 0.5
ROUNDS = 50
SHARE = 0.95
LOOKBACK = 20
"""How many blocks, its own among them, a cache mark reaches back to find what an earlier request wrote."""
RULES = "You review source files one by one. Report what you find, and be brief. "
TEXT = "The train to Shanghai leaves at nine. "


class Handler(BaseHTTPRequestHandler):
    """Calls `edit` until the conversation has `rounds` results (the model's name says how many), then answers."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1
    # else each answer waits 40 ms for an acknowledgement, and caches are cold when it comes
    disable_nagle_algorithm = True

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
    """Injects in every round, at each of the three places where that can be done."""

    name = "adds"

    @hookimpl
    def before_round(self, turn: Any) -> str:
        return f"This is round {turn.round}; the user is waiting."

    @hookimpl
    def after_tool(self, turn: Any) -> str:
        return f"The checks of round {turn.round} passed: 12 files, no finding, nothing left to format."

    @hookimpl
    def next_instructions(self, turn: Any) -> str:
        return f"Note {turn.round}: go on with the next file."


@tool
def inspect(path: str) -> str:
    """Inspect a file and report what stands in it."""
    return "".join(f"{path}:{line}: {TEXT}\n" for line in range(8))


def wire_bodies(reference: str, **options: Any) -> list[dict[str, Any]]:
    """The bodies that a server received in a turn of `ROUNDS` requests with a plugin that injects."""
    calls = [[asks("inspect", {"path": f"src/part_{number}.py"}, id=f"call_{number}")] for number in range(ROUNDS - 1)]
    with StrictServer([*calls, say("done")]) as server:
        address = server.url if reference.startswith("anthropic") else f"{server.url}/v1"
        made = provider(reference, api_key="k", base_url=address, **options)
        with Agent(made, tools=[inspect], plugins=[Adds()], instructions=RULES, limits=FREE) as agent:
            agent.run("Go through all files.")
        assert not server.refusals
        assert len(server.requests) == ROUNDS
        assert all(compact(sent.body).encode() == sent.raw for sent in server.requests)  # pieces below are bytes sent
        return [sent.body for sent in server.requests]


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def pieces(body: dict[str, Any]) -> Iterator[tuple[bytes, bool]]:
    """The input in the order in which a prefix cache reads it, in pieces; whether each one carries a cache mark.

    Tools come first, then system text, then messages (items, blocks). A mark is no content: it only says where a cache
    may write and look, so a mark that moves changes nothing that was said before.
    """
    said = [*body.get("tools", []), *body.get("system", []), *filter(None, [body.get("instructions")])]
    for message in body.get("messages") or body["input"]:
        split = isinstance(message.get("content"), list) and body.get("system")
        said += [{"role": message["role"], **block} for block in message["content"]] if split else [message]
    for piece in said:
        marked = isinstance(piece, dict) and "cache_control" in piece
        plain = {key: value for key, value in piece.items() if key != "cache_control"} if marked else piece
        yield compact(plain).encode(), marked


def equal_share(bodies: list[dict[str, Any]]) -> float:
    """The share of all input that stood at the beginning of the request before, byte for byte."""
    texts = [[text for text, _ in pieces(body)] for body in bodies]
    equal = 0
    for before, after in pairwise(texts):
        same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
        equal += sum(len(text) for text, _ in same)
    return equal / sum(len(text) for request in texts for text in request)


def marked_share(bodies: list[dict[str, Any]]) -> float:
    """The share of all input that a cache serves which writes at marks only, and looks back from them `LOOKBACK` blocks."""
    written: set[bytes] = set()
    served = total = 0
    for body in bodies:
        ends, marks, digest = [], [], hashlib.sha256()
        size = 0
        for place, (text, marked) in enumerate(pieces(body)):
            digest.update(text)
            size += len(text)
            ends.append((digest.digest(), size))
            marks += [place] if marked else []
        near = [end for mark in marks for end in ends[max(0, mark - LOOKBACK + 1) : mark + 1]]
        served += max((size for key, size in near if key in written), default=0)
        written |= {ends[mark][0] for mark in marks}
        total += size
    return served / total


def print_shares() -> None:
    """One line for each wire: the share of the input of a long turn that a prefix cache would serve."""
    print(f"share of input that a prefix cache would serve over {ROUNDS} rounds, with three injections in each:")
    for name, reference, options, measure in WIRES:
        bodies = wire_bodies(reference, **options)
        sizes = [sum(len(text) for text, _ in pieces(body)) for body in bodies]
        best_of_all = sum(sizes[:-1]) / sum(sizes)  # where each request begins with the whole one before
        print(f"  {name:40} {measure(bodies):.3f} (asked {SHARE}) of at most {best_of_all:.3f}")


WIRES: list[tuple[str, str, dict[str, Any], Callable[[list[dict[str, Any]]], float]]] = [
    ("openai chat, equal bytes", "openai:gpt-4.1", {"api": "chat"}, equal_share),
    ("openai responses, equal bytes", "openai:gpt-5.4", {"api": "responses"}, equal_share),
    ("anthropic messages, equal bytes", "anthropic:claude-sonnet-4-6", {}, equal_share),
    ("anthropic messages, hit by its marks", "anthropic:claude-sonnet-4-6", {}, marked_share),
]


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
    print_shares()


if __name__ == "__main__":
    main()
