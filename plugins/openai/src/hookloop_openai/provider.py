"""The provider: one request in, deltas and a reply out. All logic is elsewhere; here it is put together."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import ClassVar

from tenacity import AsyncRetrying, Retrying

from hookloop_hookspecs import ConfigError, Delta, ModelRequest, Provider, ProviderError, ProviderTraits, Reply

from .encoding import assembly_for, encoded
from .errors import Failing
from .exchange import Exchange
from .identity import Identity
from .options import Options as OpenAIOptions
from .options import base_url_for, key_for, profile_for, tag_for
from .profile import Api
from .transport import AsyncTransport, Endpoint, SyncTransport


class OpenAIProvider(Provider):
    """Asks an OpenAI-compatible endpoint through Chat Completions or Responses.

    Arguments: `model` is the model's id at the endpoint; `options` as in `Options`. Raises `ConfigError` where the key,
    the address or the profile is missing or wrong.
    """

    Options: ClassVar[type[OpenAIOptions]] = OpenAIOptions
    default_profile: ClassVar[str] = "openai"

    def __init__(self, model: str, options: OpenAIOptions | None = None) -> None:
        options = options or OpenAIOptions()
        profile = profile_for(options, self.default_profile)
        if not model:
            raise ConfigError(f'{profile.name}: a model must be named, as in "{profile.name}:MODEL"')
        base_url, key = base_url_for(options, profile), key_for(options, profile)
        vision = profile.vision if options.vision is None else options.vision
        self.name = profile.name
        self.model = model
        self.family = profile.family_of(model)
        self.traits = ProviderTraits(structured=profile.structured, vision=vision)
        self.api: Api = options.api or profile.api_for(model)
        self._options = options
        self._identity = Identity(self.name, tag_for(profile, base_url), self.family, model, profile, vision)
        self._failing = Failing(self.name, _secrets(key, options))
        endpoint = Endpoint(
            base_url,
            key,
            options.organization,
            ({profile.key_header: key} if profile.key_header else {}) | options.headers,
            options.request_timeout,
            ambient=profile.key_env == "OPENAI_API_KEY",
        )
        self._sync = SyncTransport(endpoint)
        self._async = AsyncTransport(endpoint)
        self._running: dict[int, Exchange] = {}

    def stream(self, request: ModelRequest) -> Iterator[Delta | Reply]:
        """Ask the model; yields deltas, then the reply. Raises `ProviderError`."""
        with self._exchange(request) as exchange:
            for attempt in Retrying(sleep=exchange.sleep, **exchange.policy()):
                try:
                    yield from self._sync.attempt(exchange)
                except ProviderError as error:
                    attempt.retry_state.set_exception((type(error), error, error.__traceback__))
                else:
                    return

    async def astream(self, request: ModelRequest) -> AsyncGenerator[Delta | Reply, None]:
        """Ask the model; yields deltas, then the reply. Raises `ProviderError`."""
        with self._exchange(request) as exchange:
            async for attempt in AsyncRetrying(sleep=exchange.asleep, **exchange.policy()):
                try:
                    async with aclosing(self._async.attempt(exchange)) as deltas:
                        async for delta in deltas:
                            yield delta
                except ProviderError as error:
                    attempt.retry_state.set_exception((type(error), error, error.__traceback__))
                else:
                    return

    def abort(self, request: ModelRequest) -> None:
        """End a `stream` of this request that is blocked; it raises `ProviderError` soon."""
        exchange = self._running.get(id(request))
        if exchange is not None:
            exchange.give_up()

    def close(self) -> None:
        """Close the connections of sync calls."""
        self._sync.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        await self._async.aclose()

    @contextmanager
    def _exchange(self, request: ModelRequest) -> Iterator[Exchange]:
        exchange = Exchange(
            "/responses" if self.api == "responses" else "/chat/completions",
            encoded(request, self._identity, self.api, self._failing, stream=self._options.transport == "stream"),
            self._failing,
            assembly_for(request, self._identity, self.api, self._options.prices),
            self._options.retries,
            self._options.idle_timeout,
        )
        self._running[id(request)] = exchange
        try:
            yield exchange
        finally:
            self._running.pop(id(request), None)


def _secrets(key: str, options: OpenAIOptions) -> tuple[str, ...]:
    """The key, and what stands in headers that carry keys."""
    values = [value for name, value in options.headers.items() if "auth" in name.lower() or "key" in name.lower()]
    return tuple(secret for secret in (key, *values) if len(secret) > 5)
