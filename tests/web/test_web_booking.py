"""The booking page in a real browser, and its routes."""

from __future__ import annotations

import concurrent.futures
import re
from collections import Counter

import httpx
import pytest
from playwright.sync_api import BrowserContext, Page, expect
from web_page import chat, column, cut_off, enter, say, settled, sideways
from web_server import Serve, Served

from hookloop_booking.cities import CITIES

FOCUSED = "(({ ariaLabel, id, textContent }) => ariaLabel || id || textContent)(document.activeElement)"


@pytest.fixture(scope="module")
def served(serve_module: Serve) -> Served:
    return serve_module("demo")


@pytest.fixture
def desk(served: Served) -> Served:
    """The demo, with every ticket free."""
    for ticket in httpx.get(f"{served.url}api/bookings", params={"status": "booked"}).json():
        httpx.post(f"{served.url}api/bookings/{ticket['id']}/cancel")
    return served


def counts(page: Page, free: int, booked: int) -> None:
    expect(column(page, "Available")).to_have_count(free)
    expect(column(page, "Booked")).to_have_count(booked)


def test_a_ticket_is_booked_and_cancelled_by_talking(page: Page, desk: Served) -> None:
    enter(page, desk.url)
    counts(page, 3, 0)
    page.evaluate("window.same = true")

    say(page, "I want to book a ticket")
    counts(page, 2, 1)
    expect(column(page, "Booked")).to_contain_text("Beijing-Shanghai G123")
    say(page, "cancel G123")
    counts(page, 3, 0)
    say(page, "book Shanghai to Hangzhou")
    counts(page, 2, 1)
    say(page, "list my bookings")
    expect(chat(page).locator(".k-reply").last).to_contain_text("Booked tickets")
    say(page, "cancel Shanghai-Hangzhou G456")
    counts(page, 3, 0)
    say(page, f"我要订{CITIES['Beijing']}到{CITIES['Shanghai']}的票")
    expect(chat(page).locator(".k-reply").last).to_contain_text("已为您预订")
    counts(page, 2, 1)
    settled(page)

    assert page.evaluate("window.same") is True


def test_another_client_is_seen_in_every_tab(page: Page, context: BrowserContext, desk: Served) -> None:
    enter(page, desk.url)
    second = context.new_page()
    enter(second, page.url)
    assert httpx.post(f"{desk.url}api/bookings/3/book").status_code == 200
    for one in (page, second):
        counts(one, 2, 1)
    say(page, "cancel D789")
    counts(second, 3, 0)
    expect(chat(second)).to_contain_text("cancel D789")
    second.get_by_role("button", name="Book Beijing-Shanghai G123").click()
    counts(page, 2, 1)
    second.close()


def test_the_log_tells_the_loop(page: Page, desk: Served) -> None:
    enter(page, desk.url)
    desk.forget()
    say(page, "I want to book a ticket")
    counts(page, 2, 1)
    settled(page)
    assert "done" in desk.line("turn ends")

    in_order = (
        r"round 1 · sent .*user +│ I want to book a ticket",
        r"round 1 · reply .*call +│ book\(",
        r"round 1 · tool book ── runs",
        r"round 1 · tool book ── done",
        r"round 2 · sent .*result +│ book → ",
        r"round 2 · reply .*text +│ .*Booked: 1",
    )
    assert re.search(".*".join(in_order), "".join(desk.log), re.DOTALL)


def test_booking_waits_for_approval_where_that_is_asked_for(page: Page, serve: Serve) -> None:
    desk = serve("demo", "--approve")
    enter(page, desk.url)
    say(page, "book G456")
    form = page.get_by_role("form", name="Decide on book")
    expect(form).to_contain_text("May the desk book a ticket?")
    counts(page, 3, 0)
    form.get_by_role("button", name="Approve").click()
    counts(page, 2, 1)


@pytest.mark.parametrize("width", [390, 1440])
def test_the_booking_page_fits(page: Page, desk: Served, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 844})
    enter(page, desk.url)
    say(page, "还有什么票？")
    expect(chat(page).locator(".k-reply")).to_contain_text("可预订的车票")

    assert sideways(page) == 0
    assert cut_off(page) == []


def test_it_works_with_the_keyboard_alone(page: Page, desk: Served) -> None:
    enter(page, desk.url)
    counts(page, 3, 0)
    names: list[str] = []
    for _ in range(12):
        page.keyboard.press("Tab")
        names.append(page.evaluate(FOCUSED))
        if names[-1] == "hl-draft":
            break
    assert names[:3] == ["Book Beijing-Shanghai G123", "Book Shanghai-Hangzhou G456", "Book Guangzhou-Shenzhen D789"]
    page.keyboard.type("I want to book a ticket")
    page.keyboard.press("Enter")
    counts(page, 2, 1)
    expect(page.locator("[aria-live=polite]").filter(has_text="is now booked")).to_have_count(1)
    expect(page.locator("[aria-live=polite]").filter(has_text="Booked: 1")).to_have_count(1)


def test_everything_that_takes_input_has_a_name(page: Page, desk: Served) -> None:
    enter(page, desk.url)
    say(page, "I want to book a ticket")
    settled(page)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('main button, main input, main textarea, main select, main meter')]
            .filter((box) => !(box.getAttribute('aria-label') || box.labels?.length || box.textContent.trim()))
            .map((box) => box.outerHTML.slice(0, 80))"""
    )
    assert nameless == []
    assert page.locator("main").count() == page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.lang") == "en-US"


def test_of_many_who_want_a_ticket_exactly_one_gets_it(desk: Served) -> None:
    with httpx.Client(base_url=desk.url) as client, concurrent.futures.ThreadPoolExecutor(20) as pool:
        codes = Counter(one.status_code for one in pool.map(lambda _: client.post("api/bookings/2/book"), range(20)))
        assert codes == {200: 1, 409: 19}
        assert [one["id"] for one in client.get("api/bookings", params={"status": "booked"}).json()] == [2]


def test_the_routes_say_what_is_wrong(desk: Served) -> None:
    with httpx.Client(base_url=desk.url) as client:
        assert client.get("health").json() == {"status": "ok"}
        assert client.post("api/bookings/99/book").status_code == 404
        assert client.post("api/bookings/1/cancel").status_code == 409
        assert client.post("api/bookings/x/book").status_code == 422
        assert client.get("api/bookings", params={"status": "lost"}).status_code == 422
        answer = client.post("api/chat", json={"message": "I want to book a ticket"}).json()
        assert (answer["status"], "Booked: 1" in answer["text"]) == ("done", True)
        more = client.post("api/chat", json={"message": "list my bookings", "conversation": answer["conversation"]})
        assert "G123" in more.json()["text"]
        assert "I am offline" not in more.json()["text"]


def test_a_streamed_chat_tells_the_loop_and_ends_with_its_outcome(desk: Served) -> None:
    with (
        httpx.Client(base_url=desk.url) as client,
        client.stream("POST", "api/chat/stream", json={"message": "I want to book a ticket"}) as answer,
    ):
        assert answer.headers["content-type"].startswith("text/event-stream")
        kinds = [line.removeprefix("event: ") for line in answer.iter_lines() if line.startswith("event: ")]
    assert [kinds[0], *kinds[-2:]] == ["turn_began", "turn_finished", "outcome"]
    assert kinds.count("request_sent") == kinds.count("reply_received") == 2
    assert kinds.count("text_piece") > 1
    assert {"tool_started", "tool_ended"} <= set(kinds)
