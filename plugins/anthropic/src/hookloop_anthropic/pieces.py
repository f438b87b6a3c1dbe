"""Text that arrives in pieces. A character cut in two halves (a surrogate pair) is put together again."""

from __future__ import annotations


def whole(text: str) -> str:
    """The text with halves of characters joined, and lone ones replaced, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


class Pieces:
    """Pieces of one text. `add` says what may be shown now: half a character waits for its other half."""

    __slots__ = ("_half", "_pieces")

    def __init__(self, first: str = "") -> None:
        self._pieces: list[str] = []
        self._half = ""
        if first:
            self.add(first)

    def add(self, piece: str) -> str:
        """Take a piece; what of it is to be shown."""
        piece = self._half + piece
        self._half = piece[-1] if "\ud800" <= piece[-1:] <= "\udbff" else ""
        shown = whole(piece[:-1] if self._half else piece)
        self._pieces.append(shown)
        return shown

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def __str__(self) -> str:
        return "".join(self._pieces) + ("\ufffd" if self._half else "")
