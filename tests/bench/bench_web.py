"""How smooth the page is: the browser's long tasks and the server's time per event in a turn of 200 rounds and 5,000 pieces.

And how 50 streamed chats fare on one process. Run `python tests/bench/bench_web.py`; needs Chromium for the first part.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from playwright.sync_api import sync_playwright
from web_loads import crowd, long_turn
from web_server import CHROMIUM, FLAGS, PUPPET, Served, environ_of


@contextmanager
def served() -> Iterator[Served]:
    """A page of the puppet in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "hookloop.toml").write_text(PUPPET, "utf-8")
        arguments = ["web", "--port", "0", "--no-browser", "--rate", "1000"]
        site = Served(arguments, folder, environ_of(folder, {}))
        try:
            yield site
        finally:
            site.stop()


def smooth() -> None:
    """One long turn in a browser."""
    with sync_playwright() as playwright, served() as site:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        found = long_turn(browser.new_page(viewport={"width": 1440, "height": 900}), site, rounds=200, pieces=25)
        browser.close()
    tasks = sorted(found.long_tasks)
    print(f"page, 200 rounds and 5,000 pieces: {found.seconds:.1f} s, {found.events} events")
    print(f"  long tasks: {len(tasks)}, the longest {max(tasks, default=0):.0f} ms, together {sum(tasks):.0f} ms")
    print(f"  server: {found.server_per_event:.2f} ms of CPU per event, engine and store included")


def many() -> None:
    """Fifty readers."""
    with served() as site:
        found = crowd(site, chats=50, turns=4)
    print(f"50 streamed chats of 4 turns at once: {found.done} of 200 ended well, {found.pieces} pieces,")
    print(f"  the slowest client {found.slowest:.1f} s, the server {found.memory:.0f} MB")


if __name__ == "__main__":
    if CHROMIUM.exists():
        smooth()
    else:
        print("page: skipped, there is no Chromium")
    many()
