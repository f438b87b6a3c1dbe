"""What a person does on the page, and what they see."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect


def enter(page: Page, url: str) -> None:
    """Open the page and wait until it can be used."""
    page.goto(url)
    expect(page.get_by_role("button", name="Send")).to_be_enabled()


def say(page: Page, text: str) -> None:
    """Write a message, send it with the Enter key, and wait until the model has it."""
    said = chat(page).locator(".o-user:not(.is-unread)")
    before = said.count()
    page.get_by_label("Message", exact=True).fill(text)
    page.get_by_label("Message", exact=True).press("Enter")
    expect(said).to_have_count(before + 1)


def chat(page: Page) -> Locator:
    """The conversation."""
    return page.get_by_role("log", name="Conversation")


def timeline(page: Page) -> Locator:
    """The turn timeline."""
    return page.get_by_role("region", name="Turn timeline")


def column(page: Page, name: str) -> Locator:
    """The tickets in a column of the booking page."""
    return page.get_by_role("region", name=name, exact=True).get_by_role("listitem")


def settled(page: Page) -> None:
    """Wait until no turn runs."""
    expect(page.get_by_role("button", name="Cancel", exact=True)).to_be_disabled()


def sideways(page: Page) -> int:
    """Pixels that stand out of the page at its side."""
    found: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return found


def cut_off(page: Page) -> list[str]:
    """Texts of buttons, headings and labels that do not fit into their boxes, and elements beyond the page's side."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('main button, main h1, main h2, main dd, main li, main p')]
            .filter((box) => box.offsetParent && !box.closest('.hl-hidden')
              && (box.scrollWidth > box.clientWidth + 1 || box.getBoundingClientRect().right > innerWidth + 1)
              && getComputedStyle(box).overflowX === 'visible')
            .map((box) => box.tagName + ': ' + box.textContent.slice(0, 60))"""
    )
    return found


def faint(page: Page) -> list[str]:
    """Texts whose contrast to what is behind them is below 4.5 (WCAG AA), as far as colours are opaque."""
    found: list[str] = page.evaluate(
        """() => {
          const parse = (text) => { const c = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
            c.fillStyle = text; c.fillRect(0, 0, 1, 1); return [...c.getImageData(0, 0, 1, 1).data]; };
          const light = (rgb) => { const [r, g, b] = rgb.slice(0, 3).map((v) => v / 255)
            .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
          const behind = (box) => { for (let one = box; one; one = one.parentElement) {
            const rgb = parse(getComputedStyle(one).backgroundColor); if (rgb[3] === 255) return rgb; }
            return parse('Canvas'); };
          const own = (box) => [...box.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
          return [...document.querySelectorAll('main *')]
            .filter((box) => box.offsetParent && own(box) && !box.disabled && !box.closest('.hl-hidden'))
            .map((box) => { const [a, b] = [light(parse(getComputedStyle(box).color)), light(behind(box))];
              return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), box]; })
            .filter(([ratio]) => ratio < 4.5)
            .map(([ratio, box]) => `${ratio.toFixed(2)} ${box.className}: ${box.textContent.slice(0, 40)}`);
        }"""
    )
    return found
