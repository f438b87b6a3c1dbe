"""Text made fit for a log: secrets out, control characters visible, lengths bounded.

Names and ids come from models and callers. In a log they stand on one line, so none can end a line and begin a forged
one; longer texts keep their line breaks, but each of their lines is printed behind a margin.
"""

from __future__ import annotations

import re
from typing import Final

from hookloop_hookspecs.redact import redact

MARGIN: Final = "│"
_LABEL_WIDTH: Final = 9
_NAME_LENGTH: Final = 120
_MOST_LINES: Final = 20

_UNSEEN: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f]"
)
"""Control and format characters, lone surrogates, line separators, marks that turn the writing direction."""


def name(text: str) -> str:
    """A name or id on one line, escaped, without secrets, at most about 120 characters long."""
    plain = _escaped(redact(text[: _NAME_LENGTH * 2]).replace("\\", "\\\\"))
    return plain if len(plain) <= _NAME_LENGTH else f"{plain[:_NAME_LENGTH]}…"


def block(label: str, text: str, limit: int | None) -> list[str]:
    """A text as log lines with a label: at most `limit` characters and 20 lines of it; None is without bounds."""
    lines = _readable(text, limit).expandtabs(4).split("\n")
    shown = lines if limit is None else lines[:_MOST_LINES]
    missing = [f"… [{len(lines) - len(shown)} more lines]"] if len(shown) < len(lines) else []
    labels = [label, *[""] * len(lines)]
    body = [*(_escaped(line.rstrip("\r")) for line in shown), *missing]
    return [f"   {side:<{_LABEL_WIDTH}} {MARGIN} {line}".rstrip() for side, line in zip(labels, body, strict=False)]


def _readable(text: str, limit: int | None) -> str:
    """The text without secrets, cut to the limit. Reads further than it shows, so that no secret is cut in two."""
    if limit is None or len(text) <= limit:
        return redact(text)
    return f"{redact(text[: limit * 4])[:limit]} … [{len(text) - limit} more characters]"


def _escaped(text: str) -> str:
    return _UNSEEN.sub(lambda found: found[0].encode("unicode_escape", "backslashreplace").decode("ascii"), text)
