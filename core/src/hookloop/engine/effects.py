"""What the engine asks of the world. Drivers perform effects; the engine only yields them.

Rules for the next editor: an effect is data (not frozen, since making it must cost little; nobody changes one). `ask()` gives
the answer its type back, so that the loop holds no cast. An
effect that fails is thrown into the generator at the place where it was yielded, so policy lives in the loop alone.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from hookloop_hookspecs import Batch, Delta, Loaded, LoadQuery, Message, ModelRequest, ProviderTraits, Reply, Tool
from hookloop_hookspecs.events import Event
from hookloop_hookspecs.messages import ResultPart, ToolCall
from hookloop_hookspecs.redact import words
from hookloop_hookspecs.verdicts import Decision

T = TypeVar("T")

HookName: TypeAlias = Literal[
    "register_tools",
    "recall",
    "before_turn",
    "select_context",
    "before_round",
    "on_model_error",
    "after_reply",
    "before_tool",
    "after_tool",
    "next_instructions",
    "review_answer",
    "after_turn",
]


class Effect(Generic[T]):
    """Something that only a driver can do; T is the type of its answer."""

    __slots__ = ()

    def ask(self) -> Flow[T]:
        """Yield the effect and give back its answer."""
        answer: T = yield self
        return answer


Flow: TypeAlias = Generator[Effect[Any], Any, T]
"""A part of the loop that comes to a T."""


@dataclass(slots=True)
class Returned:
    """What one implementation of a hook came to. `value` is what it returned, or `error` what it raised.

    `skip` says that the plugin's failure policy lets the turn go on without it; `off` that it is switched off from now on.
    """

    plugin: str
    version: str
    value: object = None
    error: BaseException | None = None
    skip: bool = False
    off: bool = False

    @property
    def trouble(self) -> str:
        """The failure in words."""
        after = "; the plugin is switched off from here on" if self.off else ""
        return f"{words(self.error)}{after}" if self.error is not None else ""


@dataclass(slots=True)
class CallHook(Effect[list[Returned]]):
    """Ask every implementation of a hook, in order. `fold` names the argument that a `Replace` changes for the next."""

    hook: HookName
    arguments: Mapping[str, object]
    fold: str = ""


@dataclass(slots=True)
class Load(Effect[Loaded]):
    """Load the conversation from the memory that owns it, or from another one that is named."""

    conversation: str
    query: LoadQuery
    memory: str = ""


@dataclass(slots=True)
class Store(Effect[None]):
    """Write a batch to one memory."""

    memory: str
    batch: Batch


@dataclass(slots=True)
class Ask(Effect[None]):
    """Begin to ask the model; `Next` gives the pieces."""

    request: ModelRequest
    provider: str


@dataclass(slots=True)
class Next(Effect[Delta | Reply]):
    """The next delta of the reply, or the reply itself, which is the last."""


@dataclass(slots=True)
class Job:
    """One call to run: `place` is where its result goes."""

    place: int
    position: int
    call: ToolCall
    tool: Tool
    kwargs: Mapping[str, object]
    raw: str
    round: int
    decisions: tuple[Decision, ...] = ()


@dataclass(slots=True)
class Done:
    """One job is over: with content, or suspended (`question`), or lost (`interrupted`: its effect is unknown), or it never
    `began`.
    """

    place: int
    content: tuple[ResultPart, ...] = ()
    is_error: bool = False
    private: str = ""
    seconds: float = 0.0
    question: str | None = None
    expires: float | None = None
    interrupted: bool = False
    warning: str = ""
    began: bool = True


@dataclass(slots=True)
class Start(Effect[None]):
    """Start jobs: in order, in parallel up to the cap, serial tools alone."""

    jobs: tuple[Job, ...]


@dataclass(slots=True)
class NextResult(Effect[Done]):
    """The next job that is over."""


@dataclass(slots=True)
class StopJobs(Effect[list[Done]]):
    """Start no further job. With `cancel` end those that run, else wait for them. Gives back what became of each job whose
    result was not taken yet.
    """

    cancel: bool


@dataclass(slots=True)
class Time:
    """`wall` in epoch seconds, for people and deadlines; `mono` in seconds, for durations."""

    wall: float
    mono: float


@dataclass(slots=True)
class Now(Effect[Time]):
    """What time it is."""


@dataclass(slots=True)
class Sleep(Effect[None]):
    """Wait so many seconds."""

    seconds: float


@dataclass(slots=True)
class Post:
    """What was sent into the turn; `leave` asks to end it at the end of the round. `mono` (seconds) is when this was looked
    at: what follows is timed from there.
    """

    messages: tuple[Message, ...] = ()
    leave: bool = False
    mono: float = 0.0


@dataclass(slots=True)
class Inbox(Effect[Post]):
    """Take what was sent in. With `last` the box is closed if it was empty, so that nothing sent is ever lost."""

    last: bool = False


@dataclass(slots=True)
class Emit(Effect[None]):
    """Tell an event to observers and to whoever streams."""

    event: Event


@dataclass(frozen=True, slots=True)
class Facts:
    """What the engine must know of a provider: its reference, model, tag, family and traits."""

    reference: str
    name: str
    model: str
    family: str
    traits: ProviderTraits = ProviderTraits()


@dataclass(slots=True)
class Resolve(Effect[Facts]):
    """Find the provider of a reference (or take the object) and say what it is. Raises `ConfigError`."""

    provider: object


@dataclass(slots=True)
class OpenTools(Effect[tuple[Tool, ...]]):
    """Open a toolset and read its tools; it is closed when the run ends."""

    toolset: object


@dataclass(slots=True)
class CloseTools(Effect[tuple[str, ...]]):
    """Close the toolsets that were opened; gives back what went wrong, in words."""


@dataclass(slots=True)
class Alive(Effect[bool | None]):
    """Does the owner of a claim live? None when this host cannot know."""

    owner: str
