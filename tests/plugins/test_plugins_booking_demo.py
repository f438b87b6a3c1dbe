"""The whole thing: engine, plugins, tools, database, offline rules, in every way to call and from the command line."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from hookloop import Agent, Outcome
from hookloop_booking import BookingPlugin, BookingService
from hookloop_booking.commands import CONVERSATION, choose_model, demo_cli
from hookloop_prompt_log import PromptLog

KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "DEEPSEEK_API_KEY")


@pytest.fixture
def without_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)


def in_order(text: str, *parts: str) -> None:
    """Each part stands in the text, after the one before."""
    at = 0
    for part in parts:
        assert part in text[at:], f"{part!r} is missing after {text[:at][-80:]!r}"
        at = text.index(part, at) + len(part)


def run(agent: Agent, text: str) -> Outcome:
    return agent.run(text, conversation="c")


def stream(agent: Agent, text: str) -> Outcome:
    with agent.stream(text, conversation="c") as events:
        pieces = "".join(event.text for event in events if event.kind == "text_piece")
    assert events.outcome is not None
    assert pieces == events.outcome.text
    return events.outcome


def arun(agent: Agent, text: str) -> Outcome:
    return asyncio.run(agent.arun(text, conversation="c"))


def astream(agent: Agent, text: str) -> Outcome:
    async def collect() -> Outcome:
        async with agent.astream(text, conversation="c") as events:
            async for _ in events:
                pass
        assert events.outcome is not None
        return events.outcome

    return asyncio.run(collect())


@pytest.mark.parametrize("way", [run, stream, arun, astream])
def test_the_log_tells_the_loop(way: Callable[[Agent, str], Outcome], tmp_path: Path) -> None:
    out = io.StringIO()
    service = BookingService(f"sqlite:///{tmp_path / 'b.db'}")
    with Agent("offline:rules", plugins=[BookingPlugin(service=service), PromptLog(stream=out)]) as agent:
        outcome = way(agent, "I want to book a ticket")

    in_order(
        out.getvalue(),
        "── round 1 · sent ──",
        "user      │ I want to book a ticket",
        "── round 1 · reply ──",
        "call      │ book({})",
        "── round 1 · tool book ── runs",
        "── round 1 · tool book ── done",
        "── round 2 · sent ──",
        "result    │ book → ",
        "── round 2 · reply ──",
        "Booked: 1. Beijing-Shanghai G123.",
        "══ turn ends: done (end) ══ 2 rounds · 1 call",
    )
    assert outcome.status == "done"
    assert [ticket.id for ticket in service.booked()] == [1]


def test_a_conversation_remembers_that_the_notice_was_given(tmp_path: Path) -> None:
    service = BookingService(f"sqlite:///{tmp_path / 'b.db'}")
    with Agent("offline:rules", plugins=[BookingPlugin(service=service)]) as agent:
        answers = [run(agent, text).text for text in ("hello", "book G456", "取消", "cancel")]

    assert [("no language model" in answer) for answer in answers] == [True, False, False, False]
    assert "已取消：2." in answers[2]
    assert "nothing to cancel" in answers[3]


def test_the_demo_plays_and_leaves_its_booking(
    tmp_path: Path, without_keys: None, capsys: pytest.CaptureFixture[str]
) -> None:
    db = tmp_path / "demo.db"
    demo_cli(str(db))
    text = capsys.readouterr().out

    in_order(text, "Model: offline:rules", *(f">>> {line}" for line in CONVERSATION), "The database now holds:")
    assert text.count("no language model") == text.count("(I am offline") >= 1
    assert "1  booked  Beijing-Shanghai G123" in text
    assert [ticket.id for ticket in BookingService(f"sqlite:///{db}").booked()] == [1]


def test_the_demo_may_be_played_again(tmp_path: Path, without_keys: None, capsys: pytest.CaptureFixture[str]) -> None:
    db = str(tmp_path / "demo.db")
    for _ in range(3):
        demo_cli(db)

    assert capsys.readouterr().out.count("The database now holds:") == 3


def test_the_first_key_that_is_set_chooses_the_model() -> None:
    assert choose_model({}) == "offline:rules"
    assert choose_model({"OPENAI_API_KEY": " "}) == "offline:rules"
    assert choose_model({"DEEPSEEK_API_KEY": "k"}) == "deepseek:deepseek-chat"
    assert choose_model({"ANTHROPIC_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}).startswith("anthropic:")
    assert choose_model(dict.fromkeys(KEYS, "k")) == "openai:gpt-4.1-mini"
    assert choose_model({"OPENAI_API_KEY": "k", "HOOKLOOP_MODEL": "offline:rules"}) == "offline:rules"


def test_a_folder_that_is_missing_is_said_before_anything_runs(tmp_path: Path, without_keys: None) -> None:
    with pytest.raises(typer.BadParameter, match="no folder"):
        demo_cli(str(tmp_path / "nowhere" / "b.db"))


def test_the_command_ends_well(tmp_path: Path, without_keys: None) -> None:
    command = [str(Path(sys.executable).with_name("hookloop")), "demo-cli"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120, encoding="utf-8")

    assert done.returncode == 0, done.stderr
    assert "1  booked  Beijing-Shanghai G123" in done.stdout
    assert (tmp_path / "booking.db").exists()


def test_everything_can_be_switched_on_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hookloop.toml").write_text(
        """
model = "offline:rules"
order = ["booking", "feedback", "prompt-log"]

[plugins.booking]
enabled = true
options = { url = "sqlite:///own.db" }

[plugins.feedback]
enabled = true
options = { tool = "book", text = "Wish a good journey." }

[plugins.fallback]
enabled = true
options = { providers = ["offline:rules"] }

[plugins.prompt-log]
enabled = true
options = { file = "prompts.log" }
""",
        encoding="utf-8",
    )
    with Agent.from_config("hookloop.toml") as agent:
        outcome = run(agent, "我想订一张票")

    assert "已为您预订" in outcome.text
    assert [ticket.id for ticket in BookingService("sqlite:///own.db").booked()] == [1]
    log = (tmp_path / "prompts.log").read_text(encoding="utf-8")
    in_order(log, "── round 1 · tool book ── done", "·· plugin feedback adds in next_instructions", "── round 2 · sent")
    assert "user (feedback, next_instructions) │ Wish a good journey." in log
