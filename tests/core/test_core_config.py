"""What a configuration file may say, and what a wrong one is told."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from hookloop.config import Config, config_from, load_config, schema
from hookloop.limits import Limits
from hookloop_hookspecs import ConfigError, Settings, Window

WHOLE = """
model = "anthropic:claude-sonnet-4-6"
memory = ["sqlite:///chat.db", { url = "redis://localhost", placement = "outside", options = { ttl = 60 } }]
order = ["guard", "feedback"]
instructions = "Be brief."
auto = true
strict = true

[limits]
tool_calls = 80
rounds = "none"
per_tool_overrides = { edit = 3 }
on_breach = "answer"

[window]
messages = 40
slack = 10

[tools]
workers = 4
timeout = 2

[settings]
max_tokens = 900
temperature = 0
stop = ["END"]
effort = "low"
extra = { user = "me" }

[provider]
transport = "whole"

[providers.openai]
base_url = "http://localhost:1"

[profiles.mine]
base_url = "http://localhost:2"

[plugins.feedback]
enabled = true
hooks.after_tool = false
on_error = "skip"
timeout = 1.5
options = { tool = "edit" }
"""


def written(folder: Path, text: str, name: str = "hookloop.toml") -> Path:
    file = folder / name
    file.write_text(text, "utf-8")
    return file


def refused(folder: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of the error about a file with this text."""
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigError) as caught:
        load_config(written(folder, text), {})
    return str(caught.value).splitlines()


def test_a_whole_file_is_read(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, WHOLE), {})
    assert config.model == "anthropic:claude-sonnet-4-6"
    assert [(memory.url, memory.placement) for memory in config.memory] == [
        ("sqlite:///chat.db", None),
        ("redis://localhost", "outside"),
    ]
    assert config.limits == Limits(tool_calls=80, rounds=None, per_tool_overrides={"edit": 3}, on_breach="answer")
    assert config.window == Window(messages=40, slack=10)
    assert (config.tools.workers, config.tools.timeout) == (4, 2.0)
    wanted = Settings(max_tokens=900, temperature=0.0, stop=("END",), effort="low", extra={"user": "me"})
    assert config.settings == wanted
    assert config.plugins["feedback"].off == ("after_tool",)
    assert config.plugins["feedback"].options == {"tool": "edit"}
    assert (config.auto, config.strict, config.instructions) == (True, True, "Be brief.")


def test_options_of_a_provider_are_joined(tmp_path: Path) -> None:
    text = 'model = "openai:gpt"\n[provider]\ntransport = "whole"\n'
    more = '[providers.openai]\nbase_url = "b"\ntransport = "stream"\n'
    config = load_config(written(tmp_path, text + more), {})
    assert config.provider_options("openai") == {"transport": "whole", "base_url": "b"}
    assert config.provider_options("anthropic") == {}
    assert config.provider_where("openai", "transport").endswith(":3")
    assert config.provider_where("openai", "base_url").endswith(":5")


FAULTS = [
    ('modle = "openai:x"', ["hookloop.toml:1: unknown key 'modle'; did you mean 'model'?"]),
    ("\n[limits]\nround = 3\n", ["hookloop.toml:3: unknown key 'round' in limits; did you mean 'rounds'?"]),
    ('[limits]\n\nrounds = "many"', ["hookloop.toml:3: limits.rounds: should be a whole number, not 'many'"]),
    ("[limits]\nrounds = -1", ["hookloop.toml:2: limits.rounds: should be greater than or equal to 0, not -1"]),
    ("[limits]\nrounds = true", ["hookloop.toml:2: limits.rounds: should be a whole number, not True"]),
    (
        '[limits]\non_breach = "stopp"',
        [
            "hookloop.toml:2: limits.on_breach: 'stopp' is not one of 'stop', 'error_result', 'answer' or 'raise'; "
            "did you mean 'stop'?"
        ],
    ),
    (
        "[settings]\nmax_token = 5",
        ["hookloop.toml:2: unknown key 'max_token' in settings; did you mean 'max_tokens'?"],
    ),
    ('[settings]\nstop = "END"', ["hookloop.toml:2: settings.stop: should be a list, not 'END'"]),
    (
        "[settings]\nmax_tokens = 0",
        ["hookloop.toml:2: settings.max_tokens: should be greater than or equal to 1, not 0"],
    ),
    ("settings.parallel = 'no'", ["hookloop.toml:1: settings.parallel: should be true or false, not 'no'"]),
    ('strict = "no"', ["hookloop.toml:1: strict: should be true or false, not 'no'"]),
    ("[plugins.a]\nenable = true", ["hookloop.toml:2: unknown key 'enable' in plugins.a; did you mean 'enabled'?"]),
    (
        "[plugins.a]\nhooks.after_tol = false",
        ["hookloop.toml:2: plugins.a.hooks.after_tol: unknown hook 'after_tol'; did you mean 'after_tool'?"],
    ),
    (
        "[plugins.a.hooks]\n# off\nafter_tool = 0",
        ["hookloop.toml:3: plugins.a.hooks.after_tool: should be true or false, not 0"],
    ),
    (
        'memory = [\n  "memory:",\n  { url = "x:", placment = "inside" },\n]',
        ["hookloop.toml:1: unknown key 'placment' in memory[1]; did you mean 'placement'?"],
    ),
    ("[[memory]]\nurl = 'a:'\n[[memory]]\nurl = 3", ["hookloop.toml:4: memory[1].url: should be text, not 3"]),
    ("[[memory]]\nplacement = 'inside'", ["hookloop.toml:1: memory[0].url: is missing"]),
    ('order = "a"', ["hookloop.toml:1: order: should be a list, not 'a'"]),
    ("plugins.a = 3", ["hookloop.toml:1: plugins.a: should be a table, not 3"]),
    ("[window]\nmesages = 4", ["hookloop.toml:2: unknown key 'mesages' in window; did you mean 'messages'?"]),
    (
        "\n\n[limits]\nseconds = 'x'\n\n\n\n\n\n\n[tools]\nworkers = 0",
        [
            "hookloop.toml:4: limits.seconds: should be a number, not 'x'",
            "hookloop.toml:12: tools.workers: should be greater than or equal to 1, not 0",
        ],
    ),
]


