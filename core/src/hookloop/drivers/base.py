"""What both drivers share: everything but the edge that waits."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from hookloop.dispatch import loaded_of
from hookloop.engine.effects import (
    Alive,
    Ask,
    CallHook,
    CloseTools,
    Effect,
    Facts,
    Inbox,
    Job,
    Load,
    Next,
    NextResult,
    Now,
    OpenTools,
    Resolve,
    Sleep,
    Start,
    Store,
    Time,
)
from hookloop.engine.run import Request, Run, Setup
from hookloop.engine.turn import turn
from hookloop.given import message_of
from hookloop.hooks import Awaiting, Hooks, Waits
from hookloop.turnview import TurnView
from hookloop_hookspecs import Batch, Conflict, Message, NoOpenTurn, Outcome, ProviderError, ProviderTraits, Reply, Tool
from hookloop_hookspecs.errors import Cancelled
from hookloop_hookspecs.events import Event
from hookloop_hookspecs.redact import words
from hookloop_hookspecs.tools import as_tool

from .heart import Heart
from .jobs import Body, body, context_of
from .live import Live
from .owner import alive
from .workers import Workers

if TYPE_CHECKING:
    from .portal import Portal


@dataclass(slots=True, eq=False)
class World:
    """What an agent's turns share: plugins, providers, threads, and which conversations run.

    `parallel` is the cap of calls that run beside each other in one turn; `timeout` (seconds) is that of tools without
    one; `grace` (seconds) is how long a cancelled turn waits for tools in threads; `detailed` lets models read the
    messages of exceptions.
    """

    hooks: Hooks
    resolve: Callable[[object], Any]
    workers: Workers
    stores: Workers
    portal: Portal
    heart: Heart
    parallel: int = 16
    timeout: float | None = None
    grace: float = 5.0
    detailed: bool = True
    live: dict[str, Live] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, live: Live) -> bool:
        """Note that a turn runs; False where another one runs in its conversation."""
        with self.lock:
            return self.live.setdefault(live.conversation, live) is live

    def leave(self, live: Live) -> None:
        """The turn is over."""
        live.close()
        with self.lock:
            if self.live.get(live.conversation) is live:
                del self.live[live.conversation]

    def end_turns(self) -> None:
        """Cancel all turns and wait until they are over, as long as the grace for their tools may take."""
        until = self._cancelled()
        while self._waits_for() and time.monotonic() < until:
            time.sleep(0.005)

    async def aend_turns(self) -> None:
        """`end_turns` in an event loop."""
        import asyncio

        until, here = self._cancelled(), asyncio.current_task()
        while any(live.task is not here for live in list(self.live.values())) and time.monotonic() < until:  # noqa: ASYNC110  # turns of any thread end here, with no common event
            await asyncio.sleep(0.005)

    def _cancelled(self) -> float:
        for live in list(self.live.values()):
            live.cancel()
        return time.monotonic() + self.grace + 1.0

    def _waits_for(self) -> bool:
        """Turns that this thread does not itself drive."""
        here = threading.get_ident()
        return any(here not in (live.thread, live.caller) for live in list(self.live.values()))

    def running(self, conversation: str) -> Live:
        """The running turn of a conversation. Raises `NoOpenTurn`."""
        live = self.live.get(conversation)
        if live is None:
            raise NoOpenTurn(f"no turn runs in conversation {conversation!r}")
        return live


WAITS = (CallHook, Load, Ask, Next, Start, NextResult, Sleep)
"""Effects that wait: in their place `Cancelled` may be thrown, as long as the turn is not being finished."""


def facts_of(provider: Any) -> Facts:
    """What the engine must know of a provider object."""
    name = getattr(provider, "name", "") or type(provider).__name__.lower()
    model = getattr(provider, "model", "") or ""
    family = getattr(provider, "family", "") or model or name
    traits = getattr(provider, "traits", None) or ProviderTraits()
    return Facts(reference_of(provider), name, model, family, traits)


def reference_of(provider: Any) -> str:
    """How a provider object is named: its own word, else its name and model. The base class is not required."""
    name = getattr(provider, "name", "") or type(provider).__name__.lower()
    model = getattr(provider, "model", "")
    return getattr(provider, "reference", "") or (f"{name}:{model}" if model else name)


def foreign(provider: Any, error: Exception) -> ProviderError:
    """A provider raises `ProviderError` alone; whatever else escapes it becomes one, with its cause."""
    name = getattr(provider, "name", "") or type(provider).__name__
    return ProviderError(words(error), provider=name, kind="server")


def no_abort(request: object) -> None:
    """For providers that cannot be interrupted."""


def last_reply(provider: Any, pieces: Iterable[Any]) -> Reply:
    """The reply at the end of a stream."""
    reply = None
    for piece in pieces:
        reply = piece
    return whole(provider, reply)


def whole(provider: Any, last: Any) -> Reply:
    """The last piece of a stream, which must be the reply. Raises `ProviderError`."""
    if isinstance(last, Reply):
        return last
    name = reference_of(provider)
    raise ProviderError("the stream ended without a reply", provider=name, kind="stream", retryable=True)


class Base:
    """One run of a turn: the generator, its last answer, and all effects that need no waiting edge of their own.

    Not for users: `SyncRun` and `AsyncRun` add the edges.
    """

    def __init__(self, world: World, setup: Setup, request: Request, deps: Any) -> None:
        self.world = world
        self.run = Run(setup, request)
        self.live = Live(request.conversation)
        self.deps = deps
        self.outcome: Outcome | None = None
        self.entered = False
        self.finished = False
        self._flow = turn(setup, request, self.run)
        self._answer: Any = None
        self._standing: Effect[Any] | None = None  # the effect that was asked for and has no answer yet
        self._shield = False  # does the engine make its own steps?
        self._error: BaseException | None = None
        self._wish = False
        self._leaving = False
        self._alone = False
        self._toolsets: list[Any] = []
        self._views: dict[str, TurnView] = {}
        self._providers: dict[str, Any] = {}
        self._deaf: set[str] = set()
        self._end = threading.Event()  # told to every tool that has no timeout of its own
        self._cancels: dict[int, threading.Event] = {}
        self._heard = world.hooks.has("on_event")

    @property
    def conversation(self) -> str:
        """The conversation's id."""
        return self.run.conversation

    @property
    def turn_id(self) -> str:
        """The turn's id."""
        return self.run.turn_id

    def send(self, text: str | Message) -> None:
        """Put a user's message into the running turn. Raises `NoOpenTurn` once it is over, `ConfigError` for no message."""
        self.live.send(message_of(text))

    def cancel(self, *, after_round: bool = False) -> None:
        """End the turn with an outcome "cancelled": now, or at the end of the round."""
        self.live.cancel(after_round=after_round)

    def _enter(self) -> None:
        self.entered = True
        self._alone = self.world.enter(self.live)

    @property
    def _leased(self) -> bool:
        """May this turn hold a lease that must be renewed? (A suspension that was given may be taken over by the memory.)"""
        home = self.run.setup.home if self.run.request.suspended else self.run.home
        return home is not None and home.capabilities.versioned and home.placement == "inside"

    def _require_new(self) -> None:
        if self.entered:
            raise RuntimeError("a stream is entered once; ask the agent for another one")

    def _require_entered(self) -> None:
        if not self.entered:
            raise RuntimeError(
                "iterate inside a with block, so that the turn is ended whatever happens: "
                "with agent.stream(…) as events: … (async with agent.astream(…))"
            )

    def _advance(self) -> Effect[Any] | None:
        """Give the generator its answer and take its next effect; None when the turn is over."""
        self._shield = True
        try:
            if self._error is None:
                self._standing = self._flow.send(self._answer)
            else:
                error, self._error, self._answer = self._error, None, None
                self._standing = self._flow.throw(error)
            return self._standing
        except StopIteration as stop:
            self._over(stop.value)
            return None
        except BaseException as raised:
            if (
                inspect.getgeneratorstate(self._flow) != inspect.GEN_CLOSED
            ):  # an alarm that struck behind the step: the turn is told in its next one
                self._error = raised
                return self._advance()
            self._over(getattr(raised, "outcome", None))
            raise
        finally:
            self._shield = False

    def _answered(self, answer: Any) -> None:
        """The effect that stands has its answer."""
        self._answer = answer
        self._standing = None

    def _over(self, outcome: Outcome | None) -> None:
        self.finished = True
        self.outcome = outcome
        self.world.leave(self.live)

    def _may_leave(self, effect: Effect[Any]) -> bool:
        """May `Cancelled` be thrown in place of this effect's answer?"""
        return not self._leaving and not self.run.finishing and isinstance(effect, WAITS)

    @property
    def _wished(self) -> bool:
        """Does anybody want the turn to end now?"""
        return self._wish or self.live.cancelled

    def _leave(self) -> NoReturn:
        """Throw `Cancelled`, once in the life of a turn."""
        self._leaving = True
        raise Cancelled

    def _stop_tools(self) -> None:
        """Tell every tool that runs that the turn is over."""
        self._end.set()
        for cancel in self._cancels.values():
            cancel.set()

    def _body(self, job: Job) -> Body:
        """One call, ready to be run by an edge."""
        timeout = self._timeout(job.tool)
        cancel = self._end
        if timeout is not None:
            cancel = self._cancels[job.place] = threading.Event()
        context = context_of(job, self.run.conversation, self.run.log.turn, self.deps, cancel)
        return body(job, context, self.world.detailed, timeout)

    def _timeout(self, tool: Tool) -> float | None:
        """Seconds that a call of a tool may take."""
        return tool.timeout if tool.timeout is not None else self.world.timeout

    def _tell_late(self, place: int) -> None:
        """Tell a tool that nobody waits for it any more. One without a timeout is left when the turn is, and knows."""
        if place in self._cancels:
            self._cancels[place].set()

    def _view(self, plugin: str) -> TurnView:
        view = self._views.get(plugin)
        if view is None:
            view = self._views[plugin] = TurnView(self.run, plugin, self.deps, self._complete, self._acomplete)
        return view

    def _complete(self, request: Any) -> Any:
        raise AssertionError("each driver has its own")

    async def _acomplete(self, request: Any) -> Any:
        raise AssertionError("each driver has its own")

    def _provider(self, reference: str) -> Any:
        return self._providers.get(reference) or self.world.resolve(reference)

    def _instant(self, effect: Effect[Any]) -> Any:
        """Effects that wait for nothing."""
        if isinstance(effect, Now):
            return Time(time.time(), time.monotonic())
        if isinstance(effect, Inbox):
            return self.live.take(effect.last, time.monotonic())
        if isinstance(effect, Resolve):
            return self._resolve(effect.provider)
        if isinstance(effect, Alive):
            return alive(effect.owner)
        raise AssertionError(f"no driver performs {effect!r}")

    def _not_closed(self, error: Exception) -> None:
        """How a turn ends is not changed by a stream that cannot be closed; that is told in a warning."""
        self.run.warnings.append(f"a stream of {self.run.facts.reference} did not close: {words(error)}")

    def _resolve(self, provider: object) -> Facts:
        found = self.world.resolve(provider)
        facts = facts_of(found)
        self._providers[facts.reference] = found
        return facts

    def _waits(self, effect: Effect[Any]) -> Waits | None:
        """Effects that plugins, stores and toolsets answer, as one generator for both edges."""
        match effect:
            case CallHook(hook, arguments, fold):
                return self.world.hooks.ask(hook, arguments, self._view, fold)
            case Store():
                return self._stored(effect)
            case Load(conversation, query, memory):
                return self._load({"conversation": conversation, "query": query}, memory)
            case OpenTools(toolset):
                return self._open(toolset)
            case CloseTools():
                return self._close_tools()
        return None

    def _stored(self, effect: Store) -> Waits:
        arguments = {"batch": effect.batch, "conversation": effect.batch.conversation}
        return self.world.hooks.one(effect.memory, "persist_memory", arguments)

    def _renewal(self) -> Waits | None:
        """An empty batch of the owner, which only renews its lease; None where this turn holds no claim."""
        run, home = self.run, self.run.home
        if home is None or not (home.capabilities.versioned and run.claimed) or run.finishing or run.lost:
            return None
        setup = run.setup
        batch = Batch(run.conversation, (), run.version, setup.owner, setup.lease, setup.scope)
        return self._stored(Store(home.name, batch))

    def _load(self, arguments: Mapping[str, object], memory: str) -> Waits:
        if not self._alone:
            raise Conflict(f"conversation {self.conversation!r}: another turn of this agent is under way")
        home = self.run.setup.home
        assert home is not None
        loaded = yield from self.world.hooks.one(memory or home.name, "load_memory", arguments)
        return loaded_of(loaded)

    def _tell(self, event: Event) -> Waits:
        """Tell observers an event; one that fails is noted once."""
        arguments = {"event": event, "conversation": self.conversation}
        for got in (yield from self.world.hooks.ask("on_event", arguments, self._view)):
            if got.error is not None and got.plugin not in self._deaf:
                self._deaf.add(got.plugin)
                self.run.warnings.append(f"{got.plugin}.on_event: {got.trouble}")

    def _open(self, toolset: Any) -> Waits:
        held: Any = toolset
        if inspect.iscoroutinefunction(toolset.open) or inspect.iscoroutinefunction(toolset.close):
            from .edges import Held

            held = yield Awaiting(Held.open(toolset))
        else:
            toolset.open()
        self._toolsets.append(held)
        tools: tuple[Tool, ...] = tuple(as_tool(tool) for tool in toolset.tools)
        return tools

    def _close_tools(self) -> Waits:
        problems: list[str] = []
        while self._toolsets:
            try:
                closed = self._toolsets.pop().close()
                if inspect.isawaitable(closed):
                    yield Awaiting(closed)
            except Exception as error:
                problems.append(f"a toolset did not close: {words(error)}")
        return tuple(problems)
