"""The provider's options: what a config file or `provider("anthropic:…", …)` may say."""

from __future__ import annotations

import os
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr

from hookloop_hookspecs import ConfigError

KEY = "ANTHROPIC_API_KEY"
ADDRESS = "ANTHROPIC_BASE_URL"


class Prices(BaseModel):
    """Prices per million tokens, in any currency; `Usage.cost` is then in it.

    Cache prices default to the usual parts of the input price: a tenth for reads, five quarters for writes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None


class Options(BaseModel):
    """Options of the provider.

    `api_key` defaults to the environment's ANTHROPIC_API_KEY, `base_url` to its ANTHROPIC_BASE_URL, then
    to the vendor's own. `transport`: "stream" reads events as they come, "whole" one JSON body. `request_timeout` bounds one
    attempt, `idle_timeout` the silence between two pieces of a stream, both in seconds. `retries` more attempts are
    made before anything visible has arrived. `headers` are sent with each request. `thinking`: "off", "adaptive", a
    token budget, or None for the model's default. `max_tokens` bounds a reply where a request does not. `cache` places
    cache marks. `binding`: what happens to bound thinking whose conversation has changed: "keep" lets the server refuse
    it, "drop_block" asks the server to drop it (which is also asked where the engine had to cut the open turn).
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    api_key: SecretStr | None = None
    base_url: str | None = None
    transport: Literal["stream", "whole"] = "stream"
    request_timeout: float = Field(default=1800.0, gt=0)
    idle_timeout: float = Field(default=120.0, gt=0)
    retries: int = Field(default=2, ge=0)
    headers: dict[str, str] = Field(default_factory=dict)
    thinking: Literal["off", "adaptive"] | int | None = None
    max_tokens: int | None = Field(default=None, ge=0)
    cache: bool = True
    prices: Prices | None = None
    binding: Literal["keep", "drop_block"] = "keep"

    @property
    def address(self) -> str | None:
        """Where to ask; None for the vendor's own address."""
        return self.base_url or os.environ.get(ADDRESS) or None

    def key(self) -> str:
        """The API key. Raises `ConfigError`, naming the environment variable, where there is none."""
        given = self.api_key.get_secret_value() if self.api_key else os.environ.get(KEY, "")
        if not given.strip():
            raise ConfigError(f"no API key for anthropic: set {KEY}, or give the option api_key")
        return given.strip()
