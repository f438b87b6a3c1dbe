"""Who may ask, from where, how much and how often: one ASGI middleware before everything else.

The rules. A page in another site's tab may not use this one (Host and Origin are compared). Bound beyond this machine, a
token is needed. Bodies are bounded before they are read. Each client has a bucket of requests. Every browser has a
session, a random cookie that scripts cannot read; it comes along when a link from elsewhere is followed (SameSite=Lax), else that
would begin a new session, and nothing but a GET is let in that way.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SESSION: Final = "hookloop_session"
TOKEN: Final = "hookloop_token"
SCOPE_KEY: Final = "hookloop.session"
LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})

POLICY: Final = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self' data:; connect-src 'self'; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
"""NiceGUI compiles its templates in the browser, so scripts need 'unsafe-eval'; nothing is loaded from elsewhere."""


@dataclass(frozen=True, slots=True)
class GuardOptions:
    """What is let in.

    `hosts`: names under which the page may be asked (None: any, for binding beyond this machine); `token`: needed when not
    empty; `body`: bytes; `rate`: requests a second of one client, `burst` at once.
    """

    hosts: frozenset[str] | None = LOOPBACK
    token: str = ""
    body: int = 1_000_000
    rate: float = 50.0
    burst: int = 200


class Guard:
    """The middleware. Refusals are JSON: `{"detail": …}` with 400, 401, 403, 413 or 429."""

    def __init__(self, app: ASGIApp, options: GuardOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self.app = app
        self.options = options
        self._buckets = Buckets(options.rate, options.burst, clock)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let one request through, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        cookies = _cookies(headers)
        refusal = self._refusal(scope, headers, cookies)
        if refusal is not None:
            await _refuse(refusal, scope, receive, send)
            return
        known = cookies.get(SESSION, "")
        session = known if len(known) >= 20 else secrets.token_urlsafe(24)
        scope[SCOPE_KEY] = session
        cookie = "" if session == known else f"{SESSION}={session}; Path=/; HttpOnly; SameSite=Lax; Max-Age=31536000"
        await self.app(scope, self._bounded(receive), _with_headers(send, cookie))

    def _refusal(self, scope: Scope, headers: Headers, cookies: Mapping[str, str]) -> Response | None:
        if self.options.hosts is not None and _hostname(headers.get("host", "")) not in self.options.hosts:
            return _said(400, "this page is not served under that name")
        if _from_elsewhere(scope, headers):
            return _said(403, "requests from other origins are refused")
        if self.options.token and not _same(_token(headers, cookies), self.options.token):
            return self._admission(scope)
        if _length(headers) > self.options.body:
            return _said(413, f"a request has at most {self.options.body} bytes")
        client = scope.get("client") or ("", 0)
        wait = self._buckets.take(client[0])
        return _said(429, "too many requests; wait a moment", {"Retry-After": str(int(wait) + 1)}) if wait > 0 else None

    def _admission(self, scope: Scope) -> Response:
        """A link with the right `?token=` gives a browser its cookie; all else is refused."""
        query = parse_qsl(scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
        given = dict(query).get("token", "")
        if scope["type"] != "http" or scope["method"] != "GET" or not _same(given, self.options.token):
            return _said(401, "a token is needed", {"WWW-Authenticate": "Bearer"})
        rest = urlencode([(name, value) for name, value in query if name != "token"])
        path = "/" + scope["path"].lstrip("/")
        answer = RedirectResponse(path + (f"?{rest}" if rest else ""), 303)
        answer.set_cookie(TOKEN, given, httponly=True, samesite="lax", max_age=31_536_000)
        return answer

    def _bounded(self, receive: Receive) -> Receive:
        """A body without a length is cut off where it becomes too long: the client is taken as gone."""
        seen = 0

        async def bounded() -> Message:
            nonlocal seen
            message = await receive()
            if message["type"] == "http.request":
                seen += len(message.get("body", b""))
                if seen > self.options.body:
                    return {"type": "http.disconnect"}
            return message

        return bounded


class Buckets:
    """A token bucket for each client; the oldest are forgotten."""

    def __init__(self, rate: float, burst: int, clock: Callable[[], float], kept: int = 10_000) -> None:
        self._rate, self._burst, self._clock, self._kept = rate, burst, clock, kept
        self._clients: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> float:
        """Take one; 0 where there was one, else the seconds until there will be."""
        now = self._clock()
        left, at = self._clients.pop(client, (float(self._burst), now))
        left = min(float(self._burst), left + (now - at) * self._rate)
        self._clients[client] = (left - 1 if left >= 1 else left, now)
        if len(self._clients) > self._kept:
            self._clients.popitem(last=False)
        return 0.0 if left >= 1 else (1 - left) / self._rate


def session_of(scope: Scope) -> str:
    """The session that the guard found or made for this request."""
    return str(scope[SCOPE_KEY])


def _from_elsewhere(scope: Scope, headers: Headers) -> bool:
    """True for what a page of another origin asks. A link may be followed from anywhere: that is a GET without Origin."""
    origin = headers.get("origin")
    if origin is not None:
        return urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    if headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none"):
        return False
    return scope["type"] != "http" or scope["method"] not in ("GET", "HEAD") or not _is_navigation(headers)


def _is_navigation(headers: Headers) -> bool:
    return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"


def _hostname(host: str) -> str:
    return (urlsplit(f"//{host}").hostname or "") if host.count("[") == host.count("]") else ""


def _token(headers: Headers, cookies: Mapping[str, str]) -> str:
    scheme, _, given = headers.get("authorization", "").partition(" ")
    return given.strip() if scheme.lower() == "bearer" else cookies.get(TOKEN, "")


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _length(headers: Headers) -> int:
    text = headers.get("content-length", "0")
    return int(text) if text.isascii() and text.isdigit() else 0


def _cookies(headers: Headers) -> dict[str, str]:
    try:
        return {name: morsel.value for name, morsel in SimpleCookie(headers.get("cookie", "")).items()}
    except CookieError:
        return {}


def _said(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"detail": detail}, status, headers)


async def _refuse(refusal: Response, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await refusal(scope, receive, send)


def _with_headers(send: Send, cookie: str) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            headers["X-Content-Type-Options"] = "nosniff"
            headers["Referrer-Policy"] = "same-origin"
            if headers.get("content-type", "").startswith("text/html"):
                headers["Content-Security-Policy"] = POLICY
                if cookie:
                    headers.append("Set-Cookie", cookie)
        await send(message)

    return sending
