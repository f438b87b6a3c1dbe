"""Claude through the Messages API. Here is only what waits: two edges that read bytes, and who asks again when."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
from contextlib import aclosing, closing
from typing import Any, ClassVar, Final, cast
from urllib.parse import urlsplit

import httpx2
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception,
    stop_after_attempt,
    wait_exponential_jitter,
)
from tenacity.nap import sleep_using_event

import anthropic
from hookloop_hookspecs import (
    ConfigError,
    Delta,
    ModelRequest,
    Provider,
    ProviderError,
    ProviderTraits,
    Reply,
    ThinkingDelta,
)

from .asking import Asker
from .blocks import Maker
from .clients import AsyncClients, Live, SyncClient
from .encode import Encoded
from .errors import NAME, translate
from .models import generation, plain
from .options import Options as _Options
from .parts import Reader
from .reading import Call, Reading
from .thinking import BINDING_BETA, Thinker

PATH: Final = "/v1/messages"
VENDOR: Final = "api.anthropic.com"
PATIENCE: Final = 60.0
"""The longest wait, in seconds, that the server may wish for; a longer one is left to the caller."""

_backoff = wait_exponential_jitter(multiplier=0.5, max=8.0, jitter=0.5)


class AnthropicProvider(Provider):
    """A Claude model, sync and async, streamed or whole.

    Arguments: `model`, the model's id; `options`, see `Options`. Raises `ConfigError` without a key, and for thinking
    options that the model refuses. One object serves any number of threads and event loops.
    """

    name = NAME
    Options: ClassVar[type[_Options]] = _Options

    def __init__(self, model: str, options: _Options | None = None) -> None:
        self.options = options or _Options()
        self.model = model
        facts = generation(model)
        thinker = Thinker(model, facts, self.options)
        thinker.check()
        self._asker = Asker(model, facts, self.options, thinker)
        self._headers = _headers(self.options, thinker)
        settings = {
            "api_key": self.options.key(),
            "base_url": self.options.address,
            "max_retries": 0,
            "timeout": _timeout(self.options),
        }
        self._sync = SyncClient(settings)
        self._async = AsyncClients(settings)
        self.family = _family(model, self.options.address)
        self.traits = ProviderTraits(structured=facts.structured, vision=True, bound_thinking=facts.bound)
        self._reader = Reader(NAME, self.family, thinking=self.options.thinking != "off")

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        """Ask the model; yields deltas, then the reply. Raises `ProviderError`."""
        call = self._call(request)
        shown: list[object] = []
        with self._sync.live(request) as live:
            again = _retrying(self.options, shown)
            for attempt in Retrying(**again, sleep=sleep_using_event(live.aborted)):
                with attempt, closing(self._once(call, live)) as items:
                    for item in items:
                        _note(shown, item)
                        yield item

    async def astream(self, request: ModelRequest) -> AsyncIterator[Delta | Reply]:
        """Ask the model; yields deltas, then the reply. Raises `ProviderError`."""
        call = self._call(request)
        shown: list[object] = []
        async for attempt in AsyncRetrying(**_retrying(self.options, shown)):
            with attempt:
                async with aclosing(self._aonce(call)) as items:
                    async for item in items:
                        _note(shown, item)
                        yield item

    def abort(self, request: ModelRequest) -> None:
        """Make a `stream` of this request, blocked in another thread, raise soon."""
        self._sync.abort(request)

    def close(self) -> None:
        """Close the sync connections."""
        self._sync.close()

    async def aclose(self) -> None:
        """Close the running loop's connections, and the sync ones."""
        self._sync.close()
        await self._async.aclose()

    def encode(self, request: ModelRequest) -> bytes:
        """The body that `stream` and `astream` would send, as UTF-8 JSON. Pure, but for the request's memo.

        Raises `ProviderError` where the request cannot be encoded.
        """
        return self._call(request).body

    def _call(self, request: ModelRequest) -> Call:
        try:
            encoded = self._encoded(request)
            body = self._asker.body(request, encoded)
        except Exception as error:
            raise translate(error) from error
        arguments = {tool: {wire: name for name, wire in names.items()} for tool, names in encoded.renames.items()}
        maker = Maker(NAME, self.family, encoded.names.back, arguments)
        return Call(body, self._headers, maker, self.options)

    def _encoded(self, request: ModelRequest) -> Encoded:
        """What the memo holds of this epoch, completed; made anew where it is not a beginning of this request."""
        found = request.memo.get(NAME)
        if not isinstance(found, Encoded) or not found.continues(request, self._reader):
            found = Encoded(request, self._reader, self._asker.generation)
            request.memo[NAME] = found
        found.extend(request.messages)
        return found

    def _once(self, call: Call, live: Live) -> Generator[Delta | Reply]:
        began = time.monotonic()
        response = self._post(call, live)
        with closing(response):
            reading = Reading(call, response.headers, began=began)
            try:
                for chunk in response.iter_bytes():
                    yield from reading.feed(chunk)
            except Exception as error:
                if not reading.done or live.aborted.is_set():
                    raise live.told(reading.failure(error)) from None
            yield from reading.finish()

    def _post(self, call: Call, live: Live) -> httpx2.Response:
        try:
            with self._sync.sending(live):
                live.response = cast(httpx2.Response, self._sync.get().post(**_posted(call)))
                return live.response
        except Exception as error:
            raise live.told(translate(error)) from None

    async def _aonce(self, call: Call) -> AsyncGenerator[Delta | Reply]:
        began = time.monotonic()
        response = await self._apost(call)
        try:
            reading = Reading(call, response.headers, began=began)
            try:
                async for chunk in response.aiter_bytes():
                    for delta in reading.feed(chunk):
                        yield delta
            except Exception as error:
                if not reading.done:
                    raise reading.failure(error) from None
            for item in reading.finish():
                yield item
        finally:
            await response.aclose()

    async def _apost(self, call: Call) -> httpx2.Response:
        try:
            client = await self._async.get()
            return cast(httpx2.Response, await client.post(**_posted(call, stream_cls=anthropic.AsyncStream)))
        except Exception as error:
            raise translate(error) from None


