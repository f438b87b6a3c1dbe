"""Every way a turn of three rounds can end, with what must be stored of it: one table for every store and placement."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from scenarios import Hooked, approve_all, failing, once, tools

from hookloop import Agent, Limits, Outcome, tool
from hookloop.testing import ScriptedProvider, call, reply, say
from hookloop_hookspecs import Answer, Deny, Message, Stop, Suspend

EDIT = call("edit", {"path": "a"}, id="c1")
BOTH = [say("now two"), call("edit", {"path": "b"}, id="c2"), call("alone", {"n": 3}, id="c3")]
LAST = call("edit", {"path": "d"}, id="c4")
QUESTION = "user: go"
TWO = [QUESTION, "assistant: [edit]", "tool: edited a", "assistant: now two [edit alone]", "tool: edited b", "tool: 3"]
THREE = [*TWO, "assistant: [edit]", "tool: edited d"]
NOT_BEGUN = "tool: not run: the turn ended before this call began"
INTERRUPTED = "tool: interrupted: the call had started, its effect is unknown"


@dataclass(frozen=True)
class Ending:
    """A way to end.

    `stored` are the lines of an inside memory, `answer` that of an outside one (None: nothing is stored of the turn).
    `act` begins the turn, in a conversation; `resume` decides afterwards.
    """

    name: str
    status: str
    script: Sequence[Any]
    stored: Sequence[str]
    answer: str | None = None
    plugins: Callable[[], list[Any]] = list
    agent: dict[str, Any] = field(default_factory=dict)
    act: Callable[[Agent, str], Outcome] = lambda agent, conversation: agent.run("go", conversation=conversation)
    resume: Callable[[Outcome], Any] | None = None

    def __str__(self) -> str:
        return self.name.replace(" ", "-")

    def play(self, memory: Any, conversation: str, provider: Any = None, **parameters: Any) -> Outcome:
        """Play the turn with an agent of its own on a memory (or on what `parameters` say of memory)."""
        model = provider or ScriptedProvider(list(self.script))
        given = {**self.agent, **parameters}
        with Agent(model, tools=tools([]), plugins=self.plugins(), memory=memory, **given) as agent:
            outcome = _outcome(lambda: self.act(agent, conversation))
            if self.resume is not None:
                decisions, where = self.resume(outcome), self._where(agent, outcome)
                outcome = _outcome(lambda: agent.resume(where, decisions))
        assert outcome.status == self.status, (outcome.status, outcome.stop_reason, outcome.error)
        return outcome

    def _where(self, agent: Agent, outcome: Outcome) -> str:
        """The conversation, or the suspension itself where the memory keeps no open turn."""
        inside = agent.report.memories[0].placement == "inside"
        return outcome.conversation if inside else str(outcome.suspension)


def _outcome(run: Callable[[], Outcome]) -> Outcome:
    try:
        return run()
    except Exception as error:
        outcome: Outcome = error.outcome  # type: ignore[attr-defined]  # every error that leaves a turn has one
        return outcome


def line(message: Message) -> str:
    """A message in one line: its role, its text, the names of its calls."""
    names = " ".join(call.name for call in message.calls)
    return f"{message.role}: " + " ".join(part for part in (message.text, f"[{names}]" if names else "") if part)


def lines(messages: Iterable[Message]) -> list[str]:
    """Messages as lines."""
    return [line(message) for message in messages]


def breaking(hook: str, at: int) -> Callable[[], list[Any]]:
    """A plugin whose hook raises when it is asked for the nth time."""

    def make() -> list[Any]:
        asked: list[None] = []

        def implementation() -> None:
            asked.append(None)
            if len(asked) == at:
                raise RuntimeError("the plugin is broken")

        return [Hooked("broken", **{hook: implementation})]

    return make


def at_call(hook: str, path: str, verdict: object) -> Callable[[], list[Any]]:
    """A plugin whose hook has a verdict on the call with that path, unless somebody decided."""

    def implementation(call: Any) -> object:
        return verdict if call.arguments.get("path") == path else None

    def undecided(call: Any, decision: Any) -> object:
        return implementation(call) if decision is None else None

    return lambda: [Hooked("judge", **{hook: undecided if hook == "before_tool" else implementation})]


def in_round(hook: str, number: int, verdict: object) -> Callable[[], list[Any]]:
    """A plugin whose hook has a verdict in one round."""

    def implementation(turn: Any) -> object:
        return verdict if turn.round == number else None

    return lambda: [Hooked("judge", **{hook: implementation})]


def leaving(kind: str, round: int, *, after_round: bool = False) -> dict[str, Any]:
    """An ending's parameters: cancelled at that event."""

    def act(agent: Agent, conversation: str) -> Outcome:
        with agent.stream("go", conversation=conversation) as events:
            for event in events:
                if (event.kind, getattr(event, "round", 0)) == (kind, round):
                    events.cancel(after_round=after_round)
        assert events.outcome is not None
        return events.outcome

    return {"act": act}


