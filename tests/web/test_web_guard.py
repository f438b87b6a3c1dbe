"""Who is let in: names, origins, tokens, sizes, rates."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import httpx
import pytest
from web_server import PUPPET, Serve, Served
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from hookloop_hookspecs import ConfigError
from hookloop_web.guard import Buckets
from hookloop_web.serving import guard_for, is_loopback, listen

TOKEN = "a-token-of-some-length"


@pytest.fixture(scope="module")
def here(serve_module: Serve) -> Served:
    return serve_module("web", toml=PUPPET)


@pytest.fixture(scope="module")
def elsewhere(serve_module: Serve) -> Served:
    return serve_module("web", "--host", "0.0.0.0", "--rate", "5", toml=PUPPET, HOOKLOOP_WEB_TOKEN=TOKEN)


@pytest.fixture
def client(here: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=here.url) as made:
        yield made


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 400),
        ({"Host": ""}, 400),
        ({"Host": "[::1"}, 400),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({"Host": "localhost"}, 200),
        ({"Cookie": "broken=;;;=; hookloop_session=short"}, 200),
    ],
)
def test_names_and_origins(client: httpx.Client, headers: dict[str, str], status: int) -> None:
    assert client.get("health", headers=headers).status_code == status


def test_a_page_of_another_origin_cannot_talk(client: httpx.Client, here: Served) -> None:
    refused = client.post("api/chat", json={"message": "say x"}, headers={"Origin": "http://evil.example"})
    assert (refused.status_code, refused.json()) == (403, {"detail": "requests from other origins are refused"})
    own = client.post("api/chat", json={"message": "say x"}, headers={"Origin": here.url.rstrip("/")})
    assert own.json()["text"] == "x"


@pytest.mark.parametrize("origin", ["http://evil.example", "null"])
def test_a_websocket_of_another_origin_is_refused(here: Served, origin: str) -> None:
    async def try_it() -> int:
        url = here.url.replace("http://", "ws://") + "_nicegui_ws/socket.io/?EIO=4&transport=websocket"
        with pytest.raises(InvalidStatus) as refused:
            async with connect(url, additional_headers={"Origin": origin}):
                raise AssertionError("it was let in")
        return refused.value.response.status_code

    assert asyncio.run(try_it()) == 403


def test_a_long_body_is_refused_with_and_without_a_length(client: httpx.Client) -> None:
    body = b'{"message": "' + b"x" * 1_100_000 + b'"}'
    kind = {"Content-Type": "application/json"}
    assert client.post("api/chat", content=body, headers=kind).status_code == 413
    assert client.post("api/chat", content=iter([body]), headers=kind).status_code == 400


def test_a_page_is_not_framed_and_loads_nothing_from_elsewhere(client: httpx.Client) -> None:
    answer = client.get("")
    policy = answer.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'self'" in policy
    cookie = answer.headers["set-cookie"]
    assert all(part in cookie for part in ("hookloop_session=", "HttpOnly", "SameSite=Lax"))


def test_a_conversation_of_another_session_is_not_yours(client: httpx.Client) -> None:
    theirs = {"message": "say x", "conversation": "web-0123456789abcdef-000000000000"}
    assert client.post("api/chat", json=theirs).status_code == 403


def test_beyond_this_machine_a_token_is_needed(elsewhere: Served) -> None:
    assert elsewhere.url.endswith(f"/?token={TOKEN}")
    base = elsewhere.url.partition("?")[0]
    with httpx.Client(base_url=base) as client:
        assert client.get("").status_code == 401
        assert client.get("", params={"token": "wrong"}).status_code == 401
        assert client.get("health", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        admitted = client.get("", params={"token": TOKEN, "c": "web-x"})
        assert (admitted.status_code, admitted.headers["location"]) == (303, "/?c=web-x")
        assert client.get("health").status_code == 200


def test_too_many_requests_wait(elsewhere: Served) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=elsewhere.url.partition("?")[0], headers=headers) as client:
        answers = [client.get("health") for _ in range(100)]
    refused = [one for one in answers if one.status_code == 429]
    assert 0 < len(refused) < 100
    assert int(refused[0].headers["retry-after"]) >= 1


def test_a_bucket_fills_with_time() -> None:
    now = [0.0]
    bucket = Buckets(2.0, 3, lambda: now[0], kept=2)
    assert [bucket.take("a") for _ in range(4)] == [0, 0, 0, 0.5]
    now[0] = 0.5
    assert bucket.take("a") == 0
    assert bucket.take("a") == 0.5
    assert bucket.take("b") == bucket.take("c") == 0
    assert bucket.take("a") == 0, "the oldest client was forgotten"


def test_the_guard_depends_on_where_it_is_bound() -> None:
    assert guard_for("127.0.0.1", {}).token == ""
    assert guard_for("::1", {}).hosts is not None
    assert len(guard_for("0.0.0.0", {}).token) >= 24
    assert guard_for("localhost", {"HOOKLOOP_WEB_TOKEN": TOKEN}).token == TOKEN
    with pytest.raises(ConfigError, match="16 characters"):
        guard_for("0.0.0.0", {"HOOKLOOP_WEB_TOKEN": "short"})
    assert not is_loopback("example.org")


def test_a_port_that_is_taken_is_said() -> None:
    with listen("127.0.0.1", 0) as bound, pytest.raises(ConfigError, match="cannot be listened on"):
        listen("127.0.0.1", bound.getsockname()[1])
