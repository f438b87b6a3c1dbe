"""Token counts as the Messages API reports them, into `Usage`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from hookloop_hookspecs import Usage

from .options import Prices

_FIELDS: Final[Mapping[str, str]] = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_input_tokens": "cache_read",
    "cache_creation_input_tokens": "cache_write",
}


class Meter:
    """Counts of one reply. They are cumulative: a later number stands for an earlier one, null keeps it."""

    def __init__(self, prices: Prices | None = None) -> None:
        self._prices = prices
        self._seen: dict[str, int] = {}

    def read(self, usage: object) -> None:
        """Take over what a `usage` object says."""
        if not isinstance(usage, Mapping):
            return
        self._take(usage, _FIELDS)
        self._take(usage.get("output_tokens_details"), {"thinking_tokens": "reasoning"})

    def _take(self, counts: object, fields: Mapping[str, str]) -> None:
        for theirs, ours in fields.items():
            count = counts.get(theirs) if isinstance(counts, Mapping) else None
            if isinstance(count, int) and not isinstance(count, bool) and count >= 0:
                self._seen[ours] = count

    @property
    def usage(self) -> Usage:
        """The counts so far, with total and cost where they are known."""
        seen = self._seen
        parts = [seen[name] for name in _FIELDS.values() if name in seen]
        counted = Usage(
            input=seen.get("input"),
            output=seen.get("output"),
            cache_read=seen.get("cache_read"),
            cache_write=seen.get("cache_write"),
            reasoning=seen.get("reasoning"),
            total=sum(parts) if parts else None,
        )
        return replace(counted, cost=cost(counted, self._prices))


def cost(usage: Usage, prices: Prices | None) -> float | None:
    """What these tokens cost; None without prices or without counts."""
    if prices is None or usage.total is None:
        return None
    read = prices.input * 0.1 if prices.cache_read is None else prices.cache_read
    write = prices.input * 1.25 if prices.cache_write is None else prices.cache_write
    spent = (
        (usage.input or 0) * prices.input
        + (usage.output or 0) * prices.output
        + (usage.cache_read or 0) * read
        + (usage.cache_write or 0) * write
    )
    return spent / 1_000_000
