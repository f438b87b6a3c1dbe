"""Every store, on its real server, passes every check that its flags ask for."""

from __future__ import annotations

from typing import Any

import pytest

from hookloop.testing import memory_checks

EXPECTED = {
    "memory": ("tool_messages", "versioned", "media"),
    "sqlite-private": ("tool_messages", "versioned", "media"),
    "transcript": (),
}
ALL = ("tool_messages", "versioned", "durable", "media")


@pytest.mark.parametrize("check", memory_checks.CHECKS, ids=str)
def test_store_passes(check: memory_checks.Check, store: Any) -> None:
    if check.needs - set(EXPECTED.get(store.name, ALL)):
        pytest.skip(f"{store} does not declare {sorted(check.needs)}")
    memory_checks.verify(check, store.make, reopen=store.reopen)


def test_store_declares(store: Any) -> None:
    memory = store.make()
    assert memory.capabilities.flags == EXPECTED.get(store.name, ALL)
    if hasattr(memory, "close"):
        memory.close()
