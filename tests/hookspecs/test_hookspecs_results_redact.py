"""Exception texts on their way to a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookloop_hookspecs.redact import bounded, redact


@pytest.mark.parametrize(
    "text",
    [
        "GET https://api.example.com/v1?key=SECRETVALUE1&x=1 failed",
        "GET https://api.example.com/v1?x=1&api_key=SECRETVALUE1: 500",
        "GET /v1?access_token=SECRETVALUE1#top",
        "Authorization: Bearer SECRETVALUE1",
        "authorization: SECRETVALUE1",
        "{'Authorization': 'Bearer SECRETVALUE1'}",
        '{"authorization": "Basic SECRETVALUE1=="}',
        "[(b'authorization', b'Bearer SECRETVALUE1'), (b'x-api-key', b'SECRETVALUE1')]",
        "Headers([('x-api-key', 'SECRETVALUE1')])",
        "Proxy-Authorization: Basic SECRETVALUE1",
        "bearer SECRETVALUE1 was refused",
        "x-api-key: SECRETVALUE1",
        "x-goog-api-key=SECRETVALUE1",
        "api_key=SECRETVALUE1, model=x",
        "OPENAI_API_KEY=SECRETVALUE1",
        "Client(api_key='SECRETVALUE1')",
        '{"password": "SECRETVALUE1 with spaces"}',
        "password=SECRETVALUE1",
        "client_secret = SECRETVALUE1",
        "token=SECRETVALUE1",
        "postgresql://user:SECRETVALUE1@host/db",
        "redis://:SECRETVALUE1@host:6379",
        "postgresql://user:p@SECRETVALUE1@host/db",
        "Incorrect API key provided: sk-SECRETVALUE1",
        "sk-ant-api03-SECRETVALUE1_x-y",
        "sk-proj-SECRETVALUE1",
        "ghp_SECRETVALUE1",
        "AWS AKIASECRETVALUE12345",
        "eyJhbGciOi.eyJzdWIi.SECRETVALUE1",
        "Cookie: session=SECRETVALUE1; other=SECRETVALUE1",
    ],
)
def test_l06_secrets_go(text: str) -> None:
    redacted = redact(text)
    assert "SECRETVALUE1" not in redacted
    assert "[redacted]" in redacted
    assert redact(redacted) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "file not found: /tmp/a.txt",
        "https://example.com/a?page=2&q=x",
        "max_tokens=500, tokens: 12",
        "Unexpected token: }",
        "a risk-averse task-oriented key-value store",
        "KeyError: 'name'",
        "basic authentication failed",
        "postgresql://host:5432/db",
        "mail me@example.com: now",
        "The author: Jane",
        "monkey=1",
    ],
)
def test_ordinary_texts_stay(text: str) -> None:
    assert redact(text) == text


def test_what_is_around_a_secret_stays() -> None:
    assert redact("GET https://h/v1?key=abc&x=1 failed") == "GET https://h/v1?key=[redacted]&x=1 failed"
    assert redact("postgresql://user:pw@host/db") == "postgresql://user:[redacted]@host/db"
    assert redact("Authorization: Bearer abcdef\nHost: x") == "Authorization: [redacted]\nHost: x"


@pytest.mark.parametrize(
    "text", ["a-" * 50_000, "a_" * 50_000 + "=", "Bearer " * 20_000, "a://" * 20_000, "eyJ" + "a." * 50_000]
)
def test_long_texts_end(text: str) -> None:
    assert len(redact(text)) <= len(text) * 3


@given(st.text(), st.integers(min_value=0, max_value=60))
def test_bounded_texts_are_bounded_and_short_ones_whole(text: str, limit: int) -> None:
    cut = bounded(text, limit)
    assert len(cut) <= limit or cut == text
    assert len(cut) <= max(limit, 0)
    if len(text) <= limit:
        assert cut == text


def test_a_cut_keeps_both_ends_and_says_how_much_is_missing() -> None:
    cut = bounded("a" * 3000 + "end", 100)
    assert cut.startswith("aaa")
    assert cut.endswith("end")
    assert "characters cut" in cut
    kept = cut.count("a", 0, cut.index(" …")) + len(cut) - cut.index("… ") - 2
    assert f"[{3003 - kept} characters cut]" in cut
