"""Crash points on every store that outlives the process: a sample of them; `make soak` has them all."""

from __future__ import annotations

from typing import Any

import pytest
from durable import DURABLE, PLANS, Plan

STEP = 23
"""Of the crash points of a plan every so many-th is played here, another choice on each store."""


@pytest.mark.parametrize("shared", DURABLE, indirect=True)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_some_crash_points_are_survived(shared: Any, plan: Plan, conversation: str) -> None:
    assert plan.survive(shared, conversation, STEP, 5 * DURABLE.index(shared.name) + PLANS.index(plan)) > 0
