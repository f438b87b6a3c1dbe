"""Images and files as both APIs take them, and a line of text in place of what they would refuse.

A server that refuses a part refuses every later request of the conversation too, so what it would not take never leaves.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from hookloop_hookspecs import File, Image
from hookloop_hookspecs.media import Medium, is_data_url, medium_of, plain_kind

from .values import utf8

PDF: Final = "application/pdf"
_ADDRESS: Final = re.compile(r"[a-z][a-z0-9+.-]*://[^\s]+", re.IGNORECASE)
_SOUNDS: Final = {
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
}
_TEXTS: Final = frozenset(
    {
        "application/javascript",
        "application/json",
        "application/toml",
        "application/x-ndjson",
        "application/x-yaml",
        "application/xml",
        "application/yaml",
    }
)
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
_DOCUMENTS: Final = frozenset(
    {
        PDF,
        "application/json",
        "application/msword",
        "application/rtf",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/vnd.oasis.opendocument.text",
        f"{_OFFICE}presentationml.presentation",
        f"{_OFFICE}spreadsheetml.sheet",
        f"{_OFFICE}wordprocessingml.document",
        "text/csv",
        "text/html",
        "text/markdown",
        "text/plain",
        "text/tsv",
        "text/xml",
    }
)


class Unsendable(Exception):
    """The API would refuse this part; the text says why."""


class Sound(NamedTuple):
    """Audio as Chat Completions takes it."""

    format: str
    data: str


def left_out(part: Image | File, why: Unsendable) -> str:
    """The text in place of a part that cannot be sent."""
    name = f" {utf8(part.name)}" if isinstance(part, File) and part.name else ""
    return f"[{part.type}{name} left out: {why}]"


def image_address(image: Image, types: str) -> str:
    """The image's own address, or its bytes as a data URL. Raises `Unsendable`.

    Arguments: `types`, what the media types that the endpoint takes look like.
    """
    if _is_address(image):
        return _address(image)
    found = _bytes(image)
    if not re.match(types, found.kind):
        raise _refused(found.kind)
    return _data_url(found)


def file_address(file: File) -> str:
    """The address of a file that only has one; empty for one that has data. Raises `Unsendable`."""
    return _address(file) if _is_address(file) else ""


def pdf(file: File) -> str:
    """The bytes of a PDF, the only document that Chat Completions takes, as a data URL. Raises `Unsendable`."""
    found = _bytes(file)
    if found.kind != PDF:
        raise _refused(found.kind)
    return _data_url(found)


def document(file: File) -> str:
    """The file's bytes as a data URL that Responses takes; unusual kinds of text as plain text. Raises `Unsendable`."""
    found = _bytes(file)
    if found.kind in _DOCUMENTS:
        return _data_url(found)
    if not _is_text(found.kind):
        raise _refused(found.kind)
    return _data_url(found._replace(kind="text/plain"))


def sound(file: File) -> Sound | None:
    """Audio, where the file is some. Raises `Unsendable` for audio of a kind that is not taken."""
    found = _bytes(file)
    if not found.kind.startswith("audio/"):
        return None
    if found.kind not in _SOUNDS:
        raise _refused(found.kind)
    return Sound(_SOUNDS[found.kind], found.data)


def told(file: File) -> str | None:
    """The text of a file of text; None for another. Raises `Unsendable` where the data is broken."""
    found = _bytes(file)
    if not _is_text(found.kind):
        return None
    text = found.raw.decode("utf-8", "replace")
    return f"{utf8(file.name)}:\n{text}" if file.name else text


def file_name(file: File) -> str:
    """The file's name, made up from its media type where it has none."""
    return utf8(file.name) or f"file.{plain_kind(file.media_type).rpartition('/')[2]}"


def _is_address(part: Image | File) -> bool:
    """True where the part stands elsewhere; an image's address stands over its data, a file's does not."""
    elsewhere = bool(part.url) and not is_data_url(part.url)
    return elsewhere and (isinstance(part, Image) or not part.data)


def _address(part: Image | File) -> str:
    if not _ADDRESS.fullmatch(part.url):
        raise Unsendable("its address is no URL")
    return utf8(part.url)


def _bytes(part: Image | File) -> Medium:
    try:
        return medium_of(part)
    except ValueError as error:
        raise Unsendable(str(error)) from None


def _is_text(kind: str) -> bool:
    return kind.startswith("text/") or kind in _TEXTS


def _data_url(found: Medium) -> str:
    return f"data:{found.kind};base64,{found.data}"


def _refused(kind: str) -> Unsendable:
    return Unsendable(f"{utf8(kind[:80]) or 'no media type'} is not taken here")
