"""Profiles and options: data that is checked before anything is asked."""

from __future__ import annotations

import os
import tomllib
from dataclasses import fields
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from hookloop.testing import say
from hookloop.testing.server import StrictServer
from hookloop_hookspecs import ConfigError, Message, ModelRequest, Reply, Usage
from hookloop_hookspecs.providers import AsyncStreams, Streams
from hookloop_openai import OpenAIProvider, Options, Prices, Profile, factories, profiles

README = Path(__file__).parents[2] / "plugins" / "openai" / "README.md"
NAMES = [
    "azure",
    "deepseek",
    "gemini",
    "groq",
    "llamacpp",
    "mistral",
    "ollama",
    "openai",
    "openrouter",
    "together",
    "vllm",
    "xai",
]


def given(**fields: Any) -> Options:
    """Options from plain values, as a file gives them."""
    return Options(**fields)


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key or address of this machine."""
    for profile in profiles.values():
        for name in filter(None, (profile.key_env, profile.base_url_env)):
            monkeypatch.delenv(name, raising=False)


def test_every_profile_is_an_entry_point() -> None:
    found = {
        point.name: point
        for point in entry_points(group="hookloop.providers")
        if point.value.startswith("hookloop_openai.")
    }
    assert sorted(found) == sorted(profiles) == NAMES
    for name, point in found.items():
        factory = point.load()
        assert factory.Options is Options
        assert factory("m", given(api_key="k", base_url="http://127.0.0.1:1")).name == name


@pytest.mark.parametrize("name", NAMES)
def test_provider_is_what_the_contract_asks_for(name: str) -> None:
    provider: OpenAIProvider = getattr(factories, name)("m", given(api_key="k", base_url="http://127.0.0.1:1"))
    for protocol in (Streams, AsyncStreams):
        assert isinstance(provider, protocol)
    assert provider.reference == f"{name}:m"
    assert provider.traits.vision == profiles[name].vision


@pytest.mark.parametrize("name", NAMES)
def test_profile_survives_toml(name: str) -> None:
    profile = profiles[name]
    adapter = TypeAdapter(Profile)
    dumped = adapter.dump_python(profile, mode="json")
    lines = [f"{key} = {toml(value)}" for key, value in dumped.items()]
    assert adapter.validate_python(tomllib.loads("\n".join(lines))) == profile


def toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {toml(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(inner) for inner in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int) else f"'{value}'"


@pytest.mark.parametrize("name", [name for name in NAMES if profiles[name].key_needed])
def test_missing_key_names_its_variable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    options = given(base_url="http://127.0.0.1:1")
    with pytest.raises(ConfigError, match=profiles[name].key_env):
        getattr(factories, name)("m", options)
    monkeypatch.setenv(profiles[name].key_env, "from the environment")
    assert getattr(factories, name)("m", options).name == name


@pytest.mark.parametrize("name", ["ollama", "vllm", "llamacpp"])
def test_local_servers_need_no_key(name: str) -> None:
    assert getattr(factories, name)("m", Options()).reference == f"{name}:m"


def test_address_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="AZURE_OPENAI_BASE_URL"):
        factories.azure("m", given(api_key="k"))
    with StrictServer([say("ok")]) as server:
        monkeypatch.setenv("AZURE_OPENAI_BASE_URL", f"{server.url}/v1")
        provider = factories.azure("gpt-4.1", given(api_key="k", retries=0))
        *_, reply = provider.stream(_request())
        provider.close()
    assert isinstance(reply, Reply)
    assert reply.text == "ok"


def _request() -> ModelRequest:
    return ModelRequest("m", "", [Message.user("hi")])


@pytest.mark.parametrize("url", ["localhost:1", "ftp://x", "/v1"])
def test_address_that_is_none(url: str) -> None:
    with pytest.raises(ConfigError, match="http"):
        OpenAIProvider("m", given(api_key="k", base_url=url))


def test_model_must_be_named() -> None:
    with pytest.raises(ConfigError, match="model"):
        OpenAIProvider("", given(api_key="k"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"transprt": "whole"},
        {"transport": "half"},
        {"retries": -1},
        {"idle_timeout": 0},
        {"api": "messages"},
        {"prices": {"input": 1}},
    ],
)
def test_wrong_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Options(**wrong)


def test_unknown_profile_and_field_name_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'mistral'"):
        OpenAIProvider("m", given(api_key="k", profile="mistrl"))
    with pytest.raises(ConfigError, match="did you mean 'one_system'"):
        OpenAIProvider("m", given(api_key="k", profile={"one_sytem": True}))
    with pytest.raises(ConfigError, match="id_length"):
        OpenAIProvider("m", given(api_key="k", profile={"id_length": "many"}))


def test_profile_as_a_table(way: Any, asking: Any) -> None:
    table = {"base": "vllm", "name": "mine", "system_role": "developer", "key_needed": True, "vision": False}
    with StrictServer([say("ok")]) as server:
        provider = way.provider(server, profile="openai", model="m")
        assert provider.name == "openai"
        own = OpenAIProvider(
            "m", given(base_url=f"{server.url}/v1", api_key="k", profile=table, transport=way.transport)
        )
        answer = way.run(own, [asking(system="s")])[0]
        assert server.requests[0].body["messages"][0]["role"] == "developer"
    assert answer.reply.text == "ok"
    assert (own.reference, own.traits.vision) == ("mine:m", False)


def test_profile_by_name_from_another_entry() -> None:
    assert OpenAIProvider("m", given(api_key="k", profile="groq")).reference == "groq:m"


@pytest.mark.parametrize(
    ("model", "api"),
    [
        ("gpt-4.1", "chat"),
        ("gpt-4o-mini", "chat"),
        ("o3-mini", "chat"),
        ("gpt-5", "chat"),
        ("gpt-5.1", "chat"),
        ("gpt-5.4", "responses"),
        ("gpt-5.4-mini", "responses"),
        ("gpt-5.10", "responses"),
        ("gpt-6", "responses"),
        ("gpt-5-codex", "responses"),
        ("gpt-5-pro", "responses"),
        ("codex-mini-latest", "responses"),
    ],
)
def test_profile_decides_the_api_by_the_model(model: str, api: str) -> None:
    assert OpenAIProvider(model, given(api_key="k")).api == api
    assert OpenAIProvider(model, given(api_key="k", api="chat")).api == "chat"
    assert OpenAIProvider(model, given(api_key="k", profile="groq")).api == "chat"


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("gpt-5.4-2026-03-05", "gpt-5.4"),
        ("gpt-5.4", "gpt-5.4"),
        ("gpt-5.4-mini", "gpt-5.4-mini"),
        ("mistral-small-latest", "mistral-small"),
        ("m", "m"),
    ],
)
def test_family_is_the_model_without_its_date(model: str, family: str) -> None:
    assert OpenAIProvider(model, given(api_key="k")).family == family


def test_prices_give_the_cost() -> None:
    prices = Prices(input=2.0, output=8.0, cache_read=0.5)
    assert prices.cost(Usage(input=1_000_000, output=500_000, cache_read=400_000)) == pytest.approx(1.2 + 4.0 + 0.2)
    assert prices.cost(Usage(input=10)) is None


def test_cost_stands_in_the_usage(way: Any, asking: Any) -> None:
    with StrictServer([say("ok"), say("ok")]) as server:
        priced = way.ask(server, prices={"input": 1.0, "output": 2.0}).reply.usage
        free = way.ask(server).reply.usage
    assert priced.input is not None
    assert priced.output is not None
    assert priced.cost == pytest.approx((priced.input + 2 * priced.output) / 1e6)
    assert free.cost is None


def test_readme_names_every_profile_and_option_and_its_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    text = README.read_text()
    for name, profile in profiles.items():
        assert f"`{name}`" in text
        assert profile.key_env in text or not profile.key_needed
    assert all(f"`{name}`" in text for name in Options.model_fields)
    code = [block.partition("\n")[2] for block in text.split("```") if block.startswith("python")]
    assert "OpenAIProvider" in code[1]
    exec(compile(code[1], str(README), "exec"), {})


def test_nothing_is_read_from_the_environment_but_what_profiles_name() -> None:
    assert {field.name for field in fields(Profile) if field.name.endswith("_env")} == {"key_env", "base_url_env"}
    assert "OPENAI_API_KEY" not in os.environ
