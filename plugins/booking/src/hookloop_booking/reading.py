"""What does a text say about a ticket? Pure functions from text to values: no database, no clock, no language model.

Understood are a train number ("G123", "g 123"), an id ("2", "#2", "2号"), a route ("Beijing-Shanghai G123", "Beijing
to Shanghai", "北京到上海"), one end of it ("to Shanghai", "从北京") and small typing errors in city names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from typing import Final

from . import words
from .cities import chinese, spellings

_NAMES: Final = spellings()
_HAN: Final = "\u3400-\u9fff"
_ROUTE: Final = re.compile(r"(?P<origin>[^-]+?)\s*-\s*(?P<destination>.+?)\s+(?P<train>\S*\d\S*)")
LONGEST: Final = 500
"""Only so many characters of a text are read: who means a ticket says so in fewer, and comparing costs time."""

_TYPO_CUTOFF: Final = 0.8
_TYPO_LENGTH: Final = 5


@dataclass(frozen=True, slots=True)
class Route:
    """A route, read: cities by their English names where known, the train's number casefolded ("g123")."""

    origin: str
    destination: str
    train: str


@dataclass(frozen=True, slots=True)
class Wish:
    """What a text says about the ticket that is meant.

    `place` is a city without a direction; `strange` are places that nobody knows, `rest` other words that say nothing.
    """

    trains: tuple[str, ...] = ()
    ids: tuple[int, ...] = ()
    origin: str = ""
    destination: str = ""
    place: str = ""
    strange: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()

    @property
    def concrete(self) -> bool:
        """True when something was recognised by which tickets can be told apart."""
        return bool(self.trains or self.ids or self.origin or self.destination or self.place)

    @property
    def anything(self) -> bool:
        """True when the text leaves the choice open."""
        return not (self.concrete or self.strange or self.rest)

    @property
    def phrase(self) -> str:
        """The wish in a few words that read back to the same wish; empty when the choice is open."""
        ways = [f"from {self.origin}" * bool(self.origin), f"to {self.destination}" * bool(self.destination)]
        known = [*ways, self.place, *(train.upper() for train in self.trains), *map(str, self.ids)]
        strange = [f"to {name}" for name in self.strange]
        return " ".join(filter(None, [*known, *strange, *(() if self.concrete or strange else self.rest)]))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str


@lru_cache(maxsize=4096)
def read_route(route: str) -> Route:
    """The parts of a ticket's route; parts that cannot be told are empty."""
    found = _ROUTE.fullmatch(normal(route))
    if found is None:
        return Route("", "", "")
    origin, destination = (_city(found[end]) for end in ("origin", "destination"))
    return Route(origin, destination, re.sub(r"[\s-]", "", found["train"]))


def read_wish(text: str, routes: Iterable[str] = ()) -> Wish:
    """Read what `text` says about a ticket. The cities of `routes` are known beside the built-in ones."""
    tokens = _tokens(text, _names_of(routes))
    return _Reader(tokens).wish()


def in_chinese(route: str) -> str:
    """A route with Chinese city names, "北京-上海 G123"; as it is where it cannot be read."""
    read = read_route(route)
    return f"{chinese(read.origin)}-{chinese(read.destination)} {read.train.upper()}" if read.train else route


def normal(text: str) -> str:
    """The text in the form in which texts are compared: one width, one case, one dash, no apostrophes, bounded."""
    plain = re.sub(r"['’`]", "", unicodedata.normalize("NFKC", text[:LONGEST]).casefold())
    return re.sub(r"\s*(?:->|=>|[→⇒–—―−~〜])\s*", "-", plain).strip()


def _city(name: str) -> str:
    clean = name.strip()
    return _NAMES.get(clean, clean)


def _names_of(routes: Iterable[str]) -> frozenset[str]:
    read = [read_route(route) for route in routes]
    return frozenset(end for route in read for end in (route.origin, route.destination) if end) - set(_NAMES.values())


