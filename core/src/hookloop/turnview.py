"""The `turn` argument of hooks: a plugin's own window on a running turn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any

from hookloop_hookspecs import LimitError, Message, ModelRequest, Reply, Usage

from .engine.run import Run


class TurnView:
    """What one plugin may know of a turn, and its own state. See the contract's `Turn`."""

    __slots__ = ("_aask", "_ask", "_plugin", "_run", "deps")

    def __init__(
        self,
        run: Run,
        plugin: str,
        deps: Any,
        ask: Callable[[ModelRequest], Reply],
        aask: Callable[[ModelRequest], Awaitable[Reply]],
    ) -> None:
        self._run = run
        self._plugin = plugin
        self._ask = ask
        self._aask = aask
        self.deps = deps

    @property
    def id(self) -> str:
        """The turn's id."""
        return self._run.turn_id

    @property
    def conversation(self) -> str:
        """The conversation's id."""
        return self._run.conversation

    @property
    def round(self) -> int:
        """The current round, from 1; 0 before the first."""
        return self._run.round

    @property
    def calls(self) -> int:
        """Tool calls of this turn so far."""
        return self._run.log.ledger.tally.calls

    @property
    def errors(self) -> int:
        """How many results in a row were errors."""
        return self._run.log.ledger.errors

    @property
    def usage(self) -> Usage:
        """What the turn has used so far."""
        return self._run.log.ledger.usage

    @property
    def resumed(self) -> bool:
        """True on a resume."""
        return self._run.request.message is None

    @property
    def state(self) -> MutableMapping[str, Any]:
        """The plugin's own JSON place in this conversation."""
        return self._run.box(self._plugin).value

    @property
    def messages(self) -> Sequence[Message]:
        """The messages as the next request would hold them."""
        return self._run.view

    def complete(self, prompt: str, *, system: str = "") -> str:
        """Ask the turn's model, outside history. Raises `LimitError` where tokens or cost are used up."""
        return self._spent(self._ask(self._request(prompt, system)))

    async def acomplete(self, prompt: str, *, system: str = "") -> str:
        """`complete` for async hooks."""
        return self._spent(await self._aask(self._request(prompt, system)))

    def _request(self, prompt: str, system: str) -> ModelRequest:
        run = self._run
        used = sum((usage for _, usage in run.spent), run.log.ledger.usage)
        limits = run.setup.limits
        for name, value, limit in (("tokens", used.total, limits.tokens), ("cost", used.cost, limits.cost)):
            if value is not None and limit is not None and value >= limit:
                raise LimitError(name)
        return ModelRequest(
            run.facts.model,
            system,
            (Message.user(prompt),),
            settings=run.setup.settings,
            conversation=run.conversation,
            turn=run.turn_id,
            round=run.round,
            epoch=0,
        )

    def _spent(self, reply: Reply) -> str:
        self._run.spent.append((self._plugin, reply.usage))
        return reply.text
