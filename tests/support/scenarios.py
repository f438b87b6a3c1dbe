"""The table of scenarios that every way must play alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from ways import Expected, Scenario

from hookloop import ToolContext, ToolError, tool
from hookloop.testing import call, reply, say, think
from hookloop_hookspecs import (
    Answer,
    Approve,
    Deny,
    Message,
    Narrow,
    Outcome,
    ProviderError,
    Replace,
    Retry,
    Stop,
    Suspend,
    hookimpl,
)


def tools(notes: list[Any]) -> list[Any]:
    """The tools of the scenarios; each notes that it ran."""
    if not isinstance(notes, Notes):
        return _tools(notes)
    if not notes.tools:
        notes.tools = _tools(notes)
    return notes.tools


class Notes(list[Any]):
    """Notes that keep the tools that write into them, since making those costs more than a turn."""

    def __init__(self) -> None:
        super().__init__()
        self.tools: list[Any] = []


def _tools(notes: list[Any]) -> list[Any]:
    @tool
    def edit(path: str) -> str:
        """Edit a file."""
        notes.append(("edit", path))
        return f"edited {path}"

    @tool
    async def read(path: str) -> str:
        """Read a file."""
        notes.append(("read", path))
        return f"content of {path}"

    @tool
    def boom() -> str:
        """Fail."""
        notes.append("boom")
        raise ValueError("broken")

    @tool
    def tell() -> str:
        """Fail on purpose."""
        raise ToolError("try something else")

    @tool(return_direct=True)
    def direct(text: str) -> str:
        """Answer at once."""
        notes.append(("direct", text))
        return f"<{text}>"

    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        notes.append(("pay", amount))
        return f"paid {amount}"

    @tool
    def ask(context: ToolContext) -> str:
        """Ask somebody."""
        decision = context.suspend("may I?")
        notes.append("ask")
        return f"decided {type(decision).__name__}"

    @tool(serial=True)
    def alone(n: int) -> str:
        """Never beside others."""
        notes.append(("alone", n))
        return str(n)

    return [edit, read, boom, tell, direct, pay, ask, alone]


class Hooked:
    """A plugin made of functions by hook name."""

    broken: bool

    def __init__(self, name: str = "hooked", **hooks: Callable[..., Any]) -> None:
        self.name = name
        for hook, function in hooks.items():
            setattr(self, hook, hookimpl(function))


class Once:
    """A function that gives its value the first time, and None afterwards."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self) -> Any:
        value, self.value = self.value, None
        return value


def once(hook: str, value: Any, name: str = "hooked") -> Hooked:
    """A plugin whose hook gives `value` once."""
    give = Once(value)

    def implementation() -> Any:
        return give()

    return Hooked(name, **{hook: implementation})


def at_first(hook: str, value: Any, name: str = "hooked") -> Hooked:
    """A plugin whose hook gives `value` in the first round of each turn, also in a process that takes the turn up."""
    return Hooked(name, **{hook: lambda turn: value if turn.round == 1 and turn.id == "t1" else None})


def raising(hook: str, name: str = "hooked") -> Hooked:
    """A plugin whose hook raises as long as the plugin is `broken`."""
    plugin = Hooked(name)
    plugin.broken = True

    def implementation() -> Any:
        if plugin.broken:
            raise RuntimeError("the plugin is broken")

    setattr(plugin, hook, hookimpl(implementation))
    return plugin


class Feedback:
    """The plugin that the project is for: adds a note after each successful edit."""

    name = "feedback"

    @hookimpl
    def next_instructions(self, results: Any) -> str | None:
        return "FOO_BAR_FEEDBACK" if any(r.name == "edit" and not r.is_error for r in results) else None


class SendFrom:
    """A plugin that sends a message into the turn when a tool of some name starts or a reply comes."""

    name = "sender"
    agent: Any = None

    def __init__(self, kind: str, text: str, then: Callable[[Any, str], None] | None = None) -> None:
        self.kind = kind
        self.text: str | None = text
        self.then = then

    @hookimpl
    def on_event(self, turn: Any, event: Any) -> None:
        if event.kind == self.kind and self.text is not None and turn.conversation == "c":
            text, self.text = self.text, None
            if self.then is not None:
                self.then(self.agent, turn.conversation)
            else:
                self.agent.send(turn.conversation, text)


EDIT = call("edit", {"path": "a"}, id="c1")
READ = call("read", {"path": "a"}, id="c2")


def scenario(
    name: str,
    script: Callable[[], list[Any]] | list[Any],
    *plugins: Callable[[], Any],
    resume: Iterable[Callable[[Outcome], Any]] = (),
    run: dict[str, Any] | None = None,
    leave: str = "",
    pieces: bool = False,
    expected: Expected | None = None,
    **agent: Any,
) -> Scenario:
    """A scenario with the usual tools; `plugins` are made anew for each play."""

    def parameters(notes: list[Any]) -> dict[str, Any]:
        return {"tools": tools(notes), "plugins": [make() for make in plugins], **agent}

    steps = script if callable(script) else lambda: list(script)
    return Scenario(name, steps, parameters, run or {}, tuple(resume), leave=leave, pieces=pieces, expected=expected)