@lru_cache(maxsize=64)
def _scanner(extra: frozenset[str]) -> re.Pattern[str]:
    """One pattern for all tokens; at each place the first alternative that fits wins."""
    cities = "|".join(_spelling(name) for name in sorted({*_NAMES, *extra}, key=len, reverse=True))
    fillers = "|".join(sorted(words.CHINESE, key=len, reverse=True))
    return re.compile(
        rf"(?P<train>(?<![a-z0-9])[b-hj-z]\s?-?\s?\d{{1,5}}(?![a-z0-9]))"
        rf"|(?P<city>{cities})"
        rf"|(?P<one>(?<![a-z0-9])1\s+(?:ticket|seat)(?![a-z])|1\s*张)"
        rf"|(?P<amount>(?<![a-z0-9])(?:\d+|two|three|four|five)\s+tickets|\d+\s*张|[两二三四五]张)"
        rf"|(?P<to>(?<![a-z])(?:to|towards?|until|till)(?![a-z])|-|前往|开往|[到去往至])"
        rf"|(?P<source>(?<![a-z])from(?![a-z])|[从自由])"
        rf"|(?P<number>\d+)"
        rf"|(?P<filler>{fillers})"
        rf"|(?P<word>[^\W\d_{_HAN}]+)"
        rf"|(?P<han>[{_HAN}])"
    )


def _spelling(name: str) -> str:
    flexible = r"\s?".join(map(re.escape, name.split()))
    return flexible if re.match(f"[{_HAN}]", name) else rf"(?<![a-z]){flexible}(?![a-z])"


def _tokens(text: str, extra: frozenset[str]) -> list[_Token]:
    found = _scanner(extra).finditer(normal(text))
    tokens: list[_Token] = []
    for token in (_token(each, extra) for each in found):
        if token.kind == "han" and tokens and tokens[-1].kind == "han":
            tokens[-1] = _Token("han", tokens[-1].text + token.text)
        else:
            tokens.append(token)
    return tokens


def _token(found: re.Match[str], extra: frozenset[str]) -> _Token:
    kind, text = found.lastgroup or "", found[0]
    if kind == "city":
        return _Token(kind, _city(re.sub(r"\s+", " ", text)))
    if kind == "word":
        return _word(text, extra)
    return _Token(kind, re.sub(r"[\s-]", "", text) if kind == "train" else text)


def _word(text: str, extra: frozenset[str]) -> _Token:
    if text in words.ENGLISH:
        return _Token("filler", text)
    known = get_close_matches(text, {*_NAMES, *extra}, 1, _TYPO_CUTOFF) if len(text) >= _TYPO_LENGTH else []
    return _Token("city", _city(known[0])) if known else _Token("word", text)


class _Reader:
    """Makes a wish of tokens: a word's meaning depends on the token before it, and on a "to" behind it."""

    def __init__(self, tokens: list[_Token]) -> None:
        kinds = ["", *(token.kind for token in tokens), ""]
        self._around = list(zip(kinds, tokens, kinds[2:], strict=False))

    def wish(self) -> Wish:
        origin, destination, place = self._ends()
        strange = tuple(dict.fromkeys(text for text, is_place in self._unknown() if is_place))
        rest = tuple(text for text, is_place in self._unknown() if not is_place)
        ids = tuple(int(text) for text in self._texts("number"))
        return Wish(self._texts("train"), ids, origin, destination, place, strange, rest)

    def _texts(self, kind: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(token.text for _, token, _ in self._around if token.kind == kind))

    def _ends(self) -> tuple[str, str, str]:
        cities = [(before, token.text) for before, token, _ in self._around if token.kind == "city"]
        origin = next((name for before, name in cities if before == "source"), "")
        destination = next((name for before, name in cities if before == "to"), "")
        loose = [name for before, name in cities if before not in ("source", "to")]
        if loose and len(cities) == 1:
            return "", "", loose[0]
        if loose and not origin:
            origin = loose.pop(0)
        return origin, destination or (loose[0] if loose else ""), ""

    def _unknown(self) -> list[tuple[str, bool]]:
        return [
            (token.text, before in ("to", "source") or after == "to")
            for before, token, after in self._around
            if token.kind in ("word", "han", "amount")
        ]
