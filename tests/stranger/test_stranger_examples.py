"""The examples of strangers pass the conformance of their kind, are small, and import nothing but the contract of ours."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
from strangers import ask_parrot, load, parrot_server, source

from hookloop import Agent, tool
from hookloop.testing import (
    ScriptedProvider,
    call,
    check_plugin,
    check_provider,
    memory_checks,
    provider_checks,
    say,
)

UNSAID = {"can_be_aborted": "it has no abort of its own"}
"""What the provider does not have, and so nothing is said about; all other checks it must pass."""


@pytest.mark.parametrize("check", memory_checks.CHECKS, ids=str)
def test_the_memory_passes(check: memory_checks.Check, tmp_path: Path) -> None:
    def drawer(_closed: Any = None) -> Any:
        return load("drawer").Drawer(f"drawer:{tmp_path / 'chats.db'}")

    memory_checks.verify(check, drawer, reopen=drawer)


@pytest.mark.parametrize("check", provider_checks.CHECKS, ids=str)
def test_the_provider_passes(check: provider_checks.Check) -> None:
    if check.name in UNSAID:
        with pytest.raises(SkipTest, match=UNSAID[check.name]):
            provider_checks.verify(check, ask_parrot, serve=parrot_server)
    else:
        provider_checks.verify(check, ask_parrot, serve=parrot_server)


def test_what_the_report_of_the_provider_skips_is_what_it_does_not_have() -> None:
    report = check_provider(ask_parrot, serve=parrot_server)
    assert report.ok, str(report)
    assert {result.check: result.reason for result in report.results if result.status == "skip"} == UNSAID


def test_the_plugin_passes() -> None:
    report = check_plugin(load("tally").Tally)
    assert report.ok, str(report)
    assert not [result for result in report.results if result.status == "skip"]


@pytest.mark.parametrize(("name", "most"), [("drawer", 120), ("parrot", 150), ("tally", 50)])
def test_an_example_is_short_and_needs_the_contract_alone(name: str, most: int) -> None:
    text = source(name).read_text("utf-8")
    assert len(text.splitlines()) < most
    imported = {
        alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {node.module or "" for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert "hookloop_hookspecs" in imported
    assert not [module for module in imported if module.partition(".")[0] == "hookloop"]


def test_all_three_work_together(tmp_path: Path) -> None:
    @tool
    def edit(path: str) -> str:
        """Edit a file."""
        return f"edited {path}"

    with parrot_server() as server:
        server.play([say("I shall."), call("edit", {"path": "a"}, id="c1")], say("It is done."))
        parts: dict[str, Any] = {
            "tools": [edit],
            "plugins": [load("tally").Tally()],
            "memory": [load("drawer").Drawer(f"drawer:{tmp_path / 'x.db'}")],
        }
        with Agent(ask_parrot(server.url, "stream"), **parts) as agent:
            assert agent.run("Edit a.", conversation="c").text == "It is done."
        talk = server.requests[1].body["talk"]
        assert [(one["who"], one["text"]) for one in talk[1:]] == [
            ("assistant", "I shall."),
            ("tool", "edited a"),
            ("user", "tally: 1 calls"),
        ]
    again = ScriptedProvider(call("edit", {"path": "b"}, id="c2"), say("done"))
    with Agent(again, **parts) as agent:
        agent.run("And b.", conversation="c")
    assert again.requests[1].messages[-1].text == "tally: 2 calls"
