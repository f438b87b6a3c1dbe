"""What the log says of endings, in words and as errors again."""

from __future__ import annotations

import re

from hookloop_hookspecs import Ending, HookloopError, PluginError, ProviderError, errors


def halted(ending: Ending) -> str:
    """Why no call of a turn that was told to end may start."""
    return f"plugin {ending.by} failed" if ending.status == "failed" else f"stopped by {ending.by}"


def remade(name: str, text: str, provider: str = "") -> HookloopError:
    """An error of the log, of its own class where that is one of the family; its evidence is gone but the text."""
    kind = getattr(errors, name, None)
    if not (isinstance(kind, type) and issubclass(kind, HookloopError)):
        return HookloopError(f"{name}: {text}")
    if kind is ProviderError:
        return ProviderError(text, provider=provider)
    if kind is PluginError:
        found = re.fullmatch(r"plugin '(.*?)', hook (\S*): (.*)", text, re.DOTALL)
        return PluginError(*found.groups()) if found else HookloopError(f"{name}: {text}")
    return kind(text)
