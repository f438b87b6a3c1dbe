"""When a failed request is made again, and after how long. Only before anything visible came."""

from __future__ import annotations

from typing import Any, Final

from tenacity import RetryCallState, retry_if_exception, stop_after_attempt, wait_exponential_jitter

from hookloop_hookspecs import ProviderError

LONGEST: Final = 60.0

_backoff: Final = wait_exponential_jitter(multiplier=0.5, max=8.0, jitter=0.5)


def policy(retries: int, may: Any) -> dict[str, Any]:
    """The arguments that the sync and the async retrying share.

    `retries` is how often more; `may(error)` says whether this failure may be tried again at all.
    """
    return {
        "stop": stop_after_attempt(retries + 1),
        "wait": _wait,
        "retry": retry_if_exception(lambda error: isinstance(error, ProviderError) and may(error)),
        "reraise": True,
    }


def _wait(state: RetryCallState) -> float:
    """What the server asked for, else longer and longer."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, ProviderError) else None
    return _backoff(state) if asked is None else asked
