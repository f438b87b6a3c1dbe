"""Kind E: suspended, resumed, cancelled, killed. Nothing runs twice, nothing that was refused runs, history stays valid."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from scenarios import Hooked, tools

from cases import EVERYWHERE, FEW, Place, Stage, few, hooked, shown
from hookloop import Agent, Limits, ToolContext, tool
from hookloop.engine.history import check
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, crash, mortal, say
from hookloop_hookspecs import (
    Answer,
    Approve,
    ConfigError,
    Conflict,
    Decided,
    Deny,
    Message,
    Said,
    Suspend,
    Suspended,
    TurnEnded,
)


def table(notes: list[Any]) -> list[Any]:
    """Tools that note what they did."""

    @tool
    def log(text: str = "x") -> str:
        """Log."""
        notes.append("log")
        return "logged"

    @tool
    def ask(context: ToolContext) -> str:
        """Ask a human, twice."""
        notes.append("ask")
        first = context.suspend("may I?")
        second = context.suspend("really?")
        return f"{type(first).__name__} {type(second).__name__}"

    @tool(needs_approval=True)
    def wipe(what: str = "all") -> str:
        """Wipe."""
        notes.append(f"wipe {what}")
        return f"wiped {what}"

    return [log, ask, wipe]


WIPE = call("wipe", id="c1")


def results(messages: Any) -> dict[str, str]:
    """The text of each result by its call's name, in order."""
    return {r.call_id: r.text for m in messages for r in m.results}


@pytest.mark.parametrize("place", EVERYWHERE, ids=str)
def test_E01_a_resume_replays_nothing_that_ran(place: Place) -> None:
    ran: list[Any] = []
    with place.stage([call("log", id="c1"), call("ask", id="c2")], say("done"), tools=table(ran)) as stage:
        assert stage.run().status == "suspended"
        assert stage.resume(Approve()).status == "suspended"
        assert stage.resume(Approve()).text == "done"
        assert (ran.count("log"), ran.count("ask")) == (1, 3)
        assert results(stage.outcome.messages)["c2"] == "Approve Approve"


@pytest.mark.parametrize("place", FEW, ids=str)
def test_E01_suspends_in_many_rounds_do_not_grow(place: Place) -> None:
    ran: list[Any] = []
    script = [[call("log", id=f"l{n}"), call("wipe", id=f"w{n}")] for n in range(4)]
    with place.stage(*script, say("done"), tools=table(ran)) as stage:
        stage.run()
        for n in range(4):
            assert (ran.count("log"), ran.count("wipe all")) == (n + 1, n)
            stage.resume(Approve())
        assert stage.outcome.text == "done"
        assert [len(request) for request in stage.sent] == [1, 5, 9, 13, 17]


@pytest.mark.parametrize("hook", ["before_turn", "recall"])
@pytest.mark.parametrize("place", few(None), ids=str)
def test_E01_hooks_of_the_start_are_not_asked_again(place: Place, hook: str) -> None:
    asked: list[int] = []
    plugins = [hooked(hook, lambda: asked.append(1))]
    with place.stage(WIPE, say("done"), tools=table([]), plugins=plugins) as stage:
        stage.run()
        stage.resume(Approve())
        assert len(asked) == 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("at", range(8, 30, 3))
def test_E03_A14_killed_anywhere_and_then_a_new_message(at: int, when: Any) -> None:
    """Whatever the point of the crash, no call runs again and the next request is valid."""
    ran: list[Any] = []
    place = few(None)[0]
    with place.stage(say("fine"), tools=table(ran)) as stage:
        provider = ScriptedProvider([[call("log", id="c1"), call("log", id="c2")], say("never")])
        agent = mortal(Agent(provider, tools=table(ran), memory=[stage.memory]))
        crash(agent, lambda: agent.stream("U1", conversation="c"), at, when)
        before = len(ran)
        assert stage.run("U2").text == "fine"
        assert len(ran) == before
        assert stage.sent[0][-1] == ("user", "U2")


class Gate:
    """A tool that waits until it is let go, and says when it began."""

    def __init__(self) -> None:
        self.began = threading.Event()
        self.go = threading.Event()

    def tools(self, kind: str) -> list[Any]:
        def hold(context: ToolContext) -> str:
            """Hold."""
            self.began.set()
            context.cancel.wait(20)
            return "let go"

        async def ahold(context: ToolContext) -> str:
            """Hold."""
            self.began.set()
            await asyncio.sleep(20)
            return "let go"

        return [tool(hold) if kind == "sync" else tool(name="hold")(ahold)]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("place", [place for place in EVERYWHERE if place.way.startswith("a")], ids=str)