def _posted(call: Call, stream_cls: type[Any] = anthropic.Stream) -> dict[str, Any]:
    """The arguments of the SDK's `post`: the encoded body as it is, the response unread."""
    return {
        "path": PATH,
        "cast_to": httpx2.Response,
        "content": call.body,
        "options": {"headers": dict(call.headers)},
        "stream": True,
        "stream_cls": stream_cls[Any],
    }


def _retrying(options: _Options, shown: list[object]) -> dict[str, Any]:
    """When to ask again: on what may help, while nothing visible was given out."""

    def may_help(error: BaseException) -> bool:
        if not isinstance(error, ProviderError) or shown:
            return False
        return error.retryable and (error.retry_after or 0.0) <= PATIENCE

    return {
        "retry": retry_if_exception(may_help),
        "stop": stop_after_attempt(options.retries + 1),
        "wait": _wait,
        "reraise": True,
    }


def _wait(state: RetryCallState) -> float:
    error = state.outcome.exception() if state.outcome else None
    wish = error.retry_after if isinstance(error, ProviderError) else None
    return _backoff(state) if wish is None else wish


def _note(shown: list[object], item: object) -> None:
    if not shown and not isinstance(item, ThinkingDelta):
        shown.append(item)


def _headers(options: _Options, thinker: Thinker) -> dict[str, str]:
    """The options' headers, with the beta that the options need added to theirs."""
    headers = dict(options.headers)
    betas = [headers.pop(name) for name in list(headers) if name.lower() == "anthropic-beta"]
    wanted = [*betas, *([BINDING_BETA] if thinker.binds else [])]
    return {**headers, "anthropic-beta": ",".join(wanted)} if wanted else headers


def _timeout(options: _Options) -> httpx2.Timeout:
    silence = options.request_timeout if options.transport == "whole" else options.idle_timeout
    read = min(silence, options.request_timeout)
    return httpx2.Timeout(read, connect=min(10.0, options.request_timeout))


def _family(model: str, base_url: str | None) -> str:
    """Models that read each other's thinking: one model, whatever its date, on one platform."""
    host = _host(base_url) if base_url else VENDOR
    return plain(model) if host == VENDOR else f"{plain(model)}@{host}"


def _host(base_url: str) -> str:
    """The address's host. Raises `ConfigError` for what is no web address."""
    try:
        parts = urlsplit(base_url)
        good = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise ConfigError(f"base_url {base_url!r} is no web address; it begins with http:// or https://")
    return urlsplit(base_url).hostname or ""
