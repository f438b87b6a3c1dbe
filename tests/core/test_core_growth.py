"""Within an epoch requests only grow; epochs begin where the design says and nowhere else. Over random turns."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scenarios import tools

from hookloop import Agent, Limits
from hookloop.engine.history import check
from hookloop.testing import ScriptedProvider, call, reply, say, think
from hookloop_hookspecs import Message, ModelRequest, Narrow, Part, ProviderTraits, hookimpl

CALLS = st.one_of(
    st.builds(lambda path: call("edit", {"path": path}, id="same"), st.text(max_size=5)),
    st.just(call("boom", id="b")),
    st.just(call("nope", {"x": 1})),
    st.just(call("edit", "{broken", id="")),
    st.builds(lambda text: call("direct", {"text": text}, id="d"), st.text(max_size=3)),
)
REPLIES = st.one_of(
    st.lists(st.one_of(CALLS, st.builds(say, st.text(max_size=8)), st.just(think("hm"))), min_size=1, max_size=4),
    st.builds(lambda c: reply(c, stop="length"), CALLS),
)
TURNS = st.lists(st.lists(REPLIES, max_size=6), min_size=1, max_size=4)
ADDS = st.dictionaries(
    st.sampled_from(["before_turn", "recall", "before_round", "after_reply", "after_tool", "next_instructions"]),
    st.lists(
        st.builds(Message.user, st.text(max_size=6), key=st.sampled_from(["", "k"]), ephemeral=st.booleans()),
        max_size=2,
    ),
    max_size=4,
)
WINDOWS = st.one_of(st.none(), st.integers(2, 9))


class Adds:
    """Contributes what was drawn, in every hook that was drawn."""

    name = "adds"

    @hookimpl
    def after_turn(self) -> None:
        """Observes, so that the plugin has a hook whatever was drawn."""

    def __init__(self, adds: dict[str, list[Message]], models: bool) -> None:
        for hook, messages in adds.items():
            setattr(self, hook, hookimpl(lambda messages=messages: list(messages)))
        if models:
            self.before_round = hookimpl(lambda turn: Narrow(tools=("edit",)) if turn.round % 2 else None)


def blocks(request: ModelRequest) -> list[tuple[str, Part]]:
    """The request's flattened (role, block) sequence."""
    return [(message.role, part) for message in request.messages for part in message.content]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(turns=TURNS, adds=ADDS, window=WINDOWS, bound=st.booleans(), narrow=st.booleans())
def test_requests_of_an_epoch_only_grow(
    turns: list[list[Any]], adds: dict[str, list[Message]], window: int | None, bound: bool, narrow: bool
) -> None:
    script = [step for replies in turns for step in (*replies, say("the end"))]
    provider = ScriptedProvider(script * 2, transport="whole", traits=ProviderTraits(bound_thinking=bound))
    config: dict[str, Any] = {"window": {"messages": window}} if window else {}
    limits = Limits(rounds=7, truncated=None)
    with Agent(provider, tools=tools([]), plugins=[Adds(adds, narrow)], config=config, limits=limits) as agent:
        for at in range(len(turns)):
            outcome = agent.run(f"question {at}", conversation="c")
            check(outcome.messages)
    questions = [f"question {at}" for at in range(len(turns))]
    for request in provider.requests:
        check(request.messages)
        first = request.messages[0]
        assert (first.role, first.origin.kind) == ("user", "user")
        assert any(message.text in questions for message in request.messages)
    for before, after in zip(provider.requests, provider.requests[1:], strict=False):
        grew = blocks(after)[: len(blocks(before))] == blocks(before)
        if before.turn == after.turn and before.epoch == after.epoch:
            assert grew
            assert (before.system, before.tools) == (after.system, after.tools)
            assert before.memo is after.memo
        if before.turn == after.turn and window is None:
            assert before.epoch == after.epoch
        if before.epoch != after.epoch:
            assert before.memo is not after.memo
