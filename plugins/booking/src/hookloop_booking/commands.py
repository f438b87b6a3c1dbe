"""The command `hookloop demo`: a booking conversation in the terminal, with everything that the loop does printed.

The only module here that knows the engine; it uses its public names and nothing else.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, TextIO

import typer

from hookloop import Agent
from hookloop_prompt_log import PromptLog

from .plugin import BookingPlugin
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


def choose_model(environment: Mapping[str, str]) -> str:
    """The reference of the model to ask: a real one where its key is set, else the offline rules."""
    return next((model for key, model in MODELS if environment.get(key, "").strip()), OFFLINE)


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


def demo_cli(
    db: Annotated[str, typer.Option(help="The SQLite file that keeps the bookings.")] = "booking.db",
) -> None:
    """Play a booking conversation in the terminal and print what the loop does."""
    if not Path(db).absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {str(Path(db).parent)!r}", param_hint="--db")
    _print_whatever_comes(sys.stdout)
    model = choose_model(os.environ)
    service = BookingService(f"sqlite:///{db}")
    print(f"Model: {model}" + (" (no API key is set, so simple rules answer)" if model == OFFLINE else ""))
    try:
        with Agent(model, plugins=[BookingPlugin(service=service), PromptLog(stream=sys.stdout)]) as agent:
            play(agent, sys.stdout)
        show(service, sys.stdout)
    finally:
        service.close()


def demo(
    port: Annotated[int, typer.Option(help="The page's port; the demo in the terminal has no page.")] = 8000,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Open no browser.")] = False,
    db: Annotated[str, typer.Option(help="The SQLite file that keeps the bookings.")] = "booking.db",
) -> None:
    """Play a booking conversation and show what the loop does."""
    demo_cli(db)


def _print_whatever_comes(out: TextIO) -> None:
    """A terminal that lacks Chinese letters shows their codes instead of ending the demo."""
    if isinstance(out, io.TextIOWrapper):
        out.reconfigure(errors="backslashreplace")
