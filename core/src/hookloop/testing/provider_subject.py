"""What the checks of a provider work with: requests to ask, and asking in all ways against a server of this machine."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeAlias, TypeVar

from hookloop_hookspecs import Message, ModelRequest, ProviderError, Reply, Text, ToolCall, ToolResult, ToolSpec

from .endpoint import Endpoint

T = TypeVar("T")
Make: TypeAlias = "Callable[[str, str], Any]"
"""A provider from the server's URL and a transport."""
PATIENCE: Final = 20.0
"""Seconds after which a provider hangs."""
SECRET: Final = "sk-checked-0123456789abcdef"
"""A key that must stand in no error; give it to the provider."""

TEXT: Final = "Grüße, 世界 🌍!\n\n  A second paragraph, long enough to come in several pieces."
"""A text of several scripts, long enough to come in several pieces."""
TOOL: Final = ToolSpec(
    "edit",
    "Mtool edits a file.",
    '{"type":"object","properties":{"path":{"type":"string","description":"Mschema"}},"required":["path"]}',
)
MARKS: Final = ("Malpha", "Mbeta", "Mgamma", "Mdelta", "Mepsilon", "Mzeta")
"""Words in the messages of `conversation`, in order."""


def asks(*messages: Message, tools: Sequence[ToolSpec] = (TOOL,), system: str = "", **more: Any) -> ModelRequest:
    """A request with these messages."""
    return ModelRequest(
        "", system, messages or (Message.user("Hello."),), tuple(tools), conversation="c", turn="t", **more
    )


def conversation() -> list[Message]:
    """A user's question, a call, its result, the answer, and another question."""
    call = ToolCall.of("edit", {"path": "Mgamma"}, "c1")
    return [
        Message.user("Malpha: change it."),
        Message.assistant([Text("Mbeta: I shall."), call]),
        Message.tool(answer("c1", "Mdelta: changed.")),
        Message.assistant("Mepsilon: it is done."),
        Message.user("Mzeta: and now?"),
    ]


def pairs(first: str, second: str) -> list[Message]:
    """Two calls, whose results come in this order of ids."""
    calls = [ToolCall.of("edit", {"path": path}, id) for id, path in (("c1", "one"), ("c2", "two"))]
    results = [Message.tool(answer(id, text)) for id, text in ((first, "Mone"), (second, "Mtwo"))]
    return [Message.user("Change both."), Message.assistant(calls), *results, Message.user("And now?")]


def answer(id: str, text: str) -> ToolResult:
    """The result of a call of `edit`."""
    return ToolResult(id, "edit", (Text(text),))


@dataclass
class Asked:
    """What asking came to: what the stream yielded, what it raised, and the bodies that reached the server."""

    items: list[Any] = field(default_factory=list)
    error: BaseException | None = None
    bodies: list[Any] = field(default_factory=list)

    @property
    def reply(self) -> Reply:
        """The reply. Fails where there is none."""
        assert self.error is None, f"it raised {type(self.error).__name__}: {self.error}"
        replies = [item for item in self.items if isinstance(item, Reply)]
        assert replies, "the stream ended without a Reply"
        return replies[-1]

    @property
    def body(self) -> str:
        """The last request's body as JSON text."""
        assert self.bodies, f"no request reached the server ({self.error!r})"
        return json.dumps(self.bodies[-1], ensure_ascii=False)


class ProviderSubject:
    """A provider under check."""

    def __init__(self, make: Make, serve: Callable[[], Endpoint], transports: Sequence[str]) -> None:
        self.make = make
        self.serve = serve
        self.transports = tuple(transports)

    @contextmanager
    def provider(self, url: str, transport: str = "") -> Iterator[Any]:
        """A provider that asks this server, closed afterwards."""
        made = self.make(url, transport or self.transports[0])
        try:
            yield made
        finally:
            _close(made)

    @cached_property
    def ways(self) -> list[str]:
        """`stream` and `astream`, as far as the provider has them."""
        with self.provider("http://127.0.0.1:9") as made:
            return [way for way in ("stream", "astream") if callable(getattr(made, way, None))]

    def ask(self, request: ModelRequest, *steps: Any, way: str = "", transport: str = "") -> Asked:
        """Ask a server that plays `steps`."""
        with self.serve() as server:
            server.play(*steps)
            asked = self.ask_at(server.url, request, way, transport)
            asked.bodies = [one.body for one in server.requests]
        return asked

    def ask_at(self, url: str, request: ModelRequest, way: str = "", transport: str = "") -> Asked:
        """Ask whatever is at this URL."""
        way = way or self.ways[0]
        with self.provider(url, transport) as made:
            return within(lambda: read(made, request) if way == "stream" else asyncio.run(aread(made, request)), way)

    def both(self) -> list[tuple[str, str]]:
        """All ways with all transports."""
        return [(way, transport) for way in self.ways for transport in self.transports]


def read(provider: Any, request: ModelRequest) -> Asked:
    """Read a stream to its end."""
    asked = Asked()
    try:
        for item in provider.stream(request):
            asked.items.append(item)
    except Exception as error:  # what it raises is what the checks look at
        asked.error = error
    return asked


async def aread(provider: Any, request: ModelRequest) -> Asked:
    """Read an async stream to its end, and close what async calls hold."""
    asked = Asked()
    try:
        async for item in provider.astream(request):
            asked.items.append(item)
    except Exception as error:  # what it raises is what the checks look at
        asked.error = error
    await aclose(provider)
    return asked


async def aclose(provider: Any) -> None:
    """Free what async calls hold."""
    if callable(getattr(provider, "aclose", None)):
        await provider.aclose()


def _close(provider: Any) -> None:
    if callable(getattr(provider, "close", None)):
        provider.close()


def within(does: Callable[[], T], what: str) -> T:
    """Do something that might hang. Raises `AssertionError` where it does."""
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(does())
        except BaseException as error:  # raised again below, on the caller's thread
            errors.append(error)

    thread = threading.Thread(target=run, name="provider-check", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert not thread.is_alive(), f"{what} did not come back within {PATIENCE:g} s"
    if errors:
        raise errors[0]
    return results[0]


def provider_error(asked: Asked, what: str) -> ProviderError:
    """The error that asking came to, which must be a `ProviderError`."""
    assert asked.error is not None, f"{what}: no error was raised, and the stream ended with {asked.items[-1:]!r:.80}"
    said = f"{type(asked.error).__name__}: {asked.error}"
    assert isinstance(asked.error, ProviderError), f"{what}: it raised {said}; a provider raises ProviderError alone"
    return asked.error


__all__ = ["MARKS", "SECRET", "TOOL", "Asked", "Make", "ProviderSubject"]
