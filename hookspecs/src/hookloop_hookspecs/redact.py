"""Exception texts on their way to a model: bounded, and without the secrets that libraries put into them.

Every pattern begins with a fixed word and repeats one class of characters at a time, so the time taken grows with the
length of the text and no faster.
"""

from __future__ import annotations

import re
from typing import Final

MARK: Final = "[redacted]"


def bounded(text: str, limit: int = 2000) -> str:
    """The text, cut in its middle to at most `limit` characters; the cut says how many are missing."""
    if len(text) <= limit:
        return text
    room = limit - len(_cut(len(text)))
    if room < 2:
        return text[:limit]
    head, tail = (room + 1) // 2, room // 2
    return text[:head] + _cut(len(text) - room) + text[len(text) - tail :]


def words(error: BaseException) -> str:
    """An exception as text for people: its class and its message, bounded and without secrets."""
    name = type(error).__name__
    try:
        text = bounded(redact(str(error)))
    except (Exception, SystemExit, GeneratorExit):  # it is a stranger's, and may fail at this too
        text = ""
    return f"{name}: {text}" if text else name


def _cut(missing: int) -> str:
    return f" …[{missing} characters cut]… "


_QUOTE: Final = r"\\?[\"']"
_SETS: Final = rf"(?:(?:{_QUOTE})?\s*[:=]\s*|{_QUOTE}\s*,\s*)"
_QUOTED: Final = r"\\?\"[^\"]*\"|'[^']*'"
_VALUE: Final = rf"(?!b?\[redacted\])b?(?:{_QUOTED}|[^\s\"',;&}})\]]+)"
_STRONG: Final = (
    r"(?:api|access|secret|private)[_-]?key|client[_-]?secret|(?:access|refresh|auth|id|session)[_-]?token|"
    r"passwd|password|passphrase|authorization"
)
_WEAK: Final = r"token|secret|credentials?|signature|pwd"
_SCHEME: Final = r"(?:bearer|basic|token|digest)\s+"
_PREFIXES: Final = r"sk|pk|rk|gsk|xai|ghp|gho|ghs|github_pat|glpat|xox[abprs]"

_RULES: Final = tuple(
    (re.compile(pattern, re.IGNORECASE), replacement)
    for pattern, replacement in (
        (r"\b((?:set-)?cookie:)(?!\s*\[redacted\])[^\r\n]+", rf"\1 {MARK}"),
        (rf"(authorization\s*[:=]\s*){_SCHEME}[^\s\"',;}}]+", rf"\1{MARK}"),
        (r"\b(bearer\s+)(?!tokens?\b|auth)[a-z0-9._~+/=-]{3,}", rf"\1{MARK}"),
        (r"([?&](?:key|sig|code|auth)=)(?!\[redacted\])[^&\s\"'#<>]+", rf"\1{MARK}"),
        (rf"((?:{_STRONG}){_SETS}){_VALUE}", rf"\1{MARK}"),
        (rf"((?:{_WEAK})(?:{_QUOTE}\s*:|\s*=)\s*){_VALUE}", rf"\1{MARK}"),
        (r"(://[^\s/@:]*:)(?!\[redacted\]@)[^\s/?#]+@", rf"\1{MARK}@"),
        (rf"\b(?:{_PREFIXES})[-_][a-z0-9_-]{{6,}}", MARK),
        (r"\b(?:AKIA|ASIA)[a-z0-9]{12,}|\bAIza[a-z0-9_-]{30,}|\beyJ[a-z0-9_-]+\.[a-z0-9_-]+\.[a-z0-9_-]*", MARK),
    )
)


def redact(text: str) -> str:
    """The text with keys, tokens and passwords replaced by "[redacted]".

    Known are: authorization headers, bearer tokens, cookies, `?key=…` and the like in URLs, assignments such as
    `api_key=…` or `"password": "…"`, passwords in URLs, and keys that show by their prefix (`sk-…`, `AKIA…`). It is a net
    for texts that nobody wrote for a model, not a proof that nothing else is secret.
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text
