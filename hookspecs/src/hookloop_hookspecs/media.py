"""The bytes of pictures and files, wherever a part holds them. One reading for the contract's checks and for every provider."""

from __future__ import annotations

import base64
import re
from typing import Final, NamedTuple

from .messages import File, Image

_DATA_URL: Final = re.compile(r"data:([^;,]*)(?:;[^;,]*)*?;base64,(.*)", re.IGNORECASE | re.DOTALL)
_SAME: Final = {"image/jpg": "image/jpeg"}


class Medium(NamedTuple):
    """What a part holds: its media type without parameters, its base64 without line breaks, and the bytes themselves."""

    kind: str
    data: str
    raw: bytes


def medium_of(part: Image | File) -> Medium:
    """The part's kind and data, whether they stand in it or in a data URL. Raises `ValueError` that says what is wrong."""
    kind, data = part.media_type, part.data or part.url
    if part.url and not part.data and not is_data_url(part.url):
        raise ValueError("its address is no data URL in base64")
    if is_data_url(data):
        found = _DATA_URL.fullmatch(data)
        if found is None:
            raise ValueError("its address is no data URL in base64")
        kind, data = found.groups()
    data = "".join(data.split())
    if not data:
        raise ValueError("it has no data")
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        raise ValueError("its data is not base64") from None
    return Medium(plain_kind(kind), data, raw)


def is_data_url(text: str) -> bool:
    """Does this address hold its data itself?"""
    return text[:5].lower() == "data:"


def plain_kind(kind: str) -> str:
    """A media type without its parameters, under its usual name."""
    plain = kind.partition(";")[0].strip().lower()
    return _SAME.get(plain, plain)
