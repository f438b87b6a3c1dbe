"""What does a sentence ask for? Rules in English and Chinese, tried in order: pure functions over text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .matching import read_wish

Action: TypeAlias = Literal[
    "book", "cancel", "list_available", "list_booked", "help", "greet", "thanks", "leave", "unknown"
]
Language: TypeAlias = Literal["en", "zh"]

_HAN: Final = re.compile(r"[\u3400-\u9fff]")

_CANCELLING: Final = (
    r"\bcancel\b|\bcancell?(?:ing|ation)\b|\bun-?book\b|\brefund\b|\bgive\s+back\b|\bdrop\b|取消|退票|退掉|退订|退|撤销"
)
_BOOKED: Final = (
    r"\b(?:my|our)\s+(?:\w+\s+)?(?:bookings?|reservations?|tickets?|trips?|orders?)\b|\bbookings\b|\breservations\b"
    r"|\bhave\s+(?:i|we)\b|\bdo\s+(?:i|we)\s+have\b|\b(?:i|we)(?:'ve|\s+have)?\s+(?:already\s+)?booked\b|\bdid\s+(?:i|we)\s+(?:book|reserve|buy)\b"
    r"|\b(?:is|are|was|were|what'?s|show|list|see)\b[^.!?]*\b(?:booked|reserved)\b"
    r"|我有|我的(?:预订|订单|车票|火车票|票)|(?:已|已经)(?:预订|预定|订)|订了(?:什么|哪|几|多少)|订过|(?:查|看)[^。]*(?:订单|预订|已订)|订单"
)
_BOOK_FIRST: Final = (
    r"^\W*(?:(?:please|could|can|would|you|kindly|i|we|want|need|wish|would|like|i'd|i'll|let|me|us|to|just|ok|okay|yes|hi|hello)\W+)*"
    r"(?:book|reserve|buy|purchase)\b"
)
_AVAILABLE: Final = (
    r"\bavailab\w*|\bfree\b(?!\s+me)|\bleft\b|\b(?:list|show|see|which|what)\b[^.!?]*\b(?:tickets?|trains?|seats?|routes?)\b"
    r"|\bwhat\s+(?:can|could|may)\s+i\s+(?:book|buy|reserve)\b|\bare\s+there\b|\bdo\s+you\s+have\b|^\W*(?:tickets?|list|trains?)\W*$"
    r"|(?:有|剩|还有)(?:什么|哪|几|多少|没有|空)|可(?:预订|订|买|选)|余票|空票|剩余|列出|有[^。]*票|查票|看票|票有|(?:哪|什么)[^。]*票"
)
_BOOKING: Final = (
    r"\b(?:book|reserve|buy|purchase|order|get|need|want|like|take|have|give)\b[^.!?]*\b(?:tickets?|trains?|seats?|rides?|one|it)\b"
    r"|\b(?:book|reserve|buy|purchase)\b|^\W*(?:a|one|1)\s+(?:ticket|seat)\b|\b(?:go|travel|get)\s+to\b|预订|预定|订购|订|买|购|(?:要|来)[^。]*票|想去|要去"
)
_NOT: Final = r"\b(?:don'?t|do\s+not|never\s*mind|not\s+now|no\s+need)\b|(?<!特)别(?!的)|不要|不想|不用|算了"
_HELP: Final = (
    r"\bhelp\b|\bwhat\s+(?:can|do)\s+you\b|\bhow\s+(?:do|can|does|to|should)\b|\bwho\s+are\s+you\b|\bwhat\s+is\s+this\b"
    r"|\bwhat\s+are\s+you\b|帮助|你能做|你能干|你会|怎么|如何|你是谁|能做什么|有什么功能"
)

_PATTERNS: Final[tuple[tuple[Action, str], ...]] = (
    ("help", _HELP),
    ("leave", _NOT),
    ("cancel", _CANCELLING),
    ("book", _BOOK_FIRST),
    ("list_booked", _BOOKED),
    ("list_available", _AVAILABLE),
    ("book", _BOOKING),
    ("thanks", r"\bthanks?\b|\bthank\s+you\b|谢|多谢"),
    ("greet", r"^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening|day))\b|你好|您好|早上好|晚上好|下午好|嗨"),
)
_RULES: Final = tuple((action, re.compile(pattern)) for action, pattern in _PATTERNS)


@dataclass(frozen=True, slots=True)
class Intent:
    """What is asked: an action and, for booking and cancelling, which `ticket` in few words ("" leaves it open)."""

    action: Action
    ticket: str = ""


def language(text: str) -> Language:
    """Chinese when there is any Chinese character in the text, else English."""
    return "zh" if _HAN.search(text) else "en"


def read_intent(text: str) -> Intent:
    """The intent of a sentence; "unknown" where no rule fits and no ticket is named.

    A ticket that is named without a word of what to do is booked, or, in a question, listed.
    """
    plain = text.casefold().replace("’", "'")
    action = next((action for action, rule in _RULES if rule.search(plain)), None)
    wish = read_wish(text)
    if action in ("book", "cancel"):
        return Intent(action, wish.phrase)
    if action is None and (wish.origin or wish.destination or wish.trains):
        return Intent("list_available") if plain.rstrip().endswith(("?", "？")) else Intent("book", wish.phrase)
    return Intent(action or "unknown")
