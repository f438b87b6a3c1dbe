"""How texts become deltas and bodies become network chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

S = TypeVar("S", str, bytes)


def pieces(whole: S, size: int, at: Sequence[int] = ()) -> list[S]:
    """The whole in pieces: at these offsets where some are given, else every `size` units; never an empty piece."""
    marks: Sequence[int] = (
        sorted({mark for mark in at if 0 < mark < len(whole)}) if at else range(size, len(whole), size)
    )
    edges = [0, *marks, len(whole)]
    return [whole[start:end] for start, end in pairwise(edges) if start < end]


@dataclass(frozen=True, slots=True)
class Cutter:
    """How finely text and arguments are cut into deltas."""

    size: int = 16
    at: tuple[int, ...] = ()

    def __call__(self, text: str) -> list[str]:
        return pieces(text, self.size, self.at)
