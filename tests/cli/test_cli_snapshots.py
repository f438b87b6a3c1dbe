"""What `plugins`, `explain`, `chat` and `trace show` print, letter by letter, at two widths, with colours and without."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.cells import cell_len

from hookloop import Agent, Limits, tool
from hookloop.testing import ScriptedProvider, call, say
from hookloop.trace import Trace, TraceOptions
from hookloop_hookspecs import Message, Stop, hookimpl

if TYPE_CHECKING:
    from tests.cli.conftest import Terminal

LONG = "a-plugin-whose-name-is-so-long-that-it-fills-nearly-a-whole-line"
KIT = '''
from hookloop.memory import InProcessMemory
from hookloop.testing import ScriptedProvider, call, say
from hookloop_hookspecs import Deny, Message, Narrow, ProviderError, hookimpl, tool

WIDE = "预订已确认，座位在三号车厢。👩‍🚀🎉 " * 4 + "Ça va très bien, naïve façade. " * 3

SCRIPTS = {
    "desk": lambda: [
        [say("Let me look that up."), call("find_trains", {"to": "Shanghai", "day": "tomorrow"})],
        [call("delete_everything", {})],
        say("There are two trains to Shanghai tomorrow:\\n\\n- G1 at 09:00, 4 h 28 min, 553 yuan in second class\\n"
            "- G5 at 10:30, 4 h 36 min, 553 yuan in second class, and this one still has seats by the window"),
        [call("buy_ticket", {"train": "G5"})],
        say("Your seat on G5 is booked."),
        ProviderError("the server is overloaded, api_key=sk-abcdef123456", provider="script", status=529),
    ],
    "wide": lambda: [[say(WIDE), call("find_trains", {"to": "上海" * 30, "day": "明天"})], say(WIDE)],
}

class Script(ScriptedProvider):
    name = "script"

    def __init__(self, model):
        super().__init__(SCRIPTS[model](), model=model)

@tool
def find_trains(to: str, day: str) -> str:
    """Find trains."""
    return f"G1 09:00 and G5 10:30 to {to}; both stop at Jinan, Nanjing and Suzhou, and both have a dining car"

@tool(needs_approval=True)
def buy_ticket(train: str) -> str:
    """Buy a ticket."""
    return f"seat 12F on {train}"

@tool
def delete_everything() -> str:
    """Delete everything."""
    return "gone"

class Desk:
    @hookimpl
    def register_tools(self):
        return [find_trains, buy_ticket, delete_everything]

    @hookimpl
    def before_turn(self):
        return [
            Message.system("You sell railway tickets.\\n\\nNever invent a train: what you say about trains must come from "
                           "a tool, and a ticket is bought only when a tool said so."),
            "Prices are in yuan.",
        ]

class Guard:
    @hookimpl
    def before_tool(self, call):
        return Deny("this is forbidden here") if call.name == "delete_everything" else None

    @hookimpl
    def before_round(self):
        return Narrow(tools=("find_trains", "buy_ticket"))

    @hookimpl
    def next_instructions(self, results):
        return "Say how long each train takes." if results[0].name == "find_trains" else None

    @hookimpl
    def after_tool(self): ...

    @hookimpl
    def review_answer(self): ...

class Recaller:
    @hookimpl
    def recall(self, query):
        return "The user once said: I like to sit by the window, and I do not want to change trains on the way."

class Wide:
    @hookimpl
    def before_turn(self, query):
        return [Message.system("请用中文回答。" * 9), "记住：" + "座位要靠窗，" * 12 + "👩‍🚀 ok?"]

class Notes(InProcessMemory):
    pass
'''
POINTS = {
    "hookloop.plugins": {"desk": "acme_kit:Desk", "guard": "acme_kit:Guard", "recaller": "acme_kit:Recaller"},
    "hookloop.memory": {"notes": "acme_kit:Notes", "vault": "acme_kit.Vault()"},
    "hookloop.providers": {"script": "acme_kit:Script", "other": "acme_kit:Script", "third": "acme_kit:Script"},
}
MORE = {
    "hookloop.plugins": {
        **{"broken": "acme_broken:Plugin", "quiet": "acme_kit:Guard", "提醒": "acme_kit:Recaller"},
        **{LONG: "acme_kit:Wide"},
    },
    "hookloop.memory": {"gone": "acme_gone:Memory"},
}
TOML = """\
model = "script:desk"
memory = ["notes://desk/conversations"]
order = ["guard", "desk"]

[plugins.desk]
[plugins.recaller]

[plugins.guard]
hooks.review_answer = false

