"""Images and files as content blocks, with a line of text where the API takes no such block."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

from hookloop_hookspecs import File, Image

from .marks import given

_IMAGES: Final = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})


def image_block(image: Image) -> dict[str, Any]:
    """An image block, or text in its place."""
    kind = image.media_type.lower()
    if image.url:
        source = {"type": "url", "url": image.url}
    elif image.data and kind in _IMAGES:
        source = {"type": "base64", "media_type": kind, "data": image.data}
    else:
        return placeholder("image", kind)
    return {"type": "image", "source": source, **given(image.extra)}


def file_block(file: File) -> dict[str, Any]:
    """A document block, or text in its place. Files of a text type go as text."""
    source = _source(file)
    if source is None:
        return placeholder(f"file {file.name}".strip(), file.media_type)
    title = {"title": file.name} if file.name.strip() else {}
    return {"type": "document", "source": source, **title, **given(file.extra)}


def _source(file: File) -> dict[str, str] | None:
    kind = file.media_type.lower()
    if file.url:
        return {"type": "url", "url": file.url}
    if kind == "application/pdf" and file.data:
        return {"type": "base64", "media_type": kind, "data": file.data}
    text = _decoded(file.data) if kind.startswith("text/") or kind == "application/json" else ""
    return {"type": "text", "media_type": "text/plain", "data": text} if text.strip() else None


def _decoded(data: str) -> str:
    try:
        return base64.b64decode(data).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def placeholder(what: str, kind: str) -> dict[str, Any]:
    """Text that stands for something that cannot be sent."""
    return {"type": "text", "text": f"[{what} ({kind}) left out: it cannot be sent to this model]"}
