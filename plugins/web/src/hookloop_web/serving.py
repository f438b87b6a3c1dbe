"""Binding a port, saying the address, and serving until the process is told to end."""

from __future__ import annotations

import ipaddress
import secrets
import socket
import threading
import webbrowser
from collections.abc import Mapping
from typing import Final

import uvicorn
from fastapi import FastAPI

from hookloop_hookspecs import ConfigError

from .guard import LOOPBACK, GuardOptions

TOKEN_VARIABLE: Final = "HOOKLOOP_WEB_TOKEN"
LEAVE: Final = 5
"""Seconds for which open connections are waited for at the end."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises `ConfigError` where that cannot be had."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=512)
    except OSError as error:
        raise ConfigError(f"{host}:{port} cannot be listened on: {error.strerror or error}; try --port") from error


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host in LOOPBACK


def guard_for(host: str, environ: Mapping[str, str], *, rate: float = 50.0) -> GuardOptions:
    """What is let in when bound to `host`: from this machine anybody, from elsewhere who has the token.

    The token is taken from `HOOKLOOP_WEB_TOKEN`, else made up. Raises `ConfigError` for one that is too short.
    """
    token = environ.get(TOKEN_VARIABLE, "")
    if token and len(token) < 16:
        raise ConfigError(f"{TOKEN_VARIABLE} has less than 16 characters; take a longer one")
    burst = max(1, int(rate * 4))
    if is_loopback(host):
        return GuardOptions(hosts=LOOPBACK | {host}, token=token, rate=rate, burst=burst)
    return GuardOptions(hosts=None, token=token or secrets.token_urlsafe(24), rate=rate, burst=burst)


def address(bound: socket.socket, token: str = "") -> str:
    """The URL under which a browser on this machine finds the page."""
    host, port = bound.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}/" + (f"?token={token}" if token else "")


def serve(app: FastAPI, bound: socket.socket, *, open_at: str = "") -> None:
    """Serve until SIGINT or SIGTERM. `open_at` is opened in a browser as soon as the page answers."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, ws_max_size=1_000_000, timeout_graceful_shutdown=LEAVE
    )
    if open_at:
        threading.Timer(0.5, webbrowser.open, [open_at]).start()
    try:
        uvicorn.Server(config).run(sockets=[bound])
    finally:
        bound.close()
