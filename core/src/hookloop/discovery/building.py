"""Making an object from what an entry point gives: the one rule for plugins, memories and providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError

from hookloop.config_faults import Schema, faults
from hookloop.config_file import Keys
from hookloop.hiding import told
from hookloop_hookspecs import ConfigError, HookloopError


class BuildError(ConfigError):
    """A factory failed, whatever the options: the fault of whoever wrote it."""


def build(
    factory: object,
    *args: Any,
    options: Mapping[str, Any],
    label: str = "",
    where: Callable[[Keys], str] | None = None,
) -> Any:
    """The object that `factory` makes of `args`.

    A factory is a class or function. Where it has an attribute `Options` (a pydantic model), `options` are validated by
    it and given as the last argument; without it the factory takes none.

    Arguments: `label` names it in errors ("plugin 'feedback'"); `where` tells the place of an option in the
    configuration. Raises `ConfigError` for a wrong option, naming it and the nearest right one, and `BuildError` for
    anything else that goes wrong in the factory, with the error as its cause.
    """
    if not callable(factory):
        raise BuildError(f"{label}: its entry point names {factory!r}, which is no class or function")
    model = options_of(factory, label)
    if model is None:
        _refuse_options(options, label, where)
        return _made(factory, args, label)
    return _made(factory, (*args, validated(model, options, label, where)), label)


def options_of(factory: object, label: str) -> type[BaseModel] | None:
    """The model of a factory's options; None where it takes none. Raises `BuildError` where it is no pydantic model."""
    model = getattr(factory, "Options", None)
    if model is None or (isinstance(model, type) and issubclass(model, BaseModel)):
        return model
    raise BuildError(f"{label}: its Options is {model!r:.60}, which is no pydantic model")


def validated(
    model: type[BaseModel], options: Mapping[str, Any], label: str, where: Callable[[Keys], str] | None = None
) -> BaseModel:
    """The options as the model has them.

    Raises `ConfigError` with a line for each fault, and `BuildError` where the model itself fails.
    """
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        raise ConfigError(faults(error, _schema(model), _placed(label, where), "option")) from error
    except Exception as error:
        raise _failed(f"{label}: its Options cannot be used", error) from error


def _schema(model: type[BaseModel]) -> Schema:
    """The JSON Schema of a model; of one that has types without a schema, the names alone."""
    try:
        return model.model_json_schema()
    except PydanticUserError:
        return {"properties": {name: {} for name in model.model_fields}}


def _refuse_options(options: Mapping[str, Any], label: str, where: Callable[[Keys], str] | None) -> None:
    if options:
        first = next(iter(options))
        raise ConfigError(f"{_placed(label, where)((first,))}: unknown option {first!r}; it takes no options")


def _placed(label: str, where: Callable[[Keys], str] | None) -> Callable[[Keys], str]:
    return lambda keys: f"{where(keys)}: {label}" if where is not None else label


def _made(factory: Callable[..., Any], args: tuple[Any, ...], label: str) -> Any:
    try:
        return factory(*args)
    except HookloopError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a factory may try to end the program
        raise _failed(f"{label} cannot be made", error) from error


def _failed(words: str, error: BaseException) -> BuildError:
    return BuildError(told(f"{words}: {type(error).__name__}: {error}"))
