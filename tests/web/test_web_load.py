"""Long runs: many streamed chats at once, and a page that stays smooth in a long turn."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page
from web_loads import crowd, long_turn
from web_server import PUPPET, Serve

pytestmark = pytest.mark.soak


def test_fifty_streamed_chats_at_once_finish_without_error(serve: Serve) -> None:
    site = serve("web", "--rate", "1000", toml=PUPPET)
    found = crowd(site, chats=50, turns=4)
    print(found)
    assert found.done == 200
    assert found.pieces >= 200 * 30


def test_a_turn_of_many_rounds_is_shown_whole(page: Page, serve: Serve) -> None:
    site = serve("web", toml=PUPPET)
    found = long_turn(page, site, rounds=200, pieces=25)
    print(found)
    assert page.evaluate("document.querySelectorAll('.hl-row.o-plugin').length") == 200
