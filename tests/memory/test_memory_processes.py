"""Several processes on one store: nothing is lost, doubled or mixed, whoever dies when."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pymysql
import pytest
from sqlalchemy import create_engine, text

from hookloop_hookspecs import Batch, Entry, LoadQuery, Message, Said, TurnEnded

Start = Callable[..., "subprocess.Popen[str]"]
TURNS = 40


def begin(processes: Sequence[subprocess.Popen[str]]) -> None:
    """Let them go, all at once."""
    for process in processes:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline()) == "ready"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def reports(processes: Sequence[subprocess.Popen[str]]) -> list[Any]:
    """What each reported last."""
    with ThreadPoolExecutor() as pool:
        outputs = list(pool.map(lambda process: process.communicate(timeout=120)[0], processes))
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [json.loads(output.splitlines()[-1]) for output in outputs]


def test_four_processes_on_ten_conversations(shared: Any, writer: Start, conversation: str) -> None:
    processes = [writer("contend", shared.url, f"writer{at}", conversation, str(TURNS)) for at in range(4)]
    begin(processes)
    told = reports(processes)
    assert not any(report["left"] for report in told), "a loser found entries of its refused batch"
    won = Counter((name, turn) for report in told for name, turn in report["won"])
    assert len(won) == 4 * TURNS

    memory = shared.make()
    stored: Counter[tuple[str, str]] = Counter()
    for name in sorted({name for name, _ in won}):
        loaded = memory.load_memory(name, LoadQuery())
        assert [entry.number for entry in loaded.entries] == list(range(loaded.version))
        turns = [loaded.entries[at : at + 4] for at in range(0, loaded.version, 4)]
        assert all(len({entry.turn for entry in turn}) == 1 for turn in turns), "turns were mixed"
        assert all(isinstance(turn[-1].body, TurnEnded) for turn in turns)
        stored.update((name, turn[0].turn) for turn in turns)
    memory.close()
    assert stored == won


def test_a_killed_writer_loses_nothing_it_was_told_is_stored(shared: Any, writer: Start, conversation: str) -> None:
    process = writer("stream", shared.url, "victim", conversation)
    begin([process])
    assert process.stdout is not None
    told = [json.loads(process.stdout.readline()) for _ in range(25)]
    process.kill()
    rest = process.stdout.read()  # not communicate(), which does not see what readline has buffered
    process.wait()
    told += [json.loads(line) for line in rest.splitlines(keepends=True) if line.endswith("\n")]

    memory = shared.make()
    loaded = memory.load_memory(conversation, LoadQuery())
    memory.close()
    assert loaded.version % 4 == 0, "half a batch is stored"
    assert loaded.version // 4 - len(told) in (0, 1)
    assert [entry.number for entry in loaded.entries] == list(range(loaded.version))


@pytest.fixture(params=["sqlite", "postgresql", "mariadb"])
def untouched(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without tables."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/new.db"
    url: str = request.getfixturevalue("postgres" if request.param == "postgresql" else "mariadb")
    if request.param == "mariadb":
        port = int(url.rsplit(":", 1)[1].split("/")[0])
        with pymysql.connect(host="127.0.0.1", port=port, user="root") as connection, connection.cursor() as cursor:
            cursor.execute("DROP DATABASE IF EXISTS untouched")
            cursor.execute("CREATE DATABASE untouched")
        return url.replace("/hookloop", "/untouched")
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"), isolation_level="AUTOCOMMIT")
    with engine.connect() as server:
        server.execute(text("DROP DATABASE IF EXISTS untouched"))
        server.execute(text("CREATE DATABASE untouched"))
    engine.dispose()
    return str(engine.url.set(drivername="postgresql", database="untouched").render_as_string(hide_password=False))


def test_processes_that_begin_at_once_make_the_tables_once(untouched: str, writer: Start) -> None:
    processes = [writer("first", untouched, f"p{at}", "c") for at in range(4)]
    begin(processes)
    assert reports(processes) == [4, 4, 4, 4]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_leaves_the_connections_of_its_parent_alone(shared: Any, conversation: str) -> None:
    memory = shared.make()
    assert memory.load_memory(conversation, LoadQuery()).version == 0
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for at in range(5):
                memory.persist_memory(Batch(conversation, (Entry(at, "t", Said(Message.user(f"{at}"))),), at))
            memory.close()
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0
    assert memory.load_memory(conversation, LoadQuery()).version == 5
    memory.close()
