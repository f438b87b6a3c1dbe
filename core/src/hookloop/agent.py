"""The Agent: thin, sees all. It puts the parts together and hands each turn to a driver."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack

from hookloop_hookspecs import ConfigError, Message, Outcome, Settings, Tool, Window
from hookloop_hookspecs.redact import words
from hookloop_hookspecs.tools import as_tool
from hookloop_hookspecs.verdicts import Decision

from . import discovery
from .assembly import assemble, config_of
from .config import Config, load_config
from .discovery import LoadReport
from .drivers.base import World, facts_of, reference_of
from .drivers.heart import Heart
from .drivers.owner import owner
from .drivers.portal import Portal
from .drivers.sync import SyncRun, close_plugins
from .drivers.workers import Workers
from .engine.run import Request, Setup
from .given import conversation_of, history_of, message_of, suspension_of, turn_of
from .hooks import Hooks
from .limits import Limits
from .names import spelled
from .structured import output_spec

STORES = 8
"""Threads for stores that block, in async runs; apart from those of tools, so that tools cannot keep a turn from storing."""

if TYPE_CHECKING:
    from .drivers.asynchronous import AsyncRun
    from .keeper import Keeper


class Arguments(TypedDict, total=False):
    """What a turn is given beside its prompt, see `Agent.run`."""

    conversation: str | None
    turn_id: str | None
    history: Sequence[Message] | None
    deps: Any
    output: Any


class Agent:
    """A model, its tools, its plugins, and its memory. A context manager; one agent serves many conversations and threads.

    Arguments: `model`, "provider:model" or a provider object; `tools`, functions or `tool`s; `plugins`, objects or names of
    installed plugins, outermost first; `memory`, URLs or memory objects, the first that can load owns the history (none: one
    of its own, in this process); `instructions`, system text; `limits`; `config`, the same keys as `hookloop.toml`;
    `settings`, what is asked of the model beside messages; `tool_choice`, "auto", "none", "required" or a tool's name (a
    forced choice holds until the first call); `on_pending`, what a new message does to calls that wait for decisions.
    `scope` is the tenant in shared stores.
    Raises `ConfigError` for anything wrong, before any request is sent.
    """

    @spelled("Agent")
    def __init__(
        self,
        model: Any = None,
        *,
        tools: Sequence[Any] = (),
        plugins: Sequence[object] = (),
        memory: Any = None,
        instructions: str | None = None,
        limits: Limits | None = None,
        config: Config | Mapping[str, Any] | None = None,
        settings: Settings | None = None,
        tool_choice: str = "auto",
        on_pending: Literal["supersede", "refuse"] = "supersede",
        scope: str = "",
    ) -> None:
        given = {"model": model, "memory": memory, "instructions": instructions, "limits": limits, "settings": settings}
        others = {"tools": tools, "tool_choice": tool_choice, "on_pending": on_pending, "scope": scope}
        self.config = config_of(config, {**given, **others})
        self._providers: dict[str, Any] = {}
        self._closed = False
        provider = self._resolve(model if model is not None else self.config.model)
        parts = assemble(self.config, plugins, memory)
        self.report: LoadReport = parts.report
        self.memories = parts.objects
        self._setup = Setup(
            provider=facts_of(provider),
            owner=owner(),
            limits=limits or self.config.limits,
            window=self.config.window or Window(),
            tools=_tools(tools),
            instructions=instructions if instructions is not None else self.config.instructions,
            settings=settings or self.config.settings,
            tool_choice=tool_choice,
            memories=parts.memories,
            scope=scope,
            on_pending=on_pending,
            warnings=tuple(parts.report.warnings),
        )
        self._process = os.getpid()
        self._world = self._world_of(Hooks(parts.registered, self.config.order))
        self._setup = replace(self._setup, hooks=self._world.hooks.names)

    def _world_of(self, hooks: Hooks) -> World:
        table = self.config.tools
        return World(
            hooks,
            self._resolve,
            Workers(table.workers),
            Workers(STORES),
            Portal(),
            Heart(self._setup.lease / 3),
            timeout=table.timeout,
            grace=table.cancel_grace,
            detailed=table.detailed_errors,
            parallel=table.parallel,
        )

    @classmethod
    def from_config(cls, path: str | Path | None = None, **parameters: Any) -> Self:
        """An agent from a file (None: the nearest `hookloop.toml`, else `[tool.hookloop]` in `pyproject.toml`).

        `parameters` are those of `Agent`. Raises `ConfigError` with file and line.
        """
        return cls(config=load_config(path, os.environ), **parameters)

    def _resolve(self, provider: Any) -> Any:
        """A provider object from a reference; each reference is built once."""
        if not isinstance(provider, str):
            if not (hasattr(provider, "stream") or hasattr(provider, "astream")):
                raise ConfigError(f"{provider!r:.80} is no provider: it has neither stream nor astream")
            self._providers.setdefault(reference_of(provider), provider)
            return provider
        if provider not in self._providers:
            made = discovery.configured_provider(provider, self.config)
            self._providers[provider] = self._providers[reference_of(made)] = made  # it may call itself something else
        return self._providers[provider]

    @spelled("run")
    def run(
        self,
        prompt: Any,
        *,
        conversation: str | None = None,
        turn_id: str | None = None,
        history: Sequence[Message] | None = None,
        deps: Any = None,
        output: Any = None,
    ) -> Outcome:
        """Run a turn to its end.

        Arguments: `prompt`, text, a user `Message`, or parts; `conversation`, its id (None: a new one); `turn_id`, an id of
        yours that makes a repeated call give back the same turn; `history`, messages that stand in the place of what memory
        holds; `deps`, an object for tools and hooks; `output`, a type that the answer is validated as.
        Raises what ended the turn, where that was an error (`PluginError`, `ProviderError`, `Conflict`, `LimitError`, …); its
        `outcome` says how far it came.
        """
        return self.stream(
            prompt, conversation=conversation, turn_id=turn_id, history=history, deps=deps, output=output
        ).result()

    def stream(self, prompt: Any, **arguments: Unpack[Arguments]) -> SyncRun:
        """`run` as a stream of typed events; a context manager. Arguments as for `run`."""
        return SyncRun(self._open(), self._setup, *_request(prompt, **arguments))

    async def arun(self, prompt: Any, **arguments: Unpack[Arguments]) -> Outcome:
        """`run` in an event loop (asyncio)."""
        return await self.astream(prompt, **arguments).result()

    def astream(self, prompt: Any, **arguments: Unpack[Arguments]) -> AsyncRun:
        """`stream` in an event loop (asyncio); an async context manager."""
        return _async_run()(self._open(), self._setup, *_request(prompt, **arguments))

    def resume(
        self,
        conversation: str,
        decisions: Mapping[str, Decision] | None = None,
        *,
        deps: Any = None,
        output: Any = None,
    ) -> Outcome:
        """Take up a turn that waits for decisions, or that a crash left open.

        Arguments: `conversation`, its id, or an `outcome.suspension`; `decisions` by call id: `Approve`, `Deny`, `Answer` (some
        may be left out; those calls wait on).
        Raises `NoOpenTurn` where none is open, `ConfigError` for ids that do not wait, and what `run` raises.
        """
        return self.resume_stream(conversation, decisions, deps=deps, output=output).result()

    async def aresume(
        self,
        conversation: str,
        decisions: Mapping[str, Decision] | None = None,
        *,
        deps: Any = None,
        output: Any = None,
    ) -> Outcome:
        """`resume` in an event loop."""
        return await self.aresume_stream(conversation, decisions, deps=deps, output=output).result()

    def resume_stream(
        self,
        conversation: str,
        decisions: Mapping[str, Decision] | None = None,
        *,
        deps: Any = None,
        output: Any = None,
    ) -> SyncRun:
        """`resume` as a stream of typed events."""
        return SyncRun(self._open(), self._setup, _resumption(conversation, decisions, output), deps)

    def aresume_stream(
        self,
        conversation: str,
        decisions: Mapping[str, Decision] | None = None,
        *,
        deps: Any = None,
        output: Any = None,
    ) -> AsyncRun:
        """`resume` as an async stream of typed events."""
        return _async_run()(self._open(), self._setup, _resumption(conversation, decisions, output), deps)

    @property
    def limits(self) -> Limits:
        """The limits of each turn."""
        return self._setup.limits

    @property
    def model(self) -> str:
        """The reference of the model that turns begin with."""
        return self._setup.provider.reference

    def order(self, hook: str) -> list[str]:
        """The names of the plugins that implement a hook, in the order they are asked."""
        return self._world.hooks.order(hook)

    @property
    def keeper(self) -> Keeper:
        """The keeper's tools for the memory that owns the histories: list, messages, export, restore, fork, delete."""
        from .keeper import Keeper

        names = [facts.name for facts in self._setup.memories if facts.owns]
        at = next(at for at, facts in enumerate(self._setup.memories) if facts.owns)
        return Keeper(self.memories[at], names[0], self._setup.scope)

    def send(self, conversation: str, text: str | Message) -> None:
        """Put a user's message into the running turn of a conversation, from any thread. Raises `NoOpenTurn`."""
        self._world.running(conversation).send(message_of(text))

    def cancel(self, conversation: str, *, after_round: bool = False) -> None:
        """End the running turn of a conversation, from any thread: now, or at the end of the round. Raises `NoOpenTurn`."""
        self._world.running(conversation).cancel(after_round=after_round)

    def _open(self) -> World:
        if self._closed:
            raise ConfigError("this agent is closed; make another one")
        if self._process != os.getpid():  # a fork has none of the threads, and is another owner
            self._process = os.getpid()
            self._setup = replace(self._setup, owner=owner())
            self._world = self._world_of(self._world.hooks)
        return self._world

    def close(self) -> None:
        """End running turns and wait for them, close plugins and providers, end all threads. May be called twice.

        Turns of an event loop that runs in this very thread cannot be waited for here; use `aclose` there.
        """
        if self._closed:
            return
        self._closed = True
        self._world.end_turns()
        self._finish()

    def _finish(self) -> None:
        """Close everything, whatever fails; what failed is a warning."""
        problems = close_plugins(self._world)
        for provider in set(self._providers.values()):
            problems += _closed(provider)
        self._world.heart.close()
        self._world.stores.close(self._world.grace)
        problems += self._world.portal.close(self._world.grace)
        left = self._world.workers.close(self._world.grace)
        problems += [f"{tool} still runs in its thread, though the agent is closed" for tool in left]
        for problem in problems:
            warnings.warn(problem, ResourceWarning, stacklevel=3)

    async def aclose(self) -> None:
        """`close` in an event loop; also closes what async calls hold."""
        if self._closed:
            return
        self._closed = True
        await self._world.aend_turns()
        for provider in set(self._providers.values()):
            aclose = getattr(provider, "aclose", None)
            if aclose is not None:
                with suppress(Exception):  # `close` comes next, and says what does not close
                    await aclose()
        import asyncio

        await asyncio.to_thread(self._finish)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.aclose()


