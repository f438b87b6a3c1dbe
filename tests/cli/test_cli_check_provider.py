"""`hookloop check` of providers: the conformance suite where the strict server speaks their API, the reason where not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from strangers import source

from hookloop.discovery import PROVIDERS, available

if TYPE_CHECKING:
    from tests.conftest import Distribute, Done, Hookloop

PARTS = """
from dataclasses import replace
from pydantic import BaseModel, SecretStr
from hookloop_hookspecs import Provider, Reply, Usage
from hookloop_openai import OpenAIProvider, Options

class Forgetful(OpenAIProvider):
    abort = Provider.abort

    def stream(self, request):
        return super().stream(replace(request, system=""))

    def astream(self, request):
        return super().astream(replace(request, system=""))

class Uncounted(OpenAIProvider):
    def stream(self, request):
        for item in super().stream(request):
            print("a provider that talks")
            yield replace(item, usage=Usage()) if isinstance(item, Reply) else item

    astream = None

class Elsewhere(OpenAIProvider):
    def __init__(self, model, options):
        super().__init__(model, options.model_copy(update={"base_url": "http://127.0.0.1:9/v1", "retries": 0}))

class NeedyOptions(Options):
    region: str

class Needy(OpenAIProvider):
    Options = NeedyOptions

class Unmade:
    def __init__(self, model):
        raise OSError("no disk")

class Closed:
    def __init__(self, model): ...

    def stream(self, request):
        yield Reply()
"""


@pytest.fixture
def strangers(distribute: Distribute) -> None:
    names = ("Forgetful", "Uncounted", "Elsewhere", "Needy", "Unmade", "Closed")
    points = {f"hl{name.lower()}": f"hl_provided:{name}" for name in names}
    modules = {"hl_provided": PARTS, "hl_parrot": source("parrot").read_text("utf-8")}
    distribute("hl-provided", {PROVIDERS: {**points, "hlparrot": "hl_parrot:Parrot"}}, modules)


def reasons(done: Done, status: str) -> dict[str, str]:
    """The checks that came to this, and why."""
    return {line["check"]: line["reason"] for line in json.loads(done.out) if line["status"] == status}


@pytest.mark.usefixtures("strangers")
def test_a_faulty_provider_fails_its_check_and_its_author_is_told_what_to_change(hookloop: Hookloop) -> None:
    done = hookloop("check", "hlforgetful")
    assert done.code == 1
    lines = done.out.splitlines()
    at = lines.index("  fail  sends_the_whole_request")
    assert lines[at + 1 : at + 5] == [
        "        System text, tools and every message reach the server, in order, and",
        "        results are tied to their calls.",
        "        - the system text did not reach the server: 'Msystem' is not in the",
        "          request",
    ]
    assert "        - Chat Completions of the strict local server, stream and whole" in lines
    assert lines[-1] == "17 passed, 1 failed, 1 skipped"


@pytest.mark.usefixtures("strangers")
def test_another_fault_fails_another_check(hookloop: Hookloop) -> None:
    done = hookloop("check", "hluncounted", "--json")
    assert (done.code, reasons(done, "fail")) == (1, {"counts_tokens": "usage.input is None, the server reported 10"})


UNSEEN = {
    "hlparrot": "it speaks an API that the strict server does not know (it asked for POST /talk); check it in its own",
    "hlelsewhere": "it sent no request to the base_url that it was given (ProviderError: ",
    "hlclosed": "it has no option base_url, so it cannot be pointed at a local server; check it in its own tests: ",
}


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize("name", UNSEEN)
def test_what_cannot_be_checked_from_outside_is_skipped_with_the_reason(hookloop: Hookloop, name: str) -> None:
    done = hookloop("check", name, "--json")
    assert done.code == 0
    assert reasons(done, "skip")["keeps the contract"].startswith(UNSEEN[name])
    assert "hookloop.testing.check_provider" in reasons(done, "skip")["keeps the contract"]


@pytest.mark.usefixtures("strangers")
def test_an_option_that_is_needed_is_asked_for_and_can_be_given(hookloop: Hookloop) -> None:
    skipped = reasons(hookloop("check", "hlneedy", "--json"), "skip")
    assert skipped["can be made"].endswith("region: is missing; configure it, or give --option NAME=VALUE")
    assert hookloop("check", "hlneedy", "--option", "region=north").code == 0
    hookloop.write("[providers.hlneedy]\nregion = 'north'\n")
    assert hookloop("check", "hlneedy").out.splitlines()[-1] == "19 passed"


@pytest.mark.usefixtures("strangers")
@pytest.mark.parametrize(
    ("option", "words"),
    [("regoin=north", "unknown option 'regoin'; did you mean 'region'?"), ("region", "is not of the form NAME=VALUE")],
)
def test_a_wrong_option_is_wrong_usage(hookloop: Hookloop, option: str, words: str) -> None:
    done = hookloop("check", "hlneedy", "-o", option)
    assert (done.code, words in done.err) == (2, True)


@pytest.mark.usefixtures("strangers")
def test_one_that_cannot_be_made_fails(hookloop: Hookloop) -> None:
    done = hookloop("check", "hlunmade", "--json")
    assert done.code == 1
    assert reasons(done, "fail") == {"can be made": "provider 'hlunmade' cannot be made: OSError: no disk"}


OURS = sorted(
    name for name, one in available(PROVIDERS).items() if one.distribution in ("hookloop-openai", "hookloop-anthropic")
)


@pytest.mark.parametrize("target", [*OURS, "openai:gpt-5.4"])
def test_every_provider_of_ours_passes_whole_and_needs_no_key(
    hookloop: Hookloop, monkeypatch: pytest.MonkeyPatch, target: str
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    done = hookloop("check", target)
    assert (done.code, done.out.splitlines()[-1]) == (0, "19 passed"), done.out


@pytest.mark.parametrize(
    ("target", "api"),
    [("openai:gpt-4.1", "Chat Completions"), ("openai:gpt-5.4", "Responses"), ("anthropic:claude-x", "Messages")],
)
def test_the_api_is_that_which_the_model_is_asked_through(hookloop: Hookloop, target: str, api: str) -> None:
    (told,) = (
        line["reason"] for line in json.loads(hookloop("check", target, "--json").out) if line["check"] == "streams"
    )
    assert told == f"{api} of the strict local server, stream and whole"


def test_an_endpoint_of_the_configuration_is_checked_with_its_profile(hookloop: Hookloop) -> None:
    profile = "[profiles.hlmine]\nbase = 'groq'\nbase_url = 'http://127.0.0.1:9/v1'\nkey_needed = false\n"
    hookloop.write(profile)
    assert hookloop("check", "hlmine:small").out.splitlines()[-1] == "19 passed"
    hookloop.write(profile + "usage_option = false\n")
    assert list(reasons(hookloop("check", "hlmine:small", "--json"), "fail")) == [
        "counts_tokens",
        "is_the_same_in_all_ways",
    ]
