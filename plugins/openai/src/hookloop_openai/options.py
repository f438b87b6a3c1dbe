"""The options of a provider, validated before anything is asked."""

from __future__ import annotations

import difflib
import os
from dataclasses import asdict
from typing import Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveFloat, SecretStr, TypeAdapter, ValidationError

from hookloop_hookspecs import ConfigError

from .profile import Api, Profile, profiles
from .usage import Prices


class Options(BaseModel):
    """How an endpoint is asked.

    `api_key` stands in the profile's variable where it is not given; `base_url` replaces the profile's. `transport`
    says whether HTTP streams; `api` overrides what the profile decides by the model. `profile` is the name of one that
    comes with this package, or a table of its fields (`base` names the one that it changes). `request_timeout` bounds
    the wait for headers and `idle_timeout` the silence between two chunks, in seconds; `retries` counts further
    attempts before anything visible came. `prices` are per million tokens; `vision` says whether the model sees images.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    api_key: SecretStr | None = None
    base_url: str | None = None
    transport: Literal["stream", "whole"] = "stream"
    api: Api | None = None
    profile: str | dict[str, Any] | None = None
    request_timeout: PositiveFloat = 600.0
    idle_timeout: PositiveFloat = 300.0
    retries: NonNegativeInt = 2
    organization: str | None = None
    headers: dict[str, str] = {}
    prices: Prices | None = None
    vision: bool | None = None


def profile_for(options: Options, default: str) -> Profile:
    """The profile that the options ask for, else the one named `default`. Raises `ConfigError`."""
    if isinstance(options.profile, dict):
        return _from_table(options.profile, default)
    return _named(options.profile or default)


def _named(name: str) -> Profile:
    try:
        return profiles[name]
    except KeyError:
        near = difflib.get_close_matches(name, profiles, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(sorted(profiles))}"
        raise ConfigError(f"no profile is named {name!r}; {hint}") from None


def _from_table(table: dict[str, Any], default: str) -> Profile:
    given = dict(table)
    base = asdict(_named(str(given.pop("base", default))))
    unknown = sorted(set(given) - set(base))
    if unknown:
        near = difflib.get_close_matches(unknown[0], base, 1)
        raise ConfigError(f"a profile has no field {unknown[0]!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
    try:
        return TypeAdapter(Profile).validate_python(base | given)
    except ValidationError as error:
        raise ConfigError(f"profile: {error}") from None


def key_for(options: Options, profile: Profile) -> str:
    """The API key, from the options or the environment. Raises `ConfigError` that names the variable."""
    if options.api_key is not None:
        return options.api_key.get_secret_value()
    key = os.environ.get(profile.key_env, "") if profile.key_env else ""
    if not key and profile.key_needed:
        variable = f"set {profile.key_env} or " if profile.key_env else ""
        raise ConfigError(f"{profile.name}: no API key; {variable}give the option api_key")
    return key


def base_url_for(options: Options, profile: Profile) -> str:
    """The address to ask, from the options, the environment or the profile. Raises `ConfigError`."""
    url = options.base_url or (os.environ.get(profile.base_url_env) if profile.base_url_env else "") or profile.base_url
    if not url:
        variable = f"set {profile.base_url_env} or " if profile.base_url_env else ""
        raise ConfigError(f"{profile.name}: no address; {variable}give the option base_url")
    if urlsplit(url).scheme not in ("http", "https"):
        raise ConfigError(f"{profile.name}: base_url must begin with http:// or https://, not {url!r}")
    return url


def tag_for(profile: Profile, base_url: str) -> str:
    """Profile and endpoint as parts remember them: the host is named where it is not the profile's own."""
    host, own = urlsplit(base_url).hostname, urlsplit(profile.base_url).hostname
    return profile.name if host == own else f"{profile.name}@{host}"
