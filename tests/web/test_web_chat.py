"""The page of any agent, in a real browser: streaming, approval, cancelling, hostile texts, a killed server."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from web_page import chat, cut_off, enter, faint, say, settled, sideways, timeline
from web_puppet import EVIL
from web_server import PUPPET, Serve, Served

SLOW = "This answer takes its time."


@pytest.fixture(scope="module")
def site(serve_module: Serve) -> Served:
    return serve_module("web", toml=PUPPET)


def test_text_is_streamed_and_a_reload_keeps_the_conversation(page: Page, site: Served) -> None:
    enter(page, site.url)
    page.evaluate(
        """() => { window.lengths = new Set(); new MutationObserver(() => {
            const box = document.querySelector('.k-reply .hl-text'); if (box) lengths.add(box.textContent.length);
        }).observe(document.body, { subtree: true, childList: true, characterData: true }); }"""
    )
    say(page, "say Once upon a time there was a loop that nobody could edit, only hook. 从前有一个循环。")
    expect(chat(page).get_by_text("从前有一个循环。").nth(1)).to_be_visible()
    settled(page)

    assert page.evaluate("lengths.size") > 3
    page.reload()
    expect(chat(page).locator(".k-reply")).to_contain_text("nobody could edit")
    expect(chat(page).locator(".o-user")).to_contain_text("say Once upon")


def test_an_approval_is_asked_denied_with_a_reason_and_given(page: Page, site: Served) -> None:
    enter(page, site.url)
    say(page, "edit plan.txt")
    form = page.get_by_role("form", name="Decide on edit")
    form.get_by_label("Reason, if denied").fill("not on a Monday")
    form.get_by_role("button", name="Deny").click()
    expect(chat(page).locator(".k-reply")).to_contain_text("not on a Monday")

    say(page, "edit plan.txt")
    form.get_by_label("Arguments").fill('{"path": oops')
    form.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("alert").filter(has_text="not JSON")).to_be_visible()
    form.get_by_label("Arguments").fill('{"path": "other.txt"}')
    form.get_by_role("button", name="Approve").click()
    expect(chat(page).locator(".k-reply").nth(1)).to_contain_text("edited other.txt")
    expect(form).to_have_count(0)
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


def test_cancel_stops_in_mid_stream_and_the_next_message_works(page: Page, site: Served) -> None:
    enter(page, site.url)
    say(page, "slow")
    expect(chat(page).get_by_text(SLOW).last).to_be_visible()
    page.get_by_role("button", name="Cancel", exact=True).click()
    expect(chat(page).get_by_text("cancelled")).to_be_visible()

    say(page, "say all is well")
    expect(chat(page).locator(".k-reply").get_by_text("all is well")).to_be_visible()
    settled(page)


def test_a_message_goes_into_the_running_turn(page: Page, site: Served) -> None:
    enter(page, site.url)
    say(page, "slow")
    expect(chat(page).get_by_text(SLOW).last).to_be_visible()
    page.get_by_label("Message", exact=True).fill("say and this too")
    page.get_by_label("Message", exact=True).press("Enter")
    expect(chat(page).locator(".is-unread")).to_contain_text("and this too")
    expect(chat(page).locator(".k-reply").get_by_text("and this too", exact=True)).to_be_visible()
    settled(page)
    expect(chat(page).locator(".is-unread")).to_have_count(0)
    expect(page.get_by_role("region", name="Turn 1")).to_contain_text("say and this too")
    expect(page.get_by_role("region", name="Turn 2")).to_have_count(0)


def test_the_timeline_shows_rounds_origins_and_the_exact_request(page: Page, site: Served) -> None:
    enter(page, site.url)
    say(page, "rounds 2 3")
    settled(page)
    line = timeline(page)
    expect(line.locator(".hl-round")).to_have_count(3)
    added = line.locator(".hl-row.o-plugin").first
    expect(added).to_contain_text("feedback")
    expect(added).to_contain_text("Mind the clock.")
    colours = {
        one: line.locator(f".hl-row.o-{one} .hl-who").first.evaluate("(box) => getComputedStyle(box).color")
        for one in ("user", "model", "tool", "plugin", "engine")
    }
    assert len(set(colours.values())) == 5
    expect(line.get_by_role("list", name="Colours by origin")).to_contain_text("feedback")
    expect(line).to_contain_text("rounds3 / 1,000")
    expect(line.locator(".hl-round").nth(1)).to_contain_text("% cached")

    line.get_by_role("button", name=re.compile("Round 2")).click()
    details = page.get_by_role("dialog", name="Details")
    expect(details).to_contain_text('"name": "tick"')
    expect(details).to_contain_text("Mind the clock.")
    page.keyboard.press("Escape")
    expect(details).to_have_count(0)


def test_hostile_and_huge_texts_do_no_harm(page: Page, site: Served) -> None:
    enter(page, site.url)
    say(page, f"evil {EVIL}")
    expect(chat(page).locator(".k-reply")).to_contain_text(EVIL)
    say(page, "say " + "z" * 100_000)
    expect(chat(page).get_by_role("button", name="more characters").first).to_be_visible()
    say(page, "long")
    settled(page)

    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img").count() == 0
    assert sideways(page) == 0
    page.set_viewport_size({"width": 390, "height": 844})
    assert sideways(page) == 0


def test_a_killed_server_comes_back_and_the_conversation_goes_on(page: Page, serve: Serve) -> None:
    site = serve("web", toml=PUPPET)
    enter(page, site.url)
    say(page, "hang")
    expect(chat(page).locator(".k-call")).to_contain_text("runs…")
    site.kill()
    site.again()  # the open page finds it again by itself
    expect(chat(page)).to_contain_text("This turn was interrupted.")
    page.get_by_role("button", name="Go on").click()
    expect(chat(page).locator(".k-reply")).to_contain_text("its effect is unknown")
    say(page, "say and on it goes")
    expect(chat(page).locator(".k-reply").get_by_text("and on it goes")).to_be_visible()


def test_each_session_has_its_own_conversations(page: Page, context: BrowserContext, site: Served) -> None:
    browser = context.browser
    assert browser is not None
    enter(page, site.url)
    say(page, "say my secret plan")
    settled(page)
    mine = page.url
    other = browser.new_context()
    stranger = other.new_page()
    enter(stranger, mine)
    expect(stranger.get_by_text("Nothing was said yet.")).to_be_visible()
    expect(stranger.get_by_text("my secret plan")).to_have_count(0)
    other.close()

    page.get_by_role("button", name="New", exact=True).click()
    expect(page.get_by_text("Nothing was said yet.")).to_be_visible()
    pick = page.get_by_role("combobox", name="Conversation")
    pick.select_option(pick.locator("option", has_text="my secret plan").get_attribute("value"))
    expect(chat(page).locator(".k-reply")).to_contain_text("my secret plan")


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_cut_at_any_width(page: Page, site: Served, width: int, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": width, "height": 844})
    enter(page, site.url)
    say(page, "rounds 1 3")
    settled(page)
    say(page, "edit 北京.txt")
    expect(page.get_by_role("form", name="Decide on edit")).to_be_visible()

    assert sideways(page) == 0
    assert cut_off(page) == []
    assert faint(page) == []
    page.evaluate("document.querySelector('h1 *').style.color = getComputedStyle(document.body).backgroundColor")
    assert len(faint(page)) == 1, "a faint text would be found"


def test_a_trace_is_opened_and_cannot_be_talked_to(page: Page, serve: Serve, site: Served, tmp_path: Path) -> None:
    trace = tmp_path / "turns.jsonl"
    toml = PUPPET + f'[plugins.trace]\nenabled = true\noptions = {{ file = "{trace}" }}\n'
    recorder = serve("web", toml=toml)
    enter(page, recorder.url)
    say(page, "rounds 2 3")
    settled(page)

    opened = serve("web", "--trace", str(trace))
    page.goto(opened.url)
    expect(chat(page).locator(".k-call")).to_have_count(2)
    expect(timeline(page).locator(".hl-round")).to_have_count(3)
    expect(page.get_by_role("button", name="Send")).to_have_count(0)
    timeline(page).get_by_role("button", name=re.compile("Round 2")).click()
    expect(page.get_by_role("dialog", name="Details")).to_contain_text("Mind the clock.")


def test_whatever_a_browser_sends_the_page_goes_on(page: Page, site: Served) -> None:
    enter(page, site.url)
    page.evaluate(
        """() => { const box = getElement(Number(document.querySelector('.hl-console').id.slice(1)));
          for (const wish of [null, 5, [], {}, { do: 'explode' }, { do: 'say', text: 7 }, { do: 'say', text: 'x', more: 1 },
            { do: 'open', conversation: '../etc' }, { do: 'decide', call: 'nobody', verdict: 'approve' },
            { do: 'detail', turn: 'x', what: 3 }, { do: 'cancel' }]) box.ask(wish); }"""
    )
    expect(page.get_by_role("alert").filter(has_text="waits no longer")).to_be_visible()
    page.evaluate(
        """() => { const box = getElement(Number(document.querySelector('.hl-console').id.slice(1)));
          for (let at = 0; at < 40; at += 1) box.ask({ do: 'detail', turn: 'x', what: at }); }"""
    )
    expect(page.get_by_role("alert").filter(has_text="too much at once")).to_be_visible()
    page.reload()
    say(page, "say still here")
    expect(chat(page).locator(".k-reply")).to_contain_text("still here")
