"""Pages served by processes of their own."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-sync", "--no-first-run"]
SUPPORT = Path(__file__).parent
PUPPET = """
model = "puppet:show"
memory = ["sqlite:///chat.db"]
[limits]
rounds = 1000
tool_calls = 1000
per_tool = 1000
repeated = "none"
[plugins.puppet-tools]
enabled = true
[plugins.feedback]
enabled = true
options = { tool = "tick", text = "Mind the clock." }
"""
POINTS = """
[hookloop.providers]
puppet = web_puppet:Puppet
[hookloop.plugins]
puppet-tools = web_puppet:PuppetTools
"""


class Served:
    """A running `hookloop …` command that serves a page. `log` is what it printed."""

    def __init__(self, arguments: Sequence[str], folder: Path, environ: Mapping[str, str]) -> None:
        self.arguments, self.folder, self.environ = arguments, folder, environ
        self.log: list[str] = []
        self._start()

    def _start(self) -> None:
        self._lines: queue.Queue[str] = queue.Queue()
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error::ResourceWarning", "-m", "hookloop.cli", *self.arguments],
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        try:
            self.url = next(word for word in self.line("http://").split() if word.startswith("http://"))
        except BaseException:
            self.kill()
            raise

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.log.append(line)
            self._lines.put(line)
        self._lines.put("")

    def line(self, part: str) -> str:
        """The next line that holds `part`."""
        while part not in (line := self._lines.get(timeout=60)):
            assert line, "".join(self.log)
        return line

    def forget(self) -> None:
        """Leave behind what was printed until now."""
        self.log.clear()
        while not self._lines.empty():
            self._lines.get()

    def kill(self) -> None:
        """End it without warning."""
        self._end(signal.SIGKILL)

    def again(self) -> None:
        """Start it once more, at the same port."""
        port = self.url.split(":")[2].strip("/").partition("/")[0]
        self.arguments = [
            port if at and self.arguments[at - 1] == "--port" else one for at, one in enumerate(self.arguments)
        ]
        self._start()

    def stop(self) -> None:
        """End it as a service manager would; it must end in good order."""
        if self.process.poll() is None:
            self._end(signal.SIGTERM)
            assert self.process.returncode in (0, -signal.SIGTERM), "".join(self.log)
        assert "Traceback" not in "".join(self.log), "".join(self.log)

    def _end(self, how: signal.Signals) -> None:
        self.process.send_signal(how)
        self.process.wait(timeout=30)
        self._reader.join(timeout=30)
        assert self.process.stdout is not None
        self.process.stdout.close()


class Serve(Protocol):
    """Starts a page in a folder of its own. `toml`: its configuration."""

    def __call__(self, *arguments: str, toml: str = "", **environ: str) -> Served: ...


def environ_of(folder: Path, more: Mapping[str, str]) -> dict[str, str]:
    keep = {
        name: value for name, value in os.environ.items() if not name.endswith("_API_KEY") and "HOOKLOOP" not in name
    }
    site = folder / "site"
    info = site / "web_puppet-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: web-puppet\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(POINTS, "utf-8")
    return {**keep, "PYTHONPATH": os.pathsep.join([str(site), str(SUPPORT)]), "PYTHONUNBUFFERED": "1", **more}
