"""Providers and memories by name: `"openai:gpt-4.1"` and `"sqlite:///chat.db"` to objects."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from hookloop.config import Config
from hookloop.config_file import Keys
from hookloop.config_tables import MemoryTable
from hookloop.hiding import hidden_url
from hookloop_hookspecs import ConfigError

from .building import build
from .installed import MEMORY, PROVIDERS, available, load_one

COMPATIBLE: Final = "openai"
"""The prefix whose provider serves the endpoints of `[profiles.NAME]`."""


def provider(reference: str, **options: Any) -> Any:
    """The provider that `reference` names.

    Arguments: `reference` is "prefix:model"; the prefix is the name of an entry point in `hookloop.providers`.
    `options` are its own (`base_url`, `api_key`, `transport`, …). Raises `ConfigError`: an unknown prefix with the
    nearest one or the distribution to install, a wrong option with the nearest one.
    """
    prefix, model = split(reference)
    return build(load_one(PROVIDERS, prefix), model, options=options, label=f"provider {prefix!r}")


def configured_provider(reference: str, config: Config) -> Any:
    """The provider that `reference` names, with the options that `config` has for its prefix.

    A prefix under `[profiles]` is an endpoint that speaks OpenAI's protocol: its table goes to the provider of that
    prefix, or else to OpenAI's, as the option `profile`. Raises `ConfigError` as `provider` does, with file and line.
    """
    prefix, model = split(reference, config.profiles)
    name, options = provider_options(prefix, config)
    of_profile = prefix in config.profiles
    factory = load_one(PROVIDERS, name, config.where("model") if reference == config.model and not of_profile else "")
    where = provider_place(prefix, config)
    try:
        return build(factory, model, options=options, label=f"provider {prefix!r}", where=where)
    except ConfigError as error:
        if not of_profile:
            raise
        raise ConfigError(f"{config.where('profiles', prefix)}: {error}") from error


def provider_options(prefix: str, config: Config) -> tuple[str, dict[str, Any]]:
    """The entry point that serves a prefix, and the options that the configuration has for it."""
    options = config.provider_options(prefix)
    if prefix not in config.profiles:
        return prefix, options
    profile = {"name": prefix, **config.profiles[prefix]}
    return prefix if prefix in available(PROVIDERS) else COMPATIBLE, {**options, "profile": profile}


def provider_place(prefix: str, config: Config) -> Callable[[Keys], str]:
    """What tells where an option of a provider was set."""

    def where(keys: Keys) -> str:
        return config.provider_where(prefix, str(keys[0])) if keys else config.where("providers", prefix)

    return where


def split(reference: str, profiles: Mapping[str, Any] | None = None) -> tuple[str, str]:
    """Prefix and model of a reference. Raises `ConfigError` where it has no prefix."""
    prefix, colon, model = reference.partition(":")
    if colon or reference in available(PROVIDERS) or reference in (profiles or {}):
        return prefix, model
    if not reference:
        raise ConfigError('no model is given; write for example model = "openai:gpt-4.1" in hookloop.toml')
    raise ConfigError(f"model {reference!r} has no provider; write for example 'openai:{reference}'")


def memory(url: str, options: Mapping[str, Any] | None = None, where: Callable[[Keys], str] | None = None) -> Any:
    """The memory that `url` names by its scheme, an entry point in `hookloop.memory`.

    `sqlite+driver://…` is of the scheme `sqlite`. Raises `ConfigError` as `provider` does; a password in the URL is
    never repeated.
    """
    place = where(()) if where else ""
    factory = load_one(MEMORY, scheme_of(url, place), place)
    return build(factory, url, options=options or {}, label=f"memory {hidden_url(url)!r}", where=where)


def scheme_of(url: str, place: str = "") -> str:
    """The entry point that serves a memory's URL. Raises `ConfigError`, behind the `place`, where it is no URL."""
    scheme, colon, _ = url.partition(":")
    if not colon:
        place = f"{place}: " if place else ""
        raise ConfigError(f"{place}memory {hidden_url(url)!r} is no URL; write for example 'sqlite:///chat.db'")
    return scheme if scheme in available(MEMORY) else scheme.partition("+")[0]


def configured_memories(config: Config) -> list[tuple[MemoryTable, Any]]:
    """The memories of a configuration, in order, each with its table. Raises `ConfigError` with file and line."""
    return [(table, _configured_memory(config, at, table)) for at, table in enumerate(config.memory)]


def _configured_memory(config: Config, at: int, table: MemoryTable) -> Any:
    return memory(table.url, table.options, memory_place(at, config))


def memory_place(at: int, config: Config) -> Callable[[Keys], str]:
    """What tells where an option of the memory at this position was set."""

    def where(keys: Keys) -> str:
        return config.where("memory", at, "options", *keys) if keys else config.where("memory", at)

    return where
