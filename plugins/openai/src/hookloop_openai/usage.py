"""Token counts: the vendor's words to ours, exact, with None for what was not said."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, NonNegativeFloat

from hookloop_hookspecs import Usage

from .values import Json, mapping, whole


class Prices(BaseModel):
    """What a million tokens cost, in any currency. Cached input counts as input where it has no price of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    input: NonNegativeFloat
    output: NonNegativeFloat
    cache_read: NonNegativeFloat | None = None
    cache_write: NonNegativeFloat | None = None

    def cost(self, usage: Usage) -> float | None:
        """What these tokens cost; None where input or output is not known."""
        if usage.input is None or usage.output is None:
            return None
        read, written = usage.cache_read or 0, usage.cache_write or 0
        total = max(0, usage.input - read - written) * self.input + usage.output * self.output
        total += read * (self.input if self.cache_read is None else self.cache_read)
        total += written * (self.input if self.cache_write is None else self.cache_write)
        return total / 1_000_000


def usage_of(sent: Json, prices: Prices | None = None) -> Usage:
    """The usage object of either API as counts, with its cost where prices are known."""
    usage = _counts(sent)
    cost = prices.cost(usage) if prices else None
    return usage if cost is None else usage + Usage(cost=cost)


def _counts(sent: Json) -> Usage:
    before = mapping(sent.get("prompt_tokens_details") or sent.get("input_tokens_details"))
    after = mapping(sent.get("completion_tokens_details") or sent.get("output_tokens_details"))
    read, written = _first(sent, "prompt_tokens", "input_tokens"), _first(sent, "completion_tokens", "output_tokens")
    cached = _first(before, "cached_tokens")
    return Usage(
        input=read,
        output=written,
        cache_read=_first(sent, "prompt_cache_hit_tokens", "cache_read_input_tokens") if cached is None else cached,
        cache_write=_first({**sent, **before}, "cache_write_tokens", "cache_creation_input_tokens"),
        reasoning=_first(after, "reasoning_tokens"),
        total=_total(_first(sent, "total_tokens"), read, written),
    )


def _total(said: int | None, read: int | None, written: int | None) -> int | None:
    if said is not None or read is None or written is None:
        return said
    return read + written


def _first(sent: Json, *names: str) -> int | None:
    return next((count for name in names if (count := whole(sent.get(name))) is not None), None)
