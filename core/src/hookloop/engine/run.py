"""What a turn is given, and what it holds while it runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from hookloop_hookspecs import (
    Entry,
    MemoryCapabilities,
    Message,
    PluginError,
    Reply,
    Settings,
    Spent,
    State,
    Tool,
    ToolSpec,
    Usage,
    Window,
)
from hookloop_hookspecs.entries import Body, Status
from hookloop_hookspecs.verdicts import Decision

from ..limits import Limits
from .effects import Done, Facts, Job
from .history import clean_text
from .log import Log, Slice
from .past import Past, Size

Placement: TypeAlias = Literal["inside", "outside"]


@dataclass(frozen=True, slots=True)
class MemoryFacts:
    """A memory as the engine sees it. `owns`: the history is its; `writes` and `loads`: it implements `persist_memory`, and
    `load_memory`.
    """

    name: str
    capabilities: MemoryCapabilities
    placement: Placement
    owns: bool
    writes: bool = True
    loads: bool = False


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """Structured output that was asked for: its JSON Schema, and how text becomes the value (raises ValueError)."""

    name: str
    schema: str
    parse: Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Setup:
    """What is the same for every turn of an agent."""

    provider: Facts
    owner: str
    limits: Limits = Limits()
    window: Window = Window()
    hooks: frozenset[str] = frozenset()
    tools: tuple[Tool, ...] = ()
    instructions: str = ""
    settings: Settings = Settings()
    tool_choice: str = "auto"
    memories: tuple[MemoryFacts, ...] = ()
    lease: float = 60.0
    scope: str = ""
    on_pending: Literal["supersede", "refuse"] = "supersede"
    warnings: tuple[str, ...] = ()

    @property
    def home(self) -> MemoryFacts | None:
        """The memory that owns the history."""
        return next((memory for memory in self.memories if memory.owns), None)


@dataclass(frozen=True, slots=True)
class Request:
    """What the caller wants of this run: a `message` starts a turn, None resumes the last one.

    `given` are entries that stand in the place of what the memory would load (a history of the caller's, a suspension);
    then the memory that owns the history is neither read nor written (but a turn of `suspended` entries that it holds itself is
    taken up there).
    """

    conversation: str
    turn_id: str
    nonce: str
    message: Message | None = None
    decisions: Mapping[str, Decision] = field(default_factory=dict)
    given: tuple[Entry, ...] | None = None
    output: OutputSpec | None = None
    repeatable: bool = False
    warnings: tuple[str, ...] = ()
    suspended: bool = False


class Ended(Exception):
    """Leaves the phases of a turn; caught in `turn` alone. `error` is raised to the caller once the turn is stored."""

    def __init__(self, status: Status, reason: str, text: str = "", error: BaseException | None = None) -> None:
        super().__init__(status, reason)
        self.status: Status = status
        self.reason = reason
        self.text = text
        self.error = error


@dataclass(slots=True)
class StateBox:
    """A plugin's JSON place: the object it works on, and the text that is stored of it."""

    value: dict[str, object]
    saved: str


@dataclass(slots=True)
class Sent:
    """What is known of a round's request: by whom it was answered, how many messages it had, in how many attempts."""

    provider: str
    size: int
    attempts: int


class Run:
    """One run of a turn: the log, and what cannot be recomputed from it (what this process was given or holds open).

    Plain attributes, written by the phases; nothing here is a counter of what the log holds.
    """

    def __init__(self, setup: Setup, request: Request) -> None:
        self.setup = setup
        self.request = request
        self.conversation = request.conversation
        self.past = Past()
        self.log = Log(request.turn_id, 1, [], set())
        self.home: MemoryFacts | None = None  # the memory that this run's log is kept by
        self.inside = False
        if request.given is None and setup.home is not None:
            self.keep_in(setup.home)
        self.facts = setup.provider
        self.lent_from: Facts | None = None  # whose turn it is again after a round that asked another model
        self.window = setup.window
        self.tools: dict[str, Tool] = {}
        self.specs: tuple[ToolSpec, ...] = ()
        self.system = ""
        # The epoch: everything that makes requests comparable. `closed` counts the messages of closed turns in the
        # window; `size` is that of the open turn's, as far as they were `measured`.
        self.epoch = 0
        self.memo: dict[str, object] = {}
        self.closed = 0
        self.measured = 0
        self.size = Size()
        self.sent = 0
        self.cut_once = False
        # The store: how many entries it holds, whether this run's claim is in it, or was lost to another.
        self.version = 0
        self.claimed = False
        self.lost = False
        self.closing: list[Entry] = []
        # This run.
        self.heard = True  # does anybody listen to events? Drivers know; where nobody does, none are made
        self.round = 0
        self.begun = 0.0
        self.running = False  # are there jobs under way, and
        self.started = False  # did any of them have a chance to begin?
        self.jobs: dict[int, Job] = {}  # that were started and are not history yet
        self.over: dict[int, Done] = {}  # what those came to, where that is known
        self.entered = False
        self.finishing = False
        self.allowed: frozenset[str] | None = None
        self.reply = Reply()  # the reply whose calls are judged and run
        self.partial: list[str] = []
        self.output: object = None
        self.output_text = ""
        self.accepted = ""  # the id of the call that brought the output
        self.output_error: Exception | None = None
        self.asked_again = 0
        self.rounds: dict[int, Sent] = {}
        self.warnings: list[str] = [*setup.warnings, *request.warnings]
        self.boxes: dict[str, StateBox] = {}
        self.spent: list[tuple[str, Usage]] = []

    def keep_in(self, home: MemoryFacts) -> None:
        """Keep this run's log in that memory."""
        self.home, self.inside = home, home.placement == "inside"

    @property
    def turn_id(self) -> str:
        """The turn's id; on a resume that of the turn that is taken up."""
        return self.log.turn

    @property
    def view(self) -> Slice:
        """The messages as the next request would hold them."""
        return Slice(self.log.window, len(self.log.window))

    def add(self, body: Body) -> Entry:
        """Append an entry to the log."""
        return self.log.append(body)

    def box(self, plugin: str) -> StateBox:
        """A plugin's state, opened at the first use."""
        if plugin not in self.boxes:
            text = self.past.states.get(plugin, "{}")
            self.boxes[plugin] = StateBox(json.loads(text), text)
        return self.boxes[plugin]

    def collect(self) -> None:
        """Append what plugins did beside their return values: tokens they spent, state they changed."""
        if not (self.spent or self.boxes):
            return
        for plugin, usage in self.spent:
            self.add(Spent(usage, "complete", plugin))
        self.spent.clear()
        for plugin, box in self.boxes.items():
            try:
                text = state_text(plugin, box.value)
            except PluginError:
                box.value = json.loads(box.saved)  # told once; the turn must still come to its end
                raise
            if text != box.saved:
                box.saved = text
                self.add(State(plugin, text))


def state_text(plugin: str, value: object) -> str:
    """A plugin's state as JSON text. Raises `PluginError` where it holds something that is not JSON."""
    try:
        return clean_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True))
    except (TypeError, ValueError) as error:
        raise PluginError(plugin, "turn.state", f"state must be JSON: {error}") from error
