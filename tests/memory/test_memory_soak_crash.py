"""Every crash point of every plan on every store that outlives the process."""

from __future__ import annotations

from typing import Any

import pytest
from crashing import assert_superseded
from durable import PLANS, Plan

pytestmark = pytest.mark.soak
STEPS = {"sqlite": 1, "postgresql": 1, "redis": 1, "mariadb": 19}
"""MariaDB is written through the same statements as PostgreSQL: a part of the points is played there."""
CLOSING = 3
"""What a new message closes is the engine's alone: all points of it on SQLite, each third on the others."""


@pytest.mark.parametrize("shared", STEPS, indirect=True)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_crash_point_is_survived(shared: Any, plan: Plan, conversation: str) -> None:
    thinned = plan.after is assert_superseded and shared.name != "sqlite"
    step = STEPS[shared.name] * (CLOSING if thinned else 1)
    assert plan.survive(shared, conversation, step) > 20 // step - 1
