"""What each generation of models wants, as data.

What must live here: facts about models. What must never be known here: messages, requests, the network. A fact that
the provider publishes about a new model is a new row; no other module asks for a model's name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

Off: TypeAlias = Literal["absent", "disabled", "between_tools", "never"]

_LOW: Final = ("low", "medium", "high")
_MAX: Final = (*_LOW, "max")
_ALL: Final = (*_LOW, "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Generation:
    """One generation of models.

    `budget` and `adaptive`: takes thinking as a token budget, or left to the model; `thinks`: does so when nothing is
    asked for (None: nobody knows); `off`: how thinking is turned off ("never": it cannot be). `efforts`: the words it
    knows, weakest first. `sampling`: takes temperature and top_p. `forced`: takes a tool choice that forces a call.
    `places_system`: takes system messages among the others. `bound`: thinking is bound to all that came before it.
    `structured`: has a mode for structured output and strict tools. `max_output` is in tokens.
    """

    budget: bool = False
    adaptive: bool = False
    thinks: bool | None = False
    off: Off = "absent"
    efforts: tuple[str, ...] = ()
    sampling: bool = True
    forced: bool = True
    places_system: bool = False
    bound: bool = False
    structured: bool = False
    max_output: int = 64_000


_V3: Final = Generation(max_output=4_096)
_V35: Final = replace(_V3, max_output=8_192)
_V4: Final = Generation(budget=True)
_V45: Final = replace(_V4, structured=True)
_V46: Final = replace(_V45, adaptive=True, efforts=_MAX, max_output=128_000)
_V47: Final = replace(_V46, budget=False, sampling=False, efforts=_ALL)
_V48: Final = replace(_V47, places_system=True)
_V5: Final = replace(_V48, thinks=True, off="disabled")
_ALWAYS: Final = replace(_V5, off="never")
_V55: Final = replace(_ALWAYS, forced=False, bound=True)

_TABLE: Final[tuple[tuple[str, Generation], ...]] = (
    (r"claude-3-[57]-haiku|claude-3-5-", _V35),
    (r"claude-3-7-", _V4),
    (r"claude-(3|2|instant)-", _V3),
    (r"claude-opus-4(-[01])?$", replace(_V4, max_output=32_000)),
    (r"claude-sonnet-4(-0)?$", _V4),
    (r"claude-opus-4-5$", replace(_V45, efforts=_LOW)),
    (r"claude-(sonnet|haiku)-4-5$", _V45),
    (r"claude-(opus|sonnet)-4-6$", _V46),
    (r"claude-opus-4-7$", _V47),
    (r"claude-mythos-preview$", replace(_V47, thinks=True, off="never")),
    (r"claude-opus-4-8$", _V48),
    (r"claude-(opus|sonnet)-5$", _V5),
    (r"claude-(fable|mythos)-5$", _ALWAYS),
    (r"claude-sonnet-5-5$", replace(_V55, off="between_tools")),
    (r"claude-haiku-5-5$", replace(_V55, off="disabled")),
    (r"claude-", _V55),
)

_COPY: Final = Generation(budget=True, adaptive=True, thinks=None, efforts=_ALL, max_output=32_000)

_DATE: Final = re.compile(r"[-@](\d{8}|latest|default)(?=$|-v\d)|-v\d+(:\d+)?$")
_PREFIX: Final = re.compile(r"^(?:[a-z-]+[./])+(?=claude-)")


def plain(model: str) -> str:
    """The model's name without date, version suffix and platform prefix: what groups models that are the same."""
    bare = _PREFIX.sub("", model.lower())
    bare = bare.replace(".", "-") if bare.startswith("claude-") else bare
    while (shorter := _DATE.sub("", bare)) != bare:
        bare = shorter
    return bare


def generation(model: str) -> Generation:
    """What `model` wants. A newer Claude counts as the newest known; any other name as a compatible server's model."""
    name = plain(model)
    return next((found for pattern, found in _TABLE if re.match(pattern, name)), _COPY)
