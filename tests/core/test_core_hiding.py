"""What is shown of a configuration: everything but secrets, wherever they stand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from hookloop import Agent
from hookloop.config import config_from
from hookloop.discovery import activate, memories, providers
from hookloop.hiding import hidden, hidden_url, is_secret
from hookloop.testing import ScriptedProvider
from hookloop_hookspecs import ConfigError

if TYPE_CHECKING:
    from tests.conftest import Distribute

SECRET = "S3CRETWORD"


NAMES = """
    password sslpassword passfile api_key x-api-key apiKey APIKey Authorization token accessToken client_secret key Cookie sig
    AWS_SECRET_ACCESS_KEY Ocp-Apim-Subscription-Key
"""


@pytest.mark.parametrize("name", NAMES.split())
def test_the_names_of_secrets_are_known_however_they_are_written(name: str) -> None:
    assert is_secret(name)
    assert hidden({name: SECRET}) == {name: "***"}


@pytest.mark.parametrize(
    "name", ["max_tokens", "tokens", "author", "keyword", "sort_key", "bypass", "model", "提醒", ""]
)
def test_other_names_are_not(name: str) -> None:
    assert not is_secret(name)
    assert hidden({name: "plain"}) == {name: "plain"}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://user:S3CRETWORD@host/db", "postgresql://user:***@host/db"),
        ("x://user:a/b@S3CRETWORD@host/db?x=1", "x://user:***@host/db?x=1"),
        ("redis://:S3CRETWORD@host", "redis://:***@host"),
        ("postgresql://h/db?password=S3CRETWORD", "postgresql://h/db?password=***"),
        (
            "postgresql://h/db?sslmode=require&sslpassword=S3CRETWORD",
            "postgresql://h/db?sslmode=require&sslpassword=***",
        ),
        ("redis://h?ttl=60&token=S3CRETWORD#key=S3CRETWORD", "redis://h?ttl=60&token=***#key=***"),
        ("x://h;pass%77ord=S3CRETWORD", "x://h;pass%77ord=***"),
        ("mssql://?odbc_connect=Driver%3Dx%3BPWD%3DS3CRETWORD", "mssql://?odbc_connect=***"),
        ("sqlite:///chat.db", "sqlite:///chat.db"),
        ("redis://h/0?ttl=60", "redis://h/0?ttl=60"),
        ("memory:", "memory:"),
    ],
)
def test_a_url_loses_its_secrets_and_nothing_else(url: str, shown: str) -> None:
    assert hidden_url(url) == shown
    assert hidden({"base_url": url}) == {"base_url": shown}


def test_numbers_and_switches_are_never_secrets_and_headers_always() -> None:
    assert hidden({"tokens": 5, "key": 7, "token": True, "headers": {"X-Org": SECRET, "n": 1}}) == {
        "tokens": 5,
        "key": 7,
        "token": True,
        "headers": {"X-Org": "***", "n": 1},
    }
    assert hidden({"auth": {"user": SECRET, "more": [SECRET]}}) == {"auth": {"user": "***", "more": ["***"]}}
    assert hidden({"passwords": [SECRET], "note": "send Authorization: Bearer abcdefgh"}) == {
        "passwords": ["***"],
        "note": "send Authorization: ***",
    }
    assert hidden({"note": f"see https://u:{SECRET}@h and mail me@host"}) == {
        "note": "see https://u:***@h and mail me@host"
    }


WHOLE: dict[str, Any] = {
    "model": "openai:gpt",
    "memory": [
        f"postgresql://h/db?password={SECRET}",
        {"url": "memory:", "options": {"headers": {"Cookie": SECRET}}},
    ],
    "instructions": f"Use api_key={SECRET} for it.",
    "settings": {"max_tokens": 7, "extra": {"auth": SECRET}},
    "provider": {"headers": {"Authorization": f"Bearer {SECRET}"}, "base_url": f"https://u:{SECRET}@host/v1"},
    "providers": {"x": {"default_query": {"sig": SECRET}}},
    "profiles": {"mine": {"base_url": f"http://h/?token={SECRET}"}},
    "plugins": {"mail": {"options": {"smtp": {"url": f"smtp://me:{SECRET}@h", "port": 25}}}},
}


def test_a_whole_configuration_is_shown_without_secrets() -> None:
    shown = config_from(WHOLE).shown()
    assert SECRET not in json.dumps(shown)
    assert shown["provider"]["base_url"] == "https://u:***@host/v1"
    assert shown["plugins"]["mail"]["options"]["smtp"] == {"url": "smtp://me:***@h", "port": 25}
    assert (shown["settings"]["max_tokens"], shown["settings"]["extra"]) == (7, {"auth": "***"})
    assert (shown["limits"]["rounds"], shown["model"]) == (100, "openai:gpt")


@pytest.mark.parametrize(
    "wrong",
    [
        {"memory": [{"url": [f"postgresql://u:{SECRET}@h"]}]},
        {"provider": [f"https://h/?key={SECRET}"]},
        {"plugins": {"mail": f"token={SECRET}"}},
        {"instructions": {"password": SECRET}},
        {"limits": {"rounds": f"postgresql://h?password={SECRET}"}},
        {"limits": {"on_breach": f"https://me:{SECRET}@h"}},
    ],
)
def test_errors_about_a_configuration_repeat_no_secret(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from(wrong)
    assert SECRET not in str(caught.value)


OPTIONS = """
from pydantic import BaseModel, ConfigDict

class Made:
    class Options(BaseModel):
        model_config = ConfigDict(extra="forbid")
        password: int = 1
        url: str = ""

    def __init__(self, what, options):
        raise RuntimeError("refused by " + what)
"""


def test_errors_and_reports_about_stores_and_providers_repeat_no_secret(distribute: Distribute) -> None:
    points = {"hookloop.memory": {"hlh": "hl_hide:Made"}, "hookloop.providers": {"hlh": "hl_hide:Made"}}
    distribute("hl-hide", points, {"hl_hide": OPTIONS})
    url = f"hlh://h/db?password={SECRET}"
    config = config_from({"model": "hlh:m", "memory": [url, {"url": url, "options": {"password": SECRET}}]})
    told = repr([*memories(config), *providers(config)])
    assert SECRET not in told
    assert "hlh://h/db?password=***" in told
    for memory in (url, f"hlh-nowhere://u:{SECRET}@h", f"?password={SECRET}"):
        with pytest.raises(ConfigError) as caught:
            Agent(ScriptedProvider(), memory=[memory])
        assert SECRET not in str(caught.value)


def test_the_report_of_an_agent_holds_no_secret(distribute: Distribute) -> None:
    text = f"raise OSError('cannot reach postgresql://u:{SECRET}@h')"
    distribute("hl-hide", {"hookloop.plugins": {"hlh": "hl_hide_bad:Plugin"}}, {"hl_hide_bad": text})
    store = "class Store(InProcessMemory):\n    def __init__(self, url): super().__init__()"
    source = f"from hookloop.memory import InProcessMemory\n{store}\n"
    distribute("hl-hide-store", {"hookloop.memory": {"hlh": "hl_hide_store:Store"}}, {"hl_hide_store": source})
    activation = activate(config_from({"plugins": {"hlh": {}}}))
    assert SECRET not in repr(activation)
    assert "cannot reach" in repr(activation)
    with Agent(ScriptedProvider(), memory=[f"hlh://h?password={SECRET}"]) as agent:
        assert agent.report.memories[0].url == "hlh://h?password=***"
