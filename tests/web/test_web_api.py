"""The OpenAPI document, and that the server keeps to it whatever it is sent."""

from __future__ import annotations

import subprocess
import sys

import httpx
from web_server import Serve

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"


def test_no_request_finds_an_error_or_an_undocumented_answer(serve: Serve) -> None:
    desk = serve("demo", "--quiet", "--rate", "100000")
    command = [sys.executable, "-m", "schemathesis.cli", "run", f"{desk.url}openapi.json", "--checks", CHECKS]
    bounds = ["--max-examples", "15", "--phases", "examples,coverage,fuzzing", "--seed", "7", "--no-color"]
    done = subprocess.run(
        [*command, *bounds], cwd=desk.folder, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


def test_the_document_lists_every_route(serve: Serve) -> None:
    desk = serve("demo")
    paths = httpx.get(f"{desk.url}openapi.json").json()["paths"]
    assert set(paths) == {
        "/health",
        "/api/chat",
        "/api/chat/stream",
        "/api/bookings",
        "/api/bookings/{ticket_id}/book",
        "/api/bookings/{ticket_id}/cancel",
    }