def approve_all(outcome: Outcome) -> dict[str, Any]:
    """Approve every pending call."""
    return {call.id: Approve() for call in outcome.pending}


def failing(kind: str = "server", retryable: bool = True) -> ProviderError:
    """A provider's error."""
    return ProviderError("no luck", provider="scripted", kind=kind, retryable=retryable)  # type: ignore[arg-type]  # tests


def prolific(n: int) -> list[Any]:
    """A model that calls `edit` n times, then answers."""
    return [call("edit", {"path": str(i)}, id=f"c{i}") for i in range(n)] + [say("done")]


SCENARIOS = [
    scenario("text only", [say("hello")]),
    scenario("thinking and text", [[think("hm"), say("hello")]]),
    scenario("one tool", [EDIT, say("done")]),
    scenario("serial tools", [[call("alone", {"n": i}, id=f"a{i}") for i in range(3)], say("done")]),
    scenario("failing tool", [call("boom", id="c1"), say("done")]),
    scenario("tool error", [call("tell", id="c1"), say("done")]),
    scenario("unknown tool", [call("edlt", {"path": "a"}, id="c1"), say("done")]),
    scenario("bad arguments", [call("edit", {"pth": 1}, id="c1"), say("done")]),
    scenario("no json", [call("edit", '{"path": ', id="c1"), say("done")]),
    scenario("repeated ids", [call("edit", {"path": "a"}, id="x"), call("edit", {"path": "b"}, id="x"), say("done")]),
    scenario("missing ids", [call("edit", {"path": "a"}), call("edit", {"path": "b"}), say("done")]),
    scenario("return direct", [call("direct", {"text": "x"}, id="c1")]),
    scenario("feedback", [EDIT, READ, say("done")], Feedback),
    scenario("go on", [say("first"), say("second")], lambda: at_first("review_answer", "not yet")),
    scenario("empty reply", [say("")]),
    scenario("blank reply gone on", [say("  "), say("second")], lambda: at_first("review_answer", "say something")),
    scenario("cut reply with calls", [reply(EDIT, stop="length"), say("done")]),
    scenario("cut reply", [reply(say("so far"), stop="length")]),
    scenario("filtered", [reply(say("no"), stop="filter")]),
    scenario("refused", [reply(say(""), stop="refusal")]),
    scenario("refused with calls", [reply(EDIT, stop="refusal"), say("ok")]),
    scenario("always cut", [reply(call("edit", {"path": "a"}, id=f"c{i}"), stop="length") for i in range(5)]),
    scenario("pause", [reply(say("one"), stop="pause"), say("two")]),
    scenario("provider error", [EDIT, failing()]),
    scenario("provider error at once", [failing("auth", False)]),
    scenario("retry", [failing(), say("ok")], lambda: once("on_model_error", Retry())),
    scenario("answer an error", [EDIT, failing()], lambda: once("on_model_error", Answer("sorry"))),
    scenario("stop on an error", [failing()], lambda: once("on_model_error", Stop("broken", "come back later"))),
    scenario("before_turn adds", [say("ok")], lambda: once("before_turn", ["one", Message.system("be kind")])),
    scenario("before_turn replaces", [say("ok")], lambda: once("before_turn", Replace("better"))),
    scenario("before_turn stops", [say("unused")], lambda: once("before_turn", Stop("no", "not here"))),
    scenario("recall", [say("ok")], lambda: once("recall", "a fact")),
    scenario("before_round adds", [EDIT, say("ok")], lambda: Hooked(before_round=lambda turn: f"round {turn.round}")),
    scenario(
        "before_round answers",
        [EDIT],
        lambda: Hooked(before_round=lambda turn: Answer("short") if turn.calls else None),
    ),
    scenario("before_round narrows", [EDIT, say("ok")], lambda: once("before_round", Narrow(tools=("read",)))),
    scenario("before_round chooses", [EDIT, say("ok")], lambda: once("before_round", Narrow(tool_choice="required"))),
    scenario("after_reply adds", [EDIT, say("ok")], lambda: Hooked(after_reply=lambda reply: "noted")),
    scenario("after_reply replaces", [say("bad word")], lambda: Hooked(after_reply=lambda reply: Replace("good word"))),
    scenario("after_reply stops", [EDIT], lambda: Hooked(after_reply=lambda reply: Stop("unsafe", "I may not"))),
    scenario("before_tool denies", [EDIT, say("ok")], lambda: Hooked(before_tool=lambda call: Deny("not now"))),
    scenario("before_tool answers", [EDIT, say("ok")], lambda: Hooked(before_tool=lambda call: Answer({"n": 1}))),
    scenario("before_tool replaces", [EDIT, say("ok")], lambda: once("before_tool", Replace({"path": "b"}))),
    scenario(
        "before_tool keeps replacing", [EDIT, say("ok")], lambda: Hooked(before_tool=lambda: Replace({"path": "b"}))
    ),
    scenario("before_tool stops", [[EDIT, READ], say("ok")], lambda: once("before_tool", Stop("enough", "bye"))),
    scenario(
        "before_tool suspends",
        [[EDIT, READ], say("ok")],
        lambda: Hooked(before_tool=lambda call, decision: Suspend("sure?") if call.name == "edit" else None),
        resume=[approve_all],
    ),
    scenario("approval given", [call("pay", {"amount": 5}, id="c1"), say("ok")], resume=[approve_all]),
    scenario(
        "approval with arguments",
        [call("pay", {"amount": 5}, id="c1"), say("ok")],
        resume=[lambda outcome: {"c1": Approve({"amount": 3})}],
    ),
    scenario(
        "approval denied",
        [call("pay", {"amount": 5}, id="c1"), say("ok")],
        resume=[lambda outcome: {"c1": Deny("no money")}],
    ),
    scenario(
        "answered",
        [call("pay", {"amount": 5}, id="c1"), say("ok")],
        resume=[lambda outcome: {"c1": Answer("paid by hand")}],
    ),
    scenario("never decided", [call("pay", {"amount": 5}, id="c1"), say("ok")]),
    scenario(
        "decided in parts",
        [[call("pay", {"amount": 1}, id="c1"), call("pay", {"amount": 2}, id="c2")], say("ok")],
        resume=[lambda outcome: {"c2": Approve()}, approve_all],
    ),
    scenario(
        "unknown decision",
        [call("pay", {"amount": 5}, id="c1"), say("ok")],
        resume=[lambda outcome: {"nope": Approve()}],
    ),
    scenario("tool suspends", [call("ask", id="c1"), say("ok")], resume=[approve_all]),
    scenario("after_tool adds", [EDIT, say("ok")], lambda: Hooked(after_tool=lambda call: f"after {call.name}")),
    scenario("after_tool replaces", [EDIT, say("ok")], lambda: Hooked(after_tool=lambda result: Replace("[redacted]"))),
    scenario("after_tool stops", [EDIT, say("unused")], lambda: Hooked(after_tool=lambda: Stop("seen", "that is it"))),
    scenario(
        "next_instructions stops", [EDIT, say("unused")], lambda: Hooked(next_instructions=lambda: Stop("done", "fine"))
    ),
    scenario(
        "sticky and ephemeral",
        [EDIT, say("ok")],
        lambda: Hooked(
            next_instructions=lambda turn: [Message.user("sticky", key="k"), Message.user("gone", ephemeral=True)]
        ),
    ),
    scenario("sent while a tool runs", [EDIT, say("ok")], lambda: SendFrom("tool_started", "hurry")),
    scenario("sent while answering", [say("one"), say("two")], lambda: SendFrom("reply_received", "wait")),
    scenario(
        "two plugins fold",
        [EDIT, say("x")],
        lambda: Hooked("a", after_tool=lambda result: Replace(result.text + "a")),
        lambda: Hooked("b", after_tool=lambda result: Replace(result.text + "b")),
    ),
    scenario("structured output", [say('{"value": 1}'), say('{"value": [1, 2]}')], run={"output": list[int]}),
    scenario("never structured", [say("no")] * 5, run={"output": list[int]}),
    scenario("output tool", [[EDIT, call("final_list", {"value": [3]}, id="o1")]], run={"output": list[int]}),
    scenario("history given", [say("ok")], run={"history": [Message.user("before"), Message.assistant("yes")]}),
    *(
        scenario(f"{hook} raises", [EDIT, say("done")], partial(raising, hook))
        for hook in (
            "register_tools",
            "recall",
            "before_turn",
            "select_context",
            "before_round",
            "after_reply",
            "before_tool",
            "after_tool",
            "next_instructions",
            "review_answer",
            "after_turn",
            "on_event",
        )
    ),
    *(
        scenario(f"{hook} returns a wrong verdict", [EDIT, say("done")], partial(once, hook, Retry()))
        for hook in (
            "recall",
            "before_turn",
            "before_round",
            "after_reply",
            "before_tool",
            "after_tool",
            "next_instructions",
            "review_answer",
        )
    ),
]

PARALLEL = [
    scenario("two direct", [[call("direct", {"text": "x"}, id="c1"), call("direct", {"text": "y"}, id="c2")]]),
    scenario("direct mixed", [[call("direct", {"text": "x"}, id="c1"), EDIT], say("done")]),
    scenario("parallel tools", [[EDIT, READ, call("edit", {"path": "z"}, id="c3")], say("done")]),
    scenario("parallel with a failure", [[EDIT, call("boom", id="b"), READ], say("done")]),
]
"""Scenarios whose calls run beside each other: results come in any order, and only their order in time may differ."""
