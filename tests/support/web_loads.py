"""Long turns and many readers: what the soak tests bound and the benchmark prints."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass

import httpx
import psutil
from playwright.sync_api import Page, expect
from web_page import chat, enter, settled, timeline
from web_server import Served

WATCH = """() => { window.long = []; new PerformanceObserver((list) => {
    for (const entry of list.getEntries()) window.long.push(entry.duration);
}).observe({ type: 'longtask' }); }"""


@dataclass(frozen=True)
class LongTurn:
    """Times in milliseconds: the browser's tasks over 50 ms, and the server's CPU for each event."""

    events: int
    seconds: float
    long_tasks: tuple[float, ...]
    server_per_event: float


@dataclass(frozen=True)
class Crowd:
    """Chats that ended well, pieces of text that arrived, the slowest chat's seconds, the server's memory in MB."""

    done: int
    pieces: int
    slowest: float
    memory: float


def long_turn(page: Page, site: Served, rounds: int, pieces: int) -> LongTurn:
    """A turn of many rounds while a browser looks on."""
    enter(page, site.url)
    page.evaluate(WATCH)
    server = psutil.Process(site.process.pid)
    cpu, began = _cpu(server), time.monotonic()
    page.get_by_label("Message", exact=True).fill(f"rounds {rounds} {pieces}")
    page.get_by_label("Message", exact=True).press("Enter")
    expect(timeline(page).locator(".hl-round")).to_have_count(rounds + 1, timeout=240_000)
    settled(page)
    seconds, spent = time.monotonic() - began, _cpu(server) - cpu
    expect(chat(page).locator(".k-call")).to_have_count(rounds)
    events = rounds * (pieces + 7)  # request, reply, call piece, tool start and end, feedback, writes
    return LongTurn(events, seconds, tuple(page.evaluate("window.long")), 1000 * spent / events)


def crowd(site: Served, chats: int, turns: int) -> Crowd:
    """Many clients that read streams at the same time, several turns each."""

    async def one(client: httpx.AsyncClient, number: int) -> tuple[int, int, float]:
        conversation, done, pieces, began = None, 0, 0, time.monotonic()
        for turn in range(turns):
            text = f"client {number}, turn {turn}: " + "many words " * 40
            body = {"message": f"say {text}", **({"conversation": conversation} if conversation else {})}
            said = ""
            async with client.stream("POST", "api/chat/stream", json=body) as answer:
                kind = ""
                async for line in answer.aiter_lines():
                    kind = line[7:] if line.startswith("event: ") else kind
                    if line.startswith("data: ") and kind == "text_piece":
                        said += json.loads(line[6:])["text"]
                        pieces += 1
                    elif line.startswith("data: ") and kind == "outcome":
                        outcome = json.loads(line[6:])
                        conversation = outcome["conversation"]
                        done += outcome["status"] == "done" and said == text == outcome["text"]
        return done, pieces, time.monotonic() - began

    async def all_of_them() -> list[tuple[int, int, float]]:
        limits = httpx.Limits(max_connections=chats)
        async with httpx.AsyncClient(base_url=site.url, limits=limits, timeout=120) as client:
            return await asyncio.gather(*(one(client, number) for number in range(chats)))

    found = asyncio.run(all_of_them())
    memory = psutil.Process(site.process.pid).memory_info().rss / 1e6
    return Crowd(sum(one[0] for one in found), sum(one[1] for one in found), max(one[2] for one in found), memory)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
