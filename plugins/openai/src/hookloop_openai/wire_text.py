"""Parts of messages as every encoder writes them: texts, media, arguments, placeholders."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Final

from hookloop_hookspecs import File, Part, Text, ToolCall, json_text

from .values import Json, is_object, mapping, parsed, utf8

NO_VISION: Final = "[An image stands here that this model cannot see.]"
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]")
NO_FILES: Final = "[A file stands here that this model cannot read{name}.]"


def joined(parts: Iterable[Part]) -> str:
    """All text of the parts, as valid UTF-8."""
    return utf8("".join(part.text for part in parts if isinstance(part, Text)))


def arguments(call: ToolCall) -> str:
    """The call's arguments as the text of a JSON object, which servers parse again: what is none becomes "{}"."""
    return utf8(call.raw) if is_object(call.raw) else "{}"


def tool_name(name: str) -> str:
    """The name as servers take it. Models do call tools by names that no server would take back."""
    return _NO_NAME.sub("_", name)[:64] or "unknown"


def omitted(part: File) -> str:
    """The text in place of a file that cannot be sent."""
    return NO_FILES.format(name=f": {utf8(part.name)}" if part.name else "")


def tagged(provider: str, family: str, **values: object) -> str:
    """Metadata of a part together with who may get it back, as JSON text."""
    return json_text({"provider": provider, "family": family, **values})


def homecoming(extra: str, provider: str, family: str) -> Json:
    """The metadata in `extra` if it came from this provider and family, else nothing."""
    if not extra or provider not in extra:
        return {}
    try:
        value = mapping(parsed(extra))
    except ValueError:
        return {}
    return value if value.get("provider") == provider and value.get("family") == family else {}


def clean(value: object) -> object:
    """A JSON value in which every text can be encoded."""
    text = json.dumps(value, ensure_ascii=False)
    return value if text.isascii() or text == utf8(text) else json.loads(utf8(text))
