"""The two pluggy markers. Everything that is looked up under them belongs to the project name below."""

import pluggy

PROJECT = "hookloop"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)
