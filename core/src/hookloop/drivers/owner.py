"""Who holds a claim: this process, named so that others can tell whether it lives."""

from __future__ import annotations

import os
import socket
from functools import lru_cache


def owner() -> str:
    """Host, process and the process's start; another after a fork."""
    return _owner(os.getpid())


@lru_cache(maxsize=4)
def _owner(pid: int) -> str:
    import psutil

    return f"{socket.gethostname()}/{pid}/{psutil.Process(pid).create_time():.2f}"


def alive(name: str) -> bool | None:
    """Does this owner live? None for one of another host, or a name that is not ours."""
    import psutil

    host, _, rest = name.rpartition("/")[0].rpartition("/")
    pid, start = rest, name.rpartition("/")[2]
    if host != socket.gethostname() or not pid.isdigit():
        return None
    try:
        process = psutil.Process(int(pid))
        zombie = process.status() == psutil.STATUS_ZOMBIE
        return f"{process.create_time():.2f}" == start and not zombie
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return None
