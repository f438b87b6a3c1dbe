"""Every store, on its real server, passes every check that its flags ask for."""

from __future__ import annotations

from typing import Any

import pytest

from hookloop.testing import memory_checks

PRIVATE = ("tool_messages", "versioned", "media")
SHARED = ("tool_messages", "versioned", "durable", "media")
FLAGS: dict[str, tuple[str, ...]] = {
    "memory": PRIVATE,
    "sqlite-private": PRIVATE,
    "sqlite": SHARED,
    "postgresql": SHARED,
    "mariadb": SHARED,
    "redis": SHARED,
    "redis-debian": SHARED,
    "transcript": (),
}
PAIRS = [(name, check) for name, flags in FLAGS.items() for check in memory_checks.CHECKS if check.needs <= set(flags)]


@pytest.mark.parametrize(("store", "check"), PAIRS, indirect=["store"], ids=str)
def test_store_passes(store: Any, check: memory_checks.Check) -> None:
    memory_checks.verify(check, store.make, reopen=store.reopen)


def test_store_declares(store: Any) -> None:
    memory = store.make()
    assert memory.capabilities.flags == FLAGS[store.name]
    if hasattr(memory, "close"):
        memory.close()
