"""Making an object from what an entry point gives: the one rule for plugins, memories and providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from hookloop.config_faults import faults
from hookloop.config_file import Keys
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
    model = getattr(factory, "Options", None)
    if model is None:
        _refuse_options(options, label, where)
        return _made(factory, args, label)
    return _made(factory, (*args, validated(model, options, label, where)), label)


def validated(
    model: type[BaseModel], options: Mapping[str, Any], label: str, where: Callable[[Keys], str] | None = None
) -> BaseModel:
    """The options as the model has them. Raises `ConfigError` with a line for each fault."""
    try:
        return model.model_validate(dict(options))
    except ValidationError as error:
        place = _placed(label, where)
        raise ConfigError(faults(error, model.model_json_schema(), place, "option")) from error


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
    except (Exception, SystemExit) as error:
        raise BuildError(f"{label} cannot be made: {type(error).__name__}: {error}") from error
