"""The booking desk on real SQLite files: rules, races, and what other processes see."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sqlalchemy import delete, insert
from sqlalchemy.exc import ArgumentError

from hookloop_booking import BookingError, BookingService, Change, Ticket
from hookloop_booking.schema import open_engine, tickets


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'desk.db'}"


@pytest.fixture
def desk(url: str) -> Iterator[BookingService]:
    service = BookingService(url, clock=lambda: 1000.5)
    yield service
    service.close()


def refused(action: Callable[[], object]) -> BookingError:
    with pytest.raises(BookingError) as caught:
        action()
    return caught.value


def ids(some: tuple[Ticket, ...]) -> list[int]:
    return [ticket.id for ticket in some]


def test_three_tickets_are_free_at_first(desk: BookingService) -> None:
    assert ids(desk.available()) == [1, 2, 3]
    assert desk.booked() == ()
    assert desk.version() == 0


def test_book_without_a_name_takes_the_first_free_by_id(desk: BookingService) -> None:
    assert desk.book() == Ticket(1, "Beijing-Shanghai G123", "booked", 1000.5)
    assert desk.book("a ticket").id == 2
    assert desk.book("  ").id == 3
    assert refused(desk.book).code == "nothing_free"


@pytest.mark.parametrize(
    "wanted", ["G456", "g 456", "2", "Shanghai to Hangzhou", "上海到杭州", "Shanghai-Hangzhou G456"]
)
def test_book_and_cancel_understand_the_same_names(desk: BookingService, wanted: str) -> None:
    assert desk.book(wanted).id == 2
    assert ids(desk.booked()) == [2]
    assert desk.cancel(wanted) == Ticket(2, "Shanghai-Hangzhou G456", "free", None)
    assert ids(desk.available()) == [1, 2, 3]


def test_a_bare_cancel_works_when_exactly_one_is_booked(desk: BookingService) -> None:
    assert refused(desk.cancel).code == "nothing_booked"
    desk.book("D789")
    assert desk.cancel().id == 3


def test_a_bare_cancel_with_two_booked_says_which_they_are(desk: BookingService) -> None:
    desk.book("1")
    desk.book("3")

    error = refused(desk.cancel)

    assert (error.code, ids(error.tickets)) == ("ambiguous", [1, 3])
    assert "G123" in str(error)
    assert "D789" in str(error)
    assert ids(desk.booked()) == [1, 3]


def test_a_taken_ticket_is_not_booked_again(desk: BookingService) -> None:
    desk.book("G123")

    error = refused(lambda: desk.book("G123"))

    assert (error.code, ids(error.tickets)) == ("taken", [1])
    assert desk.version() == 1


def test_a_free_ticket_cannot_be_cancelled(desk: BookingService) -> None:
    desk.book("G123")
    error = refused(lambda: desk.cancel("G456"))
    assert (error.code, ids(error.tickets)) == ("not_booked", [2])


def test_one_end_that_fits_two_trains_is_asked_back_until_one_is_left(desk: BookingService) -> None:
    error = refused(lambda: desk.book("Shanghai"))
    assert (error.code, ids(error.tickets)) == ("ambiguous", [1, 2])
    desk.book("G123")
    assert desk.book("Shanghai").id == 2


def test_no_match_names_the_nearest_and_changes_nothing(desk: BookingService) -> None:
    error = refused(lambda: desk.book("Beijing to Paris"))

    assert error.code == "no_match"
    assert error.tickets[0].id == 1
    assert "Beijing to Paris" in str(error)
    assert desk.version() == 0


def test_seats_of_one_train_are_alike(url: str, desk: BookingService) -> None:
    with open_engine(url).begin() as connection:
        connection.execute(insert(tickets).values(id=4, route="Beijing-Shanghai G123", status="free"))

    assert [desk.book("G123").id, desk.book("G123").id] == [1, 4]
    assert refused(lambda: desk.cancel("G123")).code == "ambiguous"
    assert desk.cancel("G123 4").id == 4


def test_exact_ids_serve_pages(desk: BookingService) -> None:
    assert desk.book_id(2).status == "booked"
    assert refused(lambda: desk.book_id(2)).code == "taken"
    assert desk.cancel_id(2).status == "free"
    assert refused(lambda: desk.cancel_id(2)).code == "not_booked"
    assert refused(lambda: desk.book_id(99)).code == "no_match"


def test_bookings_stand_in_the_file_for_the_next_start(url: str, desk: BookingService) -> None:
    desk.book("G456")
    again = BookingService(url)

    assert ids(again.booked()) == [2]
    assert again.version() == 1


def test_the_first_tickets_are_put_in_once_only(url: str, desk: BookingService) -> None:
    with open_engine(url).begin() as connection:
        connection.execute(delete(tickets))

    assert BookingService(url).tickets() == ()


def test_many_first_starts_at_once_make_three_tickets(url: str) -> None:
    start = threading.Barrier(8)

    def open_one(_: int) -> list[int]:
        start.wait()
        return ids(BookingService(url).available())

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(open_one, range(8))) == [[1, 2, 3]] * 8


def test_of_many_who_want_one_ticket_exactly_one_gets_it(url: str, desk: BookingService) -> None:
    others = [desk, BookingService(url)]
    start = threading.Barrier(12)

    def want(number: int) -> str:
        start.wait()
        try:
            return others[number % 2].book("G123").status
        except BookingError as error:
            return error.code

    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(want, range(12)))

    assert sorted(results) == ["booked"] + ["taken"] * 11
    assert desk.version() == 1


def test_of_many_who_want_any_ticket_each_gets_another(desk: BookingService) -> None:
    start = threading.Barrier(8)

    def want(_: int) -> int | str:
        start.wait()
        try:
            return desk.book().id
        except BookingError as error:
            return error.code

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(want, range(8)))

    assert sorted(results, key=str) == [1, 2, 3] + ["nothing_free"] * 5


def test_of_many_who_cancel_exactly_one_does(desk: BookingService) -> None:
    desk.book("G123")
    start = threading.Barrier(6)

    def give_up(_: int) -> str:
        start.wait()
        try:
            return desk.cancel("G123").status
        except BookingError as error:
            return error.code

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(give_up, range(6))) == ["free"] + ["not_booked"] * 5


def test_a_database_in_memory_is_one_for_all_threads() -> None:
    desk = BookingService("sqlite://")
    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(lambda _: desk.book().id, range(3))) == [1, 2, 3]
    desk.close()


def test_listeners_hear_each_change_once_with_its_version(desk: BookingService) -> None:
    heard: list[Change] = []
    stop = desk.subscribe(heard.append)
    desk.book("2")
    desk.cancel()
    stop()
    stop()
    desk.book("3")

    assert [(change.version, change.action, change.ticket.id) for change in heard] == [
        (1, "booked", 2),
        (2, "cancelled", 2),
    ]
    assert desk.version() == 3


def test_a_listener_that_fails_harms_neither_booking_nor_others(
    desk: BookingService, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[Change] = []

    def broken(_: Change) -> None:
        raise RuntimeError("the page is gone")

    desk.subscribe(broken)
    desk.subscribe(heard.append)
    with caplog.at_level(logging.ERROR):
        desk.book("1")

    assert len(heard) == 1
    assert ids(desk.booked()) == [1]
    assert "the page is gone" in caplog.text


def test_another_process_moves_the_version(url: str, desk: BookingService) -> None:
    code = f"from hookloop_booking import BookingService; BookingService({url!r}).book('G123')"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

    assert desk.version() == 1
    assert ids(desk.booked()) == [1]


def test_what_is_no_url_is_refused() -> None:
    with pytest.raises(ArgumentError):
        BookingService("no url at all")
