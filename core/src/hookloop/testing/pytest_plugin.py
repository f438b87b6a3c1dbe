"""Fixtures for plugin authors: `strict_server`, a strict local server. Nothing is imported until it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from hookloop.testing.server import StrictServer

MARKER = "strict_server(**options): options of the `strict_server` fixture, as `StrictServer` takes them"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker, so that `--strict-markers` knows it."""
    config.addinivalue_line("markers", MARKER)


@pytest.fixture
def strict_server(request: pytest.FixtureRequest) -> Iterator[StrictServer]:
    """A running `StrictServer` with an empty script; give it steps with `play`, options with the marker of its name."""
    from hookloop.testing.server import StrictServer

    marker = request.node.get_closest_marker("strict_server")
    with StrictServer(**(marker.kwargs if marker else {})) as server:
        yield server
