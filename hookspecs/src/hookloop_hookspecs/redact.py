"""Exception texts on their way to a model: bounded, and without the secrets that libraries put into them."""

from __future__ import annotations

import re
from typing import Final

MARK: Final = "[redacted]"


def bounded(text: str, limit: int = 2000) -> str:
    """The text, cut in its middle to at most `limit` characters; the cut says how many are missing."""
    if len(text) <= limit:
        return text
    mark = f" …[{len(text) - limit} characters cut]… "
    room = limit - len(mark)
    if room < 2:
        return text[:limit]
    head = (room + 1) // 2
    return text[:head] + mark + text[len(text) - (room - head) :]


_NAMES = (
    r"(?:[a-z0-9]+[_-])*(?:api[_-]?key|access[_-]?key|secret[_-]?key|private[_-]?key|client[_-]?secret|secret|"
    r"passwd|password|pwd|access[_-]?token|refresh[_-]?token|auth[_-]?token|id[_-]?token|token|credential|signature)"
)

_RULES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (
            r"\b((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?)(?:(?:bearer|basic|token|digest)\s+)?[^\s\"',;}]+",
            rf"\1{MARK}",
        ),
        (r"\b(bearer|basic)(\s+)[A-Za-z0-9._~+/=-]{6,}", rf"\1\2{MARK}"),
        (r"([?&](?:key|sig|code|auth|apikey)=)[^&\s\"'#<>]+", rf"\1{MARK}"),
        (rf"\b({_NAMES}[\"']?\s*[:=]\s*)(?:\"[^\"]*\"|'[^']*'|[^\s\"',;&}})\]]+)", rf"\1{MARK}"),
        (r"\b([a-z][a-z0-9+.-]*://[^\s/:@]*:)[^\s/@]+(@)", rf"\1{MARK}\2"),
        (r"\b(?:sk|pk|rk|gsk|xai|key|ghp|gho|ghs|glpat|xox[abprs])[-_][A-Za-z0-9_-]{6,}", MARK),
        (
            r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bAIza[A-Za-z0-9_-]{30,}|\beyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*",
            MARK,
        ),
    )
)


def redact(text: str) -> str:
    """The text with keys, tokens and passwords replaced by "[redacted]".

    Known are: authorization headers, bearer tokens, `?key=…` and the like in URLs, assignments such as `api_key=…` or
    `"password": "…"`, passwords in URLs, and keys that show by their prefix (`sk-…`, `AKIA…`). It is a net for texts
    that nobody wrote for a model, not a proof that nothing else is secret.
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
