"""Guests of the hub, tried without waiting for their time."""

from __future__ import annotations

import pytest

from tests.guests.unhurried import unhurry


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that look at no time need not wait for it."""
    unhurry(monkeypatch)
