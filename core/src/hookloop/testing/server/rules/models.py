"""What a model's name says about the rules that hold for it. Unknown names have none of the newest rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_OLD_CLAUDE = re.compile(r"claude-(\d+)(?:[-.](\d{1,2}))?-(opus|sonnet|haiku)")
_CLAUDE = re.compile(r"claude-(opus|sonnet|haiku|fable)-(\d{1,2})(?!\d)(?:[-.](\d{1,2})(?!\d))?")
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?")
_O_SERIES = re.compile(r"(?:^|/)o\d")

Version = tuple[int, int]
UNKNOWN: Version = (0, 0)


@dataclass(frozen=True, slots=True)
class Claude:
    """A Claude model: its family and version; version (0, 0) where the name says none."""

    family: str
    version: Version

    @property
    def known(self) -> bool:
        """True where the name says a version."""
        return self.version != UNKNOWN

    @property
    def takes_prefill(self) -> bool:
        """Until 4.6 the last message may be an assistant's beginning."""
        return self.version < (4, 6)

    @property
    def takes_enabled(self) -> bool:
        """Until 4.7 thinking may have a fixed budget."""
        return self.version < (4, 7)

    @property
    def takes_adaptive(self) -> bool:
        """From 4.6 on thinking may be adaptive."""
        return not self.known or self.version >= (4, 6)

    @property
    def thinks_unasked(self) -> bool:
        """The 5 family thinks when the request does not say."""
        return self.version >= (5, 0)

    @property
    def takes_system_messages(self) -> bool:
        """Opus 4.8 and the 5 family know system messages inside the conversation."""
        return self.version >= ((4, 8) if self.family == "opus" else (5, 0))

    @property
    def fixed_sampling(self) -> bool:
        """Opus 4.7 and the 5 family take only the default temperature, top_p and top_k."""
        return self.version >= ((4, 7) if self.family == "opus" else (5, 0))

    @property
    def binds_thinking(self) -> bool:
        """Fable 5.1 and the others from 5.5 on bind thinking to everything before it."""
        return self.version >= ((5, 1) if self.family == "fable" else (5, 5))


@lru_cache(maxsize=256)
def claude(model: str) -> Claude:
    """What a Claude model's name says."""
    if old := _OLD_CLAUDE.search(model):
        return Claude(old[3], (int(old[1]), int(old[2] or 0)))
    if new := _CLAUDE.search(model):
        return Claude(new[1], (int(new[2]), int(new[3] or 0)))
    return Claude("", UNKNOWN)


@dataclass(frozen=True, slots=True)
class OpenAIModel:
    """An OpenAI model: its GPT version ((0, 0) for others), and whether it reasons."""

    version: Version
    reasons: bool


@lru_cache(maxsize=256)
def openai_model(model: str) -> OpenAIModel:
    """What an OpenAI model's name says. Chat variants of reasoning models do not reason."""
    found = _GPT.search(model)
    version = (int(found[1]), int(found[2] or 0)) if found else UNKNOWN
    reasons = (version >= (5, 0) and "-chat" not in model) or bool(_O_SERIES.search(model))
    return OpenAIModel(version, reasons)
