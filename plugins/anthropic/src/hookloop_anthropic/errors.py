"""Every failure as one `ProviderError`: what the SDK, httpx2 or JSON raise, and what the server says in a stream.

Messages are bounded and keys in them blanked; the SDK's own exceptions are not chained, since their text holds the
server's raw answer.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from typing import Any, Final

import httpx2

import anthropic
from hookloop_hookspecs import ProviderError, Reply
from hookloop_hookspecs.errors import ProviderErrorKind
from hookloop_hookspecs.redact import bounded, redact

NAME: Final = "anthropic"
LONGEST: Final = 1000

_SECRET: Final = re.compile(
    r"sk-ant-[\w-]+|(?<=bearer )[^\s\"',]+|(?<=key=)[^\s&\"']+|(?<=token=)[^\s&\"']+|(?<=x-api-key: )\S+", re.IGNORECASE
)
_TOO_LONG: Final = re.compile(
    r"prompt is too long|exceeds? (the )?(model'?s )?(maximum )?context|context (window|limit|length)|too many tokens",
    re.IGNORECASE,
)
_BY_TYPE: Final[Mapping[str, tuple[int, ProviderErrorKind]]] = {
    "invalid_request_error": (400, "invalid"),
    "authentication_error": (401, "auth"),
    "billing_error": (402, "auth"),
    "permission_error": (403, "auth"),
    "not_found_error": (404, "not_found"),
    "request_too_large": (413, "context"),
    "rate_limit_error": (429, "rate_limit"),
    "api_error": (500, "server"),
    "timeout_error": (504, "timeout"),
    "overloaded_error": (529, "overloaded"),
}
_BY_STATUS: Final[Mapping[int, ProviderErrorKind]] = {
    401: "auth",
    402: "auth",
    403: "auth",
    404: "not_found",
    408: "timeout",
    413: "context",
    429: "rate_limit",
    504: "timeout",
    529: "overloaded",
}


def clean(text: str) -> str:
    """The text with keys blanked, bounded in length."""
    return bounded(redact(_SECRET.sub("***", text)), LONGEST)


def stream_error(message: str, *, partial: Reply | None = None, request_id: str | None = None) -> ProviderError:
    """A stream that broke or made no sense."""
    return ProviderError(
        clean(message), provider=NAME, kind="stream", retryable=True, partial=partial, request_id=request_id
    )


def timeout_error(message: str, *, partial: Reply | None = None, request_id: str | None = None) -> ProviderError:
    """An answer that took too long."""
    return ProviderError(message, provider=NAME, kind="timeout", retryable=True, partial=partial, request_id=request_id)


def said_error(body: object, *, partial: Reply | None = None, request_id: str | None = None) -> ProviderError:
    """The error in a JSON body or an `error` event that came with a good status."""
    kind, message = _said(body)
    status, known = _BY_TYPE.get(kind, (500, "server"))
    return _status_error(status, known, kind, message, request_id=request_id, partial=partial)


def translate(error: Exception, *, partial: Reply | None = None, request_id: str | None = None) -> ProviderError:
    """Whatever was raised while asking, as a `ProviderError`."""
    if isinstance(error, ProviderError):
        return error
    if isinstance(error, anthropic.APIStatusError):
        return _answered(error)
    if isinstance(error, anthropic.APITimeoutError | httpx2.TimeoutException):
        return timeout_error(f"no answer in time ({_root(error)})", partial=partial, request_id=request_id)
    if isinstance(error, anthropic.APIConnectionError) and not _our_fault(error):
        return ProviderError(f"could not connect: {_root(error)}", provider=NAME, kind="connection", retryable=True)
    if isinstance(error, httpx2.TransportError | httpx2.StreamError | httpx2.DecodingError):
        return stream_error(f"the stream broke: {_root(error)}", partial=partial, request_id=request_id)
    return ProviderError(f"could not ask: {_root(error)}", provider=NAME, kind="invalid", partial=partial)


def _our_fault(error: Exception) -> bool:
    """True where the SDK calls a request that could not even be written a connection error."""
    cause = error.__cause__
    wrong = httpx2.UnsupportedProtocol | httpx2.LocalProtocolError | httpx2.InvalidURL
    return cause is not None and (isinstance(cause, wrong) or not isinstance(cause, httpx2.HTTPError | OSError))


def _root(error: Exception) -> str:
    cause = error.__cause__ or error
    return clean(f"{type(cause).__name__}: {cause}")


def _answered(error: anthropic.APIStatusError) -> ProviderError:
    headers, status = error.response.headers, error.status_code
    kind, message = _said(error.body)
    known = _BY_STATUS.get(status) or ("server" if status >= 500 else "invalid")
    return _status_error(
        status,
        known,
        kind,
        message,
        request_id=headers.get("request-id"),
        retry_after=retry_after(headers),
        told=headers.get("x-should-retry", ""),
    )


def _status_error(
    status: int,
    kind: ProviderErrorKind,
    word: str,
    message: str,
    *,
    request_id: str | None,
    partial: Reply | None = None,
    retry_after: float | None = None,
    told: str = "",
) -> ProviderError:
    if kind == "invalid" and _TOO_LONG.search(message):
        kind = "context"
    again = status in (408, 409, 429) or status >= 500
    return ProviderError(
        clean(f"{status} {word}: {message}"),
        provider=NAME,
        kind=kind,
        status=status,
        retryable={"true": True, "false": False}.get(told, again),
        request_id=request_id,
        retry_after=retry_after,
        partial=partial,
    )


def _said(body: object) -> tuple[str, str]:
    """Type and message of an error body in any of the shapes that servers send."""
    inner: Any = body.get("error", body) if isinstance(body, Mapping) else body
    if isinstance(inner, Mapping):
        kind, message = inner.get("type"), inner.get("message")
        return str(kind or "error"), str(message if message is not None else json.dumps(inner, default=str))
    return "error", str(inner)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The server's wish in seconds: `retry-after-ms`, or `retry-after` as a number or a date."""
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    wish = headers.get("retry-after")
    seconds = _number(wish)
    if seconds is not None or not wish:
        return seconds
    date = email.utils.parsedate_tz(wish)
    return None if date is None else max(0.0, email.utils.mktime_tz(date) - time.time())


def _number(text: str | None) -> float | None:
    try:
        value = float(text or "")
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None
