"""Other providers, one after the other, in each round anew."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

import pluggy
import pytest
from pydantic import ValidationError

from hookloop import Agent, tool
from hookloop.testing import ScriptedProvider, call, say
from hookloop_fallback import Fallback, FallbackOptions
from hookloop_hookspecs import ProviderError, Retry, hooks

BUSY = ProviderError("busy", provider="a", kind="overloaded", retryable=True)
REFUSED = ProviderError("who are you?", provider="a", kind="auth")


class FakeTurn:
    """What the plugin reads of a turn."""

    def __init__(self, id: str = "t1", round: int = 1) -> None:
        self.id = id
        self.round = round


def asked(plugin: Fallback, turn: Any, error: ProviderError = BUSY) -> Any:
    verdict = plugin.on_model_error(turn, error)
    return verdict.provider if isinstance(verdict, Retry) else verdict


def test_each_is_asked_once_in_order_and_then_the_error_stands() -> None:
    plugin = Fallback(FallbackOptions(providers=["b:1", "c:2"]))
    turn = FakeTurn()

    assert [asked(plugin, turn) for _ in range(4)] == ["b:1", "c:2", None, None]


def test_the_next_round_begins_with_the_first_again_but_for_the_one_that_just_failed() -> None:
    plugin = Fallback(FallbackOptions(providers=["b:1", "c:2", "d:3"]))

    assert [asked(plugin, FakeTurn(round=number)) for number in (1, 1, 2, 2, 2)] == ["b:1", "c:2", "b:1", "d:3", None]


def test_turns_side_by_side_do_not_use_up_each_others_providers() -> None:
    plugin = Fallback(FallbackOptions(providers=["b:1", "c:2"]))
    one, two = FakeTurn("t1"), FakeTurn("t2")

    assert [asked(plugin, turn) for turn in (one, two, one, two, one)] == ["b:1", "b:1", "c:2", "c:2", None]


def test_a_resumed_turn_starts_anew() -> None:
    plugin = Fallback(FallbackOptions(providers=["b:1"]))
    turn: Any = FakeTurn()

    assert asked(plugin, turn) == "b:1"
    plugin.after_turn(turn)
    plugin.after_turn(turn)
    assert asked(plugin, turn) == "b:1"


def test_errors_that_asking_again_does_not_mend_are_left_alone_unless_told() -> None:
    strict = Fallback(FallbackOptions(providers=["b:1"]))
    tolerant = Fallback(FallbackOptions(providers=["b:1"], when="any"))

    assert asked(strict, FakeTurn(), REFUSED) is None
    assert asked(strict, FakeTurn(), BUSY) == "b:1"
    assert asked(tolerant, FakeTurn(), REFUSED) == "b:1"


def test_it_waits_as_long_as_it_is_told_and_takes_objects() -> None:
    provider = object()
    plugin = Fallback(FallbackOptions(providers=[provider], wait=1.5))
    turn: Any = FakeTurn()

    assert plugin.on_model_error(turn, BUSY) == Retry(1.5, provider)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"providers": []},
        {"providers": ["a:1"], "wait": -1},
        {"providers": ["a:1"], "when": "never"},
        {"provider": "a:1"},
    ],
)
def test_wrong_options_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FallbackOptions.model_validate(options)


def test_it_is_found_by_entry_point() -> None:
    (found,) = entry_points(group="hookloop.plugins", name="fallback")
    assert found.load() is Fallback


def test_its_hooks_are_hooks_of_the_contract() -> None:
    manager = pluggy.PluginManager("hookloop")
    manager.add_hookspecs(hooks)
    manager.register(Fallback(FallbackOptions(providers=["b:1"])))
    manager.check_pending()


@tool
def ping() -> str:
    """Answer."""
    return "pong"


def test_a_run_goes_on_with_the_next_provider_and_stores_everything_once() -> None:
    main = ScriptedProvider(BUSY)
    second, third = ScriptedProvider(BUSY), ScriptedProvider(call("ping"), say("third"))
    plugin = Fallback(FallbackOptions(providers=[second, third]))
    with Agent(main, tools=[ping], plugins=[plugin]) as agent:
        outcome = agent.run("hello")

    assert outcome.text == "third"
    assert [message.role for message in outcome.messages] == ["user", "assistant", "tool", "assistant"]
    for provider in (main, second, third):
        assert [message.text for message in provider.requests[0].messages] == ["hello"]


def test_when_all_fail_the_last_error_is_raised_and_the_next_turn_starts_anew() -> None:
    main = ScriptedProvider(BUSY, BUSY)
    second = ScriptedProvider(BUSY, say("second"))
    with Agent(main, plugins=[Fallback(FallbackOptions(providers=[second]))]) as agent:
        with pytest.raises(ProviderError, match="busy"):
            agent.run("hello")
        assert agent.run("hello").text == "second"