def test_E04_a_task_that_is_cancelled_while_a_tool_runs_leaves_a_valid_history(place: Place, kind: str) -> None:
    gate = Gate()
    quick: list[Any] = []
    with place.stage(
        [call("hold", id="c1"), call("log", id="c2")], tools=[*gate.tools(kind), table(quick)[0]]
    ) as stage:

        async def main() -> Any:
            with stage.agent() as agent:
                stream = agent.astream("go", conversation="c")
                task = asyncio.ensure_future(stream.result())
                await asyncio.to_thread(gate.began.wait, 20)
                task.cancel()
                with pytest.raises(asyncio.CancelledError) as caught:
                    await task
                assert type(caught.value) is asyncio.CancelledError
                for provider in agent._providers.values():
                    await provider.aclose()
                return stream.outcome

        outcome = asyncio.run(main())
        stage.outcomes.append(outcome)
        stage.errors.append(None)
        assert outcome.status == "cancelled"
        check(outcome.messages)
        assert set(results(outcome.messages)) == {"c1", "c2"}


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("place", [place for place in EVERYWHERE if not place.way.startswith("a")], ids=str)
def test_E04_so_does_a_run_that_is_cancelled_from_another_thread(place: Place, kind: str) -> None:
    gate = Gate()
    with place.stage([call("hold", id="c1"), call("log", id="c2")], tools=[*gate.tools(kind), table([])[0]]) as stage:
        with stage.agent() as agent:

            def cancel() -> None:
                gate.began.wait(20)
                agent.cancel("c")

            other = threading.Thread(target=cancel)
            other.start()
            outcome = agent.run("go", conversation="c")
            other.join()
        stage.outcomes.append(outcome)
        stage.errors.append(None)
        assert outcome.status == "cancelled"
        assert set(results(outcome.messages)) == {"c1", "c2"}


