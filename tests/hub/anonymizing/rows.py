"""Rows for tests of anonymised tables."""

from __future__ import annotations

from typing import Any


def varied(number: int) -> dict[str, list[Any]]:
    """People of many ages."""
    return {
        "age": [17 + (each * each) % 74 for each in range(number)],
        "sex": ["FMF"[each % 3] for each in range(number)],
        "pay": [float(each % 7) for each in range(number)],
    }
