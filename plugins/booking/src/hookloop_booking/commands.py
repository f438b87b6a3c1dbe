"""The commands `hookloop demo`, a page, and `hookloop demo-cli`, the same in the terminal.

The only module here that knows the engine; it uses its public names and nothing else.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, TextIO

import typer

from hookloop import Agent
from hookloop_prompt_log import PromptLog

from .plugin import BookingOptions, BookingPlugin
from .rules import BookingRules
from .service import BookingService

MODELS: Final = (
    ("OPENAI_API_KEY", "openai:gpt-4.1-mini"),
    ("ANTHROPIC_API_KEY", "anthropic:claude-sonnet-4-6"),
    ("DEEPSEEK_API_KEY", "deepseek:deepseek-chat"),
)
"""Which model is asked when which key is set; the first that is set decides."""

OFFLINE: Final = "offline:rules"

CONVERSATION: Final = (
    "What can you do?",
    "I want to book a ticket",
    "还有什么票？",
    "book Shanghai to Hangzhou",
    "list my bookings",
    "cancel G456",
)

Db = Annotated[
    str,
    typer.Option(envvar="HOOKLOOP_BOOKING_DB", help="Where the bookings are: an SQLite file, or any SQLAlchemy URL."),
]


def choose_model(environment: Mapping[str, str]) -> str:
    """The reference of the model to ask: the configured one, a real one where its key is set, else the offline rules."""
    configured = environment.get("HOOKLOOP_MODEL", "").strip()
    return configured or next((model for key, model in MODELS if environment.get(key, "").strip()), OFFLINE)


def play(agent: Agent, out: TextIO, conversation: str = "demo") -> None:
    """Say each line of `CONVERSATION` to the agent and print the answers."""
    for line in CONVERSATION:
        print(f"\n>>> {line}", file=out)
        outcome = agent.run(line, conversation=conversation)
        print(f"\n<<< {outcome.text}", file=out)


def show(service: BookingService, out: TextIO) -> None:
    """Print what the database holds."""
    print("\nThe database now holds:", file=out)
    for ticket in service.tickets():
        print(f"  {ticket.id}  {ticket.status:<6}  {ticket.route}", file=out)


def demo_cli(db: Db = "booking.db") -> None:
    """Play a booking conversation in the terminal and print what the loop does."""
    url = _url(db)
    _print_whatever_comes(sys.stdout)
    model = choose_model(os.environ)
    service = BookingService(url)
    print(f"Model: {model}" + (" (no API key is set, so simple rules answer)" if model == OFFLINE else ""))
    try:
        with Agent(model, plugins=_plugins(BookingPlugin(service=service), model, sys.stdout)) as agent:
            play(agent, sys.stdout)
        show(service, sys.stdout)
    finally:
        service.close()


def demo(
    port: Annotated[int, typer.Option(help="The page's port; 0 takes a free one.")] = 8000,
    host: Annotated[str, typer.Option(help="Where to listen. Beyond this machine a token is needed.")] = "127.0.0.1",
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    db: Db = "booking.db",
    memory: Annotated[
        str, typer.Option(envvar="HOOKLOOP_BOOKING_MEMORY", help="Where the conversations are kept.")
    ] = "sqlite:///booking-chats.db",
    approve: Annotated[bool, typer.Option("--approve", help="Booking and cancelling wait for your approval.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print no log of the loop.")] = False,
    rate: Annotated[float, typer.Option(help="Requests a second that one client may make.", min=0.1)] = 50.0,
) -> None:
    """Open the booking desk in a browser, with the loop made visible."""
    from hookloop_web import Rooms, address, listen, serve  # the terminal demo does without
    from hookloop_web.commands import describe, shown_limits
    from hookloop_web.console import ConsoleOptions
    from hookloop_web.serving import guard_for

    from .page import EXAMPLES, booking_site

    url = _url(db)
    _print_whatever_comes(sys.stdout)
    guard = guard_for(host, os.environ, rate=rate)
    bound = listen(host, port)
    model = choose_model(os.environ)
    service = BookingService(url)
    options = BookingOptions(url=url, approve=["book", "cancel"] if approve else [])
    plugins = _plugins(BookingPlugin(options, service=service), model, None if quiet else sys.stdout)
    agent = Agent(model, plugins=plugins, memory=[memory])
    console = ConsoleOptions(model, shown_limits(agent.config.limits), EXAMPLES)
    site = booking_site(Rooms(agent, describe), service, console, guard, agent.aclose)
    here = address(bound, guard.token)
    print(f"Booking desk: {here}  (model: {model}; Ctrl-C ends it)", flush=True)
    serve(site.finish(), bound, open_at="" if no_browser else here)


def _plugins(booking: BookingPlugin, model: str, log: TextIO | None) -> list[Any]:
    rules = [] if model.startswith("offline:") else [BookingRules()]
    return [booking, *rules, *([PromptLog(stream=log)] if log is not None else [])]


def _url(db: str) -> str:
    """The database's URL. Raises `typer.BadParameter` for a file in a folder that there is not."""
    if "://" in db:
        return db
    if not Path(db).absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(Path(db).parent)!r}", param_hint="--db")
    return f"sqlite:///{db}"


def _print_whatever_comes(out: TextIO) -> None:
    """A terminal that lacks Chinese letters shows their codes instead of ending the demo."""
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")