[plugins.quiet]
enabled = false
"""
BROKEN_TOML = f"strict = false\n{TOML}\n[plugins.broken]\n"
WIDE_TOML = f'model = "script:wide"\n[plugins.desk]\n[plugins."提醒"]\n[plugins.{LONG}]\n'
FAR = "/".join(["a-folder-whose-name-is-long"] * 4)
WIDTHS = (80, 140)


@dataclass(frozen=True)
class Case:
    """A command, what is typed to it, the names that its output holds, and whether a pipe gets the same."""

    arguments: Sequence[str]
    names: Sequence[str]
    typed: Sequence[str] = ()
    toml: str = TOML
    file: str = "hookloop.toml"
    same_in_pipe: bool = True


PLUGINS = ("desk", "guard", "recaller", "broken", "quiet", "trace", "提醒", LONG)
PARTS = ("notes", "vault", "memory", "script", "other", "third")
TALK = ("Trains to Shanghai?", "Buy the second.", "y", "And now?", "/quit")
CASES = {
    "plugins": Case(
        ["plugins"],
        [*PLUGINS, *PARTS, "acme-kit", "acme-more", "register_tools", "next_instructions", "review_answer"],
        toml=BROKEN_TOML,
    ),
    "explain": Case(
        ["explain", "Which trains go to Shanghai tomorrow, and is there one with a seat by the window?"],
        ["desk.before_turn", "recaller.recall", "find_trains", "buy_ticket", "delete_everything", "next_instructions"],
    ),
    "chat": Case(
        ["chat", "-C", "c1"],
        ["find_trains", "buy_ticket", "guard.next_instructions", "desk.before_turn", "recaller.recall"],
        TALK,
        same_in_pipe=False,
    ),
    "trace": Case(
        ["trace", "show", "trace.jsonl"],
        ["find_trains", "book", "guard.before_tool", "nag.next_instructions", "scripted:scripted", "memory"],
    ),
}
WIDE = {
    "plugins-far": Case(
        ["--config", f"{FAR}/hookloop.toml", "plugins"],
        [*PLUGINS, *PARTS],
        toml=BROKEN_TOML,
        file=f"{FAR}/hookloop.toml",
    ),
    "explain-wide": Case(
        ["explain", "明天去上海的火车，" * 12 + "👩‍🚀" * 3], ["提醒.recall", f"{LONG}.before_turn"], toml=WIDE_TOML
    ),
    "chat-wide": Case(["chat", "-C", "对话"], ["find_trains"], ("Go.", "/quit"), WIDE_TOML, same_in_pipe=False),
    "trace-wide": Case(["trace", "show", "wide.jsonl"], ["find_trains", LONG]),
    "trace-200-rounds": Case(["trace", "show", "long.jsonl"], ["find_trains", "nag.next_instructions"]),
}


@tool
def find_trains(to: str) -> str:
    """Find trains."""
    if to == "nowhere":
        raise LookupError("there is no such station, password=hunter2")
    return f"G1 09:00 and G5 10:30 to {to}\nboth stop at Jinan, Nanjing and Suzhou"


@tool(needs_approval=True)
def book(train: str) -> str:
    """Book a seat."""
    return f"seat 12F on {train}"


class Nag:
    name = "nag"

    @hookimpl
    def next_instructions(self) -> str:
        return "Say how long each train takes,\nand what it costs."


class Guard:
    name = "guard"

    @hookimpl
    def before_tool(self, call: Any) -> Stop | None:
        return Stop("too far", "That is too far.") if "moon" in call.raw else None


class Wide:
    name = LONG

    @hookimpl
    def before_turn(self) -> Message:
        return Message.user("记住：" + "座位要靠窗，" * 20)


def recorded(file: Path, plugins: Sequence[Any], turns: Sequence[Sequence[Any]], **more: Any) -> None:
    """Turns as the plugin `trace` records them, each with a script of its own; every duration is 1.25 seconds."""
    script = [step for turn in turns for step in turn]
    made = [Trace(TraceOptions(file=str(file))), *plugins]
    with Agent(ScriptedProvider(script), tools=[find_trains, book], plugins=made, **more) as agent:
        for number, _ in enumerate(turns, 1):
            agent.run("Which trains?", conversation="c1", turn_id=f"turn-{number}")
    text = re.sub(r'"seconds":\s*[0-9.e-]+', '"seconds": 1.25', file.read_text("utf-8"))
    file.write_text(text, "utf-8")


def record(folder: Path) -> None:
    """The traces that are shown."""
    find = [call("find_trains", {"to": place}, id=place) for place in ("Shanghai", "nowhere", "the moon")]
    turns: list[list[Any]] = [
        [[say("Let me look."), find[0]], find[1], say("G1 takes 4 h 28 min and costs 553 yuan; G5 takes 4 h 36 min.")],
        [find[2]],
        [call("book", {"train": "G5"}, id="b1")],
    ]
    recorded(folder / "trace.jsonl", [Nag(), Guard()], turns)
    wide = "两列火车都有座位。👩‍🚀🎉 " * 9
    recorded(folder / "wide.jsonl", [Wide()], [[[say(wide), call("find_trains", {"to": "上海" * 40})], say(wide)]])
    long = [[*[call("find_trains", {"to": f"place {n}"}, id=f"c{n}") for n in range(1, 200)], say("That is all.")]]
    recorded(folder / "long.jsonl", [Nag()], long, limits=Limits(rounds=None, tool_calls=None, per_tool=None))


@pytest.fixture
def site(terminal: Terminal) -> Terminal:
    """The program with strangers' plugins, memories and providers, some of them broken, and with traces."""
    terminal.install("acme-kit", POINTS, {"acme_kit": KIT})
    terminal.install("acme-more", MORE, {"acme_broken": "raise ValueError('no licence was found in /etc/acme')"})
    record(terminal.folder)
    return terminal


