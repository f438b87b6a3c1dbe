"""What the APIs refuse of images and files that are sent inside a request."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from typing import Any

from hookloop.testing.server.record import Violation

from .registry import fault

IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF = "application/pdf"
SOUNDS = ("wav", "mp3")
_DATA = re.compile(r"data:([^;,]*)(?:;[^;,]*)*?;base64,(.*)", re.DOTALL)
_STARTS = (
    (re.compile(rb"\x89PNG\r\n\x1a\n"), "image/png"),
    (re.compile(rb"\xff\xd8\xff"), "image/jpeg"),
    (re.compile(rb"GIF8[79]a"), "image/gif"),
    (re.compile(rb"RIFF.{4}WEBP", re.DOTALL), "image/webp"),
)
_OFFICE = "application/vnd.openxmlformats-officedocument."
_DOCUMENTS = frozenset(
    {
        PDF,
        "application/csv",
        "application/javascript",
        "application/json",
        "application/msword",
        "application/rtf",
        "application/toml",
        "application/vnd.ms-excel",
        "application/vnd.ms-powerpoint",
        "application/vnd.oasis.opendocument.text",
        f"{_OFFICE}presentationml.presentation",
        f"{_OFFICE}spreadsheetml.sheet",
        f"{_OFFICE}wordprocessingml.document",
        "application/x-yaml",
        "application/yaml",
        "text/css",
        "text/csv",
        "text/html",
        "text/javascript",
        "text/markdown",
        "text/plain",
        "text/rtf",
        "text/tsv",
        "text/xml",
    }
)
"""The usual ones of the media types of files that Responses takes; it takes them by exact name."""


def decoded(data: Any) -> bytes | None:
    """What base64 stands for; None for anything that is not base64."""
    try:
        return base64.b64decode(data, validate=True) if isinstance(data, str) else None
    except ValueError:
        return None


def told_type(raw: bytes) -> str:
    """The media type that the first bytes of an image tell; empty where they tell none."""
    return next((kind for start, kind in _STARTS if start.match(raw)), "")


def image_url_faults(url: str, path: str, head: str, *, typed: bool = True) -> Iterator[Violation]:
    """An image's URL is a web address, or a data URL in base64 of a known type.

    Arguments: `head`, how the message begins; `typed` False looks at no types, as copies of the API know others.
    """
    if re.match(r"https?://\S", url, re.IGNORECASE):
        return
    why = _data_url_fault(url, lambda kind: not typed or kind.startswith("image/"))
    if why:
        expected = (
            "Expected a base64-encoded data URL with an image MIME type (e.g. "
            "'data:image/png;base64,aW1nIGJ5dGVzIGhlcmU=')"
        )
        yield fault(f"{head}. {expected}, but got {why}", code="invalid_value", param=path)
    elif typed and _kind(url) not in IMAGE_TYPES:
        text = (
            "You uploaded an unsupported image. Please make sure your image has of one the following formats: "
            "['png', 'jpeg', 'gif', 'webp']."
        )
        yield fault(text, code="invalid_image_format", param=path)


def pdf_faults(url: Any, path: str, *, typed: bool = True) -> Iterator[Violation]:
    """A file's data on Chat Completions is a data URL of a PDF."""
    if why := _data_url_fault(str(url), lambda kind: not typed or kind == PDF):
        expected = (
            "Expected a base64-encoded data URL with an application/pdf MIME type (e.g. "
            "'data:application/pdf;base64,SGVsbG8sIFdvcmxkIQ==')"
        )
        yield fault(f"Invalid file data: '{path}'. {expected}, but got {why}", code="invalid_value", param=path)


def document_faults(url: Any, path: str) -> Iterator[Violation]:
    """A file's data on Responses is a data URL of a type that is taken."""
    if why := _data_url_fault(str(url), _DOCUMENTS.__contains__):
        expected = (
            "Expected a base64-encoded data URL with a valid file MIME type (e.g. "
            "'data:application/pdf;base64,SGVsbG8sIFdvcmxkIQ==')"
        )
        yield fault(f"Invalid '{path}'. {expected}, but got {why}", code="invalid_value", param=path)


def _data_url_fault(url: str, takes: Callable[[str], bool]) -> str:
    """What is wrong with a data URL; empty for nothing."""
    if not url.startswith("data:"):
        return "a value without the 'data:' prefix."
    found = _DATA.fullmatch(url)
    if found is None:
        return "a value without the ';base64' separator."
    if not takes(found[1]):
        return f"unsupported MIME type '{found[1]}'."
    if not found[2]:
        return "empty base64-encoded bytes."
    return "" if decoded(found[2]) else "an invalid base64-encoded value."


def _kind(url: str) -> str:
    found = _DATA.fullmatch(url)
    return found[1] if found else ""
