"""Everything that can go wrong with an endpoint, as one family: `ProviderError`.

What must live here: the reading of error bodies, of statuses and of headers. Secrets are taken out of every text.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any, Final

import anyio
import httpx2

import openai
from hookloop_hookspecs import ProviderError, Reply
from hookloop_hookspecs.errors import ProviderErrorKind
from hookloop_hookspecs.redact import bounded, redact

from .values import Json, mapping, parsed, whole

_CONTEXT: Final = re.compile(
    r"context.?length|context.?window|context.?size|maximum.?context|too many (input )?tokens|prompt is too long"
    r"|input is too long|reduce the length|exceeds? the (available|model'?s?) (context|maximum)|token limit",
    re.IGNORECASE,
)
_KINDS: Final[dict[int, ProviderErrorKind]] = {
    401: "auth",
    402: "rate_limit",
    403: "auth",
    404: "not_found",
    408: "timeout",
    413: "context",
    429: "rate_limit",
    503: "overloaded",
    529: "overloaded",
}
_CODES: Final[dict[str, int]] = {
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "not_found_error": 404,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 529,
    "overloaded": 529,
    "server_overloaded": 503,
    "server_error": 500,
    "api_error": 500,
    "internal_server_error": 500,
    "timeout": 408,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "content_filter": 400,
    "tool_use_failed": 400,
}
_FINAL: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached", "context_length_exceeded"})
_RETRYABLE: Final = frozenset({408, 409, 429})


@dataclass(frozen=True, slots=True)
class Failing:
    """Who is being asked: what every error says, and the secrets that none may say."""

    provider: str
    secrets: tuple[str, ...] = field(default=(), repr=False)

    def error(
        self,
        message: str,
        kind: ProviderErrorKind,
        *,
        retryable: bool = False,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        partial: Reply | None = None,
    ) -> ProviderError:
        """One error of the family, its text bounded and without secrets."""
        headers = headers or {}
        return ProviderError(
            f"{self.provider}: {self._clean(message)}",
            provider=self.provider,
            kind=kind,
            retryable=_told(headers, retryable),
            status=status,
            request_id=request_id(headers),
            retry_after=retry_after(headers),
            partial=partial,
        )

    def stream(
        self, message: str, *, partial: Reply | None = None, headers: Mapping[str, str] | None = None
    ) -> ProviderError:
        """The answer broke off or makes no sense; asking again may help."""
        return self.error(message, "stream", retryable=True, headers=headers, partial=partial)

    def answered(
        self,
        body: object,
        status: int | None = None,
        headers: Mapping[str, str] | None = None,
        partial: Reply | None = None,
    ) -> ProviderError:
        """The server said what went wrong, by a status, by a body, or by an event in its stream."""
        said = Said.of(body)
        status = status or said.status
        known = status if status is not None and status >= 400 else None
        kind = said.kind(known)
        retryable = (
            kind != "context" and said.code not in _FINAL and (known is None or known in _RETRYABLE or known >= 500)
        )
        return self.error(said.line(status), kind, retryable=retryable, status=status, headers=headers, partial=partial)

    def raised(self, error: Exception, partial: Reply | None = None) -> ProviderError:
        """What the SDK, the HTTP library or a parser raised, as one of the family."""
        if isinstance(error, ProviderError):
            return error
        if isinstance(error, openai.APIStatusError):
            return self.answered(error.body, error.status_code, error.response.headers, partial)
        if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException | TimeoutError):
            return self.error(f"no answer in time ({_cause(error)})", "timeout", retryable=True, partial=partial)
        kind: ProviderErrorKind = "stream" if partial is not None else "connection"
        if isinstance(error, openai.APIConnectionError | httpx2.TransportError | OSError | anyio.BrokenResourceError):
            return self.error(f"the connection failed ({_cause(error)})", kind, retryable=True, partial=partial)
        if isinstance(error, httpx2.DecodingError):
            return self.stream(f"the answer cannot be decoded ({_cause(error)})", partial=partial)
        return self.error(f"the request could not be made ({_cause(error)})", "invalid", partial=partial)

    def _clean(self, text: str) -> str:
        for secret in self.secrets:
            text = text.replace(secret, "[redacted]")
        return bounded(redact(text))


@dataclass(frozen=True, slots=True)
class Said:
    """What an error body says, whatever its shape: nested, flat, a list, or plain text."""

    message: str
    code: str = ""
    status: int | None = None

    @classmethod
    def of(cls, body: object) -> Said:
        """Read a body; of a list the first element."""
        if isinstance(body, list):
            body = body[0] if body else ""
        if isinstance(body, bytes | str):
            return cls._text(body)
        outer = mapping(body)
        inner = outer.get("error") or outer.get("detail") or outer
        if not isinstance(inner, dict):
            return cls(_words(inner), _code(outer), _status(outer))
        message = inner.get("message") or inner.get("detail") or inner.get("msg") or inner
        return cls(_words(message), _code(inner) or _code(outer), _status(inner) or _status(outer))

    @classmethod
    def _text(cls, body: bytes | str) -> Said:
        try:
            value = parsed(body)
        except ValueError:
            return cls(body.decode("utf-8", "replace") if isinstance(body, bytes) else body)
        return cls.of(value) if isinstance(value, dict | list) else cls(_words(value))

    def kind(self, status: int | None) -> ProviderErrorKind:
        """The kind of failure, from the words first where they are plain."""
        if self.code == "context_length_exceeded" or (
            status in (None, 400, 413, 422, 500) and _CONTEXT.search(self.message)
        ):
            return "context"
        if status is None:
            return "server"
        return _KINDS.get(status, "server" if status >= 500 or status == 409 else "invalid")

    def line(self, status: int | None) -> str:
        """One line for people."""
        head = f"error {status}" if status else "error in the answer"
        code = f" ({self.code})" if self.code and self.code != str(status) else ""
        return f"{head}{code}: {self.message or 'no reason given'}"


def _words(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _code(body: Json) -> str:
    for name in ("code", "type", "status"):
        value = body.get(name)
        if isinstance(value, str) and value and value != "error":
            return value
    return ""


def _status(body: Json) -> int | None:
    for name in ("status_code", "status", "code"):
        value = body.get(name)
        number = whole(value) if not (isinstance(value, str) and value.isdecimal()) else int(value[:4])
        if number is not None and 400 <= number < 600:
            return number
    return next((_CODES[word] for name in ("code", "type") if (word := str(body.get(name))) in _CODES), None)


def _cause(error: BaseException) -> str:
    inner = error.__cause__ or error
    return f"{type(inner).__name__}: {inner}" if str(inner) else type(inner).__name__


def request_id(headers: Mapping[str, str]) -> str | None:
    """The request's id at the vendor, where a header has it."""
    return headers.get("x-request-id") or headers.get("request-id")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """How long the server asks to wait, in seconds, from `retry-after-ms` or `retry-after` (seconds or a date)."""
    for name, factor in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _seconds(headers.get(name), factor)
        if seconds is not None:
            return seconds
    return None


def _seconds(value: str | None, factor: float) -> float | None:
    if not value:
        return None
    try:
        seconds = float(value) * factor
    except ValueError:
        seconds = _until(value)
    return seconds if 0 <= seconds < float("inf") else None


def _until(date: str) -> float:
    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return float("inf")


def _told(headers: Mapping[str, str], otherwise: bool) -> bool:
    word = headers.get("x-should-retry", "").lower()
    return otherwise if word not in ("true", "false") else word == "true"


def has_error(body: Any) -> bool:
    """True for a body or event that is an error though its status is 200."""
    if isinstance(body, list):
        return bool(body) and has_error(body[0])
    value = mapping(body)
    return bool(value.get("error")) or value.get("object") == "error" or value.get("type") == "error"
