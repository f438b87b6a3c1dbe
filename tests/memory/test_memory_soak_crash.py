"""Every crash point of every plan on every store that outlives the process."""

from __future__ import annotations

from typing import Any

import pytest
from durable import DURABLE, PLANS, Plan

pytestmark = pytest.mark.soak


@pytest.mark.parametrize("lasting", DURABLE, indirect=True, scope="module")
@pytest.mark.parametrize("plan", PLANS, ids=str)
def test_every_crash_point_is_survived(lasting: Any, plan: Plan, conversation: str) -> None:
    assert plan.survive(lasting, conversation, step=1) > 20
