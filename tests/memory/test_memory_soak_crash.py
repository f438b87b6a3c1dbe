"""Every crash point of every plan on every store that outlives the process."""

from __future__ import annotations

from typing import Any

import pytest
from durable import PLANS, Plan

pytestmark = pytest.mark.soak
STEPS = {"sqlite": 1, "postgresql": 1, "redis": 1, "mariadb": 5}
"""MariaDB is written through the same statements as PostgreSQL: a part of the points is played there."""


@pytest.mark.parametrize("shared", STEPS, indirect=True)
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_crash_point_is_survived(shared: Any, plan: Plan, conversation: str) -> None:
    assert plan.survive(shared, conversation, STEPS[shared.name]) > 20 / STEPS[shared.name]
