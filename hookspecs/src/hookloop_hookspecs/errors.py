"""Every error of the project, one family. Each says whose fault it is and carries the evidence as attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from .outcome import Outcome
    from .providers import Reply


class HookloopError(Exception):
    """The root of the family. `outcome` is the turn's outcome where one was under way."""

    outcome: Outcome | None = None


class ConfigError(HookloopError):
    """Something about names, options or files is wrong; raised before any request is sent."""


class ContractError(HookloopError):
    """A value does not obey the contract (a message of a wrong role, an unpaired result, a naive iterable)."""


class HistoryError(HookloopError):
    """A history breaks the pairing invariant: every call answered once, right after its message."""


class PluginError(HookloopError):
    """A plugin failed, or did what its hook may not do. `plugin` and `hook` say which; the cause is chained."""

    def __init__(self, plugin: str, hook: str, message: str) -> None:
        super().__init__(f"plugin {plugin!r}, hook {hook}: {message}")
        self.plugin = plugin
        self.hook = hook


ProviderErrorKind: TypeAlias = Literal[
    "connection", "timeout", "rate_limit", "overloaded", "auth", "invalid", "not_found", "context", "stream", "server"
]


class ProviderError(HookloopError):
    """A model could not be asked, or its answer could not be used. The one family for every provider.

    `kind` says what happened; `retryable` whether asking again may help; `retry_after` is the server's wish in seconds;
    `partial` is what had arrived of a broken reply (it never becomes history).
    """

    def __init__(
        self,
        message: str,
        *,
        provider: str,
        kind: ProviderErrorKind = "server",
        retryable: bool = False,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        partial: Reply | None = None,
    ) -> None:
        super().__init__(message)
        self.provider = provider
        self.kind: ProviderErrorKind = kind
        self.retryable = retryable
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.partial = partial


class LimitError(HookloopError):
    """A limit with the breach mode "raise" was passed. `limit` names it."""

    def __init__(self, limit: str) -> None:
        super().__init__(f"limit {limit!r} was reached")
        self.limit = limit


class Conflict(HookloopError):
    """Another writer holds the conversation, or wrote in between. Nothing of this turn's batch was stored."""


class CorruptData(HookloopError):
    """Stored data is not what this version writes. Nothing of it was run or imported."""


class NoOpenTurn(HookloopError):
    """`resume`, `send` or `cancel` was asked for a conversation in which no turn waits or runs."""


class Cancelled(BaseException):
    """Thrown into a running turn to end it; never seen by callers. Not an `Exception`, so nothing swallows it."""

    def __init__(self, reason: str = "cancelled") -> None:
        super().__init__(reason)
        self.reason = reason


class OutputError(HookloopError):
    """The model gave no structured output that validates, though it was asked again."""
