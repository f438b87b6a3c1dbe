"""Takes the screenshots of the booking README: `python tests/support/web_screenshots.py`. Needs Chromium."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright
from web_page import chat, enter, say, settled, timeline
from web_server import CHROMIUM, FLAGS, Served, environ_of

TO = Path(__file__).parents[2] / "plugins" / "booking" / "screenshots"
WIDE: ViewportSize = {"width": 1440, "height": 900}
NARROW: ViewportSize = {"width": 390, "height": 844}


@contextmanager
def served(*more: str) -> Iterator[Served]:
    """The demo in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        site = Served(["demo", "--port", "0", "--no-browser", *more], Path(folder), environ_of(Path(folder), {}))
        try:
            yield site
        finally:
            site.stop()


def shoot(page: Page, name: str, whole: bool = False) -> None:
    """One picture."""
    page.screenshot(path=TO / f"{name}.png", full_page=whole)


def talk(browser: Browser, site: Served) -> None:
    """Booking, both languages, the exact request; then the same narrow and dark."""
    page = browser.new_page(viewport=WIDE)
    enter(page, site.url)
    expect(page.get_by_text("Guangzhou-Shenzhen D789")).to_be_visible()
    shoot(page, "start")
    say(page, "I want to book a ticket")
    settled(page)
    say(page, "还有什么票？")
    expect(chat(page).locator(".k-reply").nth(1)).to_contain_text("可预订的车票")
    settled(page)
    shoot(page, "booked")
    timeline(page).get_by_role("button", name="Round 1").last.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    shoot(page, "request")
    page.keyboard.press("Escape")
    page.emulate_media(color_scheme="dark")
    shoot(page, "dark")
    page.set_viewport_size(NARROW)
    enter(page, page.url)
    shoot(page, "narrow", whole=True)
    page.close()


def approve(browser: Browser, site: Served) -> None:
    """A call that waits."""
    page = browser.new_page(viewport=WIDE)
    enter(page, site.url)
    say(page, "book G456")
    expect(page.get_by_role("form", name="Decide on book")).to_be_visible()
    shoot(page, "approval")
    page.close()


def main() -> int:
    """All pictures."""
    TO.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        with served() as site:
            talk(browser, site)
        with served("--approve") as site:
            approve(browser, site)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
