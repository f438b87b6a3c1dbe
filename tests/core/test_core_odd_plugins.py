"""Random plugins in random turns: whatever they do, histories are valid, requests grow, and the four ways agree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from going import WAYS, go
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookloop import Agent, Limits, tool
from hookloop.engine.log import flatten
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, Spy, assert_growing, assert_valid_history, call, reply, say
from hookloop_hookspecs import (
    Answer,
    Approve,
    Deny,
    LoadQuery,
    Message,
    Narrow,
    ProviderError,
    Replace,
    Reply,
    Retry,
    Stop,
    Suspend,
    Text,
    ToolCall,
    ToolResult,
    Window,
)

HOOKS = (
    *("register_tools", "recall", "before_turn", "select_context", "before_round", "on_model_error", "after_reply"),
    *("before_tool", "after_tool", "next_instructions", "review_answer", "after_turn"),
)
VALUES: list[Any] = [
    *(
        "text",
        "",
        ["one", "two"],
        Message.user("mine", key="k"),
        Message.user("gone", ephemeral=True),
        Message.system("be kind"),
    ),
    *(Replace("other"), Replace({"path": "z"}), Replace(Reply((ToolCall.of("edit", {"path": "q"}, "c1"),), "calls"))),
    *(Replace(ToolResult("x", "y", (Text("new"),))), Replace(7), Answer("instead"), Answer({"n": 1})),
    *(Deny("no"), Suspend("sure?"), Suspend("soon?", 60.0), Retry(), Stop("enough", "bye"), Stop()),
    *(Narrow(tools=("edit",)), Narrow(tool_choice="none"), Window(messages=3), [Stop(), "and text"], ["a", Deny("b")]),
    *(Message.assistant("forged"), 42, object, RuntimeError("broken"), KeyError("lost")),
]
STEPS: list[Any] = [
    say("a text"),
    say("  "),
    call("edit", {"path": "a"}, id="c1"),
    call("pay", {"amount": 1}, id="c1"),
    call("boom", id="b"),
    call("nope", id=""),
    call("edit", '{"path"', id="c2"),
    [say("both"), call("edit", {"path": "b"}, id="c3"), call("boom", id="b")],
    [call("direct", id="d")],
    reply(call("edit", {"path": "a"}, id="c4"), stop="length"),
    reply(say("no"), stop="refusal"),
    ProviderError("no luck", provider="scripted", retryable=True),
]
plans = st.lists(st.tuples(st.sampled_from(HOOKS), st.integers(0, len(VALUES) - 1)), max_size=6)
scripts = st.lists(st.integers(0, len(STEPS) - 1), min_size=1, max_size=6)
policies = st.sampled_from(["raise", "skip", "disable"])


@tool(serial=True)
def edit(path: str) -> str:
    """Edit a file."""
    return f"edited {path}"


@tool(serial=True)
def boom() -> str:
    """Fail."""
    raise ValueError("broken")


@tool(needs_approval=True)
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool(return_direct=True)
def direct() -> str:
    """Answer at once."""
    return "directly"


def played(way: str, plan: Any, other: Any, script: Any, policy: str) -> list[Any]:
    """Play a turn, approve what waits, and one more turn; what came of them, as plain data."""
    spies = [Spy(*HOOKS, name="p"), Spy("before_tool", "after_tool", "next_instructions", "before_round", name="q")]
    for spy, told in zip(spies, (plan, other), strict=True):
        for hook, at in told:
            if hook in spy.hooks:
                spy.returns(hook, VALUES[at])
    provider = ScriptedProvider([*(STEPS[at] for at in script), *[say("done")] * 40])
    memory = InProcessMemory()
    parts: dict[str, Any] = {
        "tools": [edit, boom, pay, direct],
        "plugins": spies,
        "memory": [memory],
        "limits": Limits(rounds=12),
        "config": {"plugins": {"p": {"on_error": policy}}},
    }
    seen: list[Any] = []
    with Agent(provider, **parts) as agent:
        _note(seen, lambda: go(agent, way, "Go.", conversation="c", turn_id="t1"))
        if seen[-1][0] == "suspended":
            _note(seen, lambda: agent.resume("c", {id: Approve() for id in seen[-1][-1]}))
        _note(seen, lambda: go(agent, way, "And on.", conversation="c", turn_id="t2"))
    assert_growing(provider.requests)
    entries = memory.load_memory("c", LoadQuery()).entries
    assert [entry.number for entry in entries] == sorted({entry.number for entry in entries})
    if seen[-1][0] != "suspended":
        assert_valid_history(list(flatten(entries)))
    return [*seen, *(_plain(request.messages) for request in provider.requests)]


def _note(seen: list[Any], does: Any) -> None:
    error = ""
    try:
        outcome = does()
    except Exception as raised:  # what a turn raises is compared, whatever it is
        outcome, error = getattr(raised, "outcome", None), f"{type(raised).__name__}: {raised}"
    if outcome is None:
        seen.append(("none", error, []))
        return
    if outcome.status != "suspended":
        assert_valid_history(outcome, tail=not outcome.new)  # a resume that never began leaves the turn waiting
    waiting = [one.id for one in outcome.pending]
    seen.append(
        (outcome.status, outcome.stop_reason, outcome.text, error, _plain(outcome.messages), outcome.warnings, waiting)
    )


def _plain(messages: Any) -> list[Any]:
    return [(m.role, m.content, replace(m.origin, turn=""), m.key, m.ephemeral) for m in messages]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(plans, plans, scripts, policies)
def test_whatever_plugins_do_histories_stay_valid_in_all_ways(plan: Any, other: Any, script: Any, policy: str) -> None:
    first = played("run", plan, other, script, policy)
    for way in WAYS[1:]:
        assert played(way, plan, other, script, policy) == first, way


@pytest.mark.soak
@settings(max_examples=1500, deadline=None, suppress_health_check=list(HealthCheck))
@given(plans, plans, scripts, policies)
def test_whatever_plugins_do_for_long(plan: Any, other: Any, script: Any, policy: str) -> None:
    first = played("run", plan, other, script, policy)
    assert played("astream", plan, other, script, policy) == first
