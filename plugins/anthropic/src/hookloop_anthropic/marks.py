"""Whose metadata is whose: the key under which this provider keeps its own in a part's `extra`."""

from __future__ import annotations

import json
from typing import Any, Final

KEY: Final = "anthropic"


def own(extra: str, family: str) -> dict[str, Any]:
    """What this provider and model family put into `extra`; empty for anybody else's."""
    found = given(extra)
    return {key: value for key, value in found.items() if key != "family"} if found.get("family") == family else {}


def given(extra: str) -> dict[str, Any]:
    """What `extra` holds for this provider, whoever wrote it."""
    if not extra:
        return {}
    try:
        value = json.loads(extra).get(KEY)
    except (ValueError, AttributeError):
        return {}
    return value if isinstance(value, dict) else {}
