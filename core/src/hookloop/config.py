"""The configuration: one model of `hookloop.toml`, from which come its checks, its JSON Schema and what is loaded.

What must live here: which keys there are and what they mean; those of its tables stand in `config_tables`. What must never
be known here: how plugins are found (`discovery`), where the file lies (`config_file`).
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, PlainValidator, PrivateAttr, ValidationError

from hookloop_hookspecs import ConfigError, Settings, Window

from .config_faults import dotted, faults, secrets
from .config_file import PREFIX, Keys, Source, find, overrides, put, read, value_of
from .config_tables import (
    LimitsTable,
    Memories,
    MemoryTable,
    PluginTable,
    SettingsTable,
    Table,
    ToolsTable,
    WindowTable,
    as_limits,
    as_settings,
    as_window,
)
from .hiding import hidden
from .limits import Limits
from .names import nearest


class Config(Table):
    """The whole of `hookloop.toml`."""

    model: str = ""
    """The provider and its model, e.g. `anthropic:claude-sonnet-4-6`."""
    instructions: str = ""
    """System text of every turn."""
    memory: Memories = Field(default_factory=list)
    """Where conversations are kept; the first that can load owns the history."""
    auto: bool = False
    """True: every installed plugin is on unless disabled. False: those that are named here."""
    strict: bool | None = None
    """What a plugin is that cannot be loaded. Left out: an error where it is named, a warning where only `auto` switches it
    on. True: always an error. False: always a warning. Warnings are logged, and stand in the agent's report
    and in every outcome."""
    order: list[str] = Field(default_factory=list)
    """Plugins, outermost first; those left out follow."""
    limits: Annotated[Limits, PlainValidator(as_limits, json_schema_input_type=LimitsTable)] = Field(
        default_factory=Limits
    )
    """What a turn may use. The word "none" takes a limit away."""
    window: Annotated[Window | None, PlainValidator(as_window, json_schema_input_type=WindowTable)] = None
    """How much of the conversation is sent."""
    settings: Annotated[Settings, PlainValidator(as_settings, json_schema_input_type=SettingsTable)] = Field(
        default_factory=Settings
    )
    """What is asked of the model beside the messages."""
    tools: ToolsTable = Field(default_factory=ToolsTable)
    """How tools run."""
    provider: dict[str, Any] = Field(default_factory=dict)
    """Options of the model's provider: transport, base_url, …"""
    providers: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options of providers by their prefix."""
    profiles: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Endpoints that speak OpenAI's protocol, by a prefix of your own."""
    plugins: dict[str, PluginTable] = Field(default_factory=dict)
    """Hook plugins by the name of their entry point."""

    _source: Source = PrivateAttr(default_factory=Source)
    _given: Mapping[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def path(self) -> Path | None:
        """The file it was read from, if any."""
        return self._source.path

    @property
    def given(self) -> Mapping[str, Any]:
        """What was written, by file and environment, before defaults."""
        return self._given

    def where(self, *keys: str | int) -> str:
        """Where a key was set, for messages: `hookloop.toml:7`, an environment variable, or "config"."""
        return self._source.where(keys)

    def variable(self, *keys: str | int) -> str | None:
        """The environment variable, or the option of the command line, that set a key; None where the file did."""
        return self._source.variable(keys)

    def shown(self) -> dict[str, Any]:
        """All of it, with defaults, as plain data without secrets."""
        apart = {"limits", "window", "settings"}
        data = {name: getattr(self, name) for name in type(self).model_fields if name in apart}
        plain = {**self.model_dump(exclude=apart), **{name: _plain(table) for name, table in data.items()}}
        shown: dict[str, Any] = hidden({name: plain[name] for name in type(self).model_fields})
        return shown

    def provider_options(self, prefix: str) -> dict[str, Any]:
        """The options for providers with that prefix; `[provider]` is for the prefix of `model`."""
        own = self.provider if self.model.partition(":")[0] == prefix else {}
        return {**self.providers.get(prefix, {}), **own}

    def provider_where(self, prefix: str, option: str) -> str:
        """Where an option of that provider was set."""
        own = option in self.provider and self.model.partition(":")[0] == prefix
        return self.where("provider", option) if own else self.where("providers", prefix, option)


def load_config(
    path: Path | str | None,
    environ: Mapping[str, str],
    start: Path | None = None,
    options: Mapping[str, tuple[str, Any]] | None = None,
) -> Config:
    """The configuration of a file and the environment.

    Arguments: `path`, a TOML file (a `pyproject.toml` is read at `[tool.hookloop]`); None: the file that
    `HOOKLOOP_CONFIG` names, else the nearest from `start` (default: the working directory) upwards, else none.
    `environ` overrides it: `HOOKLOOP_MODEL`, `HOOKLOOP_LIMITS__ROUNDS`, …; and `options` of a command line override both,
    each with its key and value: `{"--model": ("model", "openai:gpt-4.1")}`. Raises `ConfigError` with file, line, fault
    and nearest right name.
    """
    chosen = path or environ.get(f"{PREFIX}CONFIG") or find(start or Path.cwd())
    data, source = read(Path(chosen).resolve()) if chosen else ({}, Source())
    variables: dict[Keys, str] = {}
    for name, keys, text in overrides(environ, _may_be_ours):
        used = put(data, keys, text if _is_text(keys) else value_of(text))
        variables[used] = name
    for name, (key, value) in (options or {}).items():
        variables[put(data, (key,), value)] = name
    return _validated(data, Source(source.path, source.text, source.prefix, variables), environ)


def config_from(mapping: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> Config:
    """The configuration that a program gives, with the same keys as `hookloop.toml`. Raises `ConfigError`.

    `environ` fills in `${NAME}` in memory URLs.
    """
    return _validated(dict(mapping), Source(), environ or {})


def changed(config: Config, mapping: Mapping[str, Any]) -> Config:
    """A configuration with these keys instead, whose errors still tell where in its file and environment they stand."""
    return _validated(dict(mapping), config._source, {})


def schema() -> dict[str, Any]:
    """The JSON Schema of `hookloop.toml`, for editors."""
    raw = Config.model_json_schema()
    for limit in raw["$defs"][LimitsTable.__name__]["properties"].values():
        limit["anyOf"] = [{"const": "none"} if kind == {"type": "null"} else kind for kind in limit.get("anyOf", ())]
    for table in (Config, MemoryTable, PluginTable, SettingsTable, ToolsTable):
        _describe(raw if table is Config else raw["$defs"][table.__name__], table)
    made = _without_null(raw)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "hookloop.toml"}


def _describe(node: dict[str, Any], table: type[Table]) -> None:
    """Put the texts behind the keys of a table into its part of the JSON Schema."""
    (body,) = ast.parse(inspect.getsource(table)).body
    statements = body.body if isinstance(body, ast.ClassDef) else []
    for key, text in pairwise(statements):
        if isinstance(key, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            node["properties"][ast.unparse(key.target)]["description"] = " ".join(str(text.value.value).split())


def variable_for(name: str, key: str = "api_key") -> str:
    """The environment variable in which a secret of a provider or plugin is looked for."""
    return re.sub(r"[^A-Z0-9]", "_", f"{name}_{key}".upper())


def _validated(data: dict[str, Any], source: Source, environ: Mapping[str, str]) -> Config:
    _refuse_secrets(data, source)
    filled = _filled(data, source, environ)
    try:
        config = Config.model_validate(filled)
    except ValidationError as error:
        raise ConfigError(faults(error, schema(), source.where)) from error
    config._source, config._given = source, data
    return config


def _refuse_secrets(data: Mapping[str, Any], source: Source) -> None:
    model = str(data.get("model", "")).partition(":")[0]
    for keys in secrets(data):
        if keys[0] in ("provider", "providers", "profiles", "plugins"):
            owner = model or "provider" if keys[0] == "provider" else str(keys[1])
            variable = variable_for(owner, str(keys[-1]))
            place = f"{source.where(keys)}: {dotted(keys)}"
            raise ConfigError(f"{place} is a secret, and those come from the environment; set {variable}")


def _filled(data: dict[str, Any], source: Source, environ: Mapping[str, str]) -> dict[str, Any]:
    """The data with `${NAME}` in memory URLs taken from the environment."""
    if "memory" not in data:
        return data
    return {**data, "memory": _fill(data["memory"], ("memory",), source, environ)}


def _fill(value: Any, keys: Keys, source: Source, environ: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_fill(item, (*keys, at), source, environ) for at, item in enumerate(value)]
    if isinstance(value, Mapping):
        return {
            key: _fill(item, (*keys, key), source, environ) if key == "url" else item for key, item in value.items()
        }
    if not isinstance(value, str):
        return value
    return re.sub(r"\$\{(\w+)\}", lambda match: _variable(match[1], keys, source, environ), value)


def _variable(name: str, keys: Keys, source: Source, environ: Mapping[str, str]) -> str:
    if name not in environ:
        raise ConfigError(f"{source.where(keys)}: {dotted(keys)}: environment variable {name} is not set")
    return environ[name]


def _plain(table: Any) -> dict[str, Any] | None:
    """A dataclass as plain data; its read-only mappings too."""
    if table is None:
        return None
    values = {spec.name: getattr(table, spec.name) for spec in fields(table)}
    return {name: dict(value) if isinstance(value, Mapping) else value for name, value in values.items()}


def _may_be_ours(key: str) -> bool:
    """A variable that is a key, or was most likely meant to be one."""
    near = nearest(key, Config.model_fields)
    return key in Config.model_fields or (near is not None and abs(len(near) - len(key)) <= 1 and near[0] == key[0])


def _is_text(keys: tuple[str, ...]) -> bool:
    return len(keys) == 1 and Config.model_fields.get(keys[0], Field()).annotation is str


def _without_null(node: Any) -> Any:
    """A JSON Schema without null, which TOML cannot write."""
    if isinstance(node, list):
        return [_without_null(item) for item in node]
    if not isinstance(node, dict):
        return node
    made = {key: _without_null(item) for key, item in node.items() if not (key == "default" and item is None)}
    options = [option for option in made.get("anyOf", ()) if option != {"type": "null"}]
    if len(options) == 1 and "anyOf" in made:
        del made["anyOf"]
        return {**options[0], **made}
    return {**made, "anyOf": options} if options else {key: item for key, item in made.items() if key != "anyOf"}
