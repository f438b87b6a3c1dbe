"""Crash points on every store that outlives the process: a sample of them; `make soak` has them all."""

from __future__ import annotations

from typing import Any

import pytest
from durable import DURABLE, PLANS, Plan

STEP = 47
"""Of the crash points of a plan every so many-th is played here, another choice on each store."""
CASES = [
    pytest.param(store, plan, id=f"{plan}-{store}")
    for store in DURABLE
    for plan in (PLANS[::5] if store == "mariadb" else PLANS)
]


@pytest.mark.parametrize(("shared", "plan"), CASES, indirect=["shared"])
def test_some_crash_points_are_survived(shared: Any, plan: Plan, conversation: str) -> None:
    first = (5 * DURABLE.index(shared.name) + PLANS.index(plan)) % 20
    assert plan.survive(shared, conversation, STEP, first) > 0
