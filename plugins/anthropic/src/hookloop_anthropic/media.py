"""Images and files as content blocks, with a line of text where the API takes no such block.

The API that refuses a block refuses every later request of the conversation too, so what it would not take never leaves.
"""

from __future__ import annotations

import re
from typing import Any, Final

from hookloop_hookspecs import File, Image
from hookloop_hookspecs.media import Medium, is_data_url, medium_of

from .marks import given

PDF: Final = "application/pdf"
_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_STARTS: Final = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)
_ADDRESS: Final = re.compile(r"https?://[^\s]+", re.IGNORECASE)


class Unsendable(Exception):
    """The API would refuse this part; the text says why."""


def image_block(image: Image) -> dict[str, Any]:
    """An image block, or text in its place."""
    try:
        source = _address(image) or _pixels(image)
    except Unsendable as why:
        return placeholder(image, why)
    return {"type": "image", "source": source, **given(image.extra)}


def file_block(file: File) -> dict[str, Any]:
    """A document block, or text in its place. Files of a text type go as text."""
    try:
        source = _address(file) or _document(file)
    except Unsendable as why:
        return placeholder(file, why)
    title = {"title": file.name} if file.name.strip() else {}
    return {"type": "document", "source": source, **title, **given(file.extra)}


def placeholder(part: Image | File, why: object) -> dict[str, Any]:
    """Text that stands for something that cannot be sent."""
    name = f" {part.name}" if isinstance(part, File) and part.name.strip() else ""
    return {"type": "text", "text": f"[{part.type}{name} left out: {why}]"}


def _address(part: Image | File) -> dict[str, str] | None:
    """The part's own address; None where it holds its data, be it in a data URL."""
    if not part.url or is_data_url(part.url):
        return None
    if not _ADDRESS.fullmatch(part.url):
        raise Unsendable("its address is no web address")
    return {"type": "url", "url": part.url}


def _pixels(image: Image) -> dict[str, str]:
    found = _bytes(image)
    if found.kind not in _IMAGES:
        raise _refused(found.kind)
    # The API compares the bytes with the type; where they tell theirs, it stands over what was declared.
    kind = next((kind for start, kind in _STARTS if start.match(found.raw)), found.kind)
    return {"type": "base64", "media_type": kind, "data": found.data}


def _document(file: File) -> dict[str, str]:
    found = _bytes(file)
    if found.kind == PDF:
        return {"type": "base64", "media_type": PDF, "data": found.data}
    if not found.kind.startswith("text/") and found.kind != "application/json":
        raise _refused(found.kind)
    text = found.raw.decode("utf-8", "replace")
    if not text.strip():
        raise Unsendable("it is blank")
    return {"type": "text", "media_type": "text/plain", "data": text}


def _bytes(part: Image | File) -> Medium:
    try:
        return medium_of(part)
    except ValueError as error:
        raise Unsendable(str(error)) from None


def _refused(kind: str) -> Unsendable:
    return Unsendable(f"{kind[:80] or 'no media type'} cannot be sent to this model")
