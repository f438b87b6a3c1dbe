"""What a user may set."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, PositiveFloat, PositiveInt


class SqlOptions(BaseModel):
    """Options of a SQL memory.

    `synchronous` (SQLite): "full" survives a loss of power after every write; "normal" survives the death of the
    process, but a loss of power may take the last writes. `busy_timeout` (SQLite): seconds that a writer waits for
    others. `pool_size`: connections kept open per process; as many again may be opened for a while.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    synchronous: Literal["full", "normal"] = "full"
    busy_timeout: PositiveFloat = 30.0
    pool_size: PositiveInt = 10