def _async_run() -> type[AsyncRun]:
    """The async driver, loaded when it is used: a sync program loads no event loop."""
    from .drivers.asynchronous import AsyncRun

    return AsyncRun


def _closed(provider: Any) -> list[str]:
    """Close a provider; gives back what went wrong, in words."""
    close = getattr(provider, "close", None)
    try:
        if close is not None:
            close()
    except Exception as error:
        return [f"provider {reference_of(provider)} did not close: {words(error)}"]
    return []


def _tools(tools: Sequence[Any]) -> tuple[Tool, ...]:
    made = tuple(as_tool(tool) for tool in tools)
    names = [tool.name for tool in made]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ConfigError(f"two tools are named {twice!r}; rename one of them")
    return made


@spelled("a turn")
def _request(
    prompt: Any,
    *,
    conversation: str | None = None,
    turn_id: str | None = None,
    history: Sequence[Message] | None = None,
    deps: Any = None,
    output: Any = None,
) -> tuple[Request, Any]:
    message = message_of(prompt)
    turn = turn_of(turn_id)
    noted: list[str] = []
    request = Request(
        conversation_of(conversation),
        turn,
        uuid.uuid4().hex,
        message,
        given=history_of(history, turn, noted) if history is not None else None,
        output=output_spec(output) if output is not None else None,
        repeatable=turn_id is not None,
        warnings=tuple(noted),
    )
    return request, deps


def _resumption(conversation: str, decisions: Mapping[str, Decision] | None, output: Any) -> Request:
    suspended = suspension_of(conversation) if isinstance(conversation, str) else None
    id, turn, given = suspended or (conversation_of(conversation), uuid.uuid4().hex, None)
    return Request(
        id,
        turn,
        uuid.uuid4().hex,
        None,
        dict(decisions or {}),
        given,
        output_spec(output) if output is not None else None,
        suspended=suspended is not None,
    )
