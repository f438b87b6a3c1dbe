"""`hookloop run` and `hookloop chat`: the configured agent, asked once or typed to by hand."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final

import typer

from hookloop.config import load_config
from hookloop_hookspecs import Approve, ConfigError, Deny, HookloopError, Outcome, PendingCall
from hookloop_hookspecs.redact import redact

from .terminal import err, out, print_json, wrapped
from .view import TurnView

if TYPE_CHECKING:
    from hookloop import Agent
    from hookloop.drivers.sync import SyncRun

EXIT_CODES: Final = {"done": 0, "failed": 1, "stopped": 3, "limit": 3, "suspended": 4, "cancelled": 130}
NO_MODEL: Final = (
    'no model is given; write model = "openai:gpt-4.1" or another into hookloop.toml, or give --model openai:gpt-4.1'
)
PROMPT: Final = "› "
HELP: Final = "/quit ends, /new starts another, Ctrl-C cancels the turn"

Model = Annotated[str | None, typer.Option("--model", "-m", help="The model, in place of the configured one.")]
Conversation = Annotated[str | None, typer.Option("--conversation", "-C", help="The conversation to go on with.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the answer and warnings.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module."""
    app.command("chat")(chat)
    app.command("run")(run)


def run(
    prompt: Annotated[list[str] | None, typer.Argument(help="What to say; left out or `-`: read from stdin.")] = None,
    model: Model = None,
    conversation: Conversation = None,
    quiet: Quiet = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON, and nothing else.")] = False,
) -> None:
    """Ask once and print the answer as it comes."""
    text = _prompt(prompt)
    with open_agent(model) as agent:
        outcome = _quietly(agent, text, conversation) if as_json else _aloud(agent, text, conversation, quiet)
    if as_json:
        print_json(as_data(outcome))
    raise typer.Exit(EXIT_CODES[outcome.status])


def chat(model: Model = None, conversation: Conversation = None, quiet: Quiet = False) -> None:
    """Talk to the agent, line by line."""
    with open_agent(model) as agent:
        session = Chat(agent, conversation or new_conversation(), quiet)
        session.go()
    if session.failed:
        raise typer.Exit(EXIT_CODES["failed"])


def open_agent(model: str | None = None) -> Agent:
    """The agent of the configuration. Raises `ConfigError`."""
    from hookloop import Agent  # only commands that talk load the engine

    config = load_config(None, os.environ, options={"--model": ("model", model)} if model else {})
    if not config.model:
        raise ConfigError(NO_MODEL)
    return Agent(config=config)


def new_conversation() -> str:
    """An id that nobody else has."""
    return f"chat-{uuid.uuid4().hex[:12]}"


class Chat:
    """One session at the terminal. `failed`: the last turn of its conversation ended in an error."""

    def __init__(self, agent: Agent, conversation: str, quiet: bool, ask: Callable[[str], str] = input) -> None:
        self.agent = agent
        self.conversation = conversation
        self.quiet = quiet
        self.ask = ask
        self.console = out()
        self.failed = False

    def go(self) -> None:
        """Read and answer lines until the end of input or `/quit`."""
        if sys.stdin.isatty():
            with suppress(ImportError):  # not everywhere; with it `input` edits lines and remembers them
                import_module("readline")
        self._help()
        while (line := self._line()) is not None:
            if line == "/new":
                self.conversation, self.failed = new_conversation(), False
                self._help()
            elif line.startswith("/"):
                if line != "/help":
                    wrapped(self.console, f"there is no command {line.split()[0]}", 0, "yellow")
                self._help()
            elif line:
                self._say(line)

    def _help(self) -> None:
        wrapped(self.console, f"conversation {self.conversation}", 0, "dim")
        wrapped(self.console, HELP, 0, "dim")

    def _line(self) -> str | None:
        while True:
            try:
                line = self.ask(PROMPT if sys.stdin.isatty() else "").strip()
            except EOFError:
                return None
            except KeyboardInterrupt:
                self.console.print()
                self._help()
                continue
            return None if line in ("/quit", "/exit") else line

    def _say(self, line: str) -> None:
        """One turn; whatever happens to it, the session goes on."""
        self.failed = False
        try:
            outcome = watch(self.agent.stream(line, conversation=self.conversation), self._view())
            while outcome.pending:
                outcome = self._resume(outcome)
        except KeyboardInterrupt:
            self.console.print("\ncancelled", style="yellow")
        except HookloopError as error:
            self.failed = True
            wrapped(self.console, " ".join(redact(f"{type(error).__name__}: {error}").split()), 0, "red")

    def _view(self) -> TurnView:
        return TurnView(self.console, self.console, quiet=self.quiet, flow=True)

    def _resume(self, outcome: Outcome) -> Outcome:
        decisions = {pending.id: self._decide(pending) for pending in outcome.pending}
        return watch(self.agent.resume_stream(self.conversation, decisions), self._view())

    def _decide(self, pending: PendingCall) -> Approve | Deny:
        if str(pending.arguments) not in pending.question:
            wrapped(self.console, f"{pending.name} {pending.arguments}", 0, "cyan")
        wrapped(self.console, f"{pending.question} (y = yes; anything else is the reason why not)", 0)
        answer = self._line() or "by the user"
        return Approve() if answer.lower() in ("y", "yes") else Deny(answer)


def watch(run: SyncRun, view: TurnView) -> Outcome:
    """Show a turn while it runs; its outcome. Raises what ended it, where that was an error."""
    try:
        with run as events:
            for event in events:
                view.show(event)
    finally:
        view.line()
    if run.outcome is None:
        raise HookloopError("the turn ended without an outcome")
    return run.outcome


def _aloud(agent: Agent, text: str, conversation: str | None, quiet: bool) -> Outcome:
    return watch(agent.stream(text, conversation=conversation), TurnView(out(), err(), quiet=quiet))


def _quietly(agent: Agent, text: str, conversation: str | None) -> Outcome:
    try:
        return agent.run(text, conversation=conversation)
    except HookloopError as error:
        if error.outcome is None:
            raise
        return error.outcome


def as_data(outcome: Outcome) -> dict[str, object]:
    """An outcome as plain data for scripts."""
    return {
        "status": outcome.status,
        "stop_reason": outcome.stop_reason,
        "text": outcome.text,
        "output": outcome.output,
        "conversation": outcome.conversation,
        "turn_id": outcome.turn_id,
        "usage": outcome.usage,
        "rounds": [
            {"number": r.number, "provider": r.provider, "size": r.size, "usage": r.usage} for r in outcome.rounds
        ],
        "pending": [
            {"id": p.id, "name": p.name, "question": p.question, "arguments": p.arguments} for p in outcome.pending
        ],
        "warnings": [redact(text) for text in outcome.warnings],
        "error": redact(str(outcome.error)) if outcome.error else None,
    }


def _prompt(words: list[str] | None) -> str:
    text = sys.stdin.read() if not words or words == ["-"] else " ".join(words)
    if not text.strip():
        raise ConfigError("nothing to say: give a prompt, or pipe one in")
    return text
