"""The program at streams that cannot hold all, are closed, or are full; at files that are none; at stores that are down."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from hookloop.cli.terminal import print_json
from hookloop.trace import read_trace
from hookloop_hookspecs import CorruptData

if TYPE_CHECKING:
    from tests.conftest import Distribute, Hookloop

PROVIDER = """
from hookloop.testing import ScriptedProvider, say
from hookloop_hookspecs import PluginError, ProviderError

class Says(ScriptedProvider):
    def __init__(self, model):
        super().__init__(*[say("fine … 🚆") for _ in range(3)])

class Fails(ScriptedProvider):
    def __init__(self, model):
        super().__init__(*[ProviderError("no;\\n  api_key=hunter2 is bad", provider="p") for _ in range(3)])
"""
BROKEN = "raise OSError('cannot reach postgresql://u:hunter2@h')"


@pytest.fixture
def site(distribute: Distribute, tmp_path: Path) -> Path:
    """Two providers and a broken plugin; an empty folder beside them, with a configuration, to work in."""
    points = {
        "hookloop.providers": {"hls": "hl_streams:Says", "hlf": "hl_streams:Fails"},
        "hookloop.plugins": {"hlbroken": "hl_streams_bad:Plugin"},
    }
    made = distribute("hl-streams", points, {"hl_streams": PROVIDER, "hl_streams_bad": BROKEN})
    folder = tmp_path / "streams"
    folder.mkdir()
    (folder / "hookloop.toml").write_text('model = "hls:m"\n', "utf-8")
    return made


def shell(site: Path, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a shell's line in the folder, in which `$H` is the program."""
    given = {"PYTHONPATH": str(site), "H": f"{sys.executable} -m hookloop.cli", "LC_ALL": "C.UTF-8", **environment}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("HOOKLOOP_", "COV_"))}
    return subprocess.run(
        ["bash", "-c", command],
        cwd=site.parent / "streams",
        env={**kept, **given},
        capture_output=True,
        text=True,
        timeout=120,
        encoding="latin-1",
    )


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_what_a_stream_cannot_hold_stops_nothing(site: Path, encoding: str) -> None:
    done = shell(site, "$H run hi", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stdout, done.stderr) == (0, "fine ? ?\n", "")
    data = shell(site, "$H run --json hi", PYTHONIOENCODING=encoding)
    assert (data.returncode, json.loads(data.stdout)["text"]) == (0, "fine … 🚆")
    for command in ("$H plugins", "$H config schema", "echo hi | $H chat", "$H --help"):
        told = shell(site, command, PYTHONIOENCODING=encoding)
        assert (told.returncode, "Traceback" in told.stderr) == (0, False), told.stderr


def test_a_lone_surrogate_is_escaped_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"text": "\ud800 …"})
    assert json.loads(capsys.readouterr().out) == {"text": "\ud800 …"}


@pytest.mark.parametrize(
    ("command", "code", "out", "err"),
    [
        ("$H run <&-", 2, "", "error: nothing to say: give a prompt, or pipe one in\n"),
        ("$H chat -q <&- | tail -n 1", 0, "/quit ends, /new starts another, Ctrl-C cancels the turn\n", ""),
        ("$H run hi >/dev/full", 1, "", "error: No space left on device\n"),
        ("$H run --json hi >/dev/full", 1, "", "error: No space left on device\n"),
        ("$H plugins >/dev/full", 1, "", "error: No space left on device\n"),
        ("$H config schema >/dev/full", 1, "", "error: No space left on device\n"),
        ("$H --version >/dev/full", 1, "", "error: No space left on device\n"),
        ("$H run hi >&-", 0, "", ""),
        ("$H run --json hi >&- 2>&-", 0, "", ""),
        ("set -o pipefail; $H config schema | true", 1, "", ""),
    ],
)
def test_streams_that_are_closed_or_full_are_told_in_a_line(
    site: Path, command: str, code: int, out: str, err: str
) -> None:
    done = shell(site, command)
    assert (done.returncode, done.stdout, done.stderr) == (code, out, err)