def exiting(kind: str, round: int) -> dict[str, Any]:
    """An ending's parameters: the stream is left at that event."""

    def act(agent: Agent, conversation: str) -> Outcome:
        with agent.stream("go", conversation=conversation) as events:
            for event in events:
                if (event.kind, getattr(event, "round", 0)) == (kind, round):
                    break
        assert events.outcome is not None
        return events.outcome

    return {"act": act}


TASKS: list[asyncio.Task[Any]] = []
"""The task that plays a turn which is to be cancelled."""


@tool
async def stall() -> str:
    """Have the turn's task cancelled, and never end."""
    TASKS.pop().cancel()
    await asyncio.Event().wait()
    return "never"


def dropped(agent: Agent, conversation: str) -> Outcome:
    """The task that plays the turn is cancelled while a tool runs."""

    async def play() -> Outcome:
        stream = agent.astream("go", conversation=conversation)
        task = asyncio.current_task()
        assert task is not None
        TASKS.append(task)
        with pytest.raises(asyncio.CancelledError):
            await stream.result()
        task.uncancel()
        assert stream.outcome is not None
        return stream.outcome

    return asyncio.run(_closing(agent, play()))


async def _closing(agent: Agent, work: Coroutine[Any, Any, Outcome]) -> Outcome:
    """Close what the async calls of a provider hold, in their loop."""
    try:
        return await work
    finally:
        for provider in agent._providers.values():
            if hasattr(provider, "aclose"):
                await provider.aclose()


def sending(agent: Agent, conversation: str) -> Outcome:
    """A message is sent in while the last tool runs."""
    with agent.stream("go", conversation=conversation) as events:
        for event in events:
            if event.kind == "tool_started" and event.round == 3:
                events.send("hurry")
    assert events.outcome is not None
    return events.outcome


def failing_hook(hook: str, at: int, stored: Sequence[str], status: str = "failed", **more: Any) -> Ending:
    """The ending by a hook that raises when it is asked for the nth time."""
    return Ending(f"{hook} fails", status, more.pop("script", DONE), stored, plugins=breaking(hook, at), **more)


def limited(limit: str, value: int, mode: str) -> Ending:
    """The ending by a limit in the third round, in one breach mode."""
    of_calls = limit in ("tool_calls", "per_tool")
    third = f"tool: not run: the limit {limit!r} of this turn is reached" if of_calls else "tool: edited d"
    goes_on = mode == "answer" or (mode == "error_result" and of_calls)
    status = "done" if goes_on and mode == "error_result" else "limit"
    stored = [*TWO, "assistant: [edit]", third, *(["assistant: done"] if goes_on else [])]
    limits = Limits(on_breach=mode, **{limit: value})  # type: ignore[arg-type]  # names from the table
    answer = "done" if status == "done" else None
    return Ending(f"limit {limit} {mode}", status, DONE, stored, answer, agent={"limits": limits})


ROUNDS = [EDIT, BOTH, LAST]
DONE = [*ROUNDS, say("done")]
PAYS = [EDIT, BOTH, [call("pay", {"amount": 4}, id="c4"), call("edit", {"path": "e"}, id="c5")], say("done")]
PAID = [*TWO, "assistant: [pay edit]"]
STOP = Stop("enough", "that is it")
STOPPED = "assistant: that is it"