def plain(text: str) -> str:
    """Text without colours."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def assert_fits(text: str, width: int, names: Sequence[str]) -> None:
    """No line is wider than the terminal, nothing but colours is sent to it, and each name stands whole on a line."""
    lines = plain(text).split("\n")
    assert not [line for line in lines if cell_len(line) > width]
    assert not [line for line in lines if line != line.rstrip() and not line.endswith("› ")]
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", "\n".join(lines))
    joined = "".join(line.strip() for line in lines)
    for name in names:
        assert any(re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", line) for line in lines), name
        assert joined.count(name) == sum(line.count(name) for line in lines), f"{name} is cut"


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", CASES)
def test_the_output_is_the_stored_one(
    site: Terminal, snapshot: Callable[[str, str], None], name: str, width: int
) -> None:
    case = CASES[name]
    site.write(case.file, case.toml)
    coloured, bare = (site(case.arguments, width, colour, case.typed) for colour in (True, False))
    snapshot(f"{name}-{width}-colour", coloured)
    snapshot(f"{name}-{width}-none", bare)
    assert_fits(coloured, width, case.names)
    assert "\x1b[" in coloured
    assert "\x1b" not in bare
    assert plain(coloured) == bare, "colours change nothing but colours"
    piped = site.piped(case.arguments, width)
    assert piped == bare if case.same_in_pipe else "\x1b" not in piped


@pytest.mark.parametrize("name", WIDE)
def test_wide_content_fits(site: Terminal, snapshot: Callable[[str, str], None], name: str) -> None:
    case = WIDE[name]
    site.write(case.file, case.toml)
    width = 100 if name == "trace-200-rounds" else 80
    shown = site(case.arguments, width, False, case.typed)
    snapshot(f"{name}-{width}-none", shown)
    assert_fits(shown, width, case.names)


def test_a_long_trace_shows_every_round(site: Terminal) -> None:
    shown = site(["trace", "show", "long.jsonl"], 100, False)
    assert re.findall(r"^├ round (\d+) ", shown, re.MULTILINE) == [str(number) for number in range(1, 201)]


def test_every_stored_output_is_compared() -> None:
    stored = {file.stem for file in (Path(__file__).parent / "snapshots").iterdir()}
    wanted = {f"{name}-{width}-{mode}" for name in CASES for width in WIDTHS for mode in ("colour", "none")}
    assert stored == wanted | {f"{name}-{100 if '200' in name else 80}-none" for name in WIDE}


def test_a_difference_is_shown(snapshot: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("UPDATE_SNAPSHOTS", raising=False)
    with pytest.raises(pytest.fail.Exception, match=r"(?s)UPDATE_SNAPSHOTS=1.*\+something else"):
        snapshot("plugins-80-none", "something else\n")


def test_json_holds_what_the_list_holds(site: Terminal) -> None:
    site.write("hookloop.toml", TOML)
    data = json.loads(site.piped(["plugins", "--json"], 80))
    assert {one["name"] for one in data["plugins"]} == set(PLUGINS)
    assert {one["name"]: one["state"] for one in data["memories"]} == {
        **{"notes": "used", "memory": "installed", "gone": "installed", "vault": "failed"}
    }
    assert [(one["name"], one["state"]) for one in data["providers"]] == [
        ("script", "used"),
        ("other", "installed"),
        ("third", "installed"),
    ]
