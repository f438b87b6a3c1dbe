"""What stands behind a click on a round: its exact request, or the best that a record gives, and its reply."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from hookloop_hookspecs import ModelRequest

from .agents import Told
from .plain import pretty, whole_request


@dataclass(slots=True)
class Exchange:
    """A round's request and reply, as they were told. `fresh` are the messages that were new in the request."""

    request: dict[str, Any] = field(default_factory=dict)
    exact: ModelRequest | None = None
    fresh: list[Any] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)

    def ask(self, told: Told) -> None:
        """The request went out."""
        self.fresh = list(told.data.get("messages") or ()) or self.fresh
        self.exact = told.request
        self.request = {key: value for key, value in told.data.items() if key != "messages" and value is not None}

    def shown(self, before: Sequence[Any]) -> list[tuple[str, str]]:
        """Titles and texts. `before` are the messages that were told before this request."""
        if self.exact is not None:
            parts = [("Request", pretty(whole_request(self.exact)))]
        else:
            wanted = int(self.request.get("size", 0))
            messages = [*before, *self.fresh][-wanted:] if wanted else []
            parts = [("Request, put together from what was recorded", pretty({**self.request, "messages": messages}))]
        return [*parts, ("Reply", pretty(self.reply))] if self.reply else parts


def messages_before(turns: Sequence[Mapping[int, Exchange]], number: int) -> list[Any]:
    """What was told of messages before round `number` of the last of these turns."""
    earlier = (exchange.fresh for turn in turns[:-1] for exchange in turn.values())
    here = (exchange.fresh for at, exchange in sorted(turns[-1].items()) if at < number)
    return list(chain.from_iterable(chain(earlier, here)))