NORMAL = [
    Ending("done", "done", DONE, [*THREE, "assistant: done"], "done"),
    Ending("blank", "done", [*ROUNDS, say("")], [*THREE, "assistant: "]),
    Ending("cut", "done", [*ROUNDS, reply(say("so f"), stop="length")], [*THREE, "assistant: so f"], "so f"),
    Ending("filtered", "done", [*ROUNDS, reply(say("no"), stop="filter")], [*THREE, "assistant: no"], "no"),
    Ending("sent", "done", DONE, [*THREE, "user: hurry", "assistant: done"], "done", act=sending),
    Ending(
        "return direct",
        "done",
        [EDIT, BOTH, call("direct", {"text": "x"}, id="c4")],
        [*TWO, "assistant: [direct]", "tool: <x>"],
        "<x>",
    ),
    Ending(
        "tool failure",
        "done",
        [EDIT, BOTH, [call("boom", id="c4"), call("tell", id="c5")], say("done")],
        [
            *TWO,
            "assistant: [boom tell]",
            "tool: boom failed: ValueError: broken",
            "tool: try something else",
            "assistant: done",
        ],
        "done",
    ),
]
LEFT = [
    Ending("provider failure", "failed", [*ROUNDS, failing()], THREE),
    Ending("provider failure at once", "failed", [failing()], [QUESTION]),
    Ending(
        "cancel before a tool", "cancelled", DONE, [*TWO, "assistant: [edit]", NOT_BEGUN], **leaving("tool_started", 3)
    ),
    Ending("cancel in the answer", "cancelled", DONE, THREE, **leaving("text_piece", 4)),
    Ending("cancel after a round", "cancelled", DONE, THREE, **leaving("tool_started", 3, after_round=True)),
    Ending(
        "task cancelled",
        "cancelled",
        [EDIT, BOTH, call("stall", id="c4")],
        [*TWO, "assistant: [stall]", INTERRUPTED],
        plugins=lambda: [Hooked("staller", register_tools=lambda: [stall])],
        act=dropped,
    ),
    Ending("early exit in a call", "cancelled", DONE, TWO, **exiting("call_piece", 3)),
    Ending("early exit at a result", "cancelled", DONE, THREE, **exiting("tool_ended", 3)),
    Ending("early exit in the answer", "cancelled", DONE, THREE, **exiting("text_piece", 4)),
]
JUDGED = [
    Ending("suspended", "suspended", PAYS, [*PAID, "tool: edited e"]),
    Ending("suspended by the tool", "suspended", [*ROUNDS, call("ask", id="c6")], [*THREE, "assistant: [ask]"]),
    Ending(
        "suspended by a hook",
        "suspended",
        DONE,
        [*TWO, "assistant: [edit]"],
        plugins=at_call("before_tool", "d", Suspend("sure?")),
    ),
    Ending(
        "approved",
        "done",
        PAYS,
        [*PAID, "tool: paid 4", "tool: edited e", "assistant: done"],
        "done",
        resume=approve_all,
    ),
    Ending(
        "denied by a human",
        "done",
        PAYS,
        [*PAID, "tool: denied: no money", "tool: edited e", "assistant: done"],
        "done",
        resume=lambda outcome: {"c4": Deny("no money")},
    ),
    Ending(
        "answered by a human",
        "done",
        PAYS,
        [*PAID, "tool: by hand", "tool: edited e", "assistant: done"],
        "done",
        resume=lambda outcome: {"c4": Answer("by hand")},
    ),
    Ending(
        "denied by a hook",
        "done",
        DONE,
        [*TWO, "assistant: [edit]", "tool: denied: not now", "assistant: done"],
        "done",
        plugins=at_call("before_tool", "d", Deny("not now")),
    ),
]
STOPS = [
    Ending("stop in before_turn", "stopped", DONE, [], None, plugins=lambda: [once("before_turn", STOP)]),
    Ending(
        "stop on an error",
        "stopped",
        [*ROUNDS, failing()],
        THREE,
        "that is it",
        plugins=lambda: [once("on_model_error", STOP)],
    ),
    Ending(
        "stop in after_reply", "stopped", DONE, [*TWO, STOPPED], "that is it", plugins=in_round("after_reply", 3, STOP)
    ),
    Ending(
        "stop in before_tool",
        "stopped",
        DONE,
        [*TWO, "assistant: [edit]", "tool: not run: stopped by judge"],
        "that is it",
        plugins=at_call("before_tool", "d", STOP),
    ),
    Ending("stop in after_tool", "stopped", DONE, THREE, "that is it", plugins=at_call("after_tool", "d", STOP)),
    Ending(
        "stop in next_instructions",
        "stopped",
        DONE,
        THREE,
        "that is it",
        plugins=in_round("next_instructions", 3, STOP),
    ),
]
WITHHELD = "tool: ran; result withheld: plugin broken failed"
UNJUDGED = "tool: denied: plugin broken failed while it judged this call"
HOOKS = [
    failing_hook("register_tools", 1, []),
    failing_hook("recall", 1, [*THREE, "assistant: done"], "done", answer="done"),
    failing_hook("before_turn", 1, []),
    failing_hook("select_context", 1, []),
    failing_hook("before_round", 3, TWO),
    failing_hook("on_model_error", 1, THREE, script=[*ROUNDS, failing()]),
    failing_hook("after_reply", 3, TWO),
    failing_hook("before_tool", 4, [*TWO, "assistant: [edit]", UNJUDGED, "assistant: done"], "done", answer="done"),
    failing_hook("after_tool", 4, [*TWO, "assistant: [edit]", WITHHELD]),
    failing_hook("next_instructions", 3, THREE),
    failing_hook("review_answer", 1, [*THREE, "assistant: done"]),
    failing_hook("after_turn", 1, [*THREE, "assistant: done"], "done", answer="done"),
    failing_hook("on_event", 9, [*THREE, "assistant: done"], "done", answer="done"),
]
LIMITS = [
    limited(limit, value, mode)
    for limit, value in (("rounds", 3), ("tool_calls", 3), ("per_tool", 2), ("tokens", 40))
    for mode in ("stop", "error_result", "answer", "raise")
]
ENDINGS = [*NORMAL, *LEFT, *JUDGED, *STOPS, *HOOKS, *LIMITS]

