"""The bytes of pictures and files, wherever a part holds them."""

from __future__ import annotations

import pytest

from hookloop_hookspecs import File, Image
from hookloop_hookspecs.media import Medium, medium_of

HELLO = Medium("image/png", "aGVsbG8=", b"hello")


@pytest.mark.parametrize(
    "part",
    [
        Image("aGVsbG8="),
        Image("aGVs\nbG8="),
        Image("data:image/png;base64,aGVsbG8="),
        Image(url="DATA:image/png;charset=x;base64,aGVsbG8="),
        Image("aGVsbG8=", "Image/PNG; q=1"),
        File("aGVsbG8=", "image/png", url="https://example.org/elsewhere.png"),
    ],
)
def test_data_is_read_from_wherever_it_stands(part: Image | File) -> None:
    assert medium_of(part) == HELLO


def test_a_usual_misnomer_has_its_right_name() -> None:
    assert medium_of(Image("aGVsbG8=", "image/jpg")).kind == "image/jpeg"


@pytest.mark.parametrize(
    ("part", "words"),
    [
        (Image(), "it has no data"),
        (Image("!!!"), "its data is not base64"),
        (Image("aGVsbG8"), "its data is not base64"),
        (Image(url="data:image/png,hello"), "its address is no data URL in base64"),
        (File(url="https://example.org/a.pdf"), "its address is no data URL in base64"),
    ],
)
def test_what_cannot_be_read_says_why(part: Image | File, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        medium_of(part)
