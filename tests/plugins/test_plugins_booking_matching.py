"""Which ticket is meant: a table of what people say, and what must hold of any text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookloop_booking.matching import match, nearest
from hookloop_booking.reading import in_chinese, read_route, read_wish
from hookloop_booking.tickets import FIRST_TICKETS, Ticket

TICKETS = tuple(Ticket(number, route) for number, route in enumerate(FIRST_TICKETS, start=1))


def found(text: str) -> list[int]:
    return [ticket.id for ticket in match(text, TICKETS).found]


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("G123", [1]),
        ("g 123", [1]),
        ("g-123", [1]),
        ("Ｇ１２３", [1]),
        ("train G456 please", [2]),
        ("123", [1]),
        ("2", [2]),
        ("#3", [3]),
        ("ticket 3", [3]),
        ("No. 2", [2]),
        ("2号", [2]),
        ("Beijing to Shanghai", [1]),
        ("from Beijing to Shanghai", [1]),
        ("to Shanghai from Beijing", [1]),
        ("beijing-shanghai", [1]),
        ("Beijing → Shanghai", [1]),
        ("Beijing–Shanghai G123", [1]),
        ("Beijing-Shanghai G123", [1]),
        ("北京到上海", [1]),
        ("北京至上海", [1]),
        ("北京 - 上海", [1]),
        ("从上海去杭州", [2]),
        ("帮我订一张去上海的票", [1]),
        ("取消广州到深圳的票", [3]),
        ("北京-上海 G123", [1]),
        ("to Shanghai", [1]),
        ("from Shanghai", [2]),
        ("Shanghai", [1, 2]),
        ("上海", [1, 2]),
        ("Shangai to Hangzou", [2]),
        ("Shenzhen next monday for my grandmother", [3]),
        ("", [1, 2, 3]),
        ("a ticket", [1, 2, 3]),
        ("any", [1, 2, 3]),
        ("随便一张", [1, 2, 3]),
        ("1 ticket", [1, 2, 3]),
    ],
)
def test_what_people_say_finds_the_ticket_they_mean(text: str, ids: list[int]) -> None:
    assert found(text) == ids


@pytest.mark.parametrize(
    "text",
    [
        "G999",
        "Shanghai to Beijing",
        "上海到北京",
        "Beijing to Paris",
        "Paris to Shanghai",
        "to Paris",
        "去巴黎",
        "Beijing-Hangzhou G123",
        "G123 to Hangzhou",
        "77",
        "2 tickets",
        "xyzzy",
    ],
)
def test_what_no_ticket_fits_finds_none_but_names_the_nearest(text: str) -> None:
    result = match(text, TICKETS)

    assert result.found == ()
    assert sorted(ticket.id for ticket in result.nearest) == [1, 2, 3]
    assert not result.is_open


def test_the_nearest_stands_first() -> None:
    assert nearest("Guangzou-Shenzen", TICKETS, 1) == (TICKETS[2],)
    assert nearest("上海到杭洲", TICKETS, 1) == (TICKETS[1],)


def test_only_a_blank_or_empty_phrase_leaves_the_choice_open() -> None:
    assert match("just book me something", TICKETS).is_open
    assert not match("Shanghai", TICKETS).is_open


def test_cities_that_only_a_route_names_are_known_from_it() -> None:
    tickets = (Ticket(1, "Ulm-Bonn R7"), Ticket(2, "New Town-Ulm R8"))

    assert [ticket.id for ticket in match("ulm to bonn", tickets).found] == [1]
    assert [ticket.id for ticket in match("from New Town", tickets).found] == [2]


@pytest.mark.parametrize(
    ("route", "parts"),
    [
        ("Beijing-Shanghai G123", ("Beijing", "Shanghai", "g123")),
        ("Xi'an - Chengdu D 12", ("", "", "")),
        ("Xi'an-Chengdu D12", ("Xi'an", "Chengdu", "d12")),
        ("西安-成都 D12", ("Xi'an", "Chengdu", "d12")),
        ("nowhere", ("", "", "")),
    ],
)
def test_routes_are_read_into_their_parts(route: str, parts: tuple[str, str, str]) -> None:
    read = read_route(route)

    if parts[0]:
        assert (read.origin, read.destination, read.train) == parts
    else:
        assert read.train in ("", "12")


def test_a_route_has_a_chinese_name_where_it_can_be_read() -> None:
    assert in_chinese("Beijing-Shanghai G123") == "北京-上海 G123"
    assert in_chinese("a riddle") == "a riddle"


@settings(deadline=None)
@given(st.text(max_size=60))
def test_any_text_gives_tickets_or_the_nearest_ones_in_order(text: str) -> None:
    result = match(text, TICKETS)

    assert bool(result.found) != bool(result.nearest)
    assert list(result.found) == sorted(result.found, key=lambda ticket: ticket.id)


cities = st.sampled_from(["Beijing", "shanghai", "杭州", "Guangzhou", "深圳", "Xi'an", "Hong Kong"])
wishes = st.one_of(
    st.builds("{} to {}".format, cities, cities),
    st.builds("to {}".format, cities),
    st.builds("从{}到{}".format, cities, cities),
    st.builds("{}{}".format, st.sampled_from("gdGD"), st.integers(1, 9999)),
    st.builds("{} {} {}".format, cities, st.sampled_from(["to Atlantis", "G123", "2", "please"]), st.just("")),
)


@settings(deadline=None)
@given(wishes)
def test_a_wish_put_in_few_words_means_the_same(text: str) -> None:
    wish = read_wish(text)
    again = read_wish(wish.phrase)

    assert (again.trains, again.ids, again.origin, again.destination) == (
        wish.trains,
        wish.ids,
        wish.origin,
        wish.destination,
    )
    assert bool(again.strange) == bool(wish.strange)


@settings(deadline=None)
@given(
    st.sampled_from(TICKETS),
    st.sampled_from(["{}", "please book {}", "cancel {}!", "我要订 {}", "  {}  ", "the {} one"]),
)
def test_every_ticket_is_found_by_its_whole_name_in_any_sentence(ticket: Ticket, sentence: str) -> None:
    for name in (
        ticket.route,
        ticket.route.upper(),
        ticket.route.split()[-1],
        in_chinese(ticket.route),
        str(ticket.id),
    ):
        assert found(sentence.format(name)) == [ticket.id]
