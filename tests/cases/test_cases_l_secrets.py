"""Cases L06, L11, L13: what is secret stays out of logs, traces, stores and models; ids cannot forge lines."""

from __future__ import annotations

import io
import json
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from going import each_way, go
from scenarios import Hooked

from hookloop import Agent, provider, tool
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, Spy, call, say
from hookloop.testing.server import Fail, StrictServer
from hookloop.trace import Trace, TraceOptions
from hookloop_hookspecs import (
    Answer,
    ConfigError,
    Deny,
    LoadQuery,
    Message,
    NoOpenTurn,
    ProviderError,
    Replace,
    ToolContext,
    ToolError,
    ToolResult,
    TurnEnded,
)
from hookloop_hookspecs.codec import dump_entry

if TYPE_CHECKING:
    from tests.conftest import Hookloop

KEY, BEARER = "SECRET1abcdef", "SECRET2abcdef"
WORDS = f"GET https://api.example.com/v1?key={KEY} failed; sent Authorization: Bearer {BEARER}"


def clean(*texts: str) -> None:
    """None of the texts holds a secret."""
    for text in texts:
        for secret in (KEY, BEARER, "hunter2"):
            assert secret not in text, text[max(0, text.find(secret) - 200) :][:400]


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """Everything that is logged, at DEBUG."""
    text = io.StringIO()
    handler = logging.StreamHandler(text)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield text
    root.removeHandler(handler)
    root.setLevel(level)


def stored(memory: InProcessMemory, conversation: str = "c") -> str:
    return "\n".join(map(dump_entry, memory.load_memory(conversation, LoadQuery()).entries))


# L06: keys in errors

MODELS = {
    "openai:gpt-4.1": {"suffix": "/v1"},
    "anthropic:claude-sonnet-4-6": {"suffix": ""},
}


@each_way
@pytest.mark.parametrize("status", [400, 401, 500])
@pytest.mark.parametrize("model", MODELS)
def test_L06_a_key_that_a_server_repeats_is_in_no_log_trace_or_store(
    way: str, model: str, status: int, log: io.StringIO, tmp_path: Path
) -> None:
    memory, file = InProcessMemory(), tmp_path / "t.jsonl"
    with StrictServer([Fail(status, WORDS)]) as server:
        asked = provider(model, base_url=server.url + MODELS[model]["suffix"], api_key=BEARER, retries=0)
        with Agent(asked, memory=[memory], plugins=[Trace(TraceOptions(file=str(file)))]) as agent:
            with pytest.raises(ProviderError) as caught:
                go(agent, way, "Hello.", conversation="c")
            logging.getLogger("app").error("the turn failed", exc_info=caught.value)
    clean(str(caught.value), repr(caught.value), "".join(traceback.format_exception(caught.value)))
    clean(log.getvalue(), file.read_text("utf-8"), stored(memory))


@each_way
def test_L06_what_a_provider_of_others_says_is_stored_without_keys(way: str) -> None:
    memory = InProcessMemory()
    broken = ProviderError(WORDS, provider="scripted", kind="auth")
    with Agent(ScriptedProvider(broken), memory=[memory]) as agent, pytest.raises(ProviderError):
        go(agent, way, "Hello.", conversation="c")
    (ended,) = [e.body for e in memory.load_memory("c", LoadQuery()).entries if isinstance(e.body, TurnEnded)]
    assert "ProviderError" in ended.error
    clean(ended.error)


@each_way
def test_L06_traces_hold_no_key_whoever_wrote_it_down(way: str, tmp_path: Path) -> None:
    @tool
    def fetch(url: str) -> str:
        """Fetch."""
        return f"{url} said password=hunter2"

    file = tmp_path / "t.jsonl"
    script = [call("fetch", {"url": f"http://x/?key={KEY}"}, id="c1"), ProviderError(WORDS, provider="scripted")]
    spy = Spy("before_round", "recall").fails("recall", RuntimeError(WORDS))
    plugins = [spy, Trace(TraceOptions(file=str(file)))]
    with Agent(ScriptedProvider(script), tools=[fetch], plugins=plugins) as agent, pytest.raises(ProviderError):
        go(agent, way, f"Use {WORDS}.")
    text = file.read_text("utf-8")
    clean(text)
    assert "tool_ended" in text
    assert "model_failed" in text
    assert "warned" in text