@pytest.mark.parametrize("place", EVERYWHERE, ids=str)
def test_E05_a_rejected_call_is_not_run_and_stays_in_history(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(WIPE, say("pity"), tools=table(ran)) as stage:
        stage.run()
        assert stage.resume(Deny("rejected by the boss")).text == "pity"
        assert ran == []
        assert stage.sent[1][1][0] == "call"
        assert "rejected by the boss" in stage.sent[1][2][1]
        with pytest.raises(Exception, match="waits for a decision"), stage.agent() as agent:
            agent.resume("c", {"c1": Approve()})
        assert ran == []


@pytest.mark.parametrize("place", FEW, ids=str)
def test_E05_a_hook_that_denies_stands_over_an_approval(place: Place) -> None:
    ran: list[Any] = []
    plugins = [Hooked(before_tool=lambda call, decision: Deny("policy") if decision else None)]
    with place.stage(WIPE, say("pity"), tools=table(ran), plugins=plugins) as stage:
        stage.run()
        stage.resume(Approve())
        assert ran == []
        assert "policy" in results(stage.outcome.messages)["c1"]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_E05_a_rejected_call_that_the_model_repeats_is_asked_about_again(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(WIPE, call("wipe", id="c1"), say("pity"), tools=table(ran)) as stage:
        stage.run()
        assert stage.resume(Deny("no")).status == "suspended"
        stage.resume(Deny("still no"))
        assert (stage.outcome.text, ran) == ("pity", [])


@pytest.mark.parametrize("place", EVERYWHERE, ids=str)
def test_E07_E09_a_new_message_supersedes_what_waits(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(WIPE, say("fine"), tools=table(ran)) as stage:
        stage.run()
        assert stage.run("U2").text == "fine"
        assert ran == []
        assert [kind for kind, _ in stage.sent[1]] == ["user", "call", "result", "user"]
        assert "superseded" in stage.sent[1][2][1]
        ends = [body for body in stage.entries() if isinstance(body, TurnEnded)]
        assert [end.stop_reason for end in ends] == ["superseded", "end"]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E07_a_decision_that_comes_after_is_refused(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(WIPE, say("fine"), tools=table(ran)) as stage:
        stage.run()
        stage.run("U2")
        stage.resume({"c1": Approve()})
        assert stage.error is not None
        assert ran == []
        stage.outcomes.pop(), stage.errors.pop()


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E07_an_agent_may_refuse_new_messages_instead(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(WIPE, say("done"), tools=table(ran), on_pending="refuse") as stage:
        stage.run()
        suspended = stage.outcome
        stage.run("U2")
        assert isinstance(stage.error, Conflict)
        stage.outcomes[-1] = suspended
        assert stage.resume(Approve()).text == "done"
        assert ran == ["wipe all"]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E07_siblings_that_ran_keep_their_results(place: Place) -> None:
    ran: list[Any] = []
    with place.stage([call("log", id="c1"), call("wipe", id="c2")], say("fine"), tools=table(ran)) as stage:
        stage.run()
        stage.run("U2")
        texts = [text for kind, text in stage.sent[1] if kind == "result"]
        assert texts[0] == "logged"
        assert "superseded" in texts[1]
        assert ran == ["log"]


@pytest.mark.parametrize("place", EVERYWHERE, ids=str)
def test_E10_a_resumed_turn_is_stored_once(place: Place) -> None:
    with place.stage(WIPE, say("done"), tools=table([])) as stage:
        stage.run()
        stage.resume(Approve())
        assert [len(m.calls) for m in stage.stored()] == [0, 1, 0, 0]
        bodies = stage.entries()
        assert [sum(isinstance(body, kind) for body in bodies) for kind in (Suspended, Decided, Said)] == [1, 1, 4]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E10_a_suspension_goes_on_where_no_store_knows_it(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(WIPE, say("done"), tools=table(ran)) as stage:
        stage.run()
        suspension = stage.outcome.suspension
        assert suspension is not None
        elsewhere = Stage(place, [say("done")], {"tools": table(ran), "memory": InProcessMemory()})
        with elsewhere._stack:
            elsewhere.__enter__()
            outcome = elsewhere.resume({"c1": Approve()}, of=suspension)
        stage._script.pop()
        assert [kind for kind, _ in shown(outcome.messages)] == ["user", "call", "result", "assistant"]
        assert ran == ["wipe all"]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E10_a_suspension_that_goes_on_beside_its_store_leaves_that_valid(place: Place) -> None:
    with place.stage(WIPE, say("done"), tools=table([])) as stage:
        stage.run()
        stage.resume({"c1": Approve()}, of=stage.outcome.suspension or "")
        check(stage.stored(), tail=True)
        assert [kind for kind, _ in shown(stage.stored())].count("user") == 1


@pytest.mark.parametrize("place", few(None), ids=str)
def test_D07_a_history_that_is_handed_over_is_no_business_of_the_store(place: Place) -> None:
    with place.stage(WIPE, say("done"), tools=table([])) as stage:
        stage.run()
        waiting = stage.outcome
        stage.run("U2", history=[Message.user("u"), Message.assistant("a")] * 4)
        stage.outcomes.append(waiting)
        check(stage.stored(), tail=True)


@pytest.mark.parametrize("place", EVERYWHERE, ids=str)
def test_E12_a_rejection_has_a_reason_of_its_own(place: Place) -> None:
    ran: list[Any] = []
    with place.stage([WIPE, call("wipe", {"what": "b"}, id="c2")], say("ok"), tools=table(ran)) as stage:
        stage.run()
        stage.resume({"c1": Deny("not before Monday"), "c2": Approve()})
        texts = results(stage.outcome.messages)
        assert "not before Monday" in texts["c1"]
        assert (texts["c2"], ran) == ("wiped b", ["wipe b"])


@pytest.mark.parametrize("place", FEW, ids=str)
def test_E12_decisions_may_come_one_by_one(place: Place) -> None:
    ran: list[Any] = []
    with place.stage([WIPE, call("wipe", {"what": "b"}, id="c2")], say("ok"), tools=table(ran)) as stage:
        stage.run()
        assert [p.id for p in stage.resume({"c2": Answer("by hand")}).pending] == ["c1"]
        assert stage.resume({"c1": Approve({"what": "a"})}).text == "ok"
        assert results(stage.outcome.messages) == {"c1": "wiped a", "c2": "by hand"}
        assert ran == ["wipe a"]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E12_a_decision_on_what_does_not_wait_is_an_error(place: Place) -> None:
    with place.stage([WIPE, call("log", id="c2")], say("ok"), tools=table([])) as stage:
        stage.run()
        suspended = stage.outcome
        stage.resume({"c2": Deny("no")})
        assert isinstance(stage.error, ConfigError)
        stage.outcomes[-1] = suspended
        assert stage.resume({"c1": Deny("no")}).text == "ok"


@pytest.mark.parametrize("place", [p for p in EVERYWHERE if p.way in ("stream", "astream")], ids=str)
def test_E13_a_stop_keeps_the_text_so_far_beside_history(place: Place) -> None:
    with place.stage(say("one two three four five six seven eight nine ten")) as stage:
        seen: list[str] = []

        def enough(event: Any) -> bool:
            if event.kind == "text_piece":
                seen.append(event.text)
            return len(seen) == (3 if place.transport == "stream" else 1)

        async def later(agent: Any) -> Any:
            async with agent.astream("go", conversation="c") as events:
                async for event in events:
                    if enough(event):
                        events.cancel()
            for provider in agent._providers.values():
                await provider.aclose()
            return events.outcome

        with stage.agent() as agent:
            if place.way == "astream":
                outcome = asyncio.run(later(agent))
            else:
                with agent.stream("go", conversation="c") as events:
                    for event in events:
                        if enough(event):
                            events.cancel()
                outcome = events.outcome
        stage.outcomes.append(outcome)
        stage.errors.append(None)
        assert (outcome.status, outcome.partial) == ("cancelled", "".join(seen))
        assert [m.role for m in outcome.messages] == ["user"]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E13_a_cancelled_turn_is_left_out_of_the_next_one(place: Place) -> None:
    with place.stage(say("a long answer that is not wanted"), say("fine")) as stage:
        with stage.agent() as agent, agent.stream("delete x", conversation="c") as events:
            for event in events:
                if event.kind == "text_piece":
                    break
        assert stage.run("hello").text == "fine"
        assert stage.sent[-1] == [("user", "hello")]


@pytest.mark.parametrize("place", few(None)[:2], ids=str)
def test_E15_what_comes_after_a_call_was_left_changes_nothing(place: Place) -> None:
    """A tool in a thread ends after its timeout: history is as it was, its key says which call it was."""
    gate, keys = Gate(), []

    @tool(timeout=0.05)
    def deferred(context: ToolContext) -> str:
        """Ends late."""
        keys.append(context.key)
        gate.go.wait(20)
        gate.began.set()
        return "an hour later"

    with place.stage(call("deferred", id="c1"), say("ok"), say("later"), tools=[deferred]) as stage:
        with stage.agent() as agent:
            outcome = agent.run("go", conversation="c")
            gate.go.set()
            assert gate.began.wait(20)
            agent.run("more", conversation="c")
        assert "effect is unknown" in results(outcome.messages)["c1"]
        assert "an hour later" not in str(stage.sent)
        assert len(keys) == 1
        stage.outcomes.append(outcome)
        stage.say(say("end"))
        stage.run("end")


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E15_a_late_decision_on_an_answered_call_is_refused(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(WIPE, say("done"), tools=table(ran)) as stage:
        stage.run()
        done = stage.resume({"c1": Answer("by hand")})
        stage.resume({"c1": Approve()})
        assert stage.error is not None
        assert (ran, shown(stage.stored())) == ([], shown(done.messages))
        stage.outcomes[-1] = done


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E15_keys_tell_calls_apart_and_stay_the_same_over_a_resume(place: Place) -> None:
    keys: list[str] = []

    @tool
    def asks(context: ToolContext) -> str:
        """Asks."""
        keys.append(context.key)
        context.suspend("may I?")
        return "ok"

    with place.stage([call("asks", id="x"), call("asks", id="x")], say("ok"), tools=[asks]) as stage:
        stage.run()
        stage.resume(Approve())
        assert len(keys) == 4
        assert len(set(keys)) == 2


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E05_approval_by_a_hook_that_suspends_and_then_expires(place: Place) -> None:
    ran: list[Any] = []
    plugins = [Hooked(before_tool=lambda call, decision: None if decision else Suspend("sure?", expires=-1.0))]
    with place.stage(call("log", id="c1"), say("ok"), tools=table(ran), plugins=plugins) as stage:
        stage.run()
        stage.resume(Approve())
        assert "expired" in results(stage.outcome.messages)["c1"]
        assert ran == []


def test_E10_all_that_was_said_is_stored_once_over_many_resumes() -> None:
    script = [[call("wipe", {"what": str(n)}, id=f"w{n}") for n in range(3)], say("done")]
    with few(None)[1].stage(*script, tools=tools([]) + table([])[2:]) as stage:
        stage.run()
        for n in range(3):
            stage.resume({f"w{n}": Approve()})
        said = [body for body in stage.entries() if isinstance(body, Said)]
        assert len(said) == 6


@pytest.mark.parametrize("decision", [Approve(), Deny("no"), Answer("by hand")], ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("place", few(None), ids=str)
def test_E01_structured_output_is_still_asked_for_after_a_resume(place: Place, decision: Any) -> None:
    with place.stage(WIPE, say("no data"), say('{"value":[1]}'), tools=table([])) as stage:
        stage.run(output=list[int])
        with stage.agent() as agent:
            outcome = agent.resume("c", {"c1": decision}, output=list[int])
        stage.outcomes.append(outcome)
        stage.errors.append(None)
        assert outcome.output == [1]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_E05_a_tool_that_is_gone_when_its_approval_comes(place: Place) -> None:
    with place.stage(WIPE, say("ok"), tools=table([])) as stage:
        stage.run()
        stage.resume(Approve(), with_={"tools": table([])[:2]})
        assert "wipe" in results(stage.outcome.messages)["c1"]
        assert [r.is_error for m in stage.outcome.messages for r in m.results] == [True]


@pytest.mark.parametrize("place", FEW, ids=str)
def test_E12_arguments_of_an_approval_are_validated(place: Place) -> None:
    ran: list[Any] = []
    with place.stage(WIPE, say("ok"), tools=table(ran)) as stage:
        stage.run()
        stage.resume(Approve({"nonsense": 1}))
        assert ran == []
        assert [r.is_error for m in stage.outcome.messages for r in m.results] == [True]


@pytest.mark.parametrize("mode", ["stop", "error_result", "answer", "raise"])
@pytest.mark.parametrize("place", few(None), ids=str)
def test_F01_E01_a_limit_beside_a_call_that_waits(place: Place, mode: Any) -> None:
    """One call waits, its sibling passed the limit: the decision is still asked for, then the limit does what it does."""
    ran: list[Any] = []
    script = [[WIPE, call("log", id="c2")], *([say("end")] if mode in ("answer", "error_result") else [])]
    with place.stage(*script, tools=table(ran), limits=Limits(tool_calls=1, on_breach=mode)) as stage:
        assert [one.id for one in stage.run().pending] == ["c1"]
        outcome = stage.resume(Approve())
        assert outcome.status == ("done" if mode == "error_result" else "limit")
        assert ran == ["wipe all"]
        assert set(results(outcome.messages)) == {"c1", "c2"}


@pytest.mark.parametrize("place", FEW, ids=str)
def test_E10_a_suspended_turn_under_a_window(place: Place) -> None:
    ran: list[Any] = []
    config = {"window": {"messages": 3}}
    with place.stage(say("one"), say("two"), WIPE, say("done"), tools=table(ran), config=config) as stage:
        stage.run("1")
        stage.run("2")
        stage.run("3")
        assert stage.resume(Approve()).text == "done"
        seen = [("user", "2"), ("assistant", "two"), ("user", "3")]
        assert stage.sent[-2] == seen
        assert stage.sent[-1] == [*seen, ("call", "wipe {}"), ("result", "wiped all")]


@pytest.mark.parametrize("place", few(None), ids=str)
def test_E05_a_call_that_suspends_itself_beside_one_that_fails(place: Place) -> None:
    ran: list[Any] = []

    @tool
    def boom() -> str:
        """Fail."""
        raise OSError("broken")

    script = [[call("boom", id="c1"), call("ask", id="c2"), call("log", id="c3")], say("done")]
    with place.stage(*script, tools=[boom, *table(ran)]) as stage:
        assert [one.id for one in stage.run().pending] == ["c2"]
        stage.resume(Approve())
        assert stage.resume(Deny("enough")).text == "done"
        assert "enough" in results(stage.outcome.messages)["c2"]
        assert sorted(ran) == ["ask", "ask", "log"]
