"""Fixtures for plugin authors: `strict_server`, a strict local server. Nothing is imported until it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hookloop.testing.server import StrictServer


@pytest.fixture
def strict_server() -> Iterator[StrictServer]:
    """A running `StrictServer` with an empty script; give it steps with `play`."""
    from hookloop.testing.server import StrictServer

    with StrictServer() as server:
        yield server