@each_way
@pytest.mark.parametrize("detailed", [True, False])
def test_L06_the_model_reads_no_key_of_a_tools_exception(way: str, detailed: bool) -> None:
    @tool
    def fetch() -> str:
        """Fetch."""
        raise ConnectionError(WORDS)

    provider = ScriptedProvider(call("fetch", id="c1"), say("ok"))
    memory = InProcessMemory()
    config = {"tools": {"detailed_errors": detailed}}
    with Agent(provider, tools=[fetch], memory=[memory], config=config) as agent:
        outcome = go(agent, way, "Fetch.", conversation="c")
    ((result,),) = [message.results for message in outcome.new if message.results]
    assert "ConnectionError" in result.text
    assert ("[redacted]" in result.text) is detailed
    clean(result.text, repr(provider.requests), stored(memory))


def test_L06_a_tool_may_still_say_what_it_means_to_say() -> None:
    @tool
    def fetch() -> str:
        """Fetch."""
        raise ToolError("set password=secret in the form")

    provider = ScriptedProvider(call("fetch", id="c1"), say("ok"))
    with Agent(provider, tools=[fetch]) as agent:
        outcome = agent.run("Fetch.")
    assert "password=secret" in outcome.new[2].text


def test_L06_the_program_prints_no_key(hookloop: Hookloop) -> None:
    hookloop.write('memory = ["sqlit://user:hunter2@host/db"]\nmodel = "openai:m"\n')
    done = hookloop("run", "Hello.")
    assert done.code == 2
    clean(done.out, done.err)
    hookloop.write(f'model = "openai:gpt-4.1"\n[provider]\napi_key = "{KEY}"\n')
    done = hookloop("config", "show")
    assert done.code == 2
    clean(done.out, done.err)


# L11: a plugin takes secrets out of results

RAW = "the answer is RAWSECRET42"


def redactor() -> Hooked:
    """A plugin that replaces every result in which the secret stands."""
    return Hooked("redactor", after_tool=lambda result: Replace("[gone]") if "RAWSECRET42" in result.text else None)


@tool
def reveal() -> str:
    """Reveal."""
    return RAW


@each_way
@pytest.mark.parametrize("transport", ["stream", "whole"])
def test_L11_what_a_plugin_took_out_is_nowhere(way: str, transport: str, tmp_path: Path) -> None:
    memory, file = InProcessMemory(), tmp_path / "t.jsonl"
    eye = Spy("on_event", "next_instructions", "before_round", "after_turn", name="eye")
    provider = ScriptedProvider(call("reveal", id="c1"), say("ok"), say("again"), transport=transport)
    plugins = [redactor(), eye, Trace(TraceOptions(file=str(file)))]
    with Agent(provider, tools=[reveal], plugins=plugins, memory=[memory]) as agent:
        outcome = go(agent, way, "Reveal.", conversation="c")
        go(agent, way, "And now?", conversation="c")
    shown = [repr(eye.calls), repr(provider.requests), repr(outcome), repr(list(outcome.messages))]
    for text in (*shown, stored(memory), file.read_text("utf-8")):
        assert "RAWSECRET42" not in text
        assert "[gone]" in text or "Outcome(" in text


