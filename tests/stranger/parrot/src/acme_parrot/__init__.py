"""A provider for Parrot, a made-up chat API: one POST, answered line by line as it comes, or by one line with all of it."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import httpx
from pydantic import BaseModel, ConfigDict, SecretStr

from hookloop_hookspecs import (
    CallDelta,
    Delta,
    Message,
    ModelRequest,
    Provider,
    ProviderError,
    ProviderTraits,
    Reply,
    Text,
    TextDelta,
    ToolCall,
    Usage,
)
from hookloop_hookspecs.entries import StopReason
from hookloop_hookspecs.redact import redact

TLS = ssl.create_default_context()  # reading all certificates for each client would take longer than a request
STOPS: dict[str, StopReason] = {"said": "end", "uses": "calls", "full": "length"}


class ParrotOptions(BaseModel):
    """`transport`: "stream" reads lines as they come, "whole" one. `timeout` is the longest silence, in seconds."""

    model_config = ConfigDict(extra="forbid")

    base_url: str = "http://127.0.0.1:8080"
    api_key: SecretStr = SecretStr("")
    transport: Literal["stream", "whole"] = "stream"
    timeout: float = 60.0


class Parrot(Provider):
    """Asks one Parrot server."""

    name = "parrot"
    traits = ProviderTraits(vision=False)
    Options = ParrotOptions

    def __init__(self, model: str, options: ParrotOptions | None = None) -> None:
        self.model = model
        self.options = to = options or ParrotOptions()
        key = {"Authorization": f"Bearer {to.api_key.get_secret_value()}"} if to.api_key else {}
        self._how: dict[str, Any] = {"base_url": to.base_url, "headers": key, "timeout": to.timeout, "verify": TLS}
        self._client = httpx.Client(**self._how)

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        """Ask the model; yields deltas, then the reply. Raises `ProviderError`."""
        reading = Reading()
        try:
            with self._client.stream("POST", "/talk", json=self._body(request)) as response:
                if response.is_error:
                    response.read()
                    raise refused(response)
                for line in response.iter_lines():
                    yield from reading.take(line)
        except httpx.HTTPError as error:
            raise broken(error) from error
        yield reading.reply()

    async def astream(self, request: ModelRequest) -> AsyncIterator[Delta | Reply]:
        """`stream` in an event loop."""
        reading = Reading()
        try:
            async with (
                httpx.AsyncClient(**self._how) as client,
                client.stream("POST", "/talk", json=self._body(request)) as response,
            ):
                if response.is_error:
                    await response.aread()
                    raise refused(response)
                async for line in response.aiter_lines():
                    for delta in reading.take(line):
                        yield delta
        except httpx.HTTPError as error:
            raise broken(error) from error
        yield reading.reply()

    def close(self) -> None:
        """Free the connections."""
        self._client.close()

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        tools = [{"name": t.name, "about": t.description, "input": json.loads(t.schema)} for t in request.tools]
        talk = [encoded(message) for message in request.messages]
        live = self.options.transport == "stream"
        return {"model": self.model, "brief": request.system, "talk": talk, "tools": tools, "live": live}


class Reading:
    """What came of an answer so far."""

    def __init__(self) -> None:
        self.text = ""
        self.uses: dict[int, ToolCall] = {}
        self.end: dict[str, Any] = {}

    def take(self, line: str) -> Iterator[Delta]:
        """The deltas of one line. Raises `ProviderError`."""
        try:
            data = json.loads(line)
        except ValueError as error:
            raise broken(error) from error
        if data.get("said"):
            self.text += data["said"]
            yield TextDelta(data["said"])
        for use in data.get("uses", ()):
            old = self.uses.get(use["slot"]) or ToolCall(use["id"], use["tool"], "")
            self.uses[use["slot"]] = ToolCall(old.id, old.name, old.raw + use["input"])
            yield CallDelta(use["slot"], old.id, old.name, use["input"])
        self.end = data if "end" in data else self.end

    def reply(self) -> Reply:
        """The whole answer. Raises `ProviderError` where its end never came."""
        if not self.end:
            raise broken(EOFError("the answer has no end"))
        spent = Usage(self.end["spent"]["in"], self.end["spent"]["out"], total=sum(self.end["spent"].values()))
        text = (Text(self.text),) if self.text else ()
        return Reply((*text, *self.uses.values()), STOPS[self.end["end"]], spent, raw_stop=self.end["end"])


def encoded(message: Message) -> dict[str, Any]:
    """A message as Parrot has it."""
    uses = [{"id": call.id, "tool": call.name, "input": call.raw} for call in message.calls]
    return {"who": message.role, "text": message.text, "uses": uses, "for": [r.call_id for r in message.results]}


def refused(response: httpx.Response) -> ProviderError:
    """The error for an answer that is none."""
    status = response.status_code
    text = redact(f"HTTP {status}: {response.text[:500]}")
    return ProviderError(text, provider="parrot", status=status, retryable=status == 429 or status >= 500)


def broken(error: Exception) -> ProviderError:
    """The error for a connection that failed, or an answer that is not whole."""
    return ProviderError(f"{type(error).__name__}: {error}", provider="parrot", kind="stream", retryable=True)
