"""The command `hookloop web`. The only module here that knows the engine; it uses its public names and nothing else."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from hookloop import Agent, Limits
from hookloop.trace import dump_event, read_trace
from hookloop_hookspecs import ConfigError, ModelRequest
from hookloop_hookspecs.events import CallPiece, Event, RequestSent, TextPiece, ThinkingPiece

from .agents import Told
from .console import ConsoleOptions
from .recorded import recorded
from .rooms import Rooms
from .serving import address, guard_for, listen, serve
from .site import Site, SiteOptions


def describe(event: Event, conversation: str, turn: str) -> Told:
    """An event as plain data, in the form and with the redaction of a trace."""
    at = time.time()
    if isinstance(event, TextPiece | ThinkingPiece):
        return Told(at, turn, event.kind, {"text": event.text, "round": event.round})
    if isinstance(event, CallPiece):
        return Told(at, turn, event.kind, {"id": event.id, "name": event.name, "round": event.round})
    data: dict[str, Any] = json.loads(dump_event(event, at, conversation, turn))
    for head in ("v", "at", "conversation", "turn", "kind"):
        data.pop(head, None)
    request: ModelRequest | None = event.request if isinstance(event, RequestSent) else None
    return Told(at, turn, event.kind, data, request)


def shown_limits(limits: Limits) -> Mapping[str, float | None]:
    """The limits that the page has gauges for."""
    shown = {"rounds": limits.rounds, "calls": limits.tool_calls, "tokens": limits.tokens, "cost": limits.cost}
    return {**shown, "seconds": limits.seconds}


def web(
    port: Annotated[int, typer.Option(help="The port; 0 takes a free one.")] = 8765,
    host: Annotated[str, typer.Option(help="Where to listen. Beyond this machine a token is needed.")] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    trace: Annotated[Path | None, typer.Option(help="A recorded trace to look at; no agent is made.")] = None,
    shared: Annotated[
        bool, typer.Option("--shared", help="Everybody sees all conversations, those of the terminal too.")
    ] = False,
    rate: Annotated[float, typer.Option(help="Requests a second that one client may make.", min=0.1)] = 50.0,
) -> None:
    """Open a page for the configured agent: chat, and the loop made visible."""
    guard = guard_for(host, os.environ, rate=rate)
    if trace is not None:
        options = SiteOptions("hookloop", str(trace.name), ConsoleOptions(readonly=True), guard, chat_api=False)
        site = Site(recorded(_lines(trace)), options)
    else:
        agent = Agent.from_config()
        console = ConsoleOptions(agent.config.model, shown_limits(agent.config.limits))
        site = Site(
            Rooms(agent, describe, shared=shared), SiteOptions(console=console, guard=guard), close=agent.aclose
        )
    bound = listen(host, port)
    url = address(bound, guard.token)
    print(f"hookloop web: {url}", flush=True)
    serve(site.finish(), bound, open_at="" if no_browser else url)


def _lines(file: Path) -> Iterator[tuple[str, Told]]:
    try:
        with file.open(encoding="utf-8") as stream:
            for line in read_trace(stream, str(file)):
                yield line.conversation, Told(line.at, line.turn, line.kind, line.data)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror or error}") from error