@pytest.mark.parametrize(("text", "lines"), FAULTS)
def test_a_fault_is_told_with_line_and_nearest_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, lines: list[str]
) -> None:
    assert refused(tmp_path, text, monkeypatch) == lines


def test_a_file_that_is_not_toml_is_told_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = refused(tmp_path, "model = 'x'\norder = [", monkeypatch)
    assert line.startswith("hookloop.toml: not valid TOML: ")
    assert "line 2" in line or "end of document" in line


SECRETS = [
    ('model = "deepseek:chat"\n[provider]\napi_key = "s3cret"', 3, "provider.api_key", "DEEPSEEK_API_KEY"),
    ('[providers.openai]\napi-key = "s3cret"', 2, "providers.openai.api-key", "OPENAI_API_KEY"),
    ('[profiles.my-host]\napi_key = "s3cret"', 2, "profiles.my-host.api_key", "MY_HOST_API_KEY"),
    ('[plugins.mail]\noptions.smtp.password = "s3"', 2, "plugins.mail.options.smtp.password", "MAIL_PASSWORD"),
]


@pytest.mark.parametrize(("text", "line", "key", "variable"), SECRETS)
def test_a_secret_in_the_file_is_refused_and_not_repeated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, line: int, key: str, variable: str
) -> None:
    (told,) = refused(tmp_path, text, monkeypatch)
    assert told == f"hookloop.toml:{line}: {key} is a secret, and those come from the environment; set {variable}"


def test_a_program_gives_the_same_keys() -> None:
    config = config_from({"memory": "memory:", "window": {"messages": 40}, "limits": {"rounds": 3}})
    assert [memory.url for memory in config.memory] == ["memory:"]
    assert (config.window, config.limits.rounds) == (Window(messages=40), 3)


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({"limits": {"rouns": 3}}, "config: unknown key 'rouns' in limits; did you mean 'rounds'?"),
        ({"limits": 3}, "config: limits: should be a table, not 3"),
        ({"model": 3}, "config: model: should be text, not 3"),
    ],
)
def test_a_program_is_told_too(mapping: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from(mapping)
    assert str(caught.value) == message


def test_the_mapping_of_a_program_is_left_as_it_was() -> None:
    mapping: dict[str, Any] = {"memory": ["x://${WHERE}"], "plugins": {"a": {"options": {"b": [1]}}}}
    before = json.dumps(mapping)
    assert config_from(mapping, {"WHERE": "here"}).memory[0].url == "x://here"
    assert json.dumps(mapping) == before


def test_the_schema_knows_every_key_and_describes_it() -> None:
    made = schema()
    assert set(made["properties"]) == set(Config.model_fields)
    limits = made["$defs"]["LimitsTable"]["properties"]
    assert {"const": "none"} in limits["rounds"]["anyOf"]
    assert "null" not in json.dumps(made)
    assert made["properties"]["order"]["description"]
    settings = made["$defs"]["SettingsTable"]["properties"]
    assert list(settings) == [spec.name for spec in fields(Settings)]
    assert all(table["description"] for table in settings.values())
    assert made["$defs"]["PluginTable"]["additionalProperties"] is False
