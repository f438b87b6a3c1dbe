"""The testing kit: scripted models, spies, the strict local server, conformance checks."""

from . import memory_checks, plugin_checks, provider_checks
from .crash import Crash, crash, crash_points, mortal
from .endpoint import Endpoint, LocalEndpoint
from .history import assert_extends, assert_growing, assert_valid_history
from .memory_checks import check_memory
from .plugin_checks import check_plugin
from .provider_checks import check_provider
from .report import Report, Result
from .script import as_reply, call, reply, say, think
from .scripted import ScriptedProvider
from .spy import Seen, Spy, as_hook

__all__ = [
    "Crash",
    "Endpoint",
    "LocalEndpoint",
    "Report",
    "Result",
    "ScriptedProvider",
    "Seen",
    "Spy",
    "as_hook",
    "as_reply",
    "assert_extends",
    "assert_growing",
    "assert_valid_history",
    "call",
    "check_memory",
    "check_plugin",
    "check_provider",
    "crash",
    "crash_points",
    "memory_checks",
    "mortal",
    "plugin_checks",
    "provider_checks",
    "reply",
    "say",
    "think",
]