@each_way
def test_L11_nor_in_the_state_of_a_suspended_turn(way: str) -> None:
    @tool(needs_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    memory = InProcessMemory()
    provider = ScriptedProvider([call("reveal", id="c1"), call("pay", id="c2")])
    with Agent(provider, tools=[reveal, pay], plugins=[redactor()], memory=[memory]) as agent:
        outcome = go(agent, way, "Reveal and pay.", conversation="c")
    assert outcome.status == "suspended"
    assert outcome.suspension is not None
    assert "[gone]" in outcome.suspension
    assert "RAWSECRET42" not in outcome.suspension + stored(memory)


@each_way
def test_L11_results_that_no_tool_gave_pass_the_same_plugin(way: str) -> None:
    @tool
    def fails() -> str:
        """Fail."""
        raise ToolError(RAW)

    judge = Hooked("judge", before_tool=lambda call: Answer(RAW) if call.name == "reveal" else None)
    denier = Hooked("denier", before_tool=lambda call: Deny(RAW) if call.name == "other" else None)

    @tool
    def other() -> str:
        """Do something else."""
        return ""

    script = [[call("reveal", id="c1"), call("fails", id="c2"), call("other", id="c3")], say("ok")]
    provider = ScriptedProvider(script)
    eye = Spy("on_event", name="eye")
    plugins = [redactor(), judge, denier, eye]
    with Agent(provider, tools=[reveal, fails, other], plugins=plugins) as agent:
        outcome = go(agent, way, "All.")
    answers = [result.text for message in outcome.new for result in message.results]
    assert answers == ["[gone]"] * 3
    ended = [getattr(event, "result", None) for event in eye.events("tool_ended")]
    assert [result.text for result in ended if isinstance(result, ToolResult)] == ["[gone]"] * 3
    assert "RAWSECRET42" not in repr(provider.requests)


@each_way
def test_L11_the_result_of_a_tool_that_returns_directly_passes_it_too(way: str) -> None:
    @tool(return_direct=True)
    def direct() -> str:
        """Answer."""
        return RAW

    memory = InProcessMemory()
    with Agent(
        ScriptedProvider(call("direct", id="c1")), tools=[direct], plugins=[redactor()], memory=[memory]
    ) as agent:
        outcome = go(agent, way, "Answer.", conversation="c")
    assert (outcome.text, outcome.stop_reason) == ("[gone]", "return_direct")
    assert "RAWSECRET42" not in stored(memory)


@each_way
def test_L11_private_data_of_a_result_goes_with_it(way: str) -> None:
    plugin = Hooked("redactor", after_tool=lambda: Replace({"kept": 1}))
    with Agent(ScriptedProvider(call("reveal", id="c1"), say("ok")), tools=[reveal], plugins=[plugin]) as agent:
        outcome = go(agent, way, "Reveal.")
    assert "RAWSECRET42" not in repr(outcome.new)


# L13: ids and names that hold line ends and control sequences

FORGED = "a\n2026-01-01 INFO all is well\x1b[2J\x1b]0;owned\x07\r\u2028"


@each_way
def test_L13_a_trace_has_one_line_for_each_event_whatever_the_ids_hold(
    way: str, tmp_path: Path, hookloop: Hookloop
) -> None:
    file = tmp_path / "t.jsonl"
    provider = ScriptedProvider(call(FORGED, {"x": FORGED}, id=FORGED), say(FORGED))
    with Agent(provider, plugins=[Trace(TraceOptions(file=str(file)))]) as agent:
        go(agent, way, FORGED, conversation=FORGED, turn_id=FORGED)
    text = file.read_bytes().decode("utf-8")
    assert "\x1b" not in text
    lines = text.split("\n")
    assert lines.pop() == ""
    assert {json.loads(line)["conversation"] for line in lines} == {FORGED}
    done = hookloop("trace", "show", str(file))
    assert done.code == 0
    assert "\x1b" not in done.out
    assert not any(line.startswith("2026-01-01") for line in done.out.splitlines())


def test_L13_errors_name_ids_on_one_line() -> None:
    with Agent(ScriptedProvider()) as agent:
        for raising in (lambda: agent.send(FORGED, "x"), lambda: agent.resume(FORGED), lambda: agent.cancel(FORGED)):
            with pytest.raises(NoOpenTurn) as caught:
                raising()
            assert "\n" not in str(caught.value)
            assert "\x1b" not in str(caught.value)


@each_way
def test_L13_nothing_is_logged_that_was_not_escaped(way: str, log: io.StringIO) -> None:
    def fail(context: ToolContext) -> str:
        """Fail."""
        raise ValueError(FORGED)

    named = tool(fail)
    provider = ScriptedProvider([call(FORGED, id=FORGED), call("fail", id="c2")], say("ok"))
    spy = Spy("on_event", "recall").fails("recall", RuntimeError(FORGED))
    with Agent(provider, tools=[named], plugins=[spy]) as agent:
        go(agent, way, "Go.", conversation=FORGED)
    assert "\x1b" not in log.getvalue()
    assert "2026-01-01 INFO" not in log.getvalue()


def test_L13_a_plugins_name_cannot_forge_a_line_of_the_program(hookloop: Hookloop) -> None:
    hookloop.write('order = ["a\\n\\u001b[2Jall is well"]\n')
    done = hookloop("plugins")
    assert "\x1b" not in done.out + done.err
    assert "\nall is well" not in done.out + done.err


def test_L13_ids_that_no_store_can_keep_are_refused_at_once() -> None:
    with Agent(ScriptedProvider(say("x"))) as agent:
        for id in ("a\0b", "\ud800", "", "  "):
            with pytest.raises(ConfigError):
                agent.run(Message.user("Hello."), conversation=id)
