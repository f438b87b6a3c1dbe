"""Fifty turns at once over ten conversations from four processes, in threads and in tasks."""

from __future__ import annotations

from typing import Any

import pytest
from rivals import Way, compete
from turners import processes

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("way", ["threads", "tasks"])
@pytest.mark.parametrize("shared", ["sqlite", "postgresql", "redis"], indirect=True)
def test_fifty_turns_of_four_processes_never_mix(shared: Any, way: Way, conversation: str) -> None:
    assert compete(processes(), shared, conversation, way, (13, 13, 12, 12), 10) > 0
