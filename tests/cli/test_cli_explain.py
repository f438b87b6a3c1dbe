"""`hookloop explain`: the first request of a turn, without a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.conftest import Distribute, Hookloop

PARTS = '''
from hookloop_hookspecs import Message, Narrow, Stop, hookimpl, tool
from hookloop.memory import InProcessMemory

seen = []

@tool
def look(what: str) -> str:
    """Look at something."""
    return what

class Guard:
    @hookimpl
    def before_turn(self, query):
        if "secret" in query.text:
            return Stop("guarded", "not that")
        return [Message.system("Be brief."), "Mind the rules."]

    @hookimpl
    def register_tools(self):
        return look

    @hookimpl
    def after_tool(self): ...

class Helper:
    @hookimpl
    def recall(self, query):
        return f"They once said {query.text}"

    @hookimpl
    def before_round(self):
        return ["Round it.", Narrow(tools=("look",))]

    @hookimpl
    def after_tool(self): ...

    @hookimpl
    def on_event(self, event):
        seen.append(event)

KEPT = InProcessMemory()

def kept(url):
    return KEPT
'''
TOML = """
order = ["hlhelper", "hlguard"]
model = "openai:gpt-4.1"
memory = "hlkept:"
instructions = "You help."
[plugins.hlguard]
[plugins.hlhelper]
"""


@pytest.fixture(autouse=True)
def installed(distribute: Distribute, hookloop: Hookloop) -> None:
    plugins = {"hlguard": "hl_exp:Guard", "hlhelper": "hl_exp:Helper"}
    groups = {"hookloop.plugins": plugins, "hookloop.memory": {"hlkept": "hl_exp:kept"}}
    distribute("hl-exp", groups, {"hl_exp": PARTS})
    hookloop.write(TOML)


def test_it_shows_what_would_be_sent_from_whom_and_who_is_asked(hookloop: Hookloop) -> None:
    done = hookloop("explain", "hello")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines() == [
        "model: openai:gpt-4.1",
        "memory: hlkept: (not asked here)",
        "tools: look",
        "of these allowed: look",
        "system text:",
        "  You help.",
        "",
        "  Be brief.",
        "messages: none from earlier turns, then",
        "  user                         hello",
        "  user  hlhelper.recall        They once said hello",
        "  user  hlguard.before_turn    Mind the rules.",
        "  user  hlhelper.before_round  Round it.",
        "hooks, and who is asked, in this order",
        "  register_tools  hlguard",
        "  recall          hlhelper",
        "  before_turn     hlguard",
        "  before_round    hlhelper",
        "  after_tool      hlguard, hlhelper",
    ]


def test_nobody_observes_and_nothing_is_stored(hookloop: Hookloop) -> None:
    import hl_exp  # type: ignore[import-not-found]  # made on the spot

    hookloop("explain", "hello")
    assert hl_exp.seen == []
    assert list(hl_exp.KEPT.conversations()) == []


def test_it_goes_on_with_a_conversation(hookloop: Hookloop) -> None:
    import hl_exp

    from hookloop import Agent
    from hookloop.testing import ScriptedProvider, say

    with Agent(ScriptedProvider(say("hi")), memory=hl_exp.KEPT) as agent:
        agent.run("hello", conversation="c1")
    stored = hl_exp.KEPT.conversations()[0].entries
    data = json.loads(hookloop("explain", "again", "-C", "c1", "--json").out)
    assert (data["before"], data["new"][0]["text"]) == (2, "again")
    assert hl_exp.KEPT.conversations()[0].entries == stored


def test_what_is_wrong_is_told_with_its_place(hookloop: Hookloop) -> None:
    hookloop.write(TOML + "options = { nope = 1 }\n")
    done = hookloop("explain")
    assert done.code == 2
    assert done.err.startswith("error: hookloop.toml:8: plugin 'hlhelper'")


def test_a_turn_that_would_end_before_a_model_is_asked_says_so(hookloop: Hookloop) -> None:
    done = hookloop("explain", "a secret")
    assert "ends before a model is asked: stopped (guarded) not that" in done.out


@pytest.mark.parametrize("width", [80, 140])
def test_no_line_is_wider_than_the_terminal(hookloop: Hookloop, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    printed = hookloop("explain", "word " * 100 + "长" * 100).out.splitlines()
    assert max(len(line) + line.count("长") for line in printed) <= width
