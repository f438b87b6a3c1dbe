"""The testing kit: scripted models, spies, the strict local server, conformance checks."""

from .script import as_reply, call, reply, say, think
from .scripted import ScriptedProvider

__all__ = ["ScriptedProvider", "as_reply", "call", "reply", "say", "think"]