SAMPLE = (
    "done",
    "return direct",
    "limit tool_calls stop",
    "suspended",
    "approved",
    "cancel before a tool",
    "provider failure",
    "stop in before_tool",
)
"""One ending of each kind."""


def across(
    stores: Sequence[str], endings: Sequence[Ending], full: str = "", rest: Sequence[str] = ()
) -> pytest.MarkDecorator:
    """Each ending on each store, as parameters `store` and `ending`.

    Every time: all endings on the store `full`, a sample on the others. In the long run: the rest on all stores, or on
    those in `rest`.
    """
    cases = [
        pytest.param(
            store, ending, id=f"{ending}-{store}", marks=() if _always(store, ending, full) else pytest.mark.soak
        )
        for store in stores
        for ending in endings
        if _always(store, ending, full) or store in (rest or stores)
    ]
    return pytest.mark.parametrize(("store", "ending"), cases, indirect=["store"])


def _always(store: str, ending: Ending, full: str) -> bool:
    return store == full or ending.name in SAMPLE


def across_wires(stores: Sequence[str], wires: Sequence[Any], quick: Sequence[str] = ()) -> pytest.MarkDecorator:
    """Each ending on each store and the next turn on a wire, as parameters `store`, `ending` and `wire`.

    Every time: a sample on every store (or those that are `quick`), on every wire. In the long run: each other ending on
    one of the wires, another one on the next store.
    """
    cases = []
    for at, store in enumerate(stores):
        for number, ending in enumerate(ENDINGS):
            sampled = ending.name in SAMPLE
            marks = () if sampled and store in (quick or stores) else pytest.mark.soak
            chosen = wires if sampled else [wires[(at + number) % len(wires)]]
            cases += [pytest.param(store, ending, w, id=f"{ending}-{store}-{w.name}", marks=marks) for w in chosen]
    return pytest.mark.parametrize(("store", "ending", "wire"), cases, indirect=["store"])
