"""What a user may set."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, PositiveFloat


class RedisOptions(BaseModel):
    """Options of a Redis memory.

    `ttl`: seconds after its last write when a conversation is gone; None keeps it. `prefix`: what all keys begin with.
    `timeout`: seconds to wait for the server.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    ttl: PositiveFloat | None = None
    prefix: str = "hookloop"
    timeout: PositiveFloat = 30.0