def test_bytes_that_are_no_text_stop_nothing(site: Path) -> None:
    done = shell(site, r"printf 'a\xff' | $H run", PYTHONIOENCODING="utf-8:strict")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_trace_that_is_no_text_is_told_with_its_line(hookloop: Hookloop, tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(b'{"a": "\xff"}\n{}\n')
    done = hookloop("trace", "show", str(file))
    assert (done.code, done.out) == (1, "")
    assert done.err == f"error: {file}:1: not a line of a trace: ValueError: it is not UTF-8\n"


def test_a_trace_that_was_cut_off_within_a_character_is_read_up_to_there() -> None:
    line = '{"v": 1, "at": 1.0, "conversation": "c", "turn": "t", "kind": "warned", "text": "…"}\n'
    cut = (line.encode() + line.encode()[: line.encode().index(b"\x80")]).decode("utf-8", "surrogateescape")
    (read,) = read_trace(cut.splitlines(keepends=True))
    assert read.data == {"text": "…"}
    with pytest.raises(CorruptData, match="it is not UTF-8"):
        list(read_trace([cut.splitlines()[1] + "\n", line]))


@pytest.mark.parametrize("command", ["enable", "disable"])
def test_a_folder_in_place_of_the_file_is_told(hookloop: Hookloop, command: str) -> None:
    hookloop.file.mkdir()
    done = hookloop("plugins", command, "trace")
    assert (done.code, done.err) == (2, f"error: {hookloop.file}: cannot be written: Is a directory\n")


def test_switching_keeps_byte_order_mark_and_line_ends(hookloop: Hookloop) -> None:
    hookloop.file.write_bytes(b'\xef\xbb\xbfmodel = "a:b"\r\n# kept\r\n[plugins.trace]\r\nenabled = true\r\n')
    assert hookloop("plugins", "disable", "trace").code == 0
    assert hookloop.file.read_bytes() == (
        b'\xef\xbb\xbfmodel = "a:b"\r\n# kept\r\n[plugins.trace]\r\nenabled = false\r\n'
    )


DOWN = ["redis://:hunter2@127.0.0.1:1/0", "postgresql://u:hunter2@127.0.0.1:1/db?connect_timeout=5"]


@pytest.mark.parametrize("url", DOWN)
@pytest.mark.parametrize(
    "command", ["run hi", "conversations list", "conversations show x", "conversations delete -y x", "explain -C x hi"]
)
def test_a_store_that_is_down_is_one_error_line(site: Path, hookloop: Hookloop, url: str, command: str) -> None:
    hookloop.write(f'model = "hls:m"\nmemory = "{url}"\n')
    done = hookloop(*command.split())
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: plugin '")
    assert done.err.count("\n") == 1
    assert "refused" in done.err
    assert "hunter2" not in done.err


@pytest.mark.parametrize("url", DOWN)
def test_so_it_is_in_a_chat_and_as_json(site: Path, hookloop: Hookloop, url: str) -> None:
    hookloop.write(f'model = "hls:m"\nmemory = "{url}"\n')
    done = hookloop("chat", stdin="hi\n")
    assert done.code == 1
    assert "refused" in done.out
    assert "hunter2" not in done.out + done.err
    data = json.loads(hookloop("run", "--json", "hi").out)
    assert data["status"] == "failed"
    assert "refused" in data["error"]


def test_a_chat_ends_as_its_last_turn_did(site: Path, hookloop: Hookloop) -> None:
    hookloop.write('model = "hlf:m"\n')
    done = hookloop("chat", stdin="hi\n")
    assert done.code == 1
    assert "ProviderError: no; api_key=[redacted] is bad\n" in done.out


def test_errors_in_json_repeat_no_secret(site: Path, hookloop: Hookloop) -> None:
    hookloop.write('model = "hlf:m"\n')
    done = hookloop("run", "--json", "hi")
    assert (done.code, json.loads(done.out)["error"]) == (1, "no;\n  api_key=[redacted] is bad")


def test_what_an_agent_goes_without_is_told(site: Path, hookloop: Hookloop) -> None:
    hookloop.write('model = "hls:m"\nstrict = false\n[plugins.hlbroken]\n')
    words = "plugin 'hlbroken' (hl-streams 1.0): OSError: cannot reach postgresql://u:[redacted]@h"
    warning = f"warning: hookloop.toml:3: {words}\n"
    done = hookloop("run", "-q", "hi")
    assert (done.code, done.out, done.err) == (0, "fine … 🚆\n", warning)
    assert hookloop("run", "--json", "hi").err == warning
    assert hookloop("chat", stdin="hi\n").err == warning
    assert hookloop("explain", "hi").err == warning
    told = " ".join(hookloop("plugins", "why", "hlbroken").out.split())
    assert told.endswith("OSError: cannot reach postgresql://u:[redacted]@h")
    hookloop.write('model = "hls:m"\n[plugins.hlbroken]\n')
    refused = hookloop("run", "hi")
    assert (refused.code, refused.out, refused.err) == (2, "", f"error: hookloop.toml:2: {words}\n")


def test_with_auto_the_program_runs_with_what_can_be_loaded(site: Path, hookloop: Hookloop) -> None:
    hookloop.write('model = "hls:m"\nauto = true\n[plugins.booking]\nenabled = false\n')
    for command in (("run", "-q", "hi"), ("explain", "hi")):
        done = hookloop(*command)
        assert done.code == 0, done.err
        assert "warning: hookloop.toml:2: plugin 'hlbroken' (hl-streams 1.0): OSError: cannot reach" in done.err
        assert "warning: hookloop.toml:2: plugin 'fallback'" in done.err
    assert "prompt-log" in hookloop("explain", "hi").out


def test_what_is_configured_is_shown_without_secrets(hookloop: Hookloop) -> None:
    hookloop.write(
        'memory = "postgresql://h/db?password=hunter2"\n[settings]\ntemperature = 0.5\n'
        '[provider]\nheaders = { Authorization = "Bearer hunter2" }\nbase_url = "https://u:hunter2@h/v1"\n'
    )
    for arguments in (("config", "show"), ("config", "show", "--json"), ("plugins",), ("explain", "hi")):
        done = hookloop(*arguments)
        assert "hunter2" not in done.out + done.err
    shown = hookloop("config", "show").out
    assert "settings.temperature = 0.5  # hookloop.toml:3" in shown
    assert 'provider.base_url = "https://u:***@h/v1"  # hookloop.toml:6' in shown
