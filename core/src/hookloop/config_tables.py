"""The tables of `hookloop.toml`: which keys they have, and what each means.

What must live here: one model for each table. What must never be known here: where a table comes from (`config`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model
from pydantic_core import PydanticCustomError

from hookloop_hookspecs import Settings, Window

from .limits import Limits
from .names import hook_names, suggest

Placement: TypeAlias = Literal["inside", "outside"]
OnError: TypeAlias = Literal["raise", "skip", "disable"]


class Table(BaseModel):
    """A table of the file: no key but the declared ones, no value of another type.

    The text behind a key is its description in the JSON Schema. What costs time waits until it is used (`defer_build`).
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


def _table_of(kind: type[Any]) -> type[BaseModel]:
    """A table with the fields of a dataclass; numbers are from 0."""
    hints = get_type_hints(kind)
    table: dict[str, Any] = {}
    for spec in fields(kind):
        hint = hints[spec.name]
        bound = Field(ge=0) if hint in (int, int | None, float | None) else Field()
        table[spec.name] = (Annotated[hint, bound], None)
    if "per_tool_overrides" in table:
        table["per_tool_overrides"] = (dict[str, Annotated[int, Field(ge=0)]], None)
    return create_model(f"{kind.__name__}Table", __base__=Table, **table)


LimitsTable = _table_of(Limits)
WindowTable = _table_of(Window)


def as_limits(value: Any) -> Limits:
    """Limits from a table; the word "none" takes a limit away, since TOML has no null."""
    if isinstance(value, Limits):
        return value
    if isinstance(value, Mapping):
        value = {key: None if given == "none" else given for key, given in value.items()}
    return Limits(**LimitsTable.model_validate(value).model_dump(exclude_unset=True))


def as_window(value: Any) -> Window | None:
    """A window from a table."""
    if value is None or isinstance(value, Window):
        return value
    return Window(**WindowTable.model_validate(value).model_dump(exclude_unset=True))


def _hook_name(name: str) -> str:
    if name not in hook_names():
        hint = suggest(name, hook_names())
        raise PydanticCustomError("unknown_name", "unknown hook '{name}'{hint}", {"name": name, "hint": hint})
    return name


HookName = Annotated[str, AfterValidator(_hook_name)]


class MemoryTable(Table):
    """One memory."""

    url: str
    """The scheme names the driver, e.g. `sqlite:///chat.db`. `${NAME}` is taken from the environment."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options of the driver, validated by it."""
    placement: Placement | None = None
    """`outside`: written once, at the end of a turn. Left out: as the memory's flags allow."""


def _as_memories(value: Any) -> Any:
    items = [value] if isinstance(value, str | Mapping) else value
    return [{"url": item} if isinstance(item, str) else item for item in items] if isinstance(items, list) else items


Memories = Annotated[
    list[MemoryTable],
    BeforeValidator(_as_memories, json_schema_input_type=str | list[str | MemoryTable]),
]


class ToolsTable(Table):
    """How tools run."""

    workers: int = Field(default=32, ge=1)
    """Threads for sync tools of one agent."""
    parallel: int = Field(default=16, ge=1)
    """Calls of one reply that run at once."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds for a call of a tool that says nothing itself."""
    detailed_errors: bool = True
    """False: of a tool's exception the model reads the class only, not the message."""
    cancel_grace: float = Field(default=5.0, ge=0)
    """Seconds for which a cancelled turn waits for tools in threads."""


class SettingsTable(Table):
    """What is asked of the model beside the messages; what is left out is the provider's to choose."""

    max_tokens: int | None = Field(default=None, ge=1)
    """Tokens of a reply, at most."""
    temperature: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    """How much chance is in a reply; 0 is least."""
    top_p: float | None = Field(default=None, ge=0, le=1)
    """Only the likeliest tokens that make up this share."""
    stop: list[str] = Field(default_factory=list)
    """Texts at which a reply ends."""
    seed: int | None = None
    """The same seed makes replies alike, where the provider can do that."""
    effort: str | None = None
    """The effort of reasoning, by the vendor's word: `none`, `low`, `high`, …"""
    parallel: bool | None = None
    """May one reply hold several calls?"""
    extra: dict[str, Any] = Field(default_factory=dict)
    """What is put into the body of requests as it is."""


def as_settings(value: Any) -> Settings:
    """Settings from a table."""
    if isinstance(value, Settings):
        return value
    given = SettingsTable.model_validate(value).model_dump(exclude_unset=True)
    return Settings(**{**given, "stop": tuple(given.get("stop", ()))})


class PluginTable(Table):
    """One plugin."""

    enabled: bool = True
    """False: off, and not even imported; it need not be installed."""
    hooks: dict[HookName, bool] = Field(default_factory=dict)
    """Single hooks, switched off with false."""
    on_error: OnError | None = None
    """What happens when a hook of it fails; left out: as the hook's documentation says."""
    disable_after: int = Field(default=3, ge=1)
    """With `on_error = "disable"`: the failures after which it is switched off."""
    timeout: float | None = Field(default=None, gt=0)
    """Seconds for each of its async hooks."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Its own options, validated by its own model."""

    @property
    def off(self) -> tuple[str, ...]:
        """The hooks that are switched off."""
        return tuple(name for name, on in self.hooks.items() if not on)
