"""What does a sentence ask for? Rules in English and Chinese, tried in order: pure functions over text."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from .reading import LONGEST, read_wish

Action: TypeAlias = Literal[
    "book", "cancel", "list_available", "list_booked", "help", "greet", "thanks", "leave", "unknown"
]
Language: TypeAlias = Literal["en", "zh"]

_HAN: Final = re.compile(r"[\u3400-\u9fff]")

_CANCELLING: Final = r"""
    \bcancel\b | \bcancell?(?:ing|ation)\b | \bun-?book\b | \brefund\b | \bgive\s+back\b | \bdrop\b | \bno\s+longer\b
    | 取消 | 退 | 撤销
"""
_BOOKED: Final = r"""
    \b(?:my|our)\s+(?:\w+\s+)?(?:bookings?|reservations?|tickets?|trips?|orders?)\b
    | \bbookings\b | \breservations\b | ^\W*booked\W*$ | \btaken\b
    | \b(?:have|do)\s+(?:i|we)\s+(?:have|got|booked|reserved|bought)\b | \bhave\s+(?:i|we)\b
    | \b(?:i|we)(?:'ve|\s+have)?\s+(?:already\s+)?booked\b | \bdid\s+(?:i|we)\s+(?:book|reserve|buy)\b
    | \b(?:is|are|was|were|what'?s|show|list|see)\b[^.!?]*\b(?:booked|reserved)\b
    | 我有 | 我(?:预订|预定|订)的 | 我的(?:预订|订单|车票|火车票|票) | 已经?(?:预订|预定|订) | 订了(?:什么|哪|几|多少) | 订过
    | [查看][^。]*(?:订单|预订|已订) | 订单
"""
_BOOK_FIRST: Final = r"""
    ^\W*
    (?:(?:please|could|can|would|you|kindly|i|we|want|need|wish|like|i'd|i'll|let|help|me|us|to|just|ok|okay|yes|hi|hello)\W+)*
    (?:book|reserve|buy|purchase)\b
"""
_AVAILABLE: Final = r"""
    \bavailab\w* | \bfree\b(?!\s+me) | \bleft\b | \bwhere\b | \bare\s+there\b | \bdo\s+you\s+have\b
    | \b(?:list|show|see|which|what)\b[^.!?]*\b(?:tickets?|trains?|seats?|routes?)\b
    | \bwhat\s+(?:can|could|may)\s+i\s+(?:book|buy|reserve)\b | ^\W*(?:tickets?|list|trains?)\W*$
    | [有剩](?:什么|哪|几|多少|没有|空) | 可(?:用|预订|订|买|选) | 余票 | 空票 | 剩余 | 列出
    | [有哪][^。]*票 | 什么[^。]*票 | [查看]票 | 票有
"""
_BOOKING: Final = r"""
    \b(?:book|reserve|buy|purchase)\b | ^\W*(?:a|one|1)\s+(?:ticket|seat)\b | \b(?:go|travel|get)\s+to\b
    | \b(?:order|get|need|want|like|take|have|give)\b[^.!?]*\b(?:tickets?|trains?|seats?|rides?|one|it)\b
    | 订 | 预定 | 买 | 购 | [要来][^。]*票 | [想要]去
"""
_NOT: Final = r"""
    \bdon'?t\b | \bdo\s+not\b | \bnever\s*mind\b | \bnot\s+now\b | \bno\s+need\b
    | (?<!特)别(?!的) | 不[要想用] | 算了
"""
_HELP: Final = r"""
    \bhelp\b(?!\s+me\s+\w) | \bwhat\s+(?:(?:can|do|are)\s+you|you\s+can)\b | \bhow\s+(?:do|can|does|to|should)\b
    | \bwho\s+are\s+you\b | \bwhat\s+is\s+this\b
    | 帮助 | 你能[做干] | 你会 | 怎么 | 如何 | 你是谁 | 能做什么 | 有什么功能
"""
_THANKS: Final = r"\bthanks?\b | 谢"
_GREETING: Final = r"""
    ^\W*(?:hi|hello|hey|good\s+(?:morning|afternoon|evening|day))\b
    | [你您]好 | 早上好 | 晚上好 | 下午好 | 嗨
"""

_PATTERNS: Final[tuple[tuple[Action, str], ...]] = (
    ("help", _HELP),
    ("leave", _NOT),
    ("cancel", _CANCELLING),
    ("book", _BOOK_FIRST),
    ("list_booked", _BOOKED),
    ("list_available", _AVAILABLE),
    ("book", _BOOKING),
    ("thanks", _THANKS),
    ("greet", _GREETING),
)
_RULES: Final = tuple((action, re.compile(pattern, re.VERBOSE)) for action, pattern in _PATTERNS)


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
    plain = text[:LONGEST].casefold().replace("’", "'")
    action = next((action for action, rule in _RULES if rule.search(plain)), None)
    wish = read_wish(text)
    if action in ("book", "cancel"):
        return Intent(action, wish.phrase)
    if action is None and (wish.origin or wish.destination or wish.trains):
        return Intent("list_available") if plain.rstrip().endswith(("?", "？")) else Intent("book", wish.phrase)
    return Intent(action or "unknown")
