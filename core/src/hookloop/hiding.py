"""Showing what is configured without its secrets: URLs, options, headers, and what others say of them.

What must live here: what counts as a secret by its name, and by its place. Whoever shows a URL or an option shows what
`hidden_url` or `hidden` makes of it, and a text of others what `told` makes of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any, Final
from urllib.parse import unquote_plus

from hookloop_hookspecs.redact import MARK as REDACTED
from hookloop_hookspecs.redact import redact

MARK: Final = "***"
WORDS: Final = frozenset(
    ("auth", "authorization", "bearer", "cookie", "cookies", "credential", "credentials", "jwt", "pass")
).union(("passfile", "pw", "pwd", "sig", "signature", "token"))
"""Names in which one of these stands as a word are those of secrets."""
PARTS: Final = ("apikey", "accesskey", "passphrase", "passwd", "password", "privatekey", "secret")
"""Names in which one of these stands anywhere, with or without blanks, are those of secrets."""
KEYS: Final = frozenset(("access", "account", "api", "master", "private", "shared", "signing", "subscription"))
"""What makes a `key` a secret when it stands before it; `key` alone is one too."""


def is_secret(name: object) -> bool:
    """Does the name of an option, a header or a URL's parameter say that its value is a secret?"""
    words = re.findall(r"[a-z]+|[A-Z](?:[a-z]+|[A-Z]*(?![a-z]))", str(name)) if isinstance(name, str) else []
    lower = [word.lower() for word in words]
    plain = "".join(lower)
    if lower == ["key"] or not WORDS.isdisjoint(lower) or any(part in plain for part in PARTS):
        return True
    return any(word == "key" and before in KEYS for before, word in pairwise(lower))


def hidden_url(url: str) -> str:
    """A URL without its password, and without the parameters that are secrets."""
    without = re.sub(r"(://[^:/?#@]*):.*@", rf"\1:{MARK}@", url)
    return re.sub(r"([?&;#])([^=?&;#]+)=([^&;#]*)", _parameter, without)


def _parameter(match: re.Match[str]) -> str:
    start, name, value = match.groups()
    plain = unquote_plus(value)
    if is_secret(unquote_plus(name)) or told(plain) != plain:
        value = MARK
    return f"{start}{name}={value}"


def hidden(value: Any, name: object = "") -> Any:
    """A part of a configuration as it may be shown: the same tree, without secrets.

    Arguments: `name` is the key at which it stands. Under the name of a secret, and in headers, no text is shown; URLs
    lose what is secret in them. Numbers and switches are never secrets.
    """
    if isinstance(value, Mapping):
        secret = is_secret(name) or str(name).lower().endswith("headers")
        return {key: _covered(item) if secret else hidden(item, key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [hidden(item, name) for item in value]
    if not isinstance(value, str):
        return value
    if is_secret(name) and value:
        return MARK
    prose = re.search(r"\s", value) and not str(name).lower().endswith("url")
    return told(value if prose else hidden_url(value).replace(MARK, REDACTED)).replace(REDACTED, MARK)


def _covered(value: Any) -> Any:
    """Each text of a tree as a mark."""
    if isinstance(value, Mapping):
        return {key: _covered(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_covered(item) for item in value]
    return MARK if isinstance(value, str) and value else value


def told(text: str) -> str:
    """A text of others, such as an exception's, without keys, tokens and passwords."""
    return redact(text)
