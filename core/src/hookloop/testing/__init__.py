"""The testing kit, for whoever writes plugins, memories, providers, or programs around them.

- A model that follows a script: `ScriptedProvider(call("edit", {"path": "a"}), say("done"))`; its `requests` are what it was
  asked. `hookloop.testing.server.StrictServer` plays the same scripts to real SDKs, and refuses what the real APIs refuse.
- A plugin that watches: `Spy()`; it can be told what to return, and when to fail. `as_hook` makes a hook of any function.
- Assertions: `assert_valid_history`, `assert_extends`, `assert_growing`.
- Conformance: `print(check_plugin(MyPlugin))`, `check_memory`, `check_provider`; or check by check in a test suite, with
  `plugin_checks`, `memory_checks`, `provider_checks`. `LocalEndpoint` is a server for a provider with an API of its own.
- Crashes: `crash_points` stops a turn before and after each of its effects.
"""

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
