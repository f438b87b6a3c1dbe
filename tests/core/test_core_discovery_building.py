"""Providers, memories and plugins made by name, with options that are checked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel, ConfigDict, field_validator

from hookloop.config import config_from, load_config
from hookloop.discovery import BuildError, build, configured_memories, configured_provider, memory, provider
from hookloop_hookspecs import ConfigError

if TYPE_CHECKING:
    from tests.conftest import Distribute

WITH_OPTIONS = """
from pydantic import BaseModel, ConfigDict

class Made:
    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")
        transport: str = "stream"
        base_url: str = ""
        profile: dict = {}

    def __init__(self, what, options):
        self.what, self.options = what, options

class Plain:
    def __init__(self, what):
        self.what = what

class Broken:
    def __init__(self, what):
        raise RuntimeError("no key")
"""


@pytest.fixture(autouse=True)
def installed(distribute: Distribute) -> None:
    groups = {
        "hookloop.providers": {"hlp": "hl_made:Made", "hlplain": "hl_made:Plain", "hlbroken": "hl_made:Broken"},
        "hookloop.memory": {"hlm": "hl_made:Made", "hlplain": "hl_made:Plain"},
    }
    distribute("hl-made", groups, {"hl_made": WITH_OPTIONS})


class PluginOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")
    tool: str = "edit"
    times: int = 1


class Plugin:
    Options = PluginOptions

    def __init__(self, options: PluginOptions) -> None:
        self.options = options


def test_options_are_validated_and_given() -> None:
    made = build(Plugin, options={"times": 3}, label="plugin 'p'")
    assert made.options == PluginOptions(times=3)


def test_a_function_may_be_the_factory() -> None:
    assert build(lambda: "made", options={}) == "made"


@pytest.mark.parametrize(
    ("factory", "options", "words"),
    [
        (Plugin, {"tol": "x"}, "plugin 'p': unknown option 'tol'; did you mean 'tool'?"),
        (Plugin, {"times": "many"}, "plugin 'p': times: should be a valid integer"),
        (list, {"tool": "x"}, "plugin 'p': unknown option 'tool'; it takes no options"),
        (3, {}, "plugin 'p': its entry point names 3, which is no class or function"),
    ],
)
def test_a_wrong_option_is_told(factory: object, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        build(factory, options=options, label="plugin 'p'")
    assert str(caught.value).startswith(words)


def test_the_place_of_a_wrong_option_stands_first() -> None:
    with pytest.raises(ConfigError) as caught:
        build(Plugin, options={"tol": 1}, label="plugin 'p'", where=lambda keys: f"file:{len(keys)}")
    assert str(caught.value) == "file:1: plugin 'p': unknown option 'tol'; did you mean 'tool'?"


def test_a_provider_is_made_by_its_prefix() -> None:
    made = provider("hlp:model:with:colons", transport="whole")
    assert (made.what, made.options.transport) == ("model:with:colons", "whole")
    assert provider("hlplain:m").what == "m"
    assert provider("hlplain").what == ""


@pytest.mark.parametrize(
    ("reference", "words"),
    [
        ("hlpp:x", "provider prefix 'hlpp': is not known; did you mean 'hlp'?"),
        ("gpt-4.1", "model 'gpt-4.1' has no provider; write for example 'openai:gpt-4.1'"),
        ("", "no model is given"),
        ("hlbroken:x", "provider 'hlbroken' cannot be made: RuntimeError: no key"),
    ],
)
def test_a_wrong_reference_is_told(reference: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        provider(reference)
    assert str(caught.value).startswith(words)


def test_a_wrong_option_of_a_provider_is_told() -> None:
    with pytest.raises(ConfigError, match=r"provider 'hlp': unknown option 'transprt'; did you mean 'transport'\?"):
        provider("hlp:x", transprt="whole")


class Strange:
    """A type without a JSON Schema."""


class OddOptions(BaseModel):
    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)
    thing: Strange | None = None
    name: str = ""

    @field_validator("name")
    @classmethod
    def _check(cls, name: str) -> str:
        return {"": "", "good": "good"}[name]


def odd(options: object) -> object:
    return options


def test_options_that_are_no_model_or_fail_are_the_authors_fault() -> None:
    setattr(odd, "Options", OddOptions)  # noqa: B010 - a function has no such attribute
    assert build(odd, options={"name": "good"}).name == "good"
    with pytest.raises(BuildError, match="plugin 'p': its Options cannot be used: KeyError: 'bad'"):
        build(odd, options={"name": "bad"}, label="plugin 'p'")
    with pytest.raises(ConfigError, match=r"plugin 'p': unknown option 'nam'; did you mean 'name'\?"):
        build(odd, options={"nam": "good"}, label="plugin 'p'")
    setattr(odd, "Options", {"name": str})  # noqa: B010 - as above
    with pytest.raises(
        BuildError, match=r"plugin 'p': its Options is \{'name': <class 'str'>\}, which is no pydantic model"
    ):
        build(odd, options={}, label="plugin 'p'")


@pytest.mark.parametrize("error", [SystemExit(2), GeneratorExit("x"), type("Odd", (BaseException,), {})("x")])
def test_whatever_a_factory_raises_is_a_failure_to_make_it(error: BaseException) -> None:
    def factory() -> None:
        raise error

    with pytest.raises(BuildError, match=f"plugin 'p' cannot be made: {type(error).__name__}") as caught:
        build(factory, options={}, label="plugin 'p'")
    assert caught.value.__cause__ is error


def test_a_factory_that_fails_keeps_its_error() -> None:
    with pytest.raises(BuildError) as caught:
        provider("hlbroken:x")
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_a_configured_provider_gets_its_options() -> None:
    config = config_from(
        {"model": "hlp:m", "provider": {"transport": "whole"}, "providers": {"hlp": {"base_url": "b"}}}
    )
    made = configured_provider(config.model, config)
    assert (made.options.transport, made.options.base_url) == ("whole", "b")


def test_a_profile_goes_to_the_provider_of_its_prefix() -> None:
    made = configured_provider("hlp:m", config_from({"profiles": {"hlp": {"base_url": "b"}}}))
    assert made.options.profile == {"name": "hlp", "base_url": "b"}


def test_a_prefix_of_ones_own_is_an_endpoint_of_openais_protocol() -> None:
    table = {"base": "ollama", "base_url": "http://localhost:9/v1"}
    made = configured_provider("mine:m", config_from({"profiles": {"mine": table}}))
    assert made.reference == "mine:m"
    made.close()


def test_a_wrong_profile_is_told_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "hookloop.toml"
    file.write_text('model = "mine:m"\n\n[profiles.mine]\nbase = "olama"\n', "utf-8")
    with pytest.raises(ConfigError, match=r"hookloop\.toml:3: no profile is named 'olama'; did you mean 'ollama'\?"):
        configured_provider("mine:m", load_config(file, {}))


def test_a_configured_option_is_told_with_its_place() -> None:
    config = config_from({"model": "hlp:m", "provider": {"transprt": "whole"}})
    with pytest.raises(ConfigError, match=r"^config: provider 'hlp': unknown option 'transprt'"):
        configured_provider(config.model, config)


def test_a_memory_is_made_by_its_scheme() -> None:
    made = memory("hlm://host/db", {"transport": "x"})
    assert (made.what, made.options.transport) == ("hlm://host/db", "x")
    assert memory("hlplain+driver://host").what == "hlplain+driver://host"


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("hlmm://u:s3cret@h/d", "memory scheme 'hlmm': is not known; did you mean 'hlm'?"),
        ("chat.db", "memory 'chat.db' is no URL; write for example 'sqlite:///chat.db'"),
    ],
)
def test_a_wrong_memory_is_told(url: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        memory(url)
    assert str(caught.value).startswith(words)


def test_a_password_is_not_repeated() -> None:
    with pytest.raises(ConfigError) as caught:
        memory("hlm://u:s3c/r@et@host/db?x=1", {"nope": 1})
    assert str(caught.value).startswith("memory 'hlm://u:***@host/db?x=1': unknown option")


def test_configured_memories_stand_in_order_with_their_tables() -> None:
    config = config_from({"memory": ["hlm://a", {"url": "hlplain:b", "placement": "outside"}]})
    opened = configured_memories(config)
    assert [(table.placement, made.what) for table, made in opened] == [(None, "hlm://a"), ("outside", "hlplain:b")]


def test_a_configured_memory_is_told_with_its_place() -> None:
    config = config_from({"memory": ["hlm://a", {"url": "hlm://b", "options": {"nope": 1}}]})
    with pytest.raises(ConfigError, match=r"^config: memory 'hlm://b': unknown option 'nope'"):
        configured_memories(config)
