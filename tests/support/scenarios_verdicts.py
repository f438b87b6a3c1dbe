"""Scenarios of verdicts that change who is asked and how, and of verdicts that meet in one reply."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from scenarios import EDIT, READ, Feedback, Hooked, approve_all, failing, once, raising, scenario
from ways import Expected, Scenario

from hookloop import tool
from hookloop.testing import ScriptedProvider, call, reply, say
from hookloop_hookspecs import (
    Answer,
    Deny,
    Message,
    Narrow,
    Replace,
    Retry,
    Settings,
    Stop,
    Suspend,
    Text,
    ToolResult,
)

PAY = call("pay", {"amount": 5}, id="p1")
ALONE = call("alone", {"n": 1}, id="n1")


def by_round(replies: Mapping[int, Any]) -> list[Any]:
    """A script that goes by the number of the round, however often it is asked."""
    return [lambda request: replies.get(request.round, say("done"))] * 20


def other(replies: Mapping[int, Any]) -> ScriptedProvider:
    """Another model."""
    return ScriptedProvider(by_round(replies), model="other")


def retrying(replies: Mapping[int, Any], **hooks: Callable[..., Any]) -> Hooked:
    """A plugin that has another model asked where one fails."""
    second = other(replies)
    return Hooked("fallback", on_model_error=lambda: Retry(provider=second), **hooks)


def judging(**verdicts: Any) -> Hooked:
    """A plugin that has a verdict on calls by the name of their tool; what waits is not asked for twice."""

    def before_tool(call: Any, decision: Any) -> Any:
        verdict = verdicts.get(call.name)
        return None if decision is not None and isinstance(verdict, Suspend) else verdict

    return Hooked("judge", before_tool=before_tool)


def saying(name: str, verdict: Any) -> Hooked:
    """A plugin with the same verdict on each call, decided or not."""
    return Hooked(name, before_tool=lambda: verdict)


def narrowing(round: int, narrow: Narrow) -> Hooked:
    """A plugin that narrows one round."""
    return Hooked("narrow", before_round=lambda turn: narrow if turn.round == round and turn.id == "t1" else None)


def stop_beside(notes: list[Any]) -> dict[str, Any]:
    """A call is stopped after while another, which began beside it, is still running."""
    gate, began = threading.Event(), threading.Event()

    @tool
    def first() -> str:
        """Come to an end once the other has begun."""
        assert began.wait(30)
        notes.append("first")
        return "first"

    @tool
    def second() -> str:
        """Come to an end once the turn was stopped."""
        began.set()
        assert gate.wait(30)
        notes.append("second")
        return "second"

    def after_tool(call: Any) -> Any:
        if call.name == "first":
            gate.set()
            return Stop("seen", "that is it")
        return None

    return {"tools": [first, second], "plugins": [Hooked("gate", after_tool=after_tool)]}


VERDICTS = [
    scenario(
        "retry with another model",
        [EDIT, failing(), say("unused")],
        lambda: retrying({2: say("from another")}),
        expected=Expected("done", "end", 3, 1, "from another"),
    ),
    scenario(
        "another model is asked for the rest of the turn",
        [failing(), say("unused")],
        lambda: retrying({1: EDIT, 2: call("edit", {"path": "b"}, id="c9"), 3: say("done")}),
        expected=Expected("done", "end", 4, 2, "done"),
    ),
    scenario(
        "the other model fails too",
        [failing(), say("unused")],
        lambda: Hooked(
            on_model_error=lambda error: Retry(provider=other({1: failing("auth", False)})) if error.retryable else None
        ),
        expected=Expected("failed", "ProviderError", 2, 0),
    ),
    scenario(
        "retry after a while",
        [failing(), say("ok")],
        lambda: once("on_model_error", Retry(after=0.001)),
        expected=Expected("done", "end", 2, 0, "ok"),
    ),
    scenario(
        "retry for ever",
        [failing()] * 25,
        lambda: Hooked(on_model_error=lambda: Retry()),
        expected=Expected("failed", "too_many_attempts", 20, 0),
    ),
    scenario(
        "on_model_error raises",
        [EDIT, failing(), say("unused")],
        partial(raising, "on_model_error"),
        expected=Expected("failed", "PluginError", 2, 1),
    ),
    scenario(
        "on_model_error returns a wrong verdict",
        [failing(), say("unused")],
        lambda: once("on_model_error", Deny()),
        expected=Expected("failed", "PluginError", 1, 0),
    ),
    scenario(
        "narrowed model",
        [failing(), *by_round({2: EDIT})],
        lambda: retrying({1: call("edit", {"path": "0"}, id="c0"), 3: say("done")}),
        lambda: narrowing(2, Narrow(model="scripted:scripted")),
        expected=Expected("done", "end", 4, 2, "done"),
    ),
    scenario(
        "narrowed to a model that is not there",
        [EDIT, say("unused")],
        lambda: narrowing(2, Narrow(model="nobody:knows")),
        expected=Expected("failed", "ConfigError", 1, 1),
    ),
    scenario(
        "narrowed settings",
        [EDIT, say("ok")],
        lambda: narrowing(1, Narrow(settings=Settings(temperature=0.5, stop=("x",)))),
        settings=Settings(max_tokens=99),
        expected=Expected("done", "end", 2, 1, "ok"),
    ),
    scenario(
        "narrowed twice",
        [EDIT, say("ok")],
        lambda: narrowing(1, Narrow(tools=("read", "edit"), settings=Settings(seed=1))),
        lambda: Hooked("b", before_round=lambda: Narrow(tools=("edit", "boom"), settings=Settings(seed=2))),
        expected=Expected("done", "end", 2, 1, "ok"),
    ),
    scenario(
        "suspend beside deny",
        [[EDIT, READ, ALONE], say("ok")],
        lambda: judging(edit=Suspend("sure?"), read=Deny("never")),
        resume=[approve_all],
        expected=Expected("done", "end", 2, 2, "ok"),
    ),
    scenario(
        "suspend beside deny, denied",
        [[EDIT, READ], say("ok")],
        lambda: judging(edit=Suspend("sure?"), read=Deny("never")),
        resume=[lambda outcome: {"c1": Deny("nor this")}],
        expected=Expected("done", "end", 2, 0, "ok"),
    ),
    scenario(
        "suspend beside stop",
        [[EDIT, READ], say("unused")],
        lambda: judging(edit=Suspend("sure?"), read=Stop("enough", "bye")),
        expected=Expected("stopped", "enough", 1, 0, "bye"),
    ),
    scenario(
        "approval beside stop",
        [[PAY, READ], say("unused")],
        lambda: judging(read=Stop("enough", "bye")),
        expected=Expected("stopped", "enough", 1, 0, "bye"),
    ),
    scenario(
        "stop in the resumed reply",
        [[PAY, ALONE], say("unused")],
        lambda: Hooked(before_tool=lambda decision: Stop("enough", "bye") if decision is not None else None),
        resume=[approve_all],
        expected=Expected("stopped", "enough", 1, 1, "bye"),
    ),
    *(
        scenario(f"on one call {weak} gives way to {strong}", [EDIT, say("ok")], *makers, expected=expected)
        for weak, strong, makers, expected in (
            (
                "Suspend",
                "Deny",
                (partial(saying, "a", Suspend("sure?")), partial(saying, "b", Deny("no"))),
                Expected("done", "end", 2, 0, "ok"),
            ),
            (
                "Deny",
                "Stop",
                (partial(saying, "a", Deny("no")), partial(saying, "b", Stop("enough", "bye"))),
                Expected("stopped", "enough", 1, 0, "bye"),
            ),
            (
                "Suspend",
                "Stop",
                (partial(saying, "a", Suspend("sure?")), partial(saying, "b", Stop("enough", "bye"))),
                Expected("stopped", "enough", 1, 0, "bye"),
            ),
        )
    ),
    scenario(
        "before_tool judges a replaced call anew",
        [EDIT, say("ok")],
        lambda: Hooked("a", before_tool=lambda call: Replace({"path": "b"}) if call.arguments["path"] == "a" else None),
        lambda: Hooked("b", before_tool=lambda call: Deny("not b") if call.arguments["path"] == "b" else None),
        expected=Expected("done", "end", 2, 0, "ok"),
    ),
    scenario(
        "a suspension expires",
        [[EDIT, ALONE], say("ok")],
        lambda: judging(edit=Suspend("sure?", expires=0.0)),
        resume=[approve_all],
        expected=Expected("done", "end", 2, 1, "ok"),
    ),
    scenario(
        "a suspension that may take its time",
        [[EDIT, ALONE], say("ok")],
        lambda: judging(edit=Suspend("sure?", expires=3600.0)),
        resume=[approve_all],
        expected=Expected("done", "end", 2, 2, "ok"),
    ),
    scenario(
        "before_tool answers with an error",
        [EDIT, say("ok")],
        lambda: judging(edit=Answer(ToolResult("", "", (Text("no such file"),), is_error=True))),
        Feedback,
        expected=Expected("done", "end", 2, 0, "ok"),
    ),
    scenario(
        "before_round answers with calls",
        [say("ok")],
        lambda: Hooked(
            before_round=lambda turn: Answer(reply(EDIT, ALONE)) if (turn.id, turn.round) == ("t1", 1) else None
        ),
        expected=Expected("done", "end", 1, 2, "ok"),
    ),
    scenario(
        "on_model_error answers with calls",
        [failing(), *by_round({})],
        lambda: Hooked(on_model_error=lambda: Answer(reply("instead", EDIT))),
        expected=Expected("done", "end", 2, 1, "done"),
    ),
    scenario(
        "on_model_error stops without a text",
        [EDIT, failing()],
        lambda: Hooked(on_model_error=lambda: Stop("broken")),
        expected=Expected("stopped", "broken", 2, 1, ""),
    ),
    scenario(
        "after_reply gives a reply calls",
        [say("I shall"), say("ok")],
        lambda: Hooked(
            after_reply=lambda turn: Replace(reply("so be it", EDIT)) if (turn.id, turn.round) == ("t1", 1) else None
        ),
        expected=Expected("done", "end", 2, 1, "ok"),
    ),
    scenario(
        "after_reply takes a reply's calls",
        [[say("I shall"), EDIT]],
        lambda: Hooked(after_reply=lambda reply: Replace("I may not") if reply.calls else None),
        expected=Expected("done", "end", 1, 0, "I may not"),
    ),
    scenario(
        "after_reply stops without a text",
        [EDIT],
        lambda: Hooked(after_reply=lambda reply: Stop("unsafe") if reply.calls else None),
        expected=Expected("stopped", "unsafe", 1, 0, ""),
    ),
    scenario(
        "after_tool replaces by an error",
        [EDIT, say("ok")],
        lambda: Hooked(after_tool=lambda result: Replace(ToolResult("", "", (Text("no"),), is_error=True))),
        Feedback,
        expected=Expected("done", "end", 2, 1, "ok"),
    ),
    scenario(
        "after_tool stops at what did not run",
        [[call("nope", id="c1"), ALONE], say("unused")],
        lambda: Hooked(after_tool=lambda call: Stop("seen", "that is it") if call.name == "nope" else None),
        expected=Expected("stopped", "seen", 1, 0, "that is it"),
    ),
    scenario(
        "next_instructions stops without a text",
        [[say("so far"), EDIT], say("unused")],
        lambda: Hooked(next_instructions=lambda: Stop("done")),
        expected=Expected("stopped", "done", 1, 1, "so far"),
    ),
    scenario(
        "before_turn replaces by a message",
        [say("ok")],
        lambda: once("before_turn", Replace(Message.user("better", key="k"))),
        expected=Expected("done", "end", 1, 0, "ok"),
    ),
    scenario(
        "before_turn keeps replacing",
        [say("unused")],
        lambda: Hooked(before_turn=lambda turn: Replace("again") if turn.id == "t1" else None),
        expected=Expected("stopped", "input_not_settled", 0, 0, ""),
    ),
    Scenario(
        "stop while a sibling runs",
        lambda: [[call("first", id="c1"), call("second", id="c2")], say("unused")],
        stop_beside,
        expected=Expected("stopped", "seen", 1, 2, "that is it"),
    ),
]
"""Verdicts of the hooks that the first table leaves out."""
