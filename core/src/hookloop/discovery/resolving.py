"""Providers and memories by name: `"openai:gpt-4.1"` and `"sqlite:///chat.db"` to objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from hookloop.config import Config, MemoryTable
from hookloop.config_file import Keys
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
    if prefix in config.profiles:
        return _of_profile(prefix, model, config)
    factory = load_one(PROVIDERS, prefix, config.where("model") if reference == config.model else "")
    return _configured(factory, prefix, model, config, config.provider_options(prefix))


def _of_profile(prefix: str, model: str, config: Config) -> Any:
    factory = load_one(PROVIDERS, prefix if prefix in available(PROVIDERS) else COMPATIBLE)
    profile = {"name": prefix, **config.profiles[prefix]}
    try:
        return _configured(factory, prefix, model, config, {**config.provider_options(prefix), "profile": profile})
    except ConfigError as error:
        raise ConfigError(f"{config.where('profiles', prefix)}: {error}") from error


def _configured(factory: object, prefix: str, model: str, config: Config, options: Mapping[str, Any]) -> Any:
    def where(keys: Keys) -> str:
        return config.provider_where(prefix, str(keys[0])) if keys else config.where("providers", prefix)

    return build(factory, model, options=options, label=f"provider {prefix!r}", where=where)


def split(reference: str, profiles: Mapping[str, Any] | None = None) -> tuple[str, str]:
    """Prefix and model of a reference. Raises `ConfigError` where it has no prefix."""
    prefix, colon, model = reference.partition(":")
    if colon or reference in available(PROVIDERS) or reference in (profiles or {}):
        return prefix, model
    if not reference:
        raise ConfigError('no model is given; write for example model = "openai:gpt-4.1"')
    raise ConfigError(f"model {reference!r} has no provider; write for example 'openai:{reference}'")


def memory(url: str, options: Mapping[str, Any] | None = None, where: Callable[[Keys], str] | None = None) -> Any:
    """The memory that `url` names by its scheme, an entry point in `hookloop.memory`.

    `sqlite+driver://…` is of the scheme `sqlite`. Raises `ConfigError` as `provider` does; a password in the URL is
    never repeated.
    """
    scheme, colon, _ = url.partition(":")
    if not colon:
        place = f"{where(())}: " if where else ""
        raise ConfigError(f"{place}memory {hidden(url)!r} is no URL; write for example 'sqlite:///chat.db'")
    name = scheme if scheme in available(MEMORY) else scheme.partition("+")[0]
    factory = load_one(MEMORY, name, where(()) if where else "")
    return build(factory, url, options=options or {}, label=f"memory {hidden(url)!r}", where=where)


def configured_memories(config: Config) -> list[tuple[MemoryTable, Any]]:
    """The memories of a configuration, in order, each with its table. Raises `ConfigError` with file and line."""
    return [(table, _configured_memory(config, at, table)) for at, table in enumerate(config.memory)]


def _configured_memory(config: Config, at: int, table: MemoryTable) -> Any:
    def where(keys: Keys) -> str:
        return config.where("memory", at, "options", *keys) if keys else config.where("memory", at)

    return memory(table.url, table.options, where)


def hidden(url: str) -> str:
    """A URL without its password."""
    return re.sub(r"(://[^:/?#@]*):.*@", r"\1:***@", url)
