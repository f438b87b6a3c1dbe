"""Arguments checked by pydantic: one model made of a function's parameters."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_json

from .annotations import described
from .arguments import ArgumentsError
from .errors import ConfigError
from .mending import Fault, Faulty, mended
from .parameters import ABSENT, EMPTY, Parameter, Reading
from .redact import bounded, redact
from .users_code import plain

_CONTAINERS: Final = {
    "dict_type", "list_type", "tuple_type", "set_type", "frozen_set_type", "model_type", "model_attributes_type",
    "dataclass_type", "mapping_type", "sequence_str", "arguments_type", "iterable_type",
}  # fmt: skip


_CONFIG: Final = ConfigDict(extra="forbid", protected_namespaces=())
_EXTRA: Final = "**"
"""The key under which further keyword arguments are checked; no argument can have this name."""


class _Untitled(GenerateJsonSchema):
    """JSON Schema without the titles that pydantic makes of names; they cost tokens and say nothing."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default", "skipped-discriminator"}  # noqa: RUF012  # the base declares it so

    def field_title_should_be_set(self, schema: Any) -> bool:
        """Never."""
        return False


class ModelCheck:
    """Checks arguments for a function's parameters and builds their values. `schema` is their JSON Schema; `plain` says that no
    code of users runs meanwhile.
    """

    def __init__(self, reading: Reading) -> None:
        self._label = reading.label
        self._reserved = reading.reserved
        self._open = reading.extra is not EMPTY
        further = (Parameter(_EXTRA, _dict_of(reading.extra), {}),) if self._open else ()
        self._parameters = (*reading.parameters, *further)
        self._names = {f"p{i}": p.name for i, p in enumerate(self._parameters)}
        self._filled = frozenset(k for k, p in zip(self._names, self._parameters, strict=True) if _fills(p))
        model, self.schema = self._build()
        self._validator = model.__pydantic_validator__
        self.plain = plain(model.__pydantic_core_schema__)
        self._aliases = {name: alias for key, name in self._names.items() if (alias := _alias(model, key)) != name}
        self._known = tuple(self.schema["properties"])

    def __call__(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The values by parameter name. Raises `ArgumentsError`."""
        given = arguments if isinstance(arguments, dict) else dict(arguments)
        try:
            made = self._validator.validate_python(self._sorted(given))
        except ValidationError:
            made = mended(self._made, given, self._known)
        except Exception as error:  # validators are the users' code, and may raise anything
            raise _broken(error) from error
        return self._values(made)

    def _sorted(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """The arguments by their names in the schema, with further keyword arguments under their own key."""
        if self._aliases:
            arguments = {self._aliases.get(key, key): value for key, value in arguments.items()}
        if not self._open:
            return arguments
        known = {key: value for key, value in arguments.items() if key in self._known or key in self._reserved}
        return {**known, _EXTRA: {key: value for key, value in arguments.items() if key not in known}}

    def _made(self, arguments: Mapping[str, Any]) -> BaseModel:
        """The model, from Python values or (for strict models, which want JSON's types only from JSON) from JSON."""
        given = self._sorted(arguments)
        try:
            return cast("BaseModel", self._validator.validate_python(given))
        except ValidationError as error:
            made = self._from_json(given)
            if made is None:
                raise Faulty([_fault(item) for item in error.errors(include_url=False)]) from error
            return made
        except Exception as error:
            raise _broken(error) from error

    def _from_json(self, arguments: Mapping[str, Any]) -> BaseModel | None:
        try:
            made = self._validator.validate_json(to_json(arguments, inf_nan_mode="constants"))
        except Exception:  # validators are users' code; the first complaint stands
            return None
        return cast("BaseModel", made)

    def _values(self, made: BaseModel) -> dict[str, Any]:
        given, values = made.__pydantic_fields_set__, made.__dict__
        found = {name: values[k] for k, name in self._names.items() if k in given or k in self._filled}
        return {**found.pop(_EXTRA), **found} if self._open else found

    def _build(self) -> tuple[type[BaseModel], dict[str, Any]]:
        fields: dict[str, Any] = {k: _field(p) for k, p in zip(self._names, self._parameters, strict=True)}
        try:
            model = create_model("Arguments", __config__=_CONFIG, **fields)
            return model, _json_schema(model)
        except Exception as error:  # annotations are the users', and pydantic asks their code
            raise self._undescribable(error) from error

    def _undescribable(self, error: Exception) -> ConfigError:
        """Which parameter it was: the first that cannot be described alone."""
        where = "the parameters"
        for p in self._parameters:
            try:
                with warnings.catch_warnings(action="ignore"):
                    TypeAdapter(p.annotation).json_schema()
            except Exception as own:
                error, where = own, f"parameter '{p.name}'"
                break
        return ConfigError(
            f"{self._label}: {where} cannot be described to a model ({_brief(error)}); use a type that "
            "pydantic knows, or annotate it ToolContext if the model does not fill it"
        )


def _field(p: Parameter) -> Any:
    """The parameter as pydantic wants it; what the annotation says of it stands over the docstring."""
    annotation = described(p.annotation, p.description, alias=p.name)
    if p.default is EMPTY:
        return annotation
    if isinstance(p.default, FieldInfo) or _plain(p.default):
        return (annotation, p.default)
    return (annotation, Field(default_factory=lambda: p.default))


def _dict_of(kind: Any) -> Any:
    return dict.__class_getitem__((str, kind))


def _alias(model: type[BaseModel], key: str) -> str:
    """The name of a field in the schema; of several the first."""
    info = model.model_fields[key]
    alias = info.validation_alias or info.alias
    first = alias.choices[0] if isinstance(alias, AliasChoices) else alias
    return first if isinstance(first, str) else str(info.alias)


def _plain(default: Any) -> bool:
    try:
        to_json(default)
    except (PydanticSerializationError, ValueError):
        return False
    return default is not ABSENT


def _fills(p: Parameter) -> bool:
    """Whether the default is pydantic's to fill in: the function itself has none, or has a `Field(...)` in its place."""
    return p.default is EMPTY or isinstance(p.default, FieldInfo)


def _json_schema(model: type[BaseModel]) -> dict[str, Any]:
    schema = model.model_json_schema(schema_generator=_Untitled)
    schema.pop("title", None)
    schema.pop("description", None)
    for name, definition in schema.get("$defs", {}).items():
        if definition.get("title") == name:
            del definition["title"]
    further = schema.setdefault("properties", {}).pop(_EXTRA, None)
    if further is not None:
        schema["additionalProperties"] = further["additionalProperties"]
    return schema


def _fault(item: Any) -> Fault:
    kind, message = item["type"], item["msg"]
    return Fault(
        where=item["loc"][1:] if item["loc"][:1] == (_EXTRA,) else item["loc"],
        message=message[:1].lower() + message[1:],
        value=item["input"],
        missing=kind == "missing",
        unknown=kind in {"extra_forbidden", "unexpected_keyword_argument"},
        container=kind in _CONTAINERS,
    )


def _brief(error: Exception) -> str:
    return bounded(str(error).partition("\n")[0].partition(". ")[0], 200)


def _broken(error: Exception) -> ArgumentsError:
    return ArgumentsError(f"arguments could not be checked: {type(error).__name__}: {bounded(redact(str(error)), 200)}")
