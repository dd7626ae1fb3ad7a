"""Sandboxes and tables for guests."""

from __future__ import annotations

import pytest

import cloister as cl
from cloister.guests.sandbox.image import image
from tests.guests.unhurried import unhurry


@pytest.fixture(scope="session", autouse=True)
def built() -> None:
    """The image is built once, before anything is measured by it."""
    image()


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests that look at no time need not wait for it."""
    unhurry(monkeypatch)


@pytest.fixture
def people() -> cl.PrivateTable:
    """Six hundred people with nasty columns."""
    rows = {
        "age": [20, 40, None, 60, 10**6, -5] * 100,
        "plan 🌙": ["a", "b", None, "b", "'; DROP", "a"] * 100,
        "note": ["x\0y", "", None, "'", '"', "\\"] * 100,
        "day": ["2024-01-01", None, "2024-02-30", "2024-12-31", "2030-01-01", "2024-06-01"] * 100,
    }
    columns = {
        "age": cl.Integer(0, 100, nullable=True),
        "plan 🌙": cl.Category(["a", "b"], nullable=True),
        "note": cl.Text(nullable=True),
        "day": cl.Date("2024-01-01", "2024-12-31", nullable=True),
    }
    return cl.PrivateTable(rows, columns)
