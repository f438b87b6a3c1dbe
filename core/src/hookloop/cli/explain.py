"""`hookloop explain`: what the first request of a turn would hold, and who would be asked, without asking a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import typer
from rich.cells import cell_len
from rich.console import Console

from hookloop.config import Config, changed
from hookloop.discovery import activate
from hookloop.hiding import hidden_url, told
from hookloop.names import alike, hook_names
from hookloop_hookspecs import Delta, Message, ModelRequest, Provider, ProviderError, Reply
from hookloop_hookspecs import events as happened

from .config_commands import AsJson, current
from .keeper import open_keeper
from .terminal import clean, joined, labelled, one_line, out, padded, paragraphs, print_json, wrapped

OBSERVERS = ("on_event", "after_turn")
WIDEST = 30
"""Cells up to which the sources of messages stand in a column."""


@dataclass
class Explained:
    """What would be sent: `before` messages of earlier turns, then `new` ones; what hooks decided; who is asked.

    `memory` holds the URLs of the configured memories; they are not asked.
    """

    model: str = ""
    memory: list[str] = field(default_factory=list)
    system: str = ""
    tools: list[str] = field(default_factory=list)
    allowed: list[str] | None = None
    before: int = 0
    new: list[dict[str, str]] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    asked: dict[str, list[str]] = field(default_factory=dict)
    end: str = ""


class Nobody(Provider):
    """Stands in for the model; it is never asked, since the turn is left when its first request is ready."""

    name = "nobody"

    def __init__(self, reference: str) -> None:
        self.model = self.family = reference

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        """Refuse."""
        raise ProviderError("explain asks no model", provider=self.name)


def explain(
    prompt: Annotated[str, typer.Argument(help="What would be said.")] = "Hello",
    conversation: Annotated[str | None, typer.Option("--conversation", "-C", help="Go on with this one.")] = None,
    as_json: AsJson = False,
) -> None:
    """Show what the first request of a turn would hold, from whom, and which plugins are asked when.

    No model is asked and nothing is stored. Plugins are asked as in a real turn, up to that request, but for those hooks
    that only observe.
    """
    config = current()
    explained = explanation(config, prompt, _history(config, conversation))
    if as_json:
        print_json(explained)
    else:
        _print(out(), explained)


def explanation(config: Config, prompt: str, history: Sequence[Message] = ()) -> Explained:
    """Run a turn with the configured plugins up to its first request. Raises `ConfigError`."""
    from hookloop import Agent  # only commands that talk load the engine

    explained = Explained(config.model, [hidden_url(table.url) for table in config.memory])
    with Agent(Nobody(config.model), config=changed(config, _without_observers(config))) as agent:
        hooks = agent._world.hooks  # the order in which they are really asked is known to the façade alone
        plugins = {active.name for active in agent.report.on}
        asked = {name: [one for one in hooks.order(name) if one in plugins] for name in hook_names()}
        explained.asked = {name: order for name, order in asked.items() if order}
        with agent.stream(prompt, history=list(history) or None) as events:
            for event in events:
                _note(explained, event)
                if isinstance(event, happened.RequestSent):
                    break
    return explained


def _without_observers(config: Config) -> dict[str, Any]:
    """What was configured, without model and memory, and with the hooks off that would log or record this."""
    kept = {key: value for key, value in config.given.items() if key not in ("model", "memory", "provider")}
    names = set(config.plugins)
    for active in activate(config).active if config.auto else ():
        if not any(alike(active.name, name) for name in config.plugins):
            names.add(active.name)
    tables: dict[str, Any] = {name: dict(kept.get("plugins", {}).get(name, {})) for name in names}
    for table in tables.values():
        table["hooks"] = {**table.get("hooks", {}), **dict.fromkeys(OBSERVERS, False)}
    return {**kept, "plugins": tables}


def _history(config: Config, conversation: str | None) -> Sequence[Message]:
    if conversation is None:
        return ()
    with open_keeper(config) as keeper:
        return keeper.messages(conversation)


def _note(explained: Explained, event: happened.Event) -> None:
    if isinstance(event, happened.RequestSent):
        _request(explained, event.request)
    elif isinstance(event, happened.Decision):
        explained.decisions.append(told(f"{event.plugin}.{event.hook}: {event.verdict} {event.detail}".rstrip()))
    elif isinstance(event, happened.Warned):
        explained.warnings.append(told(event.text))
    elif isinstance(event, happened.TurnFinished):
        explained.end = f"{event.status} ({event.stop_reason}) {event.text}".rstrip()


def _request(explained: Explained, request: ModelRequest) -> None:
    explained.system = request.system
    explained.tools = [tool.name for tool in request.tools]
    explained.allowed = sorted(request.allowed) if request.allowed is not None else None
    new = [message for message in request.messages if message.origin.turn == request.turn]
    explained.before = len(request.messages) - len(new)
    explained.new = [_row(message) for message in new]


def _row(message: Message) -> dict[str, str]:
    source = ".".join(filter(None, (message.origin.plugin, message.origin.hook)))
    return {"role": message.role, "from": source, "text": message.text}


def _print(console: Console, explained: Explained) -> None:
    if explained.end:
        labelled(console, "ends before a model is asked:", explained.end, 0, "", "bold yellow")
    _facts(console, explained)
    width = max((size for row in explained.new if (size := cell_len(_head(row))) <= WIDEST), default=0)
    for row in explained.new:
        _message(console, row, width)
    _list(console, "decisions", explained.decisions)
    _list(console, "warnings", explained.warnings)
    console.print("hooks, and who is asked, in this order" if explained.asked else "no hook is asked", style="bold")
    column = max(map(len, explained.asked), default=0)
    for hook, names in explained.asked.items():
        labelled(console, f"{hook:<{column}} ", joined(names), 2, "", "dim")


def _facts(console: Console, explained: Explained) -> None:
    labelled(console, "model:", explained.model or "none is configured", 0, "", "bold")
    for url in explained.memory:
        labelled(console, "memory:", f"{url} (not asked here)", 0, "", "bold")
    labelled(console, "tools:", joined(explained.tools), 0, "", "bold")
    if explained.allowed is not None:
        labelled(console, "of these allowed:", joined(explained.allowed), 0, "", "bold")
    console.print("system text:" if explained.system else "system text: none", style="bold")
    if explained.system:
        paragraphs(console, explained.system, 2)
    if not explained.end or explained.new:
        labelled(console, "messages:", f"{explained.before or 'none'} from earlier turns, then", 0, "", "bold")


def _head(row: dict[str, str]) -> str:
    return f"{row['role']}  {one_line(row['from'])}".rstrip()


def _message(console: Console, row: dict[str, str], width: int) -> None:
    """A message in two columns: role and source, and its whole text."""
    head, (first, *rest) = _head(row), clean(row["text"]).split("\n")
    if cell_len(head) > width:
        wrapped(console, head, 2, "magenta")
        wrapped(console, first, 4 + width)
    else:
        labelled(console, f"{padded(head, width)} ", first, 2, "", "magenta" if row["from"] else "green")
    for line in rest:
        wrapped(console, line, 4 + width)


def _list(console: Console, title: str, lines: Sequence[Any]) -> None:
    if lines:
        console.print(title, style="bold")
    for line in lines:
        labelled(console, "-", line, 2, "")


def add_to(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command("explain")(explain)
