"""The offline provider, driven by a small loop over the real tools and a real database."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from hookloop_booking import BookingPlugin, BookingService, booking_tools
from hookloop_booking.intents import language, read_intent
from hookloop_booking.offline import OfflineProvider
from hookloop_booking.phrases import NOTICE
from hookloop_hookspecs import (
    ArgumentsError,
    Message,
    ModelRequest,
    Origin,
    Reply,
    Text,
    TextDelta,
    Tool,
    ToolCall,
    ToolContext,
    ToolError,
    ToolResult,
    ToolSpec,
    json_text,
)

PROVIDER = OfflineProvider()


def tool_specs() -> tuple[ToolSpec, ...]:
    service = BookingService("sqlite://")
    service.close()
    return tuple(tool.spec for tool in booking_tools(service))


SPECS = tool_specs()


class Desk:
    """A conversation with the offline provider: asks, runs the calls, asks again."""

    def __init__(self) -> None:
        self.service = BookingService("sqlite://")
        self.tools = {tool.name: tool for tool in BookingPlugin(service=self.service).register_tools()}
        self.messages: list[Message] = []
        self.calls: list[ToolCall] = []
        self.turns = 0

    def request(self, number: int = 1) -> ModelRequest:
        specs = tuple(tool.spec for tool in self.tools.values())
        return ModelRequest("rules", "", tuple(self.messages), specs, round=number)

    def say(self, text: str) -> str:
        self.turns += 1
        origin = Origin(turn=f"t{self.turns}")
        self.messages.append(Message("user", text, origin))
        for number in range(1, 10):
            reply = whole(self.request(number))
            self.messages.append(Message("assistant", reply.content, replace(origin, kind="model")))
            if not reply.calls:
                return reply.text
            for call in reply.calls:
                self.calls.append(call)
                result = run(self.tools[call.name], call)
                self.messages.append(Message("tool", (result,), replace(origin, kind="tool")))
        raise AssertionError("no end")


def run(tool: Tool, call: ToolCall) -> ToolResult:
    context = ToolContext("c", "t", 1, call, "key")
    try:
        value = tool.call(tool.validate(call.arguments), context)
    except ToolError as error:
        return ToolResult(call.id, call.name, (Text(str(error)),), is_error=True)
    return ToolResult(call.id, call.name, (Text(json_text(value)),))


def whole(request: ModelRequest) -> Reply:
    *pieces, reply = PROVIDER.stream(request)
    assert isinstance(reply, Reply)
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextDelta)) == reply.text
    return reply


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()
    yield made
    made.service.close()


def ids(desk: Desk) -> list[int]:
    return [ticket.id for ticket in desk.service.booked()]


def asked(*messages: Message, **fields: object) -> Reply:
    base = ModelRequest("rules", "", messages, SPECS)
    return whole(replace(base, **fields))  # type: ignore[arg-type]  # each test names fields of the request


@pytest.mark.parametrize(
    ("text", "action", "ticket"),
    [
        ("Hello!", "greet", ""),
        ("What can you do?", "help", ""),
        ("How do I book a ticket?", "help", ""),
        ("I want to book a ticket", "book", ""),
        ("one ticket please", "book", ""),
        ("please book the first available ticket", "book", ""),
        ("Could you book me a ticket to Shanghai?", "book", "to Shanghai"),
        ("book g 456", "book", "G456"),
        ("Book Beijing-Shanghai G123", "book", "from Beijing to Shanghai G123"),
        ("Beijing to Shanghai", "book", "from Beijing to Shanghai"),
        ("G456", "book", "G456"),
        ("I need a ticket to Paris", "book", "to paris"),
        ("cancel", "cancel", ""),
        ("Cancel my booking, please", "cancel", ""),
        ("cancel G123", "cancel", "G123"),
        ("I'd like a refund for the Beijing to Shanghai ticket", "cancel", "from Beijing to Shanghai"),
        ("list my bookings", "list_booked", ""),
        ("What have I booked?", "list_booked", ""),
        ("Do I have any tickets?", "list_booked", ""),
        ("which tickets are booked?", "list_booked", ""),
        ("what tickets are available?", "list_available", ""),
        ("list tickets", "list_available", ""),
        ("What can I book?", "list_available", ""),
        ("Is G123 free?", "list_available", ""),
        ("Was G123 cancelled?", "list_available", ""),
        ("G123?", "list_available", ""),
        ("I don't want to book anything", "leave", ""),
        ("please don’t cancel", "leave", ""),
        ("thanks", "thanks", ""),
        ("Can you help me book a ticket?", "book", ""),
        ("I no longer need G123", "cancel", "G123"),
        ("booked", "list_booked", ""),
        ("请列出我预订的车票", "list_booked", ""),
        ("可用的票", "list_available", ""),
        ("book me two tickets", "book", "two tickets"),
        ("the weather", "unknown", ""),
        ("你好", "greet", ""),
        ("你能做什么？", "help", ""),
        ("怎么订票？", "help", ""),
        ("我想订一张票", "book", ""),
        ("帮我订一张去上海的票", "book", "to Shanghai"),
        ("我想去上海", "book", "to Shanghai"),
        ("取消", "cancel", ""),
        ("退票", "cancel", ""),
        ("取消北京到上海的票", "cancel", "from Beijing to Shanghai"),
        ("取消我的订单", "cancel", ""),
        ("不要取消", "leave", ""),
        ("我订了哪些票？", "list_booked", ""),
        ("查看我的预订", "list_booked", ""),
        ("还有什么票？", "list_available", ""),
        ("有别的票吗", "list_available", ""),
        ("我有票吗？", "list_booked", ""),
        ("谢谢", "thanks", ""),
    ],
)
def test_sentences_are_read_as_what_they_ask(text: str, action: str, ticket: str) -> None:
    intent = read_intent(text)
    assert (intent.action, intent.ticket) == (action, ticket)


def test_a_flood_of_words_is_read_no_further_than_a_sentence() -> None:
    assert read_intent("book " * 200_000) == read_intent("book " * 100)
    assert read_intent("book G123 " + "please " * 100_000).ticket == "G123"


def test_one_chinese_character_makes_the_language_chinese() -> None:
    assert language("book G123") == "en"
    assert language("G123 吧") == "zh"


def test_i_want_to_book_a_ticket_books_the_first_and_says_so(desk: Desk) -> None:
    text = desk.say("I want to book a ticket")

    assert [(call.name, call.arguments) for call in desk.calls] == [("book", {})]
    assert ids(desk) == [1]
    assert "Booked: 1. Beijing-Shanghai G123." in text
    assert [message.role for message in desk.messages] == ["user", "assistant", "tool", "assistant"]


def test_it_says_once_that_no_model_answers(desk: Desk) -> None:
    first, second = desk.say("hello"), desk.say("hello")

    assert first.startswith(NOTICE["en"])
    assert NOTICE["en"] not in second
    assert "offline" in whole(desk.request()).model


def test_the_notice_is_not_said_again_in_another_language(desk: Desk) -> None:
    desk.say("hello")
    assert NOTICE["zh"] not in desk.say("你好")


def test_a_whole_conversation_in_english(desk: Desk) -> None:
    assert "I can list" in desk.say("What can you do?")
    assert "1. Beijing-Shanghai G123" in desk.say("what is available?")
    assert "Booked: 3." in desk.say("book D789")
    assert "already booked" in desk.say("book D789")
    assert "Booked: 2." in desk.say("from Shanghai to Hangzhou")
    assert desk.say("list my bookings").splitlines()[1:] == [
        "- 2. Shanghai-Hangzhou G456",
        "- 3. Guangzhou-Shenzhen D789",
    ]
    assert "Which one" in desk.say("cancel")
    assert "Cancelled: 3." in desk.say("cancel Guangzhou to Shenzhen")
    assert "Cancelled: 2." in desk.say("cancel it")
    assert "nothing to cancel" in desk.say("cancel")
    assert 'No ticket matches "to paris"' in desk.say("book a ticket to Paris")
    assert "No ticket is booked." in desk.say("show my bookings")
    assert ids(desk) == []


def test_a_whole_conversation_in_chinese(desk: Desk) -> None:
    assert "我可以" in desk.say("你能做什么？")
    assert "已为您预订：1. 北京-上海 G123（Beijing-Shanghai G123）。" in desk.say("我想订一张票")
    assert "广州-深圳 D789" in desk.say("还有什么票？")
    assert "已经被预订" in desk.say("订G123")
    assert "北京-上海 G123" in desk.say("我的订单")
    assert "已取消：1." in desk.say("取消北京到上海的票")
    assert ids(desk) == []


def test_ids_are_new_in_every_round_and_turn(desk: Desk) -> None:
    for text in ("book", "book", "list my bookings", "cancel G123", "book"):
        desk.say(text)

    made = [call.id for call in desk.calls]
    assert len(set(made)) == len(made) == 5
    assert made[0] == "offline-1-1"


def test_equal_requests_get_equal_replies_in_pieces(desk: Desk) -> None:
    desk.say("book")
    desk.messages.append(Message.user("What can you do?"))
    pieces = list(PROVIDER.stream(desk.request()))

    assert pieces == list(PROVIDER.stream(desk.request()))
    assert sum(isinstance(piece, TextDelta) for piece in pieces) > 3


def test_async_and_sync_streams_are_the_same(desk: Desk) -> None:
    desk.messages.append(Message.user("book G123"))

    async def collect() -> list[object]:
        return [item async for item in PROVIDER.astream(desk.request())]

    assert asyncio.run(collect()) == list(PROVIDER.stream(desk.request()))


def test_what_a_plugin_puts_in_is_no_question() -> None:
    injected = Message("user", "cancel G123", Origin("plugin", plugin="feedback"))
    reply = asked(Message.user("book"), injected)

    assert [call.name for call in reply.calls] == ["book"]


def test_a_message_sent_while_tools_ran_is_answered_with_the_results() -> None:
    result = ToolResult(
        "a", "book", (Text(json_text({"done": "booked", "ticket": {"id": 1, "route": "Beijing-Shanghai G123"}})),)
    )
    reply = asked(
        Message.user("book"),
        Message.assistant(ToolCall.of("book", id="a")),
        Message.tool(result),
        Message.user("list my bookings"),
    )

    assert "Booked: 1." in reply.text
    assert [call.name for call in reply.calls] == ["list_booked"]


def test_results_of_a_turn_that_ended_early_are_not_told_in_the_next() -> None:
    old = Origin("tool", turn="t1")
    result = Message("tool", (ToolResult("a", "book", (Text("not run"),), is_error=True),), old)
    reply = asked(
        Message("user", "book", Origin(turn="t1")),
        Message("assistant", ToolCall.of("book", id="a"), Origin("model", turn="t1")),
        result,
        Message("user", "hello", Origin(turn="t2")),
    )

    assert "not run" not in reply.text
    assert "Hello!" in reply.text


def test_a_tool_it_may_not_use_is_named_instead_of_called() -> None:
    question = Message.user("book")
    for fields in ({"tools": ()}, {"tool_choice": "none"}, {"allowed": frozenset({"cancel"})}):
        reply = asked(question, **fields)
        assert not reply.calls
        assert "the tool book" in reply.text


@pytest.mark.parametrize(
    ("text", "is_error", "told"),
    [
        ("denied by the guard", True, "did not work: denied by the guard"),
        ('{"error": "unheard"}', True, 'did not work: {"error": "unheard"}'),
        ("42", False, "The tool says: 42"),
        ('{"done": "exploded"}', False, 'The tool says: {"done": "exploded"}'),
        ('{"available": []}', False, "No ticket is free."),
    ],
)
def test_results_that_are_not_the_desks_own_are_quoted(text: str, is_error: bool, told: str) -> None:
    result = Message.tool(ToolResult("a", "book", (Text(text),), is_error=is_error))
    reply = asked(Message.user("book"), Message.assistant(ToolCall.of("book", id="a")), result)

    assert told in reply.text


def test_with_nothing_to_do_it_says_that() -> None:
    assert "nothing for me to do" in asked(Message("user", "note", Origin("plugin"))).text


def test_tools_take_numbers_and_refuse_what_is_too_long(desk: Desk) -> None:
    book = desk.tools["book"]
    assert json.loads(book.spec.schema)["properties"]["ticket"]["type"] == "string"
    assert run(book, ToolCall.of("book", {"ticket": 2})).text.startswith('{"done":"booked","ticket":{"id":2')
    assert json.loads(run(book, ToolCall.of("book", {"ticket": 2})).text)["error"] == "taken"
    with pytest.raises(ArgumentsError, match="200"):
        book.validate({"ticket": "x" * 201})


def test_every_tool_tells_the_model_what_it_is_for(desk: Desk) -> None:
    assert sorted(desk.tools) == ["book", "cancel", "list_available", "list_booked"]
    assert all(tool.description for tool in desk.tools.values())
    assert desk.tools["list_booked"].idempotent
    assert not desk.tools["book"].idempotent
