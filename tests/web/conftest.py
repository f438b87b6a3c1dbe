"""Servers for the tests of the pages, and one browser for all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright
from web_server import CHROMIUM, FLAGS, Serve, Served, environ_of

expect.set_options(timeout=30_000)  # milliseconds; only a test that fails waits so long


def _serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    started: list[Served] = []

    def serve(*arguments: str, toml: str = "", **environ: str) -> Served:
        folder = tmp_path_factory.mktemp("served")
        if toml:
            (folder / "hookloop.toml").write_text(toml, "utf-8")
        port = () if "--port" in arguments else ("--port", "0")
        served = Served([*arguments, *port, "--no-browser"], folder, environ_of(folder, environ))
        started.append(served)
        return served

    yield serve
    for served in started:
        served.stop()


serve = pytest.fixture(_serving, name="serve")


@pytest.fixture(scope="module")
def serve_module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """`serve` for servers that all tests of a file share."""
    yield from _serving(tmp_path_factory)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, once for all tests of a file: while it is open the thread has a running loop, which other tests may not see."""
    if not CHROMIUM.exists():
        pytest.skip("there is no Chromium: install the system package chromium")
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser session of its own. A page that throws fails its test."""
    faults: list[str] = []
    made = browser.new_context(viewport={"width": 1440, "height": 900})
    made.set_default_timeout(30_000)
    made.on("weberror", lambda fault: faults.append(str(fault.error)))
    yield made
    made.close()
    assert faults == []


@pytest.fixture
def page(context: BrowserContext) -> Page:
    """A page in a session of its own."""
    return context.new_page()
