"""The booking plugin as the engine finds, builds and asks it."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

import pluggy
import pytest
from pydantic import ValidationError

from hookloop_booking import BookingOptions, BookingPlugin, BookingService
from hookloop_booking.offline import OfflineProvider
from hookloop_hookspecs import hooks


def entry(group: str, name: str) -> EntryPoint:
    (found,) = entry_points(group=f"hookloop.{group}", name=name)
    return found


def test_plugin_and_provider_are_found_by_entry_point() -> None:
    assert entry("plugins", "booking").load() is BookingPlugin
    assert entry("providers", "offline").load() is OfflineProvider
    assert OfflineProvider("rules").reference == "offline:rules"
    assert entry("commands", "demo").value == "hookloop_booking.commands:demo"
    assert entry("commands", "demo-cli").value == "hookloop_booking.commands:demo_cli"


def test_its_hooks_are_hooks_of_the_contract() -> None:
    plugin = BookingPlugin(BookingOptions(url="sqlite://"))
    manager = pluggy.PluginManager("hookloop")
    manager.add_hookspecs(hooks)
    manager.register(plugin)
    manager.check_pending()
    plugin.close()


def test_the_option_url_says_where_the_tickets_are(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'own.db'}"
    plugin = BookingPlugin(BookingPlugin.Options(url=url))
    plugin.service.book("G456")
    plugin.close()

    assert [ticket.id for ticket in BookingService(url).booked()] == [2]


def test_without_options_the_file_lies_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    BookingPlugin().close()

    assert (tmp_path / "booking.db").exists()


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValidationError):
        BookingOptions.model_validate({"uri": "sqlite://"})


def test_a_turn_is_told_how_to_use_the_tools_it_gets() -> None:
    plugin = BookingPlugin(BookingOptions(url="sqlite://"))
    message = plugin.before_turn()

    assert message.role == "system"
    assert "book with no ticket" in message.text
    assert [tool.name for tool in plugin.register_tools()] == ["list_available", "list_booked", "book", "cancel"]
    plugin.close()


def test_a_shared_service_stays_the_callers_to_close() -> None:
    service = BookingService("sqlite://")
    service.book("2")
    BookingPlugin(service=service).close()

    assert [ticket.id for ticket in service.booked()] == [2]
    service.close()
