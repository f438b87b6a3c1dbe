"""Finding what is installed, and loading what is wanted. The only package that imports stevedore."""

from hookloop.names import nearest

from .activation import Activation, Active, activate
from .building import BuildError, build
from .installed import (
    COMMANDS,
    MEMORY,
    PLUGINS,
    PROVIDERS,
    Found,
    Group,
    Problem,
    absent,
    available,
    distribution_for,
    known_problems,
    load,
    load_one,
    survey,
)
from .inventory import memories, providers
from .objects import implemented, name_of
from .report import LoadReport, MemoryReport, PartReport, PluginReport
from .resolving import configured_memories, configured_provider, memory, provider

__all__ = [
    "COMMANDS",
    "MEMORY",
    "PLUGINS",
    "PROVIDERS",
    "Activation",
    "Active",
    "BuildError",
    "Found",
    "Group",
    "LoadReport",
    "MemoryReport",
    "PartReport",
    "PluginReport",
    "Problem",
    "absent",
    "activate",
    "available",
    "build",
    "configured_memories",
    "configured_provider",
    "distribution_for",
    "implemented",
    "known_problems",
    "load",
    "load_one",
    "memories",
    "memory",
    "name_of",
    "nearest",
    "provider",
    "providers",
    "survey",
]
