"""One output item of a response as it grows."""

from __future__ import annotations

from dataclasses import dataclass, field

from .values import Json, Pairs, mapping, sequence, string


@dataclass(slots=True)
class Item:
    """What is known of an item: where it stands, how it was sent, and the pieces that came before it was done.

    `call` counts the calls of the reply; `complete` says that the arguments were declared complete.
    """

    position: int
    sent: Json = field(default_factory=dict)
    done: bool = False
    complete: bool = False
    call: int | None = None
    text: list[str] = field(default_factory=list)
    thought: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    places: set[int | None] = field(default_factory=set)
    text_pairs: Pairs = field(default_factory=Pairs)
    thought_pairs: Pairs = field(default_factory=Pairs)

    @property
    def type(self) -> str:
        """The item's type; guessed from its pieces where it was never announced."""
        if said := string(self.sent.get("type")):
            return said
        if self.raw:
            return "function_call"
        return "message" if self.text or self.refusal else "reasoning" if self.thought else ""

    def refused(self) -> bool:
        """True where the model declined in so many words."""
        parts = [mapping(part) for part in sequence(self.sent.get("content"))]
        return any(self.refusal) or any(part.get("type") == "refusal" for part in parts)
