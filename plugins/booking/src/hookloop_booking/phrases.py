"""What the offline provider says, in both languages: data, and answers made of tool results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from hookloop_hookspecs import ToolResult

from .intents import Language
from .reading import in_chinese

NOTICE: Final[Mapping[Language, str]] = MappingProxyType(
    {
        "en": "(I am offline: simple rules answer here, no language model.)",
        "zh": "（我是离线规则程序，不是语言模型。）",
    }
)
"""Said once, in the first answer of a conversation."""

_EN: Final = {
    "help": 'I can list the free tickets, list what is booked, book and cancel. Try "I want to book a ticket", '
    '"book G456", "Beijing to Shanghai", "list my bookings" or "cancel G123". Chinese works too.',
    "greet": 'Hello! I book train tickets. Say "I want to book a ticket", or ask what is available.',
    "thanks": "You are welcome.",
    "leave": "All right, nothing was changed.",
    "unknown": 'I did not understand that. I can book, cancel, and list tickets: try "I want to book a ticket".',
    "no_tool": "I would need the tool {tool}, which is not available to me now.",
    "nothing": "There is nothing for me to do.",
    "available": "Free tickets:",
    "no_available": "No ticket is free.",
    "booked": "Booked tickets:",
    "no_booked": "No ticket is booked.",
    "done_booked": "Booked: {ticket}.",
    "done_cancelled": "Cancelled: {ticket}. It is free again.",
    "no_match": 'No ticket matches "{wanted}". The nearest are:',
    "ambiguous": "Several tickets fit. Which one do you mean?",
    "taken": "That ticket is already booked:",
    "not_booked": "That ticket is not booked, so there is nothing to cancel:",
    "nothing_free": "No ticket is free.",
    "nothing_booked": "No ticket is booked, so there is nothing to cancel.",
    "failed": "That did not work: {text}",
    "other": "The tool says: {text}",
}

_ZH: Final = {
    "help": "我可以查看余票、查看已订车票、订票和退票。"
    "试试：“我想订一张票”、“订G456”、“北京到上海”、“我的订单”或“取消G123”。",
    "greet": "您好！我可以帮您订火车票。请说“我想订一张票”，或者问我还有哪些票。",
    "thanks": "不客气。",
    "leave": "好的，没有做任何更改。",
    "unknown": "我没有听懂。我可以订票、退票和查票：请试试“我想订一张票”。",
    "no_tool": "这需要工具 {tool}，但现在不能使用它。",
    "nothing": "没有需要我做的事。",
    "available": "可预订的车票：",
    "no_available": "现在没有余票。",
    "booked": "已预订的车票：",
    "no_booked": "现在没有已预订的车票。",
    "done_booked": "已为您预订：{ticket}。",
    "done_cancelled": "已取消：{ticket}，这张票又可以预订了。",
    "no_match": "没有找到与“{wanted}”相符的车票。最接近的是：",
    "ambiguous": "有几张票都符合，您指的是哪一张？",
    "taken": "这张票已经被预订了：",
    "not_booked": "这张票没有被预订，无需取消：",
    "nothing_free": "现在没有余票。",
    "nothing_booked": "没有已预订的车票，无需取消。",
    "failed": "没有成功：{text}",
    "other": "工具的回答：{text}",
}

PHRASES: Final[Mapping[Language, Mapping[str, str]]] = MappingProxyType({"en": _EN, "zh": _ZH})


def answer(result: ToolResult, language: Language) -> str:
    """One tool result in words. What is not the booking tools' own JSON is quoted as it is."""
    say = PHRASES[language]
    value = _object(result.text)
    told = _refusal(value, language) if result.is_error else _success(value, language)
    return told or say["failed" if result.is_error else "other"].format(text=result.text)


def _object(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _success(value: Mapping[str, Any], language: Language) -> str:
    say = PHRASES[language]
    if f"done_{value.get('done')}" in say:
        return say[f"done_{value['done']}"].format(ticket=_name(value.get("ticket"), language))
    for kind in ("available", "booked"):
        if isinstance(tickets := value.get(kind), list):
            return _listed(say[kind], tickets, language) if tickets else say[f"no_{kind}"]
    return ""


def _refusal(value: Mapping[str, Any], language: Language) -> str:
    code = value.get("error")
    if not isinstance(code, str) or code not in PHRASES[language]:
        return ""
    title = PHRASES[language][code].format(wanted=value.get("wanted", ""))
    tickets = value.get("tickets")
    return _listed(title, tickets if isinstance(tickets, list) else [], language)


def _listed(title: str, tickets: Sequence[Any], language: Language) -> str:
    return "\n".join([title, *(f"- {_name(ticket, language)}" for ticket in tickets)])


def _name(ticket: Any, language: Language) -> str:
    """A ticket as it is called in a language. The Chinese name is given beside the one that the database has."""
    if not isinstance(ticket, dict):
        return str(ticket)
    route = str(ticket.get("route", ""))
    local = in_chinese(route)
    shown = f"{local}（{route}）" if language == "zh" and local != route else route
    return f"{ticket.get('id')}. {shown}"
